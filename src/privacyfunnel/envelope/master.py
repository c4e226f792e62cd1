"""The master problem: the cheapest mixture of the atoms known so far that averages to the prior.

    min Σ_y q_y h_y   subject to   Σ_y q_y v_y = p,  q >= 0

One HiGHS object is kept and only grows, so each solve starts from the last basis.
"""

import highspy
import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import SolverError

TOLERANCE = 1e-9


class Master:
    """Atoms with their costs, the best weights, and the prices that prove them best among these atoms."""

    def __init__(self, prior: FloatArray) -> None:
        self.prior = prior
        self.atoms = np.empty((0, prior.size))
        self.costs = np.empty(0)
        self._seen: set[bytes] = set()
        self._highs = highspy.Highs()
        for option, setting in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "off"),
            ("primal_feasibility_tolerance", TOLERANCE),
            ("dual_feasibility_tolerance", TOLERANCE),
        ):
            self._highs.setOptionValue(option, setting)
        empty = np.empty(0)
        for p in prior:
            self._highs.addRow(float(p), float(p), 0, empty.astype(np.int32), empty)

    def add(self, atoms: FloatArray, costs: FloatArray) -> int:
        """Add the atoms that are new; how many were."""
        fresh = []
        for i, atom in enumerate(atoms):
            key = np.round(atom, 12).tobytes()
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(i)
        if not fresh:
            return 0
        new, cost = atoms[fresh], costs[fresh]
        rows, columns = new.shape[0], new.shape[1]
        of_row, index = np.nonzero(new)
        starts = np.searchsorted(of_row, np.arange(rows)).astype(np.int32)
        self._highs.addCols(
            rows,
            cost,
            np.zeros(rows),
            np.full(rows, highspy.kHighsInf),
            of_row.size,
            starts,
            index.astype(np.int32),
            new[of_row, index],
        )
        self.atoms = np.concatenate([self.atoms, new.reshape(rows, columns)])
        self.costs = np.concatenate([self.costs, cost])
        return rows

    def solve(self) -> tuple[FloatArray, FloatArray]:
        """The best weights, and the prices: the dual value of each input."""
        self._highs.run()
        status = self._highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"The master problem must be solved to optimality; HiGHS said {status}. Report this.")
        solution = self._highs.getSolution()
        return np.array(solution.col_value), np.array(solution.row_dual)

    def used(self, weights: FloatArray) -> IntArray:
        """The atoms of positive weight."""
        return np.flatnonzero(weights > 0)
