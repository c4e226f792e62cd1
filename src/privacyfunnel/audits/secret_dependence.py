r"""Whether a draw follows the secret beyond what its law lets it.

A law sees the input z alone: what a row becomes is drawn from q(· | z) whatever its secret is. Three tests look for
rows of a secret s that show outputs more often than that, on arrays of secrets, inputs and drawn rows side by side.

Output by output: let D(s, y) be how many more rows of secret s show y than :math:`\sum_z n(s,z) q(y|z)`. It is a sum of
independent variables, each within 1 of 0, of variance V(s, y). Bernstein's inequality holds for any number of rows,
however rare the output:

.. math:: P(|D| \ge t) \le 2 \exp\frac{-t^2}{2 (V + t/3)}.

All outputs of a secret: :math:`D^T C^+ D` with their covariance C is chi-square, for what is spread over many outputs
while values are too rare to be looked at one by one. Neighbouring outputs are joined until each cell has some rows.

Pair by pair: a chi-square test of (s, z) → y, for what cancels in the sum over z. Cells too small for it are joined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, dense, sparse
from privacyfunnel.mechanisms.draw_tally import DrawTally, PooledCounts

LEAST_VARIANCE = 20.0  # of rows, from which on a sum is as good as normal
MOST_CELLS = 300  # of the outputs of one secret
RANK = 0.05  # a direction that varies by less than this share of a cell's least is certain, or too rare to judge
ROUNDING = 1e-9  # of variances, in rows
MOST_COUNTS = 1 << 23  # of all secrets together; where there would be more, rare secrets are counted as one

ChiSquare = Callable[[IntArray, FloatArray], tuple[float, int]]


@dataclass(frozen=True, slots=True)
class SecretDependence:
    """How far outputs follow the secret: the chances of as much in a true draw, each already times its tests."""

    outputs: float  # at most this, by Bernstein and Bonferroni
    shapes: float  # of the chi-square of all outputs of each secret
    pairs: float  # of the chi-square of (s, z) → y
    secrets: int  # that were told apart; all others together were one more

    @property
    def p_value(self) -> float:
        """The chance that a true draw shows as much in any of the three tests."""
        return min(1.0, 3 * min(self.outputs, self.shapes, self.pairs))


class SecretTallies:
    """Counts of what inputs became, for each secret apart."""

    def __init__(self, tally: DrawTally, rows: IntArray) -> None:
        """`tally` is an empty one of the law; `rows` says how many rows each secret has."""
        apart = min(len(rows), max(2, MOST_COUNTS // max(1, tally.size)))
        group = np.full(len(rows), apart - 1, dtype=np.int64)
        group[np.argsort(-rows, kind="stable")[: apart - 1]] = np.arange(apart - 1)
        self._group, self._tallies = group, [tally.empty() for _ in range(apart)]

    def add(self, secrets: IntArray, inputs: IntArray, drawn: NDArray[Any]) -> None:
        """Count some rows."""
        mine = self._group[secrets]
        for number in np.unique(mine):
            those = mine == number
            self._tallies[number].add(inputs[those], drawn[those])

    def judge(self, chi_square: ChiSquare) -> SecretDependence:
        """What the tests say."""
        pools = [pool for tally in self._tallies for pool in tally.pool_counts]
        log_p, tests = bernstein(pools)
        return SecretDependence(
            outputs=math.exp(min(0.0, log_p + math.log(max(1, tests)))),
            shapes=_tail(map(joint_chi_square, pools)),
            pairs=_tail(chi_square(counts, chances) for tally in self._tallies for counts, chances in tally.rows),
            secrets=len(self._tallies),
        )


def _tail(found: Iterable[tuple[float, int]]) -> float:
    """The chance that independent chi-squares add up to as much."""
    from scipy.special import chdtrc

    sizes = list(found)
    degrees = sum(free for _, free in sizes)
    return float(chdtrc(degrees, sum(size for size, _ in sizes))) if degrees else 1.0


def bernstein(pools: Iterable[PooledCounts]) -> tuple[float, int]:
    """The logarithm of the smallest of Bernstein's bounds, and how many there are.

    >>> log_p, tests = bernstein([PooledCounts(np.array([100.0, 0.0]), np.array([100.0, 0.0]))])
    >>> round(log_p, 1), tests
    (-36.8, 1)
    """
    smallest, tests = 0.0, 0
    for pool in pools:
        random = pool.variance > ROUNDING  # what is certain deviates by rounding only, or it is impossible
        t, v = np.abs(pool.excess[random]), pool.variance[random]
        tests += int(random.sum())
        if len(t):
            smallest = min(smallest, float((math.log(2) - t**2 / (2 * (v + t / 3))).min()))
    return smallest, tests


def joint_chi_square(pool: PooledCounts) -> tuple[float, int]:
    """The chi-square of all that is shown together, and its degrees of freedom."""
    cell = _pool_cells(pool.variance)
    cells = int(cell.max(initial=-1)) + 1
    if not cells:
        return 0.0, 0
    mine = np.flatnonzero(cell >= 0)
    join = sparse.csr_array((np.ones(len(mine)), (mine, cell[mine])), shape=(len(cell), cells))
    covariance = dense(join.T @ sparse.diags_array(pool.variance) @ join)
    if pool.root is not None:
        squares = np.asarray(pool.root.power(2).sum(axis=0)).reshape(-1)
        rooted = pool.root @ join
        covariance = covariance + dense(join.T @ sparse.diags_array(squares) @ join) - dense(rooted.T @ rooted)
    spread, directions = np.linalg.eigh(covariance)
    free = spread >= LEAST_VARIANCE * RANK
    along = (directions.T @ (join.T @ pool.excess))[free]
    return float((along**2 / spread[free]).sum()), int(free.sum())


def _pool_cells(variance: FloatArray) -> IntArray:
    """Neighbouring outputs in one cell until it varies by some rows; −1 for what is left over.

    >>> _pool_cells(np.array([50.0, 6.0, 6.0, 6.0, 6.0, 1.0])).tolist()
    [0, 1, 1, 1, 1, -1]
    """
    target = max(LEAST_VARIANCE, float(variance.sum()) / MOST_CELLS)
    cell, held, number = np.full(len(variance), -1, dtype=np.int64), 0.0, 0
    start = 0
    for place, size in enumerate(variance.tolist()):
        held += size
        if held >= target:
            cell[start : place + 1] = number
            start, held, number = place + 1, 0.0, number + 1
    return cell
