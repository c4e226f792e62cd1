"""Bins: numbers as finitely many ranges, and the interface of groupings, which give entries coarser labels.

Edges e₁ < … < eₙ cut the line into `< e₁`, `[e₁, e₂)`, …, `>= eₙ`. Quantiles are edges from the data. They are rounded,
since an edge is published and an exact quantile is the number of a person.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

import polars as pl

from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.names import format_interval, shortest_text
from privacyfunnel.tables.readers.formats import NumberFormat

GroupedEntries = tuple[
    pl.Series, pl.Series | None
]  # a label for each entry, null for a gap; and which have none, if any


class Grouping(Protocol):
    """A rule by which the entries of a column get coarser labels."""

    @property
    def rule_text(self) -> str:
        """The rule as it is asked for on the command line."""

    @property
    def requirement(self) -> str:
        """What an entry must be to have a label."""

    def labels(self, entries: pl.Series, numbers: NumberFormat) -> GroupedEntries:
        """The label of each entry. A label is its own label: what is grouped already stays as it is."""

    def sort_labels(self, labels: Iterable[str]) -> list[str]:
        """The labels as they are listed."""

    def to_json(self) -> dict[str, Any]:
        """The rule as it stands in a protocol file."""


MOST_BINS = 1000  # more are no bins


@dataclass(frozen=True, slots=True)
class Bins:
    """What the owner asked for one column, or nothing but its name to keep every value as it is.

    `edges` cut numbers, so many `quantiles` are edges from the data, a `width` cuts at its multiples (from `bottom` to
    `top`, or as far as there are numbers), and `how` is a grouping: of dates, of codes, or by a map.
    """

    column: str
    edges: tuple[float, ...] = ()
    quantiles: int | None = None
    width: float | None = None
    bottom: float | None = None
    top: float | None = None
    how: Grouping | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", tuple(float(edge) for edge in self.edges))
        if not all(math.isfinite(edge) for edge in self.edges):
            raise ParameterError(f"the edges of '{self.column}' must be finite numbers.")
        if any(low >= high for low, high in pairwise(self.edges)):
            raise ParameterError(f"the edges of '{self.column}' must increase; give them in order, each once.")
        if self.quantiles is not None and not 2 <= self.quantiles <= MOST_BINS:
            raise ParameterError(
                f"quantiles of '{self.column}' must be 2 to {MOST_BINS}; {self.quantiles} were asked for."
            )
        if self.width is not None and not 0 < self.width < math.inf:
            raise ParameterError(f"the width of the bins of '{self.column}' must be a number above 0.")
        if self.width is not None and self.bottom is not None and self.top is not None:
            object.__setattr__(self, "edges", self.multiples(self.bottom, self.top))
            object.__setattr__(self, "width", None)

    @property
    def cuts(self) -> bool:
        """Whether numbers are cut into bins."""
        return bool(self.edges) or self.quantiles is not None or self.width is not None

    def multiples(self, low: float, high: float) -> tuple[float, ...]:
        """The edges of bins of this width for numbers from low to high: multiples of it, cut off at both ends.

        They depend on the numbers through ⌊low / width⌋ and ⌊high / width⌋ only.

        >>> Bins("price", width=0.1).multiples(0.25, 0.49), Bins("price", width=10, top=30).multiples(12, 95)
        ((0.3, 0.4), (20.0, 30.0))
        """
        width = _exact_fraction(self.width or 1.0)
        first = _exact_fraction(low if self.bottom is None else self.bottom) / width
        last = _exact_fraction(high if self.top is None else self.top) / width
        start = math.floor(first) + 1 if self.bottom is None else math.ceil(first)
        stop = math.floor(last)
        if stop - start >= MOST_BINS:
            raise ParameterError(
                f"'{self.column}' must have at most {MOST_BINS} bins; a width of {shortest_text(float(width))} gives "
                f"more. Use a larger one, or cut it off: {self.column}=width:{shortest_text(float(width))},top:…"
            )
        return tuple(float(i * width) for i in range(start, stop + 1)) or (float(max(stop, start) * width),)


def refuse_bins(bins: Sequence[Bins], stated: Collection[str]) -> None:
    """Refuse bins of columns whose bins a protocol states."""
    for each in bins:
        if each.column in stated:
            raise ColumnError(f"the bins of '{each.column}' are in the protocol file; leave out {hint('bins')} for it.")


def bin_labels(edges: tuple[float, ...]) -> tuple[str, ...]:
    """A label per bin, in order.

    >>> bin_labels((0.0, 18.0, 37.5))
    ('under 0', '0–17', '18 to under 37.5', '37.5+')
    """
    return tuple(format_interval(low, high) for low, high in pairwise((-math.inf, *edges, math.inf)))


def round_down(number: float, width: float) -> float:
    """The largest multiple of t up to the number; t is the coarsest of 1, 2, 2.5 and 5 × 10^k up to half the width.

    So t is above a quarter of the width: between numbers that lie a width apart there are two to four multiples.

    >>> round_down(37_123.45, 9_000.0), round_down(0.3, 0.05), round_down(-7.0, 1.0)
    (35000.0, 0.3, -7.0)
    """
    step = _round_step(_exact_fraction(width) / 2)
    return float(_exact_fraction(number) // step * step)


def _round_step(most: Fraction) -> Fraction:
    """The largest of 1, 2, 2.5 and 5 × 10^k that is not above `most`."""
    power = Fraction(1)
    while power > most:
        power /= 10
    while power * 10 <= most:
        power *= 10
    return max(power * factor for factor in (1, 2, Fraction(5, 2), 5) if power * factor <= most)


def _exact_fraction(number: float) -> Fraction:
    """The number that its shortest text is: 0.3, not the binary fraction nearest to it."""
    return Fraction(Decimal(repr(number)))


def example_edges(low: float, high: float) -> str:
    """Round edges between low and high, as one would type them: no bin is empty for lying beyond them.

    >>> example_edges(17, 90), example_edges(0, 52)
    ('20,40,60,80', '10,20,30,40,50')
    >>> example_edges(0.12, 0.97)
    '0.2,0.4,0.6,0.8'
    """
    span = high - low
    if not 0 < span < math.inf:
        return shortest_text(low)
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= 6)
    first, last = math.floor(low / step) + 1, math.ceil(high / step) - 1
    places = max(0, -math.floor(math.log10(step)))
    return ",".join(shortest_text(round(i * step, places)) for i in range(first, last + 1))
