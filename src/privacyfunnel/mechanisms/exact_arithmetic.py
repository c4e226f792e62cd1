"""Exact arithmetic: chances rounded to integers, e^ε from below, logarithms from above, ratios as fractions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any
from typing import Protocol as Shape

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, Matrix, nonzero_entries
from privacyfunnel.model.comparisons import Comparisons, Leak

INT64_BITS = 62  # a certain output, 2^62, and sums of two of them still fit an int64


def round_rows(chances: Matrix, bits: int, finest: int = 1) -> tuple[IntArray, IntArray, NDArray[Any]]:
    """Each row of chances as integers that sum to 2^bits: the entries' rows, columns and numerators, row by row.

    Every chance is rounded down, to nothing where less than `finest` is left; the rest is given to the row's largest.
    Beyond 62 bits the integers are Python's own.
    """
    row, column, chance = nonzero_entries(chances)
    # A float times a power of two is exact, and so is its integer part.
    scaled = np.floor(np.ldexp(chance, bits))
    whole = bits > INT64_BITS
    numerator = np.array([int(x) for x in scaled], dtype=object) if whole else scaled.astype(np.int64)
    numerator[numerator < finest] = 0
    sums = np.zeros(chances.shape[0], dtype=numerator.dtype)
    np.add.at(sums, row, numerator)
    largest = np.zeros(chances.shape[0])
    np.maximum.at(largest, row, chance)
    are = np.flatnonzero(chance == largest[row])
    numerator[are[np.unique(row[are], return_index=True)[1]]] += (1 << bits) - sums  # the first where several are
    kept = numerator > 0
    return row[kept], column[kept], numerator[kept]


def merge_outputs(chances: FloatArray, frequency: FloatArray, stays: BoolArray) -> FloatArray:
    """The outputs that stay; all others are published as the most frequent of these.

    For outputs too rare for integers to follow them: an average of allowed posteriors is allowed.

    >>> merge_outputs(np.array([[0.5, 0.3, 0.2]]), np.array([0.5, 0.3, 0.2]), np.array([True, True, False]))
    array([[0.7, 0.3]])
    """
    whole = chances.copy()
    whole[:, np.argmax(np.where(stays, frequency, 0.0))] += chances[:, ~stays].sum(axis=1)
    return np.asarray(whole[:, stays])


# `decimal` rounds exp and ln correctly in the last of these digits; one unit there is given away on the safe side.
DIGITS = 60
_CONTEXT = Context(prec=DIGITS, Emax=10**9, Emin=-(10**9))
_BELOW = Context(prec=DIGITS, rounding=ROUND_FLOOR, Emax=10**9, Emin=-(10**9))
LARGEST = 700.0  # a larger ε is certified at this one: the safe side, and e^ε keeps a size that can be computed with
TIE = 1e-12  # floats closer than this are compared again as fractions; their own error is below 1e-14
WORKED_ON = 1 << 20  # masses that are worked on at a time: as Python's integers they take some hundred bytes each


def exp_below(epsilon: float, scale: float = 1.0) -> Fraction:
    """A rational number just below e^(scale·ε) (below e^700 where that is larger), and at least 1.

    >>> exp_below(0.0)
    Fraction(1, 1)
    >>> 2.718281828 < exp_below(1.0) < 2.718281829
    True
    """
    if epsilon == 0:
        return Fraction(1)
    exact = min(Fraction(epsilon) * Fraction(scale), Fraction(LARGEST))
    power = Decimal(epsilon) if scale == 1 and epsilon <= LARGEST else _BELOW.divide(exact.numerator, exact.denominator)
    return max(Fraction(1), Fraction(_CONTEXT.next_minus(_CONTEXT.exp(power))))


def log_above(ratio: Fraction, scale: float = 1.0) -> float:
    """A float at or just above ln(ratio) / scale, for ratio >= 1.

    >>> log_above(Fraction(1))
    0.0
    """
    if ratio == 1:
        return 0.0
    above = _CONTEXT.next_plus(_CONTEXT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    bound = _CONTEXT.next_plus(_CONTEXT.ln(above))
    if scale != 1:
        bound = _CONTEXT.next_plus(_CONTEXT.divide(bound, Decimal(scale)))
    nearest = float(bound)
    return nearest if Decimal(nearest) >= bound else math.nextafter(nearest, math.inf)


@dataclass(frozen=True, slots=True)
class ExactLeak:
    """The worst leak, and the largest P(y|E)/P(y|F) as a fraction for every scale of ε; `None` is infinite."""

    ratios: tuple[tuple[float, Fraction | None], ...]
    leak: Leak

    @property
    def ratio(self) -> Fraction | None:
        """The largest of these ratios."""
        ratios = [ratio for _, ratio in self.ratios if ratio is not None]
        return max(ratios, default=Fraction(1)) if len(ratios) == len(self.ratios) else None

    def exceeds(self, epsilon: float) -> bool:
        """Whether some ratio is above e^ε to the power of its scale, with no tolerance."""
        return any(ratio is None or not ratio <= exp_below(epsilon, scale) for scale, ratio in self.ratios)

    def times(self, factor: Fraction) -> ExactLeak:
        """The same where every ratio may be larger by that factor."""
        ratios = tuple((scale, None if ratio is None else ratio * factor) for scale, ratio in self.ratios)
        size = max((math.inf if ratio is None else log_above(ratio, scale) for scale, ratio in ratios), default=0.0)
        return ExactLeak(ratios, replace(self.leak, epsilon=size))


NO_LEAK = ExactLeak((), Leak(0.0))


def _larger_ratio(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return None if one is None or other is None else max(one, other)


def larger_leak(one: ExactLeak, other: ExactLeak) -> ExactLeak:
    """The larger of two leaks, with the largest ratios of both."""
    if len(one.ratios) == len(other.ratios) == 1 and one.ratios[0][0] == other.ratios[0][0]:
        first, second = one.ratios[0][1], other.ratios[0][1]
        return one if first is None or (second is not None and first >= second) else other
    if not one.ratios or not other.ratios:
        return one if one.ratios or not other.ratios else other
    ratios: dict[float, Fraction | None] = dict(one.ratios)
    for scale, ratio in other.ratios:
        ratios[scale] = _larger_ratio(ratios.get(scale, Fraction(1)), ratio)
    return ExactLeak(tuple(ratios.items()), max(one.leak, other.leak, key=lambda leak: leak.epsilon))


class PairNames(Shape):
    """Pairs of events that can be named."""

    def leak(self, epsilon: float, pair: int, output: Any) -> Leak: ...


def exact_leak(comparisons: PairNames, ratio: Fraction | None, pair: int, output: Any, scale: float = 1.0) -> ExactLeak:
    """A leak of that ratio at that pair and output, named."""
    size = math.inf if ratio is None else log_above(ratio, scale)
    return ExactLeak(((scale, ratio),), comparisons.leak(size, pair, output))


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Pairs whose ratio is promised with one scale, P(y|E) over P(y|F), the reverse, or both alike."""

    scale: float
    pairs: IntArray  # their numbers
    way: int | None  # 0, 1, or None for both

    def order(self, one: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """P(y|E) and P(y|F) of these pairs as a larger and a smaller one: alike where the ratio is not promised."""
        least = (other, one)[self.way] if self.way is not None else np.minimum(one, other)
        return np.maximum(one, other), least


def sides(comparisons: Comparisons) -> Iterator[Side]:
    """All that is promised, pairs of one scale together."""
    if comparisons.scales is None:
        yield Side(1.0, np.arange(len(comparisons.pairs)), None)
        return
    for way, scales in enumerate(comparisons.scales.T):
        for scale in np.unique(scales[np.isfinite(scales)]).tolist():
            yield Side(scale, np.flatnonzero(scales == scale), way)


def worst_ratio(comparisons: Comparisons, masses: NDArray[Any], totals: NDArray[Any], first: int = 0) -> ExactLeak:
    """The largest ratio of P(y|E) = masses[E, y] / totals[E] to P(y|F), either way up, in exact arithmetic.

    `masses` and `totals` are Python integers, their outputs counted from `first` on; the floats only choose which few
    ratios are worth comparing exactly. Some pairs are looked at at a time.
    """
    worst = NO_LEAK
    step = max(1, WORKED_ON // max(1, masses.shape[1]))
    for side in sides(comparisons):
        for start in range(0, len(side.pairs), step):
            some = side.pairs[start : start + step]
            e, f = comparisons.pairs[some].T
            large, small = side.order(masses[e] * totals[f][:, None], masses[f] * totals[e][:, None])
            worst = larger_leak(worst, _worst_ratio_among(comparisons, large, small, some, first, side.scale))
    return worst


def _worst_ratio_among(
    comparisons: Comparisons,
    large: NDArray[Any],
    small: NDArray[Any],
    numbers: IntArray,
    first: int,
    scale: float,
) -> ExactLeak:
    """The largest ratio of these integers, a row for each of the pairs of these numbers."""
    infinite = (large > 0) & (small == 0)
    if infinite.any():
        pair, y = np.argwhere(infinite)[0]
        return exact_leak(comparisons, None, int(numbers[pair]), first + int(y), scale)
    pairs, ys = np.nonzero(large)
    if not len(pairs):
        return NO_LEAK
    large, small = large[pairs, ys], small[pairs, ys]
    with np.errstate(divide="ignore"):  # a ratio that is no float is larger than all that are
        sizes = -np.log((small / large).astype(np.float64))
    near = np.flatnonzero(~(sizes < sizes.max() - TIE)).tolist()
    top = near[0]
    over, under = int(large[top]), int(small[top])
    for k in near:  # integers multiplied crosswise: a fraction of each of millions would take minutes
        if int(large[k]) * under > over * int(small[k]):
            top, over, under = k, int(large[k]), int(small[k])
    return exact_leak(comparisons, Fraction(over, under), int(numbers[pairs[top]]), first + int(ys[top]), scale)
