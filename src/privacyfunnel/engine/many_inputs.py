"""Column generation for many inputs, or many rows: from a smaller problem to this one.

With hundreds of inputs the first prices are far from right, and the atoms found at them of no use. So the problem is
first solved over parts of alike inputs (coarsening.py), or where only rows are many, without most of them
(classes.py). That gives prices, and in the first case a split to begin with; near these prices the master is held while
it learns atoms (rest.py). Simpler problems bound what branching cannot prove (relaxing.py).
"""

import time
from dataclasses import replace

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.classes import side_channels
from privacyfunnel.engine.coarsening import coarse
from privacyfunnel.engine.columns import LOAN, Clock, Generation
from privacyfunnel.engine.merging import merged
from privacyfunnel.engine.pricing import MANY_INPUTS, WalkPricer, pricer_for
from privacyfunnel.engine.problem import Split, Splitting
from privacyfunnel.engine.programmes import ProgrammeWalks
from privacyfunnel.engine.relaxing import Relaxing
from privacyfunnel.engine.rest import TOLL, RestMaster
from privacyfunnel.engine.starting import contracted, drawn_towards, reaches
from privacyfunnel.engine.vertices import entropy_terms

FEWEST_PARTS, INPUTS_PER_PART = 64, 8
COARSE_GAP = 0.02  # of the entropy of the prior: how well the coarse problem is solved
COARSE_SHARE, SHORT_COARSE_SHARE = 0.4, 0.2  # of a time limit; the shorter one where rows are many
STEADINESS = 0.8
FIRST_SEARCHES = 5  # at the coarse prices, before the master is asked


def generation_for(problem: Splitting) -> Generation:
    """The column generation that suits the size of the problem."""
    pricer = pricer_for(problem)
    if not isinstance(pricer, WalkPricer):
        return Generation(problem, pricer)
    if isinstance(pricer.walks, ProgrammeWalks) or (problem.prior.size > MANY_INPUTS and not pricer.by_classes):
        return ManyInputs(problem, pricer)
    return Generation(problem, pricer)


class ManyInputs(Relaxing):
    """A column generation whose every solution is a split, and whose bound comes by way of simpler problems."""

    def __init__(self, problem: Splitting, pricer: WalkPricer) -> None:
        super().__init__(problem, pricer, generation_for)
        self.steadiness = STEADINESS
        self.cone = pricer.cone
        self.kept = Split(np.ones(1), problem.prior[None, :], self.entropy, 0.0)
        self.looked_again = 0
        self.unsure = problem.prior  # how much each input adds to what the atoms in use leave open
        self.master: RestMaster

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> FloatArray:
        p = self.problem.prior
        share = COARSE_SHARE if self.branches else SHORT_COARSE_SHARE
        limit = None if np.isinf(clock.deadline) else share * (clock.deadline - clock.begun)
        if start is not None:
            self.secure = np.concatenate([self.secure, start])
        if p.size > MANY_INPUTS:
            self._begin_coarse(gap, limit)
        else:
            self._begin_simple(limit)
        self._learn(self.pricer.start())
        for _ in range(FIRST_SEARCHES):
            if time.monotonic() < clock.deadline:
                self._learn(self.walks.cover(self.prices, p))
        return self.prices

    def _begin_coarse(self, gap: float, limit: float | None) -> None:
        """From a split over parts of alike inputs, and its prices."""
        small = coarse(self.problem, max(FEWEST_PARTS, self.problem.prior.size // INPUTS_PER_PART))
        below = generation_for(small.problem)
        within = self.entropy - float(entropy_terms(small.problem.prior).sum())  # what the parts leave open

        def say(value: float, _: float) -> None:
            self.value = min(self.value, value + within)  # the same split, seen by every input
            self.say()

        try:
            below.run(max(gap, COARSE_GAP * self.entropy), limit, say, proofs=False)
        finally:  # also when interrupted
            found = below.best()
            atoms = small.expanded(found.atoms)
            self._settle(atoms, below.prices[small.part_of])
            self._keep(*self._closed(found.weights, atoms))

    def _begin_simple(self, limit: float | None) -> None:
        """From atoms near the prior, and the prices of the problem with those rows alone that look at most inputs."""
        part = next(side_channels(self.problem))[0]
        prices = np.zeros(self.problem.prior.size)
        if part.problem.numerators.shape == self.problem.numerators.shape:  # no row can be spared: it is no simpler
            self._settle(contracted(self.problem), prices)
            return
        small = merged(part.problem)
        easier = generation_for(small.problem)
        try:
            easier.run(COARSE_GAP * self.entropy, limit, None, proofs=False)
        finally:
            prices[part.inputs] = easier.prices[small.part_of]
            self._settle(contracted(self.problem), prices)

    def _settle(self, atoms: FloatArray, prices: FloatArray) -> None:
        """Have a master at these prices, with these atoms, which average to the prior."""
        self.prices = prices
        self.secure = np.concatenate([self.secure, atoms])
        master = RestMaster(self.problem.prior, self.cone, prices)
        master.add(self.secure, self.entropies(self.secure))
        self.master = master

    def _learn(self, atoms: FloatArray) -> None:
        clean = self.cleaned(atoms)
        self.master.add(clean, self.entropies(clean))

    def worth(self, weights: FloatArray, loan: float) -> float:
        used = np.flatnonzero(weights)
        self.unsure = (weights[used] * self.master.costs[used]) @ self.master.atoms[used]
        self._keep(*self._closed(weights[used], self.master.atoms[used]))
        return self.kept.value

    def _keep(self, weights: FloatArray, atoms: FloatArray) -> None:
        """Keep this split if it is the best so far."""
        value = float(weights @ self.entropies(atoms))
        if value < self.kept.value:
            self.kept = Split(weights, atoms, value, 0.0)

    def _closed(self, weights: FloatArray, atoms: FloatArray) -> tuple[FloatArray, FloatArray]:
        r"""These atoms and the rest as a split, to rounding: the solver's own rest is as good as its tolerance only.

        With r what the atoms leave over, in all m, and t how far from the prior towards r / m is allowed, a share δ of
        the prior is mixed into the whole such that the last atom, :math:`(1 - \delta) r + \delta p`, is allowed:
        :math:`\delta = (1 - t) m / (t + (1 - t) m)`.
        """
        p = self.problem.prior
        weights = weights / max(1.0, float((weights @ atoms / p).max(initial=0.0)))
        rest = np.maximum(p - weights @ atoms, 0.0)
        mass = float(rest.sum())
        if mass <= 0.0:
            return weights, atoms
        reach = float(reaches(self.problem, rest[None, :] / mass)[0])
        share = (1 - reach) * mass / (reach + (1 - reach) * mass)
        last = (1 - share) * rest + share * p
        return np.append((1 - share) * weights, last.sum()), np.concatenate([atoms, last[None, :] / last.sum()])

    def best(self) -> Split:
        self.worth(self.master.solve()[0], 0.0)
        return replace(self.kept, bound=self.bound)

    def search(self, prices: FloatArray) -> FloatArray:
        rest = self.master.loans_taken
        missing = rest if rest.sum() > LOAN else self.unsure
        return self.walks.cover(prices, missing + 1e-9 * self.problem.prior)

    def make_loans_dearer(self) -> None:
        """Raise the toll up to what the rest truly costs; then look again; then have the rest as an atom, at its cost.

        At a higher toll the master would take worse atoms, and as an atom the rest hides which inputs still need some.
        """
        rest = self.master.loans_taken
        if self.master.charge(rest) < entropy_terms(rest / rest.sum()).sum() * rest.sum():
            super().make_loans_dearer()
        elif self.looked_again < self.patience:
            self.looked_again += 1
        else:
            self._learn(drawn_towards(self.problem, rest[None, :] / rest.sum()))
            super().make_loans_dearer()

    def dearer_from(self, gap: float) -> float:
        return max(super().dearer_from(gap), TOLL / 2)
