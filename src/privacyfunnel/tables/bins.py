"""Bins: how numbers become finitely many values.

Edges e₁ < … < eₙ cut the line into `< e₁`, `[e₁, e₂)`, …, `>= eₙ`. Quantiles are edges that come from the data, and are
rounded, since an edge is published and an exact quantile is the number of a person.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from privacyfunnel.errors import ParameterError

MOST_BINS = 1000  # more are no bins


@dataclass(frozen=True, slots=True)
class Bins:
    """What the owner asked for one column: edges, or a number of quantiles, or neither to keep every value as it is."""

    column: str
    edges: tuple[float, ...] = ()
    quantiles: int | None = None

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


def parse_bin(text: str) -> Bins:
    """The bins meant by `COLUMN=EDGE,EDGE,…`, `COLUMN=quantiles:N` or `COLUMN=values`.

    >>> parse_bin("age=0,18,30,50,65").edges
    (0.0, 18.0, 30.0, 50.0, 65.0)
    >>> parse_bin("income=quantiles:8").quantiles
    8
    >>> parse_bin("age")
    Traceback (most recent call last):
    ...
    privacyfunnel.errors.ParameterError: bins look like age=0,18,65 or age=quantiles:8 or age=values; 'age' does not.
    """
    column, equals, how = text.rpartition("=")
    kind, _, number = how.strip().partition(":")
    try:
        if not equals or not column:
            raise ValueError
        if kind == "quantiles":
            return Bins(column, quantiles=int(number))
        if how.strip() == "values":
            return Bins(column)
        return Bins(column, edges=tuple(float(edge) for edge in how.split(",")))
    except ValueError:
        column = column or "age"
        shapes = f"{column}=0,18,65 or {column}=quantiles:8 or {column}=values"
        raise ParameterError(f"bins look like {shapes}; '{text}' does not.") from None


def bin_labels(edges: tuple[float, ...]) -> tuple[str, ...]:
    """A label per bin, in order.

    >>> bin_labels((0.0, 18.0, 37.5))
    ('< 0', '[0, 18)', '[18, 37.5)', '>= 37.5')
    """
    texts = [number_text(edge) for edge in edges]
    inner = [f"[{low}, {high})" for low, high in pairwise(texts)]
    return (f"< {texts[0]}", *inner, f">= {texts[-1]}")


def number_text(number: float) -> str:
    """The shortest text that is this number."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def rounded_down(number: float, width: float) -> float:
    """The largest multiple of t up to the number; t is the coarsest of 1, 2, 2.5 and 5 × 10^k up to half the width.

    So t is above a quarter of the width: between numbers that lie a width apart there are two to four multiples.

    >>> rounded_down(37_123.45, 9_000.0), rounded_down(0.3, 0.05), rounded_down(-7.0, 1.0)
    (35000.0, 0.3, -7.0)
    """
    step = _round_step(_exact(width) / 2)
    return float(_exact(number) // step * step)


def _round_step(most: Fraction) -> Fraction:
    """The largest of 1, 2, 2.5 and 5 × 10^k that is not above `most`."""
    power = Fraction(1)
    while power > most:
        power /= 10
    while power * 10 <= most:
        power *= 10
    return max(power * factor for factor in (1, 2, Fraction(5, 2), 5) if power * factor <= most)


def _exact(number: float) -> Fraction:
    """The number that its shortest text is: 0.3, not the binary fraction nearest to it."""
    return Fraction(Decimal(repr(number)))


def example_edges(low: float, high: float) -> str:
    """Round edges that cover [low, high], as one would type them.

    >>> example_edges(17, 90)
    '0,20,40,60,80,100'
    >>> example_edges(0.12, 0.97)
    '0,0.2,0.4,0.6,0.8,1'
    """
    span = high - low
    if not 0 < span < math.inf:
        return number_text(low)
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= 6)
    first, last = math.floor(low / step), math.ceil(high / step)
    places = max(0, -math.floor(math.log10(step)))
    return ",".join(number_text(round(i * step, places)) for i in range(first, last + 1))
