r"""Lower confidence bounds on leakage, from counts of secrets and of what was published with them.

Records of secret s are published as v in k of n independent draws. Each record has its own chance, so that k is a sum
of unlike coins; its tails beyond the mean are lighter than those of the binomial distribution with the same mean
(Hoeffding 1956), and so are those of draws without replacement (Hoeffding 1963). Clopper and Pearson's bounds therefore
hold at their level for all of these. With :math:`p_s` the share of s in the table, which is known,

.. math:: \frac{P(v \mid s)}{P(v)} = \frac{1}{p_s + (1 - p_s)\, P(v \mid \bar s) / P(v \mid s)},

so that a lower bound of one chance and an upper bound of the other give one of the leakage. The error is divided evenly
among all bounds: with probability 1 − error no bound is above the true leakage.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

MOST_VIEWS = 256  # of one measurement: the error is divided among as many, so that it does not depend on the draw

FALLS = {"lip": 1.0, "pml": 0.0, "alip:2": 2.0}  # how many times a fall of a belief counts, beside a rise

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Leak:
    """What was measured: a bound that the true leakage is above, unless the error struck."""

    lower: float  # nats; 0 where nothing was found
    views: int
    records: int
    worst: str = ""  # the view with the largest bound


def measure(
    secrets: Sequence[Hashable],
    views: Sequence[Hashable],
    *,
    promise: str,
    error: float,
    known: Sequence[Sequence[Hashable]] = (),
    unprotected: Hashable = None,
) -> Leak:
    """The largest lower bound on the leakage that the promise limits: LIP, LDP, or SRLIP with the values `known`.

    PML is LIP one way; `alip:2` allows beliefs to fall half as far as to rise. Records whose secret is `unprotected`
    are people like all others, of whom LIP promises nothing.
    """
    s, called = _codes(secrets)
    v, names = _codes(views)
    if len(names) > MOST_VIEWS:
        raise ValueError(f"at most {MOST_VIEWS} views are counted; {len(names)} were met. Make them coarser.")
    if promise == "ldp":
        lower, worst = _between_secrets(_table(s, v), error)
    elif promise in FALLS:
        protected = np.array([name != unprotected for name in called])
        lower, worst = _against_prior(_table(s, v), error, protected, FALLS[promise])
    else:
        lower, worst = _with_known_values(s, v, known, error)
    return Leak(max(lower, 0.0), len(names), len(s), str(names[worst]))


def _with_known_values(s: Ints, v: Ints, known: Sequence[Sequence[Hashable]], error: float) -> tuple[float, int]:
    """LIP among those whose values of some columns are known, for every set of columns."""
    channels = [()] + [some for size in range(1, len(known) + 1) for some in combinations(range(len(known)), size)]
    best = (-inf, 0)
    for channel in channels:
        group, names = _codes(list(zip(*(known[i] for i in channel), strict=True)) if channel else [0] * len(s))
        for i in range(len(names)):
            within = group == i
            of, codes = np.unique(s[within]), v[within]
            if len(of) > 1:
                table = _table(np.searchsorted(of, s[within]), codes)
                best = max(best, _against_prior(table, error / (len(channels) * len(names))))
    return best


def _against_prior(table: Ints, error: float, protected: Bools | None = None, falls: float = 1.0) -> tuple[float, int]:
    """log P(v | s) / P(v), both ways, of which falling counts so many times."""
    each = error / (4 * len(table) * MOST_VIEWS)
    rows = table.sum(axis=1, keepdims=True)
    share = rows / rows.sum()
    low, high = _bounds(table, rows, each)
    low_other, high_other = _bounds(table.sum(axis=0) - table, rows.sum() - rows, each)
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(low > 0, -np.log(share + (1 - share) * high_other / low), -inf)
        down = np.log(share + (1 - share) * low_other / high)
    worst = np.maximum(up, falls * down) if falls else up
    return _largest(worst[slice(None) if protected is None else protected])


def _between_secrets(table: Ints, error: float) -> tuple[float, int]:
    """log P(v | s) / P(v | s′)."""
    rows = table.sum(axis=1, keepdims=True)
    low, high = _bounds(table, rows, error / (2 * len(table) * MOST_VIEWS))
    with np.errstate(divide="ignore"):
        return _largest(np.log(low).max(axis=0, keepdims=True) - np.log(high).min(axis=0, keepdims=True))


def _bounds(counts: Ints, trials: Ints, error: float) -> tuple[Floats, Floats]:
    """Clopper and Pearson's bounds of chances, each wrong with that probability at most."""
    n = np.broadcast_to(trials, counts.shape)
    low = np.where(counts > 0, beta.ppf(error, np.maximum(counts, 1), n - counts + 1), 0.0)
    high = np.where(counts < n, beta.isf(error, counts + 1, np.maximum(n - counts, 1)), 1.0)
    return low, high


def _largest(of: Floats) -> tuple[float, int]:
    place = np.unravel_index(int(np.argmax(of)), of.shape)
    return float(of[place]), int(place[1])


def _table(s: Ints, v: Ints) -> Ints:
    table = np.zeros((int(s.max()) + 1, int(v.max()) + 1), dtype=np.int64)
    np.add.at(table, (s, v), 1)
    return table


def _codes(of: Sequence[Hashable]) -> tuple[Ints, list[Any]]:
    """Every entry by the number of its value, and the values."""
    names: dict[Hashable, int] = {}
    codes = np.fromiter((names.setdefault(each, len(names)) for each in of), dtype=np.int64, count=len(of))
    return codes, list(names)


def chance_at_least(count: int, trials: int, chance: float) -> float:
    """The probability that a binomial count is as large as this one."""
    return float(beta.cdf(chance, count, trials - count + 1)) if count else 1.0


def lower_chance(count: int, trials: int, error: float) -> float:
    """A chance that the true one is above, wrong with that probability at most."""
    return float(beta.ppf(error, count, trials - count + 1)) if count else 0.0
