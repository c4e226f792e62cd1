"""Pictures as text: the few shapes of SVG that the report draws, and scales with round ticks.

Lengths are points, as in print. A picture has no size of its own and no font: it fills the width that the page gives it
and takes the page's letters and text colour.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

INK = "currentColor"
# Readable on light and on dark pages.
TEAL, BLUE, RED, AMBER, VIOLET, GREY = "#1b8a6b", "#3b82b5", "#d1495b", "#d99000", "#8f6fc9", "#7b868b"
LINES = (TEAL, BLUE, RED, AMBER, VIOLET, GREY)  # of methods, in the order of the table
EVERYTHING = "#999999"  # H(X), the line that nothing exceeds
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")  # no XML may hold these
ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)  # ticks stand at these times a power of ten


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as SVG, and what it shows in words for those who do not see it."""

    name: str
    svg: str
    words: str


def svg(width: float, height: float, parts: Iterable[str]) -> str:
    """The picture of these parts."""
    box = f"0 0 {_format_number(width)} {_format_number(height)}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}">{"".join(parts)}</svg>'


def line(
    x1: float, y1: float, x2: float, y2: float, *, colour: str = INK, width: float = 0.8, faint: float = 1.0,
    dashes: str = "",
) -> str:  # fmt: skip
    """A straight line."""
    more = (f' stroke-opacity="{faint:g}"' if faint < 1 else "") + (f' stroke-dasharray="{dashes}"' if dashes else "")
    ends = f'x1="{_format_number(x1)}" y1="{_format_number(y1)}" x2="{_format_number(x2)}" y2="{_format_number(y2)}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{_format_number(width)}"{more}/>'


def polyline(points: Sequence[tuple[float, float]], colour: str, *, width: float = 1.5) -> str:
    """Straight lines from point to point."""
    places = " ".join(f"{_format_number(x)},{_format_number(y)}" for x, y in points)
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="{_format_number(width)}"/>'


def rectangle(x: float, y: float, width: float, height: float, colour: str, *, faint: float = 1.0) -> str:
    """A filled rectangle."""
    more = f' fill-opacity="{faint:.3g}"' if faint < 1 else ""
    place = f'x="{_format_number(x)}" y="{_format_number(y)}"'
    size = f'width="{_format_number(max(width, 0.0))}" height="{_format_number(height)}"'
    return f'<rect {place} {size} fill="{colour}"{more}/>'


def text_element(
    x: float, y: float, text: str, *, size: float = 9.5, anchor: str = "start", colour: str = INK, turned: float = 0.0
) -> str:
    """Text whose middle stands at height y; `anchor` says which end of it is at x, and `turned` by how many degrees."""
    turn = f' transform="rotate({turned:g} {_format_number(x)} {_format_number(y)})"' if turned else ""
    place = f'x="{_format_number(x)}" y="{_format_number(y)}" dy="0.35em" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size:g}" fill="{colour}"{turn}>{escape(_UNWRITABLE.sub("�", text))}</text>'


# Marks by their corners, around the middle, in units of half their size.
_CORNERS = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    "up": ((0, -1.1), (1.05, 0.8), (-1.05, 0.8)),
    "down": ((0, 1.1), (1.05, -0.8), (-1.05, -0.8)),
    "star": tuple(
        (r * math.sin(k * math.pi / 5), -r * math.cos(k * math.pi / 5))
        for k in range(10)
        for r in [1.3 - 0.8 * (k % 2)]
    ),
}
MARKS = ("circle", "square", "diamond", "up", "down")


def mark(kind: str, x: float, y: float, colour: str, *, size: float = 5.0) -> str:
    """A mark at a point: one of MARKS, a star, or a bar (an upright line) or dash (a flat one)."""
    half = size / 2
    if kind == "circle":
        return f'<circle cx="{_format_number(x)}" cy="{_format_number(y)}" r="{_format_number(half)}" fill="{colour}"/>'
    if kind == "bar":
        return line(x, y - half, x, y + half, colour=colour, width=1.6)
    if kind == "dash":
        return line(x - half, y, x + half, y, colour=colour, width=1.2)
    places = " ".join(f"{_format_number(x + half * dx)},{_format_number(y + half * dy)}" for dx, dy in _CORNERS[kind])
    return f'<polygon points="{places}" fill="{colour}"/>'


def shorten(text: str, longest: int) -> str:
    """The text, cut where it is longer.

    >>> shorten("Some-college", 6)
    'Some-…'
    """
    return text if len(text) <= longest else text[: max(1, longest - 1)] + "…"


@dataclass(frozen=True, slots=True)
class Scale:
    """From numbers low … high to places start … end; by their logarithms where it is `logarithmic`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.start + (self.end - self.start) * (value - low) / (high - low)

    def ticks(self, most: int = 7) -> list[float]:
        """Round numbers within, at most so many of them where they are equally far apart.

        >>> Scale(0, 2.03, 0, 1).ticks(), Scale(0.0005, 0.3, 0, 1, logarithmic=True).ticks()
        ([0.0, 0.5, 1.0, 1.5, 2.0], [0.001, 0.01, 0.1])
        """
        if self.logarithmic:
            return _decades(self.low, self.high)
        wide = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(wide))
        step = next(power * factor for factor in ROUND if power * factor >= wide * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        return [float(f"{k * step:.12g}") for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten, and what lies between where they are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5), range(1, 10)):
        found = [float(f"{factor}e{power}") for power in powers for factor in factors]
        found = [tick for tick in found if low <= tick <= high]
        if len(found) >= 3:
            return found
    return found


def legend(entries: Sequence[tuple[str, str]], x: float, y: float, width: float, *, columns: int = 2) -> list[str]:
    """What the marks mean, in columns: each entry is what is drawn around (0, 0) and its words."""
    rows = -(-len(entries) // columns)
    parts = []
    for i, (sign, text) in enumerate(entries):
        left, down = x + i // rows * width / columns, y + LINE * (i % rows)
        parts += [
            f'<g transform="translate({_format_number(left + 9)} {_format_number(down)})">{sign}</g>',
            text_element(left + 22, down, text),
        ]
    return parts


LINE = 16.0  # points from one line of a legend to the next


def frame(across: Scale, up: Scale, below: str, beside: str) -> list[str]:
    """Two axes with their ticks, their names, and a faint grid."""
    left, right, bottom, top = across.start, across.end, up.start, up.end
    parts = [line(left, bottom, right, bottom), line(left, top, left, bottom)]
    for tick in across.ticks(5):
        parts += [
            line(across(tick), top, across(tick), bottom, faint=0.12),
            line(across(tick), bottom, across(tick), bottom + 3),
            text_element(across(tick), bottom + 11, f"{tick:g}", anchor="middle"),
        ]
    for tick in up.ticks(5):
        parts += [
            line(left, up(tick), right, up(tick), faint=0.12),
            line(left - 3, up(tick), left, up(tick)),
            text_element(left - 5, up(tick), f"{tick:g}", anchor="end"),
        ]
    return [
        *parts,
        text_element((left + right) / 2, bottom + 27, below, size=TITLE, anchor="middle"),
        text_element(9, (top + bottom) / 2, beside, size=TITLE, anchor="middle", turned=-90),
    ]


TEXT, TITLE = 9.5, 10.5  # points: of ticks and legends, and of what axes are called


def _format_number(number: float) -> str:
    """A number with as many digits as anybody sees."""
    return f"{number:.2f}".rstrip("0").rstrip(".")
