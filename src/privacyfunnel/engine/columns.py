"""Column generation: the master problem and a pricer in turn, until value and bound are close enough.

For any prices λ, every split has value at least λ·p + min_v (H(T v) - λ·v), since its weights sum to 1. The bound is
the best of these over all prices at which a pricer has proved something; the value is that of the best known split.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.master import Master
from privacyfunnel.engine.problem import Pricer, Split, Splitting
from privacyfunnel.engine.starting import contracted, reaches
from privacyfunnel.engine.vertices import entropy_terms

Progress = Callable[[float, float], None]

WORTH_ADDING = 1e-10
LOAN = 1e-12
DUST = 1e-13
ROW_ROUNDING = 1e-11
FARTHEST_OUT = 1e-6  # of the way to the prior: atoms that must be drawn in further are no atoms
MOST_ADDED = 2000  # per round: the cheapest ones, so that the master stays small
SEARCHED_TO = 0.25  # of the gap: a proof is tried once the search finds nothing below this
PROOF_SHARE = 0.4  # of a time limit: the part that is kept for proofs


@dataclass(frozen=True, slots=True)
class Clock:
    """When a run began and when it must end (time.monotonic)."""

    begun: float
    deadline: float


class Generation:
    """The state of a column generation: atoms, value, bound."""

    def __init__(self, problem: Splitting, pricer: Pricer) -> None:
        self.problem = problem
        self.pricer = pricer
        self.master = Master(problem.prior, 1.0 + float(np.log(problem.prior.size)))
        self.values = int(problem.group.max()) + 1
        self.value = np.inf
        self.bound = 0.0
        self.prices = np.zeros(problem.prior.size)  # at which the search was last called
        self.steadiness = pricer.steadiness
        self.patience = 1  # after so many searches in vain nothing is left to be found
        self.progress: Progress | None = None
        self.cut_short = False  # whether the last proof ended early, to be taken up again
        self.secure = problem.prior[None, :]  # atoms that average to the prior
        self.paid = np.empty((0, problem.prior.size))  # those of the best split that took no loan

    def entropies(self, atoms: FloatArray) -> FloatArray:
        """H(T v) for every atom. Atoms have few non-zero entries, so only those are looked at."""
        row, z = np.nonzero(atoms)
        image = atoms[row, z]
        if not self.problem.sees_values_only:
            cell, where = np.unique(row * self.values + self.problem.group[z], return_inverse=True)
            row, image = cell // self.values, np.bincount(where, image).astype(np.float64)
        return np.bincount(row, entropy_terms(image), minlength=atoms.shape[0]).astype(np.float64)

    def cleaned(self, atoms: FloatArray) -> FloatArray:
        """The atoms without the dust of rounding; those that then break a row by more than rounding are drawn inwards.

        A row compares two sums, and where both are dust their ratio can be anything. What is too far out is left out.
        """
        ratio = atoms / self.problem.prior
        atoms = np.where(ratio > DUST * ratio.max(axis=1, initial=0.0, keepdims=True), atoms, 0.0)
        atoms /= atoms.sum(axis=1, keepdims=True)
        one = np.asarray(self.problem.numerators @ atoms.T)
        other = np.asarray(self.problem.denominators @ atoms.T)
        most = np.exp(self.problem.epsilon) * (1 + ROW_ROUNDING)
        good = ((one <= most * other) & (other <= most * one)).all(axis=0)
        if good.all():
            return np.asarray(atoms)
        reach = reaches(self.problem, atoms[~good])
        near = reach > 1 - FARTHEST_OUT
        drawn = reach[near, None] * atoms[~good][near] + (1 - reach[near, None]) * self.problem.prior
        return np.concatenate([atoms[good], drawn])

    def add(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Give the master those atoms that can lower its value; the least reduced cost among those that were new."""
        atoms = self.cleaned(atoms)
        costs = self.entropies(atoms)
        reduced = costs - atoms @ prices
        order = np.argsort(reduced)[:MOST_ADDED]
        order = order[reduced[order] < -WORTH_ADDING]
        new = order[self.master.add(atoms[order], costs[order])]
        return float(reduced[new].min(initial=0.0))

    def run(
        self,
        gap: float,
        time_limit: float | None,
        progress: Progress | None,
        start: FloatArray | None = None,
        proofs: bool = True,
    ) -> None:
        """Alternate until the gap is reached, time is up, or rounding leaves nothing to gain.

        Without `proofs` until the search finds nothing that is worth a gap of this size.
        """
        self.progress = progress
        begun, in_vain = time.monotonic(), 0
        deadline = begun + time_limit if time_limit is not None else np.inf
        prove_from = begun + (1 - PROOF_SHARE) * time_limit if time_limit is not None and proofs else np.inf
        prior = self.problem.prior[None, :]
        self.master.add(prior, self.entropies(prior))
        self.value = float(self.master.costs[0])
        steady, past = self.begin(start, gap, Clock(begun, deadline)), self.steadiness
        while True:
            weights, prices, loan = self.master.solve()
            self.value = self.worth(weights, loan)
            self.say()
            if self.value - self.bound <= gap or time.monotonic() >= deadline:
                return
            late = time.monotonic() >= prove_from and not self.proved_all
            self.prices = steady = prices if steady is None else past * steady + (1 - past) * prices
            least = self.add(self.search(steady), prices)
            if least == 0.0 and past > 0.0:
                self.prices = steady = prices
                least = self.add(self.search(prices), prices)
            if loan > LOAN and least >= -self.dearer_from(gap) and not late:
                self.make_loans_dearer()
                continue
            in_vain = 0 if least < -SEARCHED_TO * gap else in_vain + 1
            if in_vain < self.patience and not late:
                continue
            if not proofs:
                return
            # Late, atoms known to be cheaper than the target must not end the proof before it has said something.
            target = max(0.95 * gap, -2 * least if late else 0.0)
            atoms = self.prove(steady if late else prices, target, Clock(begun, deadline))
            added = self.add(atoms, prices)
            ended = self.proved_all or (least == 0.0 and not self.cut_short)
            if added == 0.0 and in_vain >= self.patience and ended:
                return

    def say(self) -> None:
        """Tell how far things are."""
        if self.progress is not None:
            self.progress(self.value, self.bound)

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> FloatArray | None:
        """Give the master its first atoms; prices that are about right, where such are known."""
        known = np.empty((0, self.problem.prior.size)) if start is None else start
        self.secure = np.concatenate([self.secure, known, contracted(self.problem)])
        for begin in (self.secure, self.cleaned(self.pricer.start())):
            self.master.add(begin, self.entropies(begin))
        return None

    def worth(self, weights: FloatArray, loan: float) -> float:
        """What the master's solution costs as a split; if it is none, the best one that was."""
        if loan > LOAN:
            return self.value
        value = float(self.master.costs @ weights)
        if value < self.value:
            self.paid = self.master.atoms[weights > 0]
        return min(self.value, value)

    def search(self, prices: FloatArray) -> FloatArray:
        """Atoms of small reduced cost."""
        return self.pricer.search(prices)

    def make_loans_dearer(self) -> None:
        """Have the master do with fewer loans."""
        self.master.raise_penalty()

    def dearer_from(self, gap: float) -> float:
        """Loans become dearer once no reduced cost is known to be further below 0 than this."""
        return SEARCHED_TO * gap

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """Raise the bound by a proof at these prices; the atoms met on the way."""
        proof = self.pricer.prove(prices, target, clock.deadline)
        self.bound = max(self.bound, float(prices @ self.problem.prior) + proof.bound)
        return proof.atoms

    @property
    def proved_all(self) -> bool:
        """Whether no proof will ever say more."""
        return False

    def best(self) -> Split:
        """The atoms in use. Their weights are computed afresh, to rounding rather than to the solver's tolerance."""
        weights, _, loan = self.master.solve()
        atoms = self.master.atoms[weights > 0]
        if loan > LOAN or float(self.master.costs @ weights) > self.value + LOAN:
            # Only the atoms in use, those of the best split and those known to average to p: all of them could take
            # very long.
            debtless = Master(self.problem.prior, 1.0)
            pool = np.concatenate([self.secure, self.paid, atoms])
            debtless.add(pool, self.entropies(pool))
            debtless.forbid_loans()
            weights = debtless.solve()[0]
            atoms = debtless.atoms[weights > 0]
        weights = weights[weights > 0]
        # Divided by p, so that rare inputs get back their whole probability to the same relative precision.
        ratios = (atoms / self.problem.prior).T
        largest = ratios.max(axis=0)
        exact = np.asarray(np.linalg.lstsq(ratios / largest, np.ones(ratios.shape[0]))[0] / largest, dtype=np.float64)
        if (exact >= 0).all() and np.abs(exact - weights).max() < 1e-6:
            weights = exact
        return Split(weights, atoms, float(self.entropies(atoms) @ weights), self.bound)
