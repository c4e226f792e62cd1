r"""Pools of rare secrets: which secrets are promised as one group, and how many other pools the rule might have chosen.

A population may have secrets that no row of the sample has. So a grouping names the *common* secrets C, each promised
alone, and the pool is every other secret, seen or not. The rule reads C off the numbers of rows :math:`n_s`, but credal
sets hold for a C fixed beforehand. Hence every C counts that samples near their means would have given. With N rows,
means :math:`\mu_s` and :math:`D(n, \mu) = n \ln(n / \mu) - n + \mu`, a secret is near its mean if

.. math:: D(n_s, \mu_s) \le \ln\frac{4 N}{\beta' \mu_s}.

By Chernoff's bound some secret is not with probability at most :math:`\sum_s \beta' \mu_s / 2N = \beta' / 2`, however
many secrets the population has, since the means sum to N. The totals of the pools, of which there are at most
:math:`2^u` for u undecided secrets, are near theirs with probability :math:`1 - \beta' / 2` as well. If each C has its
sets at a part :math:`u(C) / \sum u` of β − β′, some fail with probability β at most. The sum depends on the population;
but if the totals seen are near its means, every C that counts is one of totals near means that the totals seen are near
as well. Those are summed here, so that it is never too small (docs/theory.md, Theorem 44a).

Where dozens of secrets have about as many rows as the limit, 2 to the power of dozens groupings might have been chosen,
and nothing is left of β. A limit in a gap between the totals leaves one. So a few limits are tried, each with a part of
β of its own for all its groupings, and the first is taken at which the sets' part is about the largest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import chain, combinations

import numpy as np

from privacyfunnel.arrays import BoolArray, IntArray

LIMITS = (200, 300, 400, 500, 600, 800, 1000, 2000, 5000, 50)  # rows: secrets with fewer of them are promised together
USUAL = Fraction(19, 20)  # of β: for the first of the limits; the others share the rest
LIMIT_TOLERANCE = 10  # a limit is good enough if the best one leaves at most so many times more: levels count by log
WEIGHT_RATIO = 8  # u(C) grows by this factor with every common secret
MOST_UNDECIDED = 10  # secrets that may be rare or not: with more, groupings are bounded instead of listed
STEPS = 200  # of a bisection: more than a float has digits
OUTWARD_MARGIN = 1e-9  # relative: more than rounding


def rare_group(rows: IntArray, rare: int) -> IntArray:
    """The seen secrets of the pool: those with fewer rows than `rare`, and the next one if they have fewer together."""
    order = np.argsort(rows, kind="stable")
    together = int((rows < rare).sum())
    while 0 < together < len(rows) and rows[order[:together]].sum() < rare:
        together += 1
    return np.asarray(order[:together])


def choose_limit(rows: IntArray, chance: Fraction) -> int:
    """The limit below which these secrets are pooled: one that leaves two groups, if the first one does."""
    useful = [limit for limit in LIMITS if len(rare_group(rows, limit)) < len(rows)]
    if LIMITS[0] not in useful:
        return LIMITS[0]
    least = smallest_limit(int(rows.sum()), chance)
    parts = {limit: grouping_share(rows, limit, chance) for limit in useful if limit in (LIMITS[0], max(limit, least))}
    return next(limit for limit in parts if LIMIT_TOLERANCE * parts[limit] >= max(parts.values()))


def smallest_limit(total: int, chance: Fraction) -> int:
    """The smallest limit that no secret without a row would have reached in a sample near its means."""
    return _near_totals(0, _log_scale(total, chance), True)[1] + 1


def grouping_share(rows: IntArray, rare: int, chance: Fraction) -> Fraction:
    """The limit's part, times that of the grouping that was chosen among all that might have been."""
    size = len(rare_group(rows, rare))
    counted = (n * Fraction(WEIGHT_RATIO) ** (size - other) for other, n in _pool_sizes(rows, rare, chance).items())
    return _limit_share(rare) / sum(counted, start=Fraction(0))


def _limit_share(rare: int) -> Fraction:
    """What is left for a limit where others are tried; all of it for one that was given beforehand."""
    if rare not in LIMITS:
        return Fraction(1)
    return USUAL if rare == LIMITS[0] else (1 - USUAL) / (len(LIMITS) - 1)


def _pool_sizes(rows: IntArray, rare: int, chance: Fraction) -> Counter[int]:
    """How many pools with every number of the secrets seen might have been chosen; perhaps more."""
    scale = _log_scale(int(rows.sum()), chance)
    near_totals = cache(_near_totals)  # for this call alone: no count outlives it
    ends = np.array([near_totals(int(n), scale, True) for n in rows])
    low, high = ends[:, 0], ends[:, 1]
    surely, perhaps = high < rare, (low < rare) & (high >= rare)
    pool_level = math.log(4 / float(chance)) + int(perhaps.sum()) * math.log(2)
    pool_level *= 1 + OUTWARD_MARGIN
    if perhaps.sum() > MOST_UNDECIDED:
        enough = near_totals(int(rows[surely].sum()), pool_level, False)[0] >= rare  # then no common secret joins
        others, first = int((perhaps if enough else ~surely).sum()), int(surely.sum())
        return Counter({first + k: math.comb(others, k) for k in range(others + 1)})
    open_ones = np.flatnonzero(perhaps)
    found: set[bytes] = set()
    for some in chain.from_iterable(combinations(open_ones, k) for k in range(len(open_ones) + 1)):
        pool = surely.copy()
        pool[list(some)] = True
        least, most = near_totals(int(rows[pool].sum()), pool_level, False)
        if pool.all() or least == 0 or most >= rare:  # as it is: without rows, or with enough
            found.add(pool.tobytes())
        if not pool.all() and least < rare:  # with the smallest common secret, whichever that may be
            found.update(_with_next(pool, np.maximum(low, rare), high))
    return Counter(sum(each) for each in found)


def _with_next(pool: BoolArray, low: IntArray, high: IntArray) -> set[bytes]:
    """The pool with each secret that may be the smallest of the others."""
    found = set()
    for s in np.flatnonzero(~pool & (low <= high[~pool].min())).tolist():
        joined = pool.copy()
        joined[s] = True
        found.add(joined.tobytes())
    return found


def _log_scale(total: int, chance: Fraction) -> float:
    """ln(4N / β′)."""
    return math.log(4 * max(total, 1) / float(chance)) * (1 + OUTWARD_MARGIN)


def _near_totals(n: int, level: float, by_mean: bool) -> tuple[int, int]:
    """Between which totals those are that are near a mean that n is near.

    Near is D ≤ level − ln μ for a secret (`by_mean`), and D ≤ level for a pool. Either way the means that n is near
    form an interval, and both ends of the totals near a mean grow with it.
    """

    def near(k: float, mean: float) -> bool:
        if mean <= 0:
            return k <= (1 if by_mean else 0)
        divergence = mean - k + (k * math.log(k / mean) if k > 0 else 0.0)
        return divergence <= level - (math.log(mean) if by_mean else 0.0)

    far = 4.0 * (n + level) + 4.0
    least = _bisect(lambda mean: near(n, mean), float(n), 0.0)
    most = _bisect(lambda mean: near(n, mean), float(n), far)
    low = _bisect(lambda k: near(k, least), least, 0.0)
    high = _bisect(lambda k: near(k, most), most, 4.0 * (most + level) + 4.0)
    return math.floor(low * (1 - OUTWARD_MARGIN)), math.ceil(high * (1 + OUTWARD_MARGIN))


def _bisect(fits: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last place on the way from one that fits to one that need not, rounded outwards."""
    if fits(outside):
        return outside
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return outside
