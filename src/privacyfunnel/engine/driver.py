"""Column generation: the master problem, search and proof in turn, until value and bound are close enough.

For any prices λ, every split has value at least λ·p + min_v (cost(v) − λ·v), since its weights sum to 1. The bound is
the best of these over all prices at which something was proved; the value is that of the best known split.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.bounds.dual_bounds import DualBound
from privacyfunnel.engine.clock import FOREVER, Clock, TimeUpError
from privacyfunnel.engine.masters.slack_masters import MasterProblem
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.settings import SETTINGS

Progress = Callable[[float, float], None]


@dataclass(frozen=True, slots=True)
class Pace:
    """How a run goes on.

    Prices jump from round to round while many splits cost the same. `steadiness` is the weight of the past in the
    running average of prices at which the search is called: 0 where the search finds all that is cheap anyway.
    After `patience` searches in vain nothing is left to be found: nothing worth the gap, or `closest` where no proof
    says what is missing, and the best split is to come as close as there is time for.
    """

    steadiness: float
    patience: int
    closest: float = np.inf  # nats


class ColumnGeneration:
    """The state of a column generation: atoms, value, bound."""

    def __init__(
        self, problem: Problem, master: MasterProblem, dual_bound: DualBound, pace: Pace, strategy: str = ""
    ) -> None:
        self.problem, self.master, self.dual_bound, self.pace = problem, master, dual_bound, pace
        self.strategy = strategy  # how it is solved, in words
        self.prices = np.zeros(problem.size)  # at which the search was last called
        self._begun = False
        self._progress: Progress | None = None
        master.on_change = dual_bound.on_change = self._report

    @property
    def value(self) -> float:
        """What the best split so far costs."""
        return self.master.value

    @property
    def bound(self) -> float:
        """What every split costs at least."""
        return self.dual_bound.bound

    def run(
        self,
        gap: float,
        time_limit: float | None = None,
        progress: Progress | None = None,
        start: FloatArray | None = None,
        *,
        proofs: bool = True,
    ) -> None:
        """Alternate until the gap is reached, time is up, or nothing is left to try; again, from where it ended.

        Without `proofs` until the search finds nothing that is worth a gap of this size.
        """
        self._progress = progress
        with suppress(TimeUpError):
            self._alternate(gap, Clock.from_limit(time_limit), start, proofs)

    def _alternate(self, gap: float, clock: Clock, start: FloatArray | None, proofs: bool) -> None:
        supply, bounding, past, in_vain = self.master, self.dual_bound, self.pace.steadiness, 0
        sought = min(gap, self.pace.closest)
        limited = proofs and np.isfinite(clock.deadline)
        proving = clock.part(1 - bounding.share) if limited else clock
        if proofs:
            bounding.begin(clock)
        steady = self.prices if self._begun else supply.begin(start, gap, proving)
        self._begun = True
        while True:
            prices, owed = supply.solve(clock)
            self._report()
            if self.value - self.bound <= gap:
                return
            clock.check()
            late = proving.late and not bounding.is_exhausted
            searching = clock.part(SETTINGS.driver.late_share) if late else clock if bounding.is_exhausted else proving
            self.prices = steady = prices if steady is None else past * steady + (1 - past) * prices
            least = self._add(supply.search(steady, searching), prices)
            if least == 0.0 and past > 0.0:
                self.prices = steady = prices
                least = self._add(supply.search(prices, searching), prices)
            if owed > SETTINGS.tolerance.slack and least >= -supply.slack_price_threshold(sought) and not late:
                supply.raise_slack_price()
                continue
            in_vain = 0 if least < -SETTINGS.driver.searched_to * sought else in_vain + 1
            if in_vain < self.pace.patience and not late:
                continue
            if not proofs:
                return
            # Late, atoms known to be cheaper than the target must not end the proof before it has said something.
            target = max(SETTINGS.driver.proved_to * gap, -2 * least if late else 0.0)
            added = self._add(bounding.prove(steady if late else prices, target, clock), prices)
            ended = bounding.is_exhausted or (least == 0.0 and not bounding.is_incomplete)
            if added == 0.0 and in_vain >= self.pace.patience and ended:
                return

    def _add(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Give the master those atoms that can lower its value; the least reduced cost among those that were new."""
        atoms = self.problem.clean(atoms)
        costs = self.problem.costs(atoms)
        reduced = costs - atoms @ prices
        order = np.argsort(reduced)[: SETTINGS.driver.most_added]
        order = order[reduced[order] < -SETTINGS.tolerance.new_atom]
        new = order[self.master.add(atoms[order], costs[order])]
        return float(reduced[new].min(initial=0.0))

    def _report(self) -> None:
        """Tell how far things are."""
        if self._progress is not None:
            self._progress(self.value, self.bound)

    def best(self, clock: Clock = FOREVER) -> Split:
        """The best split so far, with its bound; to rounding, whether there is time to refine it or not."""
        weights, atoms = self.master.best(clock)
        return Split(weights, atoms, float(self.problem.costs(atoms) @ weights), self.bound)
