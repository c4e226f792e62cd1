"""Exact arithmetic: chances rounded to integers, e^ε from below, logarithms from above, ratios as fractions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
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
LARGEST = 700.0  # a larger ε is certified at this one: the safe side, and e^ε keeps a size that can be computed with
TIE = 1e-12  # floats closer than this are compared again as fractions; their own error is below 1e-14
WORKED_ON = 1 << 20  # masses that are worked on at a time: as Python's integers they take some hundred bytes each


def exp_below(epsilon: float) -> Fraction:
    """A rational number just below e^ε (below e^700 where ε is larger), and at least 1.

    >>> exp_below(0.0)
    Fraction(1, 1)
    >>> 2.718281828 < exp_below(1.0) < 2.718281829
    True
    """
    if epsilon == 0:
        return Fraction(1)
    rounded = _CONTEXT.exp(Decimal(min(epsilon, LARGEST)))
    return max(Fraction(1), Fraction(_CONTEXT.next_minus(rounded)))


def log_above(ratio: Fraction) -> float:
    """A float at or just above ln(ratio), for ratio >= 1.

    >>> log_above(Fraction(1))
    0.0
    """
    if ratio == 1:
        return 0.0
    above = _CONTEXT.next_plus(_CONTEXT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    bound = _CONTEXT.next_plus(_CONTEXT.ln(above))
    nearest = float(bound)
    return nearest if Decimal(nearest) >= bound else math.nextafter(nearest, math.inf)


@dataclass(frozen=True, slots=True)
class ExactLeak:
    """The largest P(y|E)/P(y|F), or its inverse, as a fraction; `None` is infinite."""

    ratio: Fraction | None
    leak: Leak

    def exceeds(self, limit: Fraction) -> bool:
        """Whether the ratio is above the limit, with no tolerance."""
        return self.ratio is None or not self.ratio <= limit


NO_LEAK = ExactLeak(Fraction(1), Leak(0.0))


def larger_leak(one: ExactLeak, other: ExactLeak) -> ExactLeak:
    """The larger of two leaks."""
    if one.ratio is None or (other.ratio is not None and one.ratio >= other.ratio):
        return one
    return other


class PairNames(Shape):
    """Pairs of events that can be named."""

    def leak(self, epsilon: float, pair: int, output: Any) -> Leak: ...


def exact_leak(comparisons: PairNames, ratio: Fraction | None, pair: int, output: Any) -> ExactLeak:
    """A leak of that ratio at that pair and output, named."""
    return ExactLeak(ratio, comparisons.leak(math.inf if ratio is None else log_above(ratio), pair, output))


def worst_ratio(comparisons: Comparisons, masses: NDArray[Any], totals: NDArray[Any], first: int = 0) -> ExactLeak:
    """The largest ratio of P(y|E) = masses[E, y] / totals[E] to P(y|F), either way up, in exact arithmetic.

    `masses` and `totals` are Python integers, their outputs counted from `first` on; the floats only choose which few
    ratios are worth comparing exactly. Some pairs are looked at at a time.
    """
    worst = NO_LEAK
    step = max(1, WORKED_ON // max(1, masses.shape[1]))
    for start in range(0, len(comparisons.pairs), step):
        worst = larger_leak(worst, _worst_ratio_among(comparisons, masses, totals, slice(start, start + step), first))
    return worst


def _worst_ratio_among(
    comparisons: Comparisons, masses: NDArray[Any], totals: NDArray[Any], some: slice, first: int
) -> ExactLeak:
    e, f = comparisons.pairs[some, 0], comparisons.pairs[some, 1]
    up, down = masses[e] * totals[f][:, None], masses[f] * totals[e][:, None]
    only_one = (up == 0) != (down == 0)
    if only_one.any():
        pair, y = np.argwhere(only_one)[0]
        return exact_leak(comparisons, None, some.start + int(pair), first + int(y))
    pairs, ys = np.nonzero(up)
    if not len(pairs):
        return NO_LEAK
    large, small = np.maximum(up[pairs, ys], down[pairs, ys]), np.minimum(up[pairs, ys], down[pairs, ys])
    with np.errstate(divide="ignore"):  # a ratio that is no float is larger than all that are
        sizes = -np.log((small / large).astype(np.float64))
    near = np.flatnonzero(~(sizes < sizes.max() - TIE)).tolist()
    top = near[0]
    over, under = int(large[top]), int(small[top])
    for k in near:  # integers multiplied crosswise: a fraction of each of millions would take minutes
        if int(large[k]) * under > over * int(small[k]):
            top, over, under = k, int(large[k]), int(small[k])
    return exact_leak(comparisons, Fraction(over, under), some.start + int(pairs[top]), first + int(ys[top]))


def float_below(number: Fraction) -> float:
    """The largest float that is not above a fraction."""
    nearest = float(number)
    return nearest if Fraction(nearest) <= number else math.nextafter(nearest, -math.inf)
