r"""Which secrets are promised together, and how many ways the same rule might have grouped them.

The rule reads the groups off the table's row totals :math:`n_s`, and sets of priors hold for groups that are fixed. For
every population let all groupings count that totals near their means :math:`\mu_s` would have given, "near" being

.. math:: D(n_s, \mu_s) \le \ln(2c / \beta'), \qquad D(n, \mu) = n \ln(n / \mu) - n + \mu,

which by Chernoff's bound all totals are with probability 1 − β′. If there are m of them, and each has its sets at
level (β − β′) / m, some fail with probability β at most. m depends on the population; but if the totals seen are near
its means, every grouping that counts is one of totals near means that the totals seen are near as well. Those are
counted here, so that it is never too few (docs/theory.md, Theorem 44a).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import chain, combinations

import numpy as np

from privacyfunnel.arrays import BoolArray, IntArray

MOST_OPEN = 10  # secrets that may be rare or not: with more, groupings are bounded instead of listed
STEPS = 200  # of a bisection: more than a float has digits
OUTWARDS = 1e-9  # relative: more than rounding


def rare_together(rows: IntArray, rare: int) -> IntArray:
    """The secrets with fewer rows than that, joined by the next until they have as many together; perhaps none."""
    order = np.argsort(rows, kind="stable")
    together = int((rows < rare).sum())
    while 0 < together < len(rows) and rows[order[:together]].sum() < rare:
        together += 1
    return np.asarray(order[:together])


def groupings(rows: IntArray, rare: int, chance: Fraction) -> int:
    """As many groups as `rare_together` might have found for totals that are near the same means; at least 1."""
    c = len(rows)
    level = math.log(2 * c / float(chance)) * (1 + OUTWARDS)
    ends = np.array([_near(int(n), level) for n in rows])
    low, high = ends[:, 0], ends[:, 1]
    surely, perhaps = high < rare, (low < rare) & (high >= rare)
    if perhaps.sum() > MOST_OPEN:
        return int(2 ** int((~surely).sum()))
    open_ones = np.flatnonzero(perhaps)
    found: set[bytes] = set()
    for some in chain.from_iterable(combinations(open_ones, k) for k in range(len(open_ones) + 1)):
        of = surely.copy()
        of[list(some)] = True
        least, most = np.where(of, low, np.maximum(low, rare)), np.where(of, np.minimum(high, rare - 1), high)
        _join(of, least, most, rare, found)
    return len(found)


def _join(of: BoolArray, low: IntArray, high: IntArray, rare: int, found: set[bytes]) -> None:
    """Add what these may be joined to, where each total lies between two numbers."""
    if of.all() or not of.any() or high[of].sum() >= rare:
        found.add(of.tobytes())
    if of.any() and not of.all() and low[of].sum() < rare:
        for s in np.flatnonzero(~of & (low <= high[~of].min())).tolist():
            more = of.copy()
            more[s] = True
            _join(more, low, high, rare, found)


def _near(n: int, level: float) -> tuple[int, int]:
    """Between which totals those are that are near a mean that n is near."""
    least = _bisected(lambda mean: _distance(n, mean) <= level, float(n), 0.0)
    most = _bisected(lambda mean: _distance(n, mean) <= level, float(n), 4.0 * (n + level) + 4.0)
    low = _bisected(lambda k: _distance(k, least) <= level, least, 0.0)
    high = _bisected(lambda k: _distance(k, most) <= level, most, 4.0 * (most + level) + 4.0)
    return math.floor(low * (1 - OUTWARDS)), math.ceil(high * (1 + OUTWARDS))


def _distance(n: float, mean: float) -> float:
    """D(n, μ)."""
    if mean <= 0:
        return 0.0 if n <= 0 else math.inf
    return mean - n + (n * math.log(n / mean) if n > 0 else 0.0)


def _bisected(fits: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last place on the way from one that fits to one that need not, rounded outwards."""
    if fits(outside):
        return outside
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return outside
