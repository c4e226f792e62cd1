"""HiGHS, in one place: a linear programme that grows and changes, each solve starting from the last basis.

What a solver says is advice: whoever uses a solution checks it, and bounds come from formulas that hold for any
multipliers.

Where Python waits for a long call it hears no signal. So a solver calls back at every step, and a large programme is
solved in a thread of its own: what comes before and between the steps, presolving above all, calls nobody.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.clock import WORK, now
from privacyfunnel.engine.settings import SETTINGS

INF = float(highspy.kHighsInf)
DUAL, PRIMAL = 1, 4  # which simplex method: from nothing, or where only the cost changes
MOST_STEPS = 2**31 - 1  # an iteration limit of HiGHS that is none
INTERRUPT_CALLBACKS = (  # what calls back at every step
    highspy.cb.HighsCallbackType.kCallbackSimplexInterrupt,
    highspy.cb.HighsCallbackType.kCallbackIpmInterrupt,
)


def _stop_if_abandoned(kind: object, message: object, data: object, answer: Any, abandoned: threading.Event) -> None:
    """An interrupt that came in the midst of a solve is obeyed here, for this is Python, and ends it.

    So does it end, in a thread of its own, once nobody waits for it. This costs some microseconds a step. A method
    would hold its programme for ever.
    """
    if abandoned.is_set():
        answer.user_interrupt = True


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """Where every column and every row stood in the end: a programme with these columns may begin there."""

    columns: list[Any]
    rows: list[Any]

    @property
    def is_basic(self) -> BoolArray:
        """The columns that are in it."""
        return np.array([status == highspy.HighsBasisStatus.kBasic for status in self.columns], dtype=np.bool_)

    def restrict(self, kept: BoolArray) -> Basis:
        """The same where some columns outside of it are left out."""
        return Basis([self.columns[j] for j in np.flatnonzero(kept)], self.rows)


class Programme:
    """min c·x subject to low <= A x <= high, with bounds on x."""

    def __init__(self, **options: object) -> None:
        solver: Any = highspy.Highs  # it comes without types
        self._highs = solver()
        settings: dict[str, object] = {
            "output_flag": False,
            "threads": 1,
            "presolve": "off",  # it would forget the last basis
            "primal_feasibility_tolerance": SETTINGS.tolerance.solved,
            "dual_feasibility_tolerance": SETTINGS.tolerance.solved,
            **options,
        }
        for option, setting in settings.items():
            self.set_option(option, setting)
        self._entries = 0
        self._abandoned = threading.Event()
        self._highs.setCallback(_stop_if_abandoned, self._abandoned)
        for moment in INTERRUPT_CALLBACKS:
            self._highs.startCallback(moment)

    def set_option(self, option: str, setting: object) -> None:
        self._highs.setOptionValue(option, setting)

    def clear(self) -> None:
        self._entries = 0
        self._highs.clearModel()

    def clear_basis(self) -> None:
        """Forget the last basis: the next solve starts from nothing."""
        self._highs.clearSolver()

    def set_basis(self, basis: Basis) -> None:
        """Start the next solve there."""
        begun = highspy.HighsBasis()
        begun.col_status, begun.row_status, begun.valid = basis.columns, basis.rows, True
        self._highs.setBasis(begun)

    @property
    def basis(self) -> Basis:
        found = self._highs.getBasis()
        return Basis(list(found.col_status), list(found.row_status))

    def add_rows(self, low: FloatArray, high: FloatArray) -> None:
        """Rows without entries; columns bring these."""
        k, none = len(low), np.empty(0, dtype=np.int32)
        self._highs.addRows(k, low, high, 0, np.zeros(k, dtype=np.int32), none, np.empty(0))

    def add_sparse_rows(
        self,
        low: FloatArray,
        high: FloatArray,
        starts: NDArray[np.integer[Any]],
        index: NDArray[np.integer[Any]],
        entries: FloatArray,
    ) -> None:
        """Rows over columns that are there already: the entries of row i, and their columns, begin at starts[i]."""
        k = len(low)
        self._entries += len(entries)
        self._highs.addRows(
            k, low, high, len(entries), starts[:k].astype(np.int32), index.astype(np.int32), entries.astype(np.float64)
        )

    def add_columns(
        self,
        costs: FloatArray,
        starts: NDArray[np.integer[Any]],
        index: NDArray[np.integer[Any]],
        entries: FloatArray,
        low: FloatArray | None = None,
    ) -> None:
        """Columns of at least 0, or `low`: the entries of column j, and the rows they stand in, begin at starts[j]."""
        k = len(costs)
        self._entries += len(entries)
        self._highs.addCols(
            k,
            np.asarray(costs, dtype=np.float64),
            np.zeros(k) if low is None else low,
            np.full(k, INF),
            len(entries),
            starts[:k].astype(np.int32),
            index.astype(np.int32),
            np.asarray(entries, dtype=np.float64),
        )

    def add_dense_columns(self, costs: FloatArray, entries: FloatArray) -> None:
        """Columns of at least 0, whose entries are the rows of a matrix; those that are 0 are left out."""
        column, row = np.nonzero(entries)
        self.add_columns(costs, np.searchsorted(column, np.arange(len(entries))), row, entries[column, row])

    def set_costs(self, costs: FloatArray) -> None:
        k = len(costs)
        self._highs.changeColsCost(k, np.arange(k, dtype=np.int32), np.asarray(costs, dtype=np.float64))

    def fix_at_zero(self, columns: IntArray) -> None:
        none = np.zeros(len(columns))
        self._highs.changeColsBounds(len(columns), columns.astype(np.int32), none, none)

    def set_bounds(self, low: FloatArray, high: FloatArray) -> None:
        k = len(low)
        self._highs.changeColsBounds(k, np.arange(k, dtype=np.int32), low, high)

    def run(self, deadline: float = np.inf) -> bool:
        """Solve; whether an optimum was reached, before the clock (`clock.now`) passed the deadline."""
        left = max(deadline - now(), 0.0)
        limited = np.isfinite(left)
        by_work = limited and WORK.is_clock
        self.set_option("time_limit", float(self._highs.getRunTime() + left) if limited and not by_work else INF)
        work = SETTINGS.work
        touched = work.iteration_share * self._entries
        each = work.iteration + touched * work.entry
        steps = int(min(left / each, MOST_STEPS)) if by_work else MOST_STEPS
        self.set_option("simplex_iteration_limit", steps)
        if self._entries > SETTINGS.lp.large and threading.current_thread() is threading.main_thread():
            _run_in_thread(self._highs.run, self._abandoned)
        else:  # signals are answered elsewhere, or soon
            self._highs.run()
        WORK.programmes += 1
        iterations = max(int(self._highs.getInfo().simplex_iteration_count), 0)
        WORK.iterations += iterations
        WORK.entries += int(iterations * touched)
        return bool(self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal)

    def run_afresh(self, deadline: float = np.inf, settings: Sequence[tuple[str, object]] = ()) -> bool:
        """Solve; where the last basis leads nowhere, from nothing, and then with each of these settings as well."""
        if self.run(deadline):
            return True
        for setting in settings or (None,):
            if self.late:
                return False
            self.clear_basis()
            if setting is not None:
                self.set_option(*setting)
            if self.run(deadline):
                return True
        return False

    @property
    def is_infeasible(self) -> bool:
        """Whether the last solve found that there is no solution."""
        return bool(self._highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible)

    @property
    def late(self) -> bool:
        """Whether the last solve was stopped by the clock, or by the count of its work."""
        stopped = (highspy.HighsModelStatus.kTimeLimit, highspy.HighsModelStatus.kIterationLimit)
        return self._highs.getModelStatus() in stopped

    @property
    def dual_ray(self) -> FloatArray | None:
        """Multipliers of the rows that show why the last programme has no solution, up to their sign, if known."""
        _, known = self._highs.getDualRayExist()
        return np.array(self._highs.getDualRay()[2]) if known else None

    @property
    def status(self) -> str:
        return str(self._highs.getModelStatus())

    @property
    def solution(self) -> FloatArray:
        return np.array(self._highs.getSolution().col_value)

    @property
    def multipliers(self) -> FloatArray:
        return np.array(self._highs.getSolution().row_dual)


def _run_in_thread(work: Callable[[], object], abandoned: threading.Event) -> None:
    """Have the work done in a thread of its own; a signal ends the waiting at once, and the work when it next looks."""
    failed: list[BaseException] = []

    def run_work() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run_work)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(SETTINGS.lp.poll_seconds)
    except BaseException:
        abandoned.set()
        raise
    if failed:
        raise failed[0]
