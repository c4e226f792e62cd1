r"""Which secrets are promised together, and how many ways the same rule might have grouped them.

The rule reads the groups off the table's row totals :math:`n_s`, and sets of priors hold for groups that are fixed. For
every population let all groupings count that totals near their means :math:`\mu_s` would have given, "near" being

.. math:: D(n_s, \mu_s) \le \ln(2c / \beta'), \qquad D(n, \mu) = n \ln(n / \mu) - n + \mu,

which by Chernoff's bound all totals are with probability 1 − β′. If each of them, G, has its sets at a part
u(G) / Σ u of β − β′, some fail with probability β at most. The sum depends on the population; but if the totals seen
are near its means, every grouping that counts is one of totals near means that the totals seen are near as well. Those
are summed here, so that it is never too small (docs/theory.md, Theorem 44a). Small groups, which have the fewest rows
to spare, weigh most.

Where dozens of secrets have about as many rows as the limit, 2 to the power of dozens groupings might have been read
off, and nothing is left of β. A limit in a gap between the totals leaves one. So a few limits are tried, each with a
part of β of its own for all its groupings, and the first is taken at which the sets' part is about the largest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations

import numpy as np

from privacyfunnel.arrays import BoolArray, IntArray

LIMITS = (200, 300, 400, 500, 600, 800, 1000, 2000, 5000, 50)  # rows: secrets with fewer of them are promised together
USUAL = Fraction(19, 20)  # of β: for the first of the limits; the others share the rest
LIMIT_TOLERANCE = (
    10  # so many times less than the best limit leaves is enough for one before it: levels count by their logarithm
)
WEIGHT_RATIO, MOST_WEIGHED = 20, 4  # u(G) falls by this factor with every secret of a group, up to so many
MOST_UNDECIDED = 10  # secrets that may be rare or not: with more, groupings are bounded instead of listed
STEPS = 200  # of a bisection: more than a float has digits
OUTWARD_MARGIN = 1e-9  # relative: more than rounding


def rare_group(rows: IntArray, rare: int) -> IntArray:
    """The secrets with fewer rows than that, joined by the next until they have as many together; perhaps none."""
    order = np.argsort(rows, kind="stable")
    together = int((rows < rare).sum())
    while 0 < together < len(rows) and rows[order[:together]].sum() < rare:
        together += 1
    return np.asarray(order[:together])


def choose_limit(rows: IntArray, chance: Fraction) -> int:
    """The limit below which these secrets are promised together: one that leaves two groups, if the first one does."""
    useful = [limit for limit in LIMITS if len(rare_group(rows, limit)) < len(rows)]
    if len(rows) <= 2 or LIMITS[0] not in useful:
        return LIMITS[0]
    parts = {limit: grouping_share(rows, limit, chance) for limit in useful}
    return next(limit for limit in useful if LIMIT_TOLERANCE * parts[limit] >= max(parts.values()))


def grouping_share(rows: IntArray, rare: int, chance: Fraction) -> Fraction:
    """The limit's part, times that of what `rare_together` finds among all it might have for totals near the means."""
    own = _limit_share(rare) * _weight(len(rare_group(rows, rare)))
    return own / sum((n * _weight(size) for size, n in _group_sizes(rows, rare, chance).items()), start=Fraction(0))


def _limit_share(rare: int) -> Fraction:
    """What is left for a limit where others are tried; all of it for one that was given beforehand."""
    if rare not in LIMITS:
        return Fraction(1)
    return USUAL if rare == LIMITS[0] else (1 - USUAL) / (len(LIMITS) - 1)


def _weight(size: int) -> Fraction:
    """u(G)."""
    return Fraction(1, WEIGHT_RATIO ** min(size, MOST_WEIGHED))


def _group_sizes(rows: IntArray, rare: int, chance: Fraction) -> Counter[int]:
    """How many groups of every size it might have found; perhaps more."""
    level = math.log(2 * len(rows) / float(chance)) * (1 + OUTWARD_MARGIN)
    ends = np.array([_near_totals(int(n), level) for n in rows])
    low, high = ends[:, 0], ends[:, 1]
    surely, perhaps = high < rare, (low < rare) & (high >= rare)
    if perhaps.sum() > MOST_UNDECIDED:
        enough = int(low[surely].sum()) >= rare  # then nobody is joined who is not rare
        others, first = int((perhaps if enough else ~surely).sum()), int(surely.sum())
        return Counter({first + k: math.comb(others, k) for k in range(others + 1)})
    open_ones = np.flatnonzero(perhaps)
    found: set[bytes] = set()
    for some in chain.from_iterable(combinations(open_ones, k) for k in range(len(open_ones) + 1)):
        of = surely.copy()
        of[list(some)] = True
        least, most = np.where(of, low, np.maximum(low, rare)), np.where(of, np.minimum(high, rare - 1), high)
        _extend_group(of, least, most, rare, found)
    return Counter(sum(each) for each in found)


def _extend_group(of: BoolArray, low: IntArray, high: IntArray, rare: int, found: set[bytes]) -> None:
    """Add what these may be joined to, where each total lies between two numbers."""
    if of.all() or not of.any() or high[of].sum() >= rare:
        found.add(of.tobytes())
    if of.any() and not of.all() and low[of].sum() < rare:
        for s in np.flatnonzero(~of & (low <= high[~of].min())).tolist():
            more = of.copy()
            more[s] = True
            _extend_group(more, low, high, rare, found)


@lru_cache(maxsize=1 << 12)
def _near_totals(n: int, level: float) -> tuple[int, int]:
    """Between which totals those are that are near a mean that n is near."""
    least = _bisect(lambda mean: _distance(n, mean) <= level, float(n), 0.0)
    most = _bisect(lambda mean: _distance(n, mean) <= level, float(n), 4.0 * (n + level) + 4.0)
    low = _bisect(lambda k: _distance(k, least) <= level, least, 0.0)
    high = _bisect(lambda k: _distance(k, most) <= level, most, 4.0 * (most + level) + 4.0)
    return math.floor(low * (1 - OUTWARD_MARGIN)), math.ceil(high * (1 + OUTWARD_MARGIN))


def _distance(n: float, mean: float) -> float:
    """D(n, μ)."""
    if mean <= 0:
        return 0.0 if n <= 0 else math.inf
    return mean - n + (n * math.log(n / mean) if n > 0 else 0.0)


def _bisect(fits: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last place on the way from one that fits to one that need not, rounded outwards."""
    if fits(outside):
        return outside
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return outside
