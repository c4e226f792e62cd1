"""How answers are written for people."""

from __future__ import annotations

import math
from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> str:
    """Columns that line up, to the left (<) or to the right (>).

    >>> print(table(["method", "nats"], [["optimal", "1.5"]], "<>"))
    method   nats
    optimal   1.5
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = (
        [f"{cell:{how}{width}}" for cell, how, width in zip(line, align, widths, strict=True)]
        for line in [header, *rows]
    )
    return "\n".join("  ".join(line).rstrip() for line in lines)


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """A name and what there is to say about it on each line.

    >>> print(facts([("rows", "12"), ("secret", "income")]))
    rows     12
    secret   income
    """
    width = max(len(name) for name, _ in pairs) + 3
    return "\n".join(f"{name.ljust(width)}{said}" for name, said in pairs)


def epsilon(value: float) -> str:
    """An ε for reading; never rounded down, for a promise is not made to look smaller than it is.

    >>> [epsilon(value) for value in (0.51234, 1.0, 100.0001, 4e-11, 9.999e-7, 1e300, math.inf)]
    ['0.5124', '1', '100.0001', '4e-11', '1e-06', '1e+300', 'unbounded']
    """
    if math.isinf(value):
        return "unbounded"
    if value >= 1e6:
        return repr(value)
    if value == 0 or value >= 1e-3:
        return f"{math.ceil(round(value * 1e4, 6)) / 1e4:.4f}".rstrip("0").rstrip(".")
    power = math.floor(math.log10(value))
    digits = math.ceil(round(value / 10.0**power * 100, 6)) / 100
    return f"{digits:g}e{power:03d}" if digits < 10 else f"1e{power + 1:03d}"


def nats(value: float, error: float = 0.0) -> str:
    """An amount of information for reading, with its standard error where it is a mean over rows.

    >>> nats(1.25), nats(1.25, 0.004)
    ('1.2500 nats', '1.2500 ± 0.0040 nats (mean and standard error over the rows)')
    """
    if error:
        return f"{value:.4f} ± {error:.4f} nats (mean and standard error over the rows)"
    return f"{value:.4f} nats"


def share(part: float, whole: float) -> str:
    """A part in percent of the whole.

    >>> share(1, 8)
    '12.5 %'
    """
    return f"{100 * part / whole if whole else 0:.1f} %"


def many(number: int) -> str:
    """A number that may be very large.

    >>> many(48842), many(2**64)
    ('48,842', '2^64')
    """
    if number.bit_length() > 40 and number & (number - 1) == 0:
        return f"2^{number.bit_length() - 1}"
    return f"{number:,}"
