r"""A draw judged without knowing which row became which: only how often each output occurs.

Rows leave in a random order. Whoever cannot undo it cannot pair x with y, but knows the counts :math:`n_z` of the
inputs, so the counts of the outputs have mean and covariance

.. math:: \mu_y = \sum_z n_z q(y|z), \qquad V = \sum_z n_z \left(\mathrm{diag}\, q_z - q_z q_z^T\right),

and :math:`(N - \mu)^T V^+ (N - \mu)` is chi-square with as many degrees as V has rank. It finds a table drawn from
another law. It cannot find outputs that were handed to other rows: for that the order must be known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sealing import SealedProtocol

if TYPE_CHECKING:
    from privacyfunnel.release.output_layout import OutputLayout
    from privacyfunnel.tables.readers.table_interface import Table

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
