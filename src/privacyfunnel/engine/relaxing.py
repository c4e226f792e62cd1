"""Column generation whose bound comes by way of simpler problems, where branching cannot prove enough in time."""

import time
from collections.abc import Callable

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.classes import side_channels
from privacyfunnel.engine.columns import Clock, Generation
from privacyfunnel.engine.grouping import ever_finer, secrets_of
from privacyfunnel.engine.merging import merged
from privacyfunnel.engine.polytope import compared_with_everybody
from privacyfunnel.engine.pricing import WalkPricer
from privacyfunnel.engine.problem import Splitting
from privacyfunnel.engine.vertices import entropy_terms

BRANCHING_SHARE = 6  # one part in so many of the time left goes to branching before problems are relaxed
LEAST_PATIENCE = 5.0  # seconds that branching gets where there is no time limit
LOOSEST = 0.64  # nats: the first proof by branching
MOST_BRANCHED = 700  # inputs; with more, boxes are so many to begin with that a proof says nothing in time
PATIENCE = 8  # searches in vain where no proof says that there is nothing to be found
EASIER_GAP = 0.01  # of the entropy of the prior: how well simpler problems are solved


class Relaxing(Generation):
    """A column generation with bounds from fewer secrets (grouping.py) and from fewer rows (classes.py)."""

    def __init__(
        self, problem: Splitting, pricer: WalkPricer, generation_for: Callable[[Splitting], Generation]
    ) -> None:
        super().__init__(problem, pricer)
        self.walks = pricer.walks
        self.branches = pricer.proves and problem.prior.size <= MOST_BRANCHED
        self.generation_for = generation_for
        self.patience = pricer.walks.patience if self.branches else max(PATIENCE, pricer.walks.patience)
        self.relaxed, self.relaxed_from = False, np.inf
        self.entropy = float(entropy_terms(problem.prior).sum())

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        if self.relaxed:
            return self._branched(prices, target, clock)
        now = time.monotonic()
        if self.relaxed_from == np.inf:
            patience = (clock.deadline - now) / BRANCHING_SHARE
            self.relaxed_from = now + (patience if np.isfinite(patience) else max(LEAST_PATIENCE, now - clock.begun))
        atoms = self._tried(prices, target, Clock(clock.begun, self.relaxed_from))
        if not self.branches or time.monotonic() >= self.relaxed_from:
            self.relax(min(clock.deadline, 2 * time.monotonic() - clock.begun))
            self.cut_short = np.isfinite(clock.deadline)  # without a limit no more is tried
        return atoms

    @property
    def proved_all(self) -> bool:
        return self.relaxed and not self.branches

    def _tried(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        return super().prove(prices, target, clock) if self.branches else np.empty((0, prices.size))

    def _branched(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """Proofs of ever smaller targets, since a proof that is cut short says little."""
        self.cut_short = False
        more = float(prices @ self.problem.prior) - self.bound  # what a proof must stay below to say anything new
        goal = max(min(LOOSEST, 0.75 * more), target)
        while True:
            atoms = self._tried(prices, goal, clock)
            if goal == target or atoms.size or time.monotonic() >= clock.deadline:
                return atoms
            goal = max(goal / 2, target)

    def relax(self, deadline: float) -> None:
        """Raise the bound by simpler problems, until the deadline."""
        self.relaxed = True
        secrets = secrets_of(self.problem)
        if secrets is not None:
            costs = np.array([self._bounded(secrets.singled_out([s]), deadline) for s in range(secrets.count)])
            for problem in ever_finer(secrets, costs):
                self._bounded(problem, deadline)
        elif not compared_with_everybody(self.problem):
            self._relax_by_classes(deadline)

    def _relax_by_classes(self, deadline: float) -> None:
        """Every side channel on its own, each with its share of the time that is left; knowing nothing gets half."""
        rows = self.problem.numerators.shape
        ways = [parts for parts in side_channels(self.problem) if parts[0].problem.numerators.shape != rows]
        for number, parts in enumerate(ways):
            now = time.monotonic()
            until = now + (deadline - now) / (2 if number == 0 else len(ways) - number)
            cost = 0.0
            for part in parts:
                cost += part.mass * self._cost(part.problem, until)
            self.bound = max(self.bound, cost)
            self.say()

    def _bounded(self, problem: Splitting, deadline: float) -> float:
        """The bound of a problem that is easier than this one, and by it a bound of this one."""
        cost = self._cost(problem, deadline)
        self.bound = max(self.bound, cost)
        self.say()
        return cost

    def _cost(self, problem: Splitting, deadline: float) -> float:
        """What every split of a simpler problem costs at least."""
        left = deadline - time.monotonic()
        if left <= 0:
            return 0.0
        easier = self.generation_for(merged(problem).problem)  # what only other rows told apart is alike now
        if isinstance(easier, Relaxing):
            easier.relaxed = True
        easier.run(EASIER_GAP * self.entropy, left, None)
        return easier.bound
