r"""What a protocol lets anybody learn about the original distribution, however many rows there are.

A share :math:`w \cdot p` can be estimated iff :math:`w = M g` for some g: iff w is orthogonal to the null space of
:math:`M^T`, the directions in which p can move without any statistic noticing. What cannot be estimated still has
bounds: the smallest and largest :math:`w \cdot p` among the distributions that fit what was seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, linalg, sparse, special
from privacyfunnel.errors import SolverError
from privacyfunnel.estimation.observation import ChannelModel, Observations

RANK_TOLERANCE = 1e-10  # of the largest singular value; rounding to 2⁻⁶⁴ stays far below it
ORTHOGONAL = 1e-8  # a combination of shares that is off the row space by less lies in it
LARGEST_PROGRAMMES = 2 * 10**8  # number of programmes × entries of one; beyond it bounds come from single outputs


@dataclass(frozen=True, slots=True, eq=False)
class RowSpace:
    """The directions that the statistics show, and those they do not, as orthonormal columns of length a."""

    shown: FloatArray  # a × rank: w · p is identified iff w lies in their span
    hidden: FloatArray  # a × (a − rank)

    @classmethod
    def from_means(cls, means: FloatArray) -> RowSpace:
        """Of the statistics' means (a × k), by their singular vectors."""
        if means.shape[1] > means.shape[0]:  # the same singular vectors on the left, from a square matrix
            means = np.asarray(np.linalg.qr(means.T, mode="r")).T
        u, s, _ = linalg.svd(means, full_matrices=True)
        rank = int((s > RANK_TOLERANCE * s[0]).sum())
        return cls(u[:, :rank], u[:, rank:])

    @property
    def complete(self) -> bool:
        """Whether everything about p is identified."""
        return bool(self.hidden.shape[1] == 0)


@dataclass(frozen=True, slots=True, eq=False)
class Identification:
    """Which of r functions of p are identified, and which sums of the others are."""

    identified: BoolArray  # r
    sums: tuple[tuple[int, ...], ...]  # sets of functions that are identified together and not one by one


def identify(space: RowSpace, functions: FloatArray) -> Identification:
    """What is identified of `functions` (a × r) of p whose sum over r is the constant 1.

    The functions seen along the hidden directions span a space; its projector links functions that trade off against
    each other. A connected set of them moves only inside itself, so its sum is identified.

    >>> blurred = np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])
    >>> identify(RowSpace.from_means(blurred), np.eye(3)).sums
    ((1, 2),)
    """
    unseen = functions.T @ space.hidden
    identified = np.abs(unseen).max(axis=1, initial=0.0) <= ORTHOGONAL
    if identified.all():
        return Identification(identified, ())
    left, size, _ = linalg.svd(unseen, full_matrices=False)
    left = left[:, size > ORTHOGONAL]
    n, block = sparse.csgraph.connected_components(np.abs(left @ left.T) > ORTHOGONAL, directed=False)
    blocks = [np.flatnonzero((block == b) & ~identified) for b in range(n)]
    together = [tuple(map(int, members)) for members in blocks if len(members)]
    # That all of them sum to 1 is no news.
    return Identification(identified, tuple(members for members in together if len(members) < len(identified)))


@dataclass(frozen=True, slots=True, eq=False)
class IdentificationBounds:
    """The smallest and largest value of each function, and whether any distribution fits within the stated level."""

    lower: FloatArray
    upper: FloatArray
    fits: bool


def share_bounds(
    model: ChannelModel, observed: Observations, functions: FloatArray, level: float
) -> IdentificationBounds:
    r"""Bounds on each of `functions` (a × r) over all p that fit what was seen:

    .. math:: \min / \max\ w \cdot p \quad\text{s.t. } p \ge 0,\ \sum p = 1,\
       l_k \le \sum_x p_x M_{xk} \le u_k\ \forall k,

    where [l, u] holds each of the k frequencies with a chance of at least `level` for all together (Bonferroni). If no
    p fits, the band is widened just enough that one does.
    """
    means = model.means
    low, high = frequency_band(observed.statistics, observed.rows, level)
    shift = _needed_widening(means, low, high)
    low, high = low - shift, high + shift
    r = functions.shape[1]
    if 2 * r * means.size > LARGEST_PROGRAMMES:
        return _bounds_by_output(means, high, functions, fits=shift == 0)
    lower, upper = np.empty(r), np.empty(r)
    for j, w in enumerate(functions.T):
        lower[j] = _extreme(w, means, low, high)
        upper[j] = -_extreme(-w, means, low, high)
    return IdentificationBounds(np.clip(lower, 0, 1), np.clip(upper, 0, 1), fits=shift == 0)


def frequency_band(seen: FloatArray, rows: int, level: float) -> tuple[FloatArray, FloatArray]:
    """Clopper and Pearson's interval for each of k frequencies of `rows` rows, each at level 1 − (1 − level) / k.

    It holds for rare outputs too, of which a protocol over several columns has thousands.
    """
    tail = (1 - level) / (2 * len(seen))
    count = np.round(seen * rows)
    low = np.where(count > 0, special.betaincinv(np.maximum(count, 1), rows - count + 1, tail), 0.0)
    high = np.where(count < rows, special.betaincinv(count + 1, np.maximum(rows - count, 1), 1 - tail), 1.0)
    return low, high


def _needed_widening(means: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """The smallest s ≥ 0 such that some distribution has all its frequencies in [low − s, high + s]."""
    a, k = means.shape
    widened = np.hstack([np.vstack([means.T, -means.T]), np.full((2 * k, 1), -1.0)])
    is_p = np.append(np.ones(a), 0.0)
    needed = float(_solve_programme(1 - is_p, widened, np.concatenate([high, -low]), is_p)[-1])
    # The solver's own tolerance is 1e-7 on a row: widen by as much, or a touching band would count as empty.
    return 0.0 if needed <= 0 else needed * (1 + 1e-6) + 2e-7


def _extreme(w: FloatArray, means: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """The smallest w · p over the distributions p with frequencies between low and high."""
    p = _solve_programme(w, np.vstack([means.T, -means.T]), np.concatenate([high, -low]), np.ones(len(w)))
    return float(w @ p)


def _solve_programme(
    cost: FloatArray, constraints: FloatArray, limits: FloatArray, sums_to_one: FloatArray
) -> FloatArray:
    """The cheapest v ≥ 0 with rows · v ≤ limits and sums_to_one · v = 1."""
    from scipy.optimize import linprog  # few protocols need it, and it is slow to import

    result = linprog(cost, A_ub=constraints, b_ub=limits, A_eq=sums_to_one[None, :], b_eq=[1.0], method="highs")
    if result.status != 0 or result.x is None:
        raise SolverError(f"Bounds come from a linear programme that must be solved; the solver said: {result.message}")
    return np.asarray(result.x)


def _bounds_by_output(
    means: FloatArray, high: FloatArray, functions: FloatArray, *, fits: bool
) -> IdentificationBounds:
    """Without a linear programme: p_x ≤ min_k u_k / M_xk, as no single value can show more than was seen."""
    most = np.divide(high[None, :], means, out=np.full(means.shape, np.inf), where=means > 0).min(axis=1)
    return IdentificationBounds(
        np.zeros(functions.shape[1]), np.minimum(1.0, functions.T @ np.minimum(most, 1.0)), fits
    )
