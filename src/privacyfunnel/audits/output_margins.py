r"""A draw judged without knowing which row became which: only how often each output occurs.

Rows leave in a random order. Whoever cannot undo it cannot pair x with y, but knows the counts :math:`n_z` of the
inputs, so the counts of the outputs have mean and covariance

.. math:: \mu_y = \sum_z n_z q(y|z), \qquad V = \sum_z n_z \left(\mathrm{diag}\, q_z - q_z q_z^T\right),

and :math:`(N - \mu)^T V^+ (N - \mu)` is chi-square with as many degrees as V has rank. It finds a table drawn from
another law. It cannot find outputs that were handed to other rows: for that the order must be known.

Whether a draw follows the secret beyond what its law lets it.

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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, dense, sparse
from privacyfunnel.mechanisms.mechanism import DrawTally, Mechanism, PooledCounts
from privacyfunnel.mechanisms.sealing import SealedProtocol

if TYPE_CHECKING:
    from privacyfunnel.release.output_layout import OutputLayout
    from privacyfunnel.tables.readers.formats import Table


LEAST_EXPECTED = 20  # outputs that expect fewer rows are joined before they are compared
MOST_CELLS = 400  # outputs that are compared one by one; the rarer ones are joined
LARGEST_CHANNEL = 1 << 24  # chances that are multiplied out to know an output's
RANK = 1e-9  # a direction with a smaller share of the largest variance is certain


@dataclass(frozen=True, slots=True)
class OutputMargins:
    """How well the counts of outputs agree with a law, and which columns could not be judged."""

    rows: int
    impossible: int  # rows that show what no input becomes
    statistic: float
    degrees: int
    untested: tuple[str, ...]


def judge_output_counts(sealed: SealedProtocol, inputs: IntArray, table: Table, way: OutputLayout) -> OutputMargins:
    """The counts of the outputs of a sanitised table against those of the inputs of the law."""
    law, names = sealed.mechanism, [at.name for at in sealed.domain.attributes]
    parts = [_Cover.from_protocol(sealed, inputs, cover, way) for cover in _covers(law, len(names))]
    tested = {j for part in parts for j in part.cover}
    rows = strange = 0
    for batch in table.batches(way.names):
        for piece in batch.iter_slices(way.rows_at_once):
            drawn = way.recover_codes(piece)
            strange += int((drawn < 0).any(axis=1).sum())
            rows += len(drawn)
            for part in parts:
                part.add(part.way.recover_codes(piece))
    judged = [part.judge() for part in parts]
    return OutputMargins(
        rows=rows,
        impossible=max([strange, *(part.impossible for part in parts)]),
        statistic=sum(statistic for statistic, _ in judged),
        degrees=sum(degrees for _, degrees in judged),
        untested=tuple(name for j, name in enumerate(names) if j not in tested),
    )


def _covers(mechanism: Mechanism, attributes: int) -> list[tuple[int, ...]]:
    """Sets of columns whose outputs have a law of their own and are small enough; none within another."""
    found = {mechanism.required_attributes((j,), attributes) for j in range(attributes)}
    fitting = [cover for cover in found if _fits(mechanism.restrict_attributes(cover)[0])]
    return sorted(cover for cover in fitting if not any(set(cover) < set(other) for other in fitting))


def _fits(mechanism: Mechanism) -> bool:
    return mechanism.inputs * mechanism.expansion_size <= LARGEST_CHANNEL


class _Cover:
    """Some columns: how often each of their outputs should occur, and does."""

    def __init__(self, cover: tuple[int, ...], mechanism: Mechanism, counts: IntArray, way: OutputLayout) -> None:
        self.cover, self.way, self._law, self._counts = cover, way, mechanism, counts
        self._chances: FloatArray = mechanism.observation()
        self._seen = np.zeros(self._chances.shape[1], dtype=np.int64)
        self._rows = self._strange = 0

    @classmethod
    def from_protocol(
        cls, sealed: SealedProtocol, inputs: IntArray, cover: tuple[int, ...], way: OutputLayout
    ) -> _Cover:
        law, originals = sealed.mechanism.restrict_attributes(cover)
        if law.inputs == sealed.mechanism.inputs:
            place = np.empty(law.inputs, dtype=np.int64)
            place[originals] = np.arange(law.inputs)
        else:
            _, number = np.unique(sealed.domain.combos[:, list(cover)], axis=0, return_inverse=True)
            number = number.reshape(-1)
            at = np.empty(law.inputs, dtype=np.int64)
            at[number[originals]] = np.arange(law.inputs)
            place = at[number]
        counts = np.zeros(law.inputs, dtype=np.int64)
        np.add.at(counts, place, inputs)
        return cls(cover, law, counts, way.restrict(law, cover))

    def add(self, drawn: NDArray[Any]) -> None:
        shown = self._law.observation_codes(drawn)
        known = (shown >= 0).all(axis=1)
        self._rows += len(shown)
        self._strange += int(np.count_nonzero(~known))
        self._seen += np.bincount(shown[known, 0], minlength=len(self._seen))

    @property
    def impossible(self) -> int:
        return self._strange + int(self._seen[self._counts @ (self._chances > 0) == 0].sum())

    def judge(self) -> tuple[float, int]:
        """The statistic and its degrees of freedom."""
        q, n = self._chances, self._counts
        expected = n @ q
        order = np.argsort(-expected, kind="stable")
        large = min(MOST_CELLS, int((expected >= LEAST_EXPECTED).sum()))
        cell = np.empty(len(order), dtype=np.int64)
        cell[order] = np.minimum(np.arange(len(order)), large)  # the last cell is what is left
        joined = np.zeros((len(n), large + 1))
        np.add.at(joined.T, cell, q.T)
        apart = np.bincount(cell, weights=self._seen, minlength=large + 1) - n @ joined
        covariance = np.diag(n @ joined) - joined.T @ (n[:, None] * joined)
        spread, directions = np.linalg.eigh(covariance)
        free = spread > RANK * max(spread.max(), LEAST_EXPECTED)
        along = (directions.T @ apart)[free]
        return float((along**2 / spread[free]).sum()), int(free.sum())


LEAST_VARIANCE = 20.0  # of rows, from which on a sum is as good as normal
MOST_SECRET_CELLS = 300  # of the outputs of one secret
CERTAIN = 0.05  # a direction that varies by less than this share of a cell's least is certain, or too rare to judge
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
    free = spread >= LEAST_VARIANCE * CERTAIN
    along = (directions.T @ (join.T @ pool.excess))[free]
    return float((along**2 / spread[free]).sum()), int(free.sum())


def _pool_cells(variance: FloatArray) -> IntArray:
    """Neighbouring outputs in one cell until it varies by some rows; −1 for what is left over.

    >>> _pool_cells(np.array([50.0, 6.0, 6.0, 6.0, 6.0, 1.0])).tolist()
    [0, 1, 1, 1, 1, -1]
    """
    target = max(LEAST_VARIANCE, float(variance.sum()) / MOST_SECRET_CELLS)
    cell, held, number = np.full(len(variance), -1, dtype=np.int64), 0.0, 0
    start = 0
    for place, size in enumerate(variance.tolist()):
        held += size
        if held >= target:
            cell[start : place + 1] = number
            start, held, number = place + 1, 0.0, number + 1
    return cell
