r"""The master problem for many inputs: what the known atoms do not cover yet is one atom more, the rest.

    min Σ_y q_y h_y + (λ⁰ + δ)·r   subject to   Σ_y q_y v_y + r = p,  q >= 0,  r in the cone over V

Every solution is a split, since r divided by its sum is allowed too. The rest is charged at prices λ⁰ that are about
right, and a toll δ: so the prices of all inputs stay near λ⁰ while few atoms are known, and the toll grows later.
"""

import highspy
import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.master import Master

TOLL = 0.5  # nats
DEARER = 1.5


class RestMaster(Master):
    """A master whose loans are the rest."""

    def __init__(self, prior: FloatArray, cone: FloatArray, prices: FloatArray) -> None:
        self._cone = cone
        self._prices = prices
        super().__init__(prior, TOLL)

    def _add_loans(self) -> int:
        """r / p, and auxiliary columns t if there are any; rows cone·(r, t) <= 0, each scaled to largest entry 1.

        As ratios to the prior, so that the solver's tolerance is a small part of rare inputs too.
        """
        d, columns = self.prior.size, self._cone.shape[1]
        self._units = np.concatenate([self.prior, np.ones(columns - d)])
        rows = self._cone[self._cone.max(axis=1) > 0] * self._units
        rows = rows / np.abs(rows).max(axis=1, keepdims=True)
        none = np.empty(0)
        for _ in rows:
            self._highs.addRow(-highspy.kHighsInf, 0.0, 0, none.astype(np.int32), none)
        matrix = np.concatenate([np.eye(d, columns) * self._units, rows]).T
        of_column, index = np.nonzero(matrix)
        self._highs.addCols(
            columns,
            self._tolls(columns),
            np.zeros(columns),
            np.full(columns, highspy.kHighsInf),
            of_column.size,
            np.searchsorted(of_column, np.arange(columns)).astype(np.int32),
            index.astype(np.int32),
            matrix[of_column, index],
        )
        return int(columns)

    def _tolls(self, columns: int) -> FloatArray:
        costs = np.zeros(columns)
        costs[: self.prior.size] = (self._prices + self._penalty) * self.prior
        return costs

    def solve(self) -> tuple[FloatArray, FloatArray, float]:
        """The best weights, the prices, and the mass of the rest."""
        weights, prices, _ = super().solve()
        d = self.prior.size
        self.loans_taken = np.maximum(self.loans_taken[:d], 0.0) * self.prior
        return weights, prices[:d], float(self.loans_taken.sum())

    def charge(self, rest: FloatArray) -> float:
        """What the rest is charged at."""
        return float((self._prices + self._penalty) @ rest)

    def raise_penalty(self) -> None:
        """Make the rest dearer."""
        self._penalty *= DEARER
        self._charge(self._tolls(self._loans))
