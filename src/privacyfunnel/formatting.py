"""Figures as people read them: percent, percentage points, factors, ε, nats, counts and durations.

This is the only place that rounds a figure for reading. A bound is rounded outwards: an upper bound never down, a lower
bound never up, so that the printed bound holds whenever the exact one does. Rounding starts from the shortest decimal
that is the number, so 0.1 is printed as 0.1 and there is no tolerance: read back as a number, a figure rounded up is at
least the one it was made from.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from html import escape

UNBOUNDED = "unbounded"
FIGURES = 4  # of an ε, as in a certificate
PLACES = 4  # of nats
FINEST = 12  # places of a percentage
EXACT_SHARE = 5e-5
WIDE = Context(prec=400)  # holds every float to `FINEST` places
LARGEST_FACTOR = Decimal(10_000)  # larger ones are written as powers of e


def format_percent(share: float, *, up: bool = False, down: bool = False) -> str:
    """A share in percent, to a tenth; near 0 % and 100 % to two significant digits of the distance.

    >>> format_percent(0.7425), format_percent(0.7425, up=True), format_percent(0.7425, down=True)
    ('74.2 %', '74.3 %', '74.2 %')
    >>> format_percent(0.3), format_percent(0.000301), format_percent(0.99961), format_percent(0.999)
    ('30 %', '0.030 %', '99.961 %', '99.9 %')
    >>> format_percent(1 - 1e-15), format_percent(1 - 1e-15, up=True)  # what floats make of 1
    ('100 %', '100 %')
    """
    return UNBOUNDED if math.isinf(share) else f"{_percentage(share, up=up, down=down)} %"


def format_percent_range(low: float, high: float) -> str:
    """An interval of shares, both ends rounded outwards.

    >>> format_percent_range(0.1103, 0.74251), format_percent_range(0.0, 1.0)
    ('11.0 to 74.3 %', '0 to 100 %')
    """
    return f"{_percentage(low, down=True)} to {_percentage(high, up=True)} %"


def format_points(share: float) -> str:
    """Half the width of an interval of shares, in percentage points; rounded up, but for rounding errors of floats.

    >>> format_points(0.0042), format_points(0.00004), format_points(0.1234), format_points(0.0)
    ('0.42', '0.004', '12.4', '0')
    """
    if math.isinf(share):
        return UNBOUNDED
    points = _exact(round(share, FINEST)).scaleb(2)
    return f"{_quantise(points, 1, ROUND_CEILING):f}" if points >= 10 else _significant(points, 2, ROUND_CEILING)


def format_error(share: float) -> str:
    """How far off a share may be, in points; what is nearer than half a hundredth of a point is exact to a reader.

    >>> format_error(0.0042), format_error(0.00004)
    ('±0.42', 'exact')
    """
    return "exact" if share < EXACT_SHARE else f"±{format_points(share)}"


def format_epsilon(epsilon: float, *, down: bool = False) -> str:
    """An ε to four significant digits, rounded up; a lower bound is rounded `down`.

    >>> [format_epsilon(value) for value in (0.51234, 1.0, 100.0001, 4e-11, 9.9999e-7, 1e300, math.inf)]
    ['0.5124', '1', '100.1', '4e-11', '1e-06', '1e+300', 'unbounded']
    >>> format_epsilon(0.51236, down=True)
    '0.5123'
    """
    if math.isinf(epsilon):
        return UNBOUNDED
    return _significant(_exact(epsilon), FIGURES, _direction(up=not down, down=down))


def format_factor(epsilon: float, *, down: bool = False) -> str:
    """The factor e^ε to three significant digits, rounded up; a lower bound is rounded `down`.

    >>> format_factor(1.0), format_factor(0.0), format_factor(800.0), format_factor(math.inf)
    ('2.72', '1', 'e^800', 'unbounded')
    """
    if math.isinf(epsilon):
        return UNBOUNDED
    exact = _exact(epsilon)
    if exact > LARGEST_FACTOR.ln():
        return f"e^{format_epsilon(epsilon, down=down)}"
    return _significant(Context(prec=40).exp(exact), 3, _direction(up=not down, down=down))


def format_nats(nats: float) -> str:
    """An amount of information.

    >>> format_nats(1.25)
    '1.2500 nats'
    """
    return f"{format_places(nats)} nats"


def format_places(value: float, places: int = PLACES, *, up: bool = False, down: bool = False) -> str:
    """A figure with a fixed number of decimal places.

    >>> format_places(2.5), format_places(0.99412039, up=True), format_places(1 / 3, 2)
    ('2.5000', '0.9942', '0.33')
    """
    return UNBOUNDED if math.isinf(value) else f"{_quantise(_exact(value), places, _direction(up=up, down=down)):f}"


def format_number(value: float) -> str:
    """The shortest text that is this number; for what somebody typed.

    >>> format_number(1.0), format_number(0.1), format_number(1e-7), format_number(5)
    ('1', '0.1', '1e-07', '5')
    """
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def format_count(number: int) -> str:
    """A whole number, which may be very large.

    >>> format_count(48842), format_count(2**64)
    ('48,842', '2^64')
    """
    if number.bit_length() > 40 and number & (number - 1) == 0:
        return f"2^{number.bit_length() - 1}"
    return f"{number:,}"


def format_duration(seconds: float) -> str:
    """A time.

    >>> format_duration(0.0042), format_duration(1.26), format_duration(133), format_duration(1500)
    ('4.2 ms', '1.3 s', '133 s', '25 min')
    """
    if seconds < 0.1:
        return f"{1000 * seconds:.1f} ms"
    if seconds < 600:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def _percentage(share: float, *, up: bool = False, down: bool = False) -> str:
    """100 times the share, to a tenth or to two significant digits of the distance from 0 and 100."""
    value = _exact(share if up or down else round(share, FINEST)).scaleb(2)
    near = min((distance for distance in (abs(value), abs(100 - value)) if distance), default=Decimal(100))
    places = 1 if near >= 1 else min(1 - near.adjusted(), FINEST)
    rounded = _quantise(value, places, _direction(up=up, down=down))
    return f"{rounded.normalize() if rounded in {value, 0, 100} else rounded:f}"


def _exact(value: float) -> Decimal:
    """The shortest decimal that is this number."""
    return Decimal(repr(float(value)))


def _direction(*, up: bool, down: bool) -> str:
    return ROUND_CEILING if up else ROUND_FLOOR if down else ROUND_HALF_EVEN


def _quantise(value: Decimal, places: int, rounding: str) -> Decimal:
    """The value rounded to so many places; never minus zero."""
    return WIDE.plus(value.quantize(Decimal(1).scaleb(-places), rounding, WIDE))


def _significant(value: Decimal, figures: int, rounding: str) -> str:
    """The value rounded to so many significant digits, without zeros at the end."""
    rounded = Context(prec=figures, rounding=rounding).plus(value).normalize()
    return f"{rounded:f}" if not rounded or -4 <= rounded.adjusted() < 6 else f"{float(rounded):g}"


def finite_or_none(epsilon: float | None) -> float | None:
    """An ε as JSON has it: null where it is infinite or not known."""
    return epsilon if epsilon is not None and math.isfinite(epsilon) else None


MOST_ROWS = 30  # that a notebook shows
_CELL = "padding:.15em .7em;text-align:left;"


def facts_html(title: str, pairs: Iterable[tuple[str, str]]) -> str:
    """A title and a name with what there is to say about it on each line.

    >>> facts_html("Joint", [("rows", "1 < 2")]).count("&lt;")
    1
    """
    lines = "".join(
        f'<tr><th style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{escape(text)}</td></tr>'
        for name, text in pairs
    )
    return f"<div><strong>{escape(title)}</strong><table>{lines}</table></div>"


class ShowsFacts(ABC):
    """Shows itself in a few lines, in a notebook as a table."""

    __slots__ = ()

    @abstractmethod
    def _facts(self) -> list[tuple[str, str]]:
        """Names and what is said of each."""

    def __repr__(self) -> str:
        return "\n".join([type(self).__name__, *(f"  {name:<12} {text}" for name, text in self._facts())])

    def _repr_html_(self) -> str:
        return facts_html(type(self).__name__, self._facts())


def table_html(header: Sequence[str], rows: Sequence[Sequence[str]], bars: Sequence[float] = ()) -> str:
    """A table; `bars` are shares that stand beside the rows as bars."""
    more = len(rows) - MOST_ROWS
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in header)
    body = ""
    for i, row in enumerate(rows[:MOST_ROWS]):
        cells = "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row)
        bar = f'<td style="min-width:12em">{_bar(bars[i])}</td>' if bars else ""
        body += f"<tr>{cells}{bar}</tr>"
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    return f"<table><tr>{head}{'<th></th>' if bars else ''}</tr>{body}</table>{rest}"


def _bar(share: float) -> str:
    width = f"{100 * min(1.0, max(0.0, share)):.1f}%"
    return f'<div style="background:currentColor;opacity:.55;height:.8em;width:{width}"></div>'
