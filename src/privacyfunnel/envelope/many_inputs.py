"""Column generation for many inputs: from coarse to fine, and with bounds from fewer secrets.

With hundreds of inputs the first prices are far from right, and the atoms found at them of no use. So the problem is
first solved over parts of alike inputs (coarsening.py). That gives a split to begin with, and prices; near these the
master is held while it learns atoms (rest.py). What branching cannot prove in time is bounded by grouping secrets.
"""

import time

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.envelope.coarsening import coarse
from privacyfunnel.envelope.columns import LOAN, Clock, Generation
from privacyfunnel.envelope.grouping import ever_finer, secrets_of
from privacyfunnel.envelope.merging import merged
from privacyfunnel.envelope.pricing import VertexPricer, pricer_for
from privacyfunnel.envelope.problem import Splitting
from privacyfunnel.envelope.rest import TOLL, RestMaster
from privacyfunnel.envelope.starting import drawn_towards
from privacyfunnel.envelope.vertices import entropy_terms

MANY = 150  # inputs; below, plain column generation is as fast
FEWEST_PARTS, INPUTS_PER_PART = 64, 8
COARSE_GAP = 0.02  # of the entropy of the prior: how well the coarse problem is solved
COARSE_SHARE = 0.4  # of a time limit
STEADINESS = 0.8
FIRST_SEARCHES = 5  # at the coarse prices, before the master is asked
BRANCHING_SHARE = 6  # one part in so many of the time left goes to branching before secrets are grouped
LEAST_PATIENCE = 5.0  # seconds that branching gets where there is no time limit
LOOSEST = 0.64  # nats: the first proof by branching
GROUPED_GAP = 0.01  # of the entropy of the prior: how well problems with grouped secrets are solved


def generation_for(problem: Splitting) -> Generation:
    """The column generation that suits the size of the problem."""
    pricer = pricer_for(problem)
    if isinstance(pricer, VertexPricer) and not pricer.by_classes and problem.prior.size > MANY:
        return ManyInputs(problem, pricer)
    return Generation(problem, pricer)


class ManyInputs(Generation):
    """A column generation whose every solution is a split, and whose bound comes by way of simpler problems."""

    def __init__(self, problem: Splitting, pricer: VertexPricer) -> None:
        super().__init__(problem, pricer)
        self.vertices = pricer
        self.steadiness = STEADINESS
        self.relaxed, self.relaxed_from = False, np.inf
        self.entropy = float(entropy_terms(problem.prior).sum())

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> FloatArray:
        p = self.problem.prior
        small = coarse(self.problem, max(FEWEST_PARTS, p.size // INPUTS_PER_PART))
        below = generation_for(small.problem)
        within = self.entropy - float(entropy_terms(small.problem.prior).sum())  # what the parts leave open

        def say(value: float, _: float) -> None:
            self.value = min(self.value, value + within)
            self.say()

        limit = COARSE_SHARE * (clock.deadline - clock.begun)
        try:
            below.run(max(gap, COARSE_GAP * self.entropy), limit if np.isfinite(limit) else None, say, proofs=False)
        finally:
            known = np.empty((0, p.size)) if start is None else start
            self.secure = np.concatenate([p[None, :], known, small.expanded(below.best().atoms)])
            prices = below.prices[small.part_of]
            self.master = RestMaster(p, self.vertices.polytope, prices)
            self.master.add(self.secure, self.entropies(self.secure))
        self._learn(self.pricer.start())
        for _ in range(FIRST_SEARCHES):
            if time.monotonic() < clock.deadline:
                self._learn(self.vertices.cover(prices, p))
        return prices

    def _learn(self, atoms: FloatArray) -> None:
        clean = self.cleaned(atoms)
        self.master.add(clean, self.entropies(clean))

    def worth(self, weights: FloatArray, loan: float) -> float:
        rest = self.master.loans_taken
        now = float(self.master.costs @ weights + entropy_terms(rest / max(loan, LOAN)).sum() * loan)
        return min(self.value, now)  # at first the rest is more than the split over parts costs

    def search(self, prices: FloatArray) -> FloatArray:
        rest = self.master.loans_taken
        return self.vertices.cover(prices, rest + 1e-9 * self.problem.prior)

    def dearer_from(self, gap: float) -> float:
        return max(super().dearer_from(gap), TOLL / 2)

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        if self.relaxed:
            return self._branched(prices, target, clock)
        now = time.monotonic()
        if self.relaxed_from == np.inf:
            patience = (clock.deadline - now) / BRANCHING_SHARE
            self.relaxed_from = now + (patience if np.isfinite(patience) else max(LEAST_PATIENCE, now - clock.begun))
        atoms = super().prove(prices, target, Clock(clock.begun, self.relaxed_from))
        if time.monotonic() >= self.relaxed_from:
            self.relax(min(clock.deadline, 2 * time.monotonic() - clock.begun))
        return atoms

    def _branched(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """Proofs of ever smaller targets, since a proof that is cut short says little."""
        more = float(prices @ self.problem.prior) - self.bound  # what a proof must stay below to say anything new
        goal = max(min(LOOSEST, 0.75 * more), target)
        while True:
            atoms = super().prove(prices, goal, clock)
            if goal == target or atoms.size or time.monotonic() >= clock.deadline:
                return atoms
            goal = max(goal / 2, target)

    def relax(self, deadline: float) -> None:
        """Raise the bound by problems with fewer secrets, until the deadline."""
        self.relaxed = True
        secrets = secrets_of(self.problem)
        if secrets is None:
            return
        costs = np.zeros(secrets.count)
        for s in range(secrets.count):
            costs[s] = self._bounded(secrets.singled_out([s]), deadline)
        for problem in ever_finer(secrets, costs):
            self._bounded(problem, deadline)

    def _bounded(self, problem: Splitting, deadline: float) -> float:
        """The bound of a problem that is easier than this one, and by it a bound of this one."""
        left = deadline - time.monotonic()
        if left <= 0:
            return 0.0
        easier = generation_for(merged(problem).problem)  # what only grouped secrets told apart is alike now
        if isinstance(easier, ManyInputs):
            easier.relaxed = True
        try:
            easier.run(GROUPED_GAP * self.entropy, left, None)
        finally:
            self.bound = max(self.bound, easier.bound)
            self.say()
        return easier.bound

    def remainder(self) -> FloatArray:
        rest = self.master.loans_taken
        return drawn_towards(self.problem, rest[None, :] / rest.sum())
