"""The master problem: the cheapest mixture of the atoms known so far that averages to the prior.

    min Σ_y q_y h_y   subject to   Σ_y q_y v_y = p,  q >= 0

One HiGHS object is kept and only grows, so each solve starts from the last basis. While few atoms are known they can
hardly average to p, and prices would be wild; so probability may be missing or left over at a penalty M per unit, which
keeps every price within [-M, M]. Nothing that uses such a loan is ever handed out as a split.
"""

from typing import Any

import highspy
import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import SolverError

TOLERANCE = 1e-9
RETRIES: tuple[tuple[str, object], ...] = (
    ("", None),
    ("simplex_strategy", 1),  # dual simplex, from nothing
    ("simplex_strategy", 4),  # primal simplex, from nothing
    ("primal_feasibility_tolerance", 1e-7),
    ("dual_feasibility_tolerance", 1e-7),
)


class Master:
    """Atoms with their costs, the best weights, and the prices that prove them best among these atoms."""

    def __init__(self, prior: FloatArray, penalty: float) -> None:
        self.prior = prior
        self._atoms: list[FloatArray] = []
        self.costs = np.empty(0)
        self._seen: set[bytes] = set()
        solver: Any = highspy.Highs  # it comes without types
        self._highs = solver()
        for option, setting in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "off"),
            ("primal_feasibility_tolerance", TOLERANCE),
            ("dual_feasibility_tolerance", TOLERANCE),
        ):
            self._highs.setOptionValue(option, setting)
        none = np.empty(0)
        for p in prior:
            self._highs.addRow(float(p), float(p), 0, none.astype(np.int32), none)
        self._penalty = penalty
        self._loans = self._add_loans()
        self.loans_taken = np.zeros(self._loans)  # by the last solution

    def _add_loans(self) -> int:
        """Columns of probability that is missing or left over; how many."""
        d = self.prior.size
        each = np.concatenate([np.arange(d), np.arange(d)]).astype(np.int32)
        self._highs.addCols(
            2 * d,
            np.full(2 * d, self._penalty),
            np.zeros(2 * d),
            np.full(2 * d, highspy.kHighsInf),
            2 * d,
            np.arange(2 * d).astype(np.int32),
            each,
            np.repeat([1.0, -1.0], d),
        )
        return 2 * d

    def add(self, atoms: FloatArray, costs: FloatArray) -> IntArray:
        """Add the atoms that are new; which were."""
        fresh = []
        for i, atom in enumerate(np.round(atoms, 12)):
            key = atom.tobytes()
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(i)
        if not fresh:
            return np.empty(0, dtype=np.int64)
        new, cost = atoms[fresh], costs[fresh]
        rows = new.shape[0]
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
        self._atoms.append(new)
        self.costs = np.concatenate([self.costs, cost])
        return np.array(fresh, dtype=np.int64)

    @property
    def atoms(self) -> FloatArray:
        """All atoms, in the order of the weights."""
        return np.concatenate(self._atoms)

    def solve(self) -> tuple[FloatArray, FloatArray, float]:
        """The best weights, the prices (the dual value of each input), and how much probability is on loan."""
        self._run()
        solution = self._highs.getSolution()
        weights = np.array(solution.col_value)
        self.loans_taken = weights[: self._loans]
        return weights[self._loans :], np.array(solution.row_dual), float(self.loans_taken.sum())

    def _run(self) -> None:
        """Solve; where a start from the last basis ends in numerical trouble, afresh and with other settings."""
        for option, setting in RETRIES:
            if option:
                self._highs.clearSolver()
                self._highs.setOptionValue(option, setting)
            self._highs.run()
            status = self._highs.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                return
            if status == highspy.HighsModelStatus.kInfeasible:
                break
        raise SolverError(f"The master problem must be solved to optimality; HiGHS said {status}. Report this.")

    def raise_penalty(self) -> None:
        """Make loans ten times dearer."""
        self._penalty *= 10.0
        self._charge(np.full(self._loans, self._penalty))

    def _charge(self, costs: FloatArray) -> None:
        self._highs.changeColsCost(self._loans, np.arange(self._loans, dtype=np.int32), costs)

    def forbid_loans(self) -> None:
        """From now on every solution is a split."""
        none = np.zeros(self._loans)
        self._highs.changeColsBounds(self._loans, np.arange(self._loans, dtype=np.int32), none, none)
