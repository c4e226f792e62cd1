r"""Sets of values as outputs, over sets of priors: the largest ratio among all 2ᵃ sets, bounded from above.

A set y of values has likelihoods :math:`f = t + k [x \in y]`. Over a box cut by the simplex

.. math:: P(y) \le u(y), \quad P(y) \le 1 - l(\bar y), \qquad P(y) \ge l(y), \quad P(y) \ge 1 - u(\bar y),

so for any weights :math:`0 \le \lambda, \mu \le 1` a mean of the first two, :math:`A_0 + A(y)`, lies above P(y), and
one of the others, :math:`B_0 + B(y)`, below it. Then :math:`h_E(f) \le r\, l_F(f)` for every y if

.. math:: t (1 - r) + k (A_0 - r B_0) + k \sum_x \max(0, A(x) - r B(x)) \le 0.

The least such r is reached from below in a few steps: at r the set :math:`\{x : A(x) > r B(x)\}` is the worst, and
where it needs a larger r, that is the next. Weights are multiples of 1/4; the best of them are taken for each pair.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.model.credal.clopper_pearson import SCALE
from privacyfunnel.model.credal.credal_sets import CredalSets

QUARTERS = 4
WEIGHTS = tuple(product(range(QUARTERS + 1), range(QUARTERS + 1)))  # λ and μ, in quarters
UNIT = QUARTERS * SCALE  # what the integers below are numerators over


class LinearBounds(NamedTuple):
    """A_0 + A(y) above every P(y) of E, and B_0 + B(y) below every P(y) of F, for some weights."""

    above_all: int
    above: IntArray
    below_all: int
    below: IntArray


def linear_bounds(sets: CredalSets, one: int, other: int, weights: tuple[int, int]) -> LinearBounds:
    """Both means, for these events and weights."""
    up, down = weights
    low, high = sets.low[[one, other]], sets.high[[one, other]]
    return LinearBounds(
        (QUARTERS - up) * int(SCALE - low[0].sum()),
        up * high[0] + (QUARTERS - up) * low[0],
        (QUARTERS - down) * int(SCALE - high[1].sum()),
        down * low[1] + (QUARTERS - down) * high[1],
    )


def ratio_bounds(sets: CredalSets, k: float) -> tuple[FloatArray, FloatArray, IntArray]:
    """For every pair, E over F and F over E: the least r for t = 1 and this k in floats; and the weights, (n, 2)."""
    e, f = sets.pairs.T
    each = [_least_ratios(sets, one, other, k) for one, other in ((e, f), (f, e))]
    return each[0].min(axis=0), each[1].min(axis=0), np.stack([least.argmin(axis=0) for least in each], axis=1)


def _least_ratios(sets: CredalSets, one: IntArray, other: IntArray, k: float) -> FloatArray:
    """The least r of every pair, for all weights, (weights, n)."""
    up, down = (np.array(WEIGHTS).T / QUARTERS)[:, :, None, None]
    low, high = sets.low / SCALE, sets.high / SCALE
    above, below = up * high[one] + (1 - up) * low[one], down * low[other] + (1 - down) * high[other]
    above_all = (1 - up[:, :, 0]) * (1 - low[one].sum(axis=1))
    below_all = (1 - down[:, :, 0]) * (1 - high[other].sum(axis=1))
    r = np.ones(above.shape[:2])
    while True:
        with np.errstate(invalid="ignore"):  # where r is infinite, nothing is worse
            better = above > r[:, :, None] * below
        top = 1 + k * (above_all + (above * better).sum(axis=2))
        bottom = 1 + k * (below_all + (below * better).sum(axis=2))
        larger = np.divide(top, bottom, out=np.full_like(top, np.inf), where=bottom > 0)
        if not (larger > r * (1 + 1e-15)).any():
            return np.asarray(r)
        r = np.maximum(r, larger)


def exact_ratio_bound(means: LinearBounds, t: int, k: int) -> tuple[Fraction | None, NDArray[Any]]:
    """The least r for these means and integers t and k, and the set that needs it; None where there is none."""
    above, below = means.above.astype(object), means.below.astype(object)
    r, members = Fraction(1), np.zeros(len(above), dtype=bool)
    while True:
        better = (above * r.denominator > below * r.numerator).astype(bool)
        top = t * UNIT + k * (means.above_all + int(above[better].sum()))
        bottom = t * UNIT + k * (means.below_all + int(below[better].sum()))
        if top * r.denominator <= bottom * r.numerator:
            return r, members
        if bottom <= 0:
            return None, better
        r, members = Fraction(top, bottom), better
