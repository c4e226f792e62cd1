"""Column generation: the master problem and a pricer in turn, until value and bound are close enough.

For any prices λ, every split has value at least λ·p + min_v (H(T v) - λ·v), since its weights sum to 1. The bound is
the best of these over all prices at which a pricer has proved something; the value is that of the best known split.
"""

import time
from collections.abc import Callable

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.envelope.master import Master
from privacyfunnel.envelope.merging import merged
from privacyfunnel.envelope.pricing import pricer_for
from privacyfunnel.envelope.problem import Pricer, Split, Splitting
from privacyfunnel.envelope.starting import contracted
from privacyfunnel.envelope.vertices import entropy_terms

Progress = Callable[[float, float], None]

WORTH_ADDING = 1e-10
LOAN = 1e-12
DUST = 1e-13
ROW_ROUNDING = 1e-11
MOST_ADDED = 2000  # per round: the cheapest ones, so that the master stays small
SEARCHED_TO = 0.25  # of the gap: a proof is tried once the search finds nothing below this
PROOF_SHARE = 0.4  # of a time limit: the part that is kept for proofs


def split(
    problem: Splitting,
    *,
    gap: float = 1e-6,
    time_limit: float | None = None,
    progress: Progress | None = None,
    start: FloatArray | None = None,
) -> Split:
    """The cheapest split up to `gap` nats. At the time limit, or when interrupted: the best so far, with its bound.

    `start` are allowed atoms that are known already; the split is never worse than the best one of these.
    """
    small = merged(problem)
    generation = Generation(small.problem, pricer_for(small.problem))
    try:
        generation.run(gap, time_limit, progress, None if start is None else small.reduced(start))
    except KeyboardInterrupt:
        if generation.value == np.inf:
            raise
    return small.expanded(generation.best())


class Generation:
    """The state of a column generation: atoms, value, bound."""

    def __init__(self, problem: Splitting, pricer: Pricer) -> None:
        self.problem = problem
        self.pricer = pricer
        self.master = Master(problem.prior, 1.0 + float(np.log(problem.prior.size)))
        self.values = int(problem.group.max()) + 1
        self.value = np.inf
        self.bound = 0.0
        self.secure = problem.prior[None, :]  # atoms that average to the prior

    def entropies(self, atoms: FloatArray) -> FloatArray:
        """H(T v) for every atom. Atoms have few non-zero entries, so only those are looked at."""
        row, z = np.nonzero(atoms)
        image = atoms[row, z]
        if not self.problem.sees_values_only:
            cell, where = np.unique(row * self.values + self.problem.group[z], return_inverse=True)
            row, image = cell // self.values, np.bincount(where, image).astype(np.float64)
        return np.bincount(row, entropy_terms(image), minlength=atoms.shape[0]).astype(np.float64)

    def cleaned(self, atoms: FloatArray) -> FloatArray:
        """The atoms without the dust of rounding; those that then break a row by more than rounding are left out.

        A row compares two sums, and where both are dust their ratio can be anything.
        """
        ratio = atoms / self.problem.prior
        atoms = np.where(ratio > DUST * ratio.max(axis=1, initial=0.0, keepdims=True), atoms, 0.0)
        atoms /= atoms.sum(axis=1, keepdims=True)
        one = np.asarray(self.problem.numerators @ atoms.T)
        other = np.asarray(self.problem.denominators @ atoms.T)
        most = np.exp(self.problem.epsilon) * (1 + ROW_ROUNDING)
        return np.asarray(atoms[((one <= most * other) & (other <= most * one)).all(axis=0)])

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
        self, gap: float, time_limit: float | None, progress: Progress | None, start: FloatArray | None = None
    ) -> None:
        """Alternate until the gap is reached, time is up, or rounding leaves nothing to gain."""
        begun = time.monotonic()
        deadline = begun + time_limit if time_limit is not None else np.inf
        prove_from = begun + (1 - PROOF_SHARE) * time_limit if time_limit is not None else np.inf
        prior = self.problem.prior[None, :]
        self.master.add(prior, self.entropies(prior))
        self.value = float(self.master.costs[0])
        known = np.empty((0, prior.size)) if start is None else start
        self.secure = np.concatenate([prior, known, contracted(self.problem)])
        for begin in (self.secure, self.cleaned(self.pricer.start())):
            self.master.add(begin, self.entropies(begin))
        steady, past = None, self.pricer.steadiness
        while True:
            weights, prices, loan = self.master.solve()
            if loan <= LOAN:
                self.value = float(self.master.costs @ weights)
            if progress is not None:
                progress(self.value, self.bound)
            if self.value - self.bound <= gap or time.monotonic() >= deadline:
                return
            late = time.monotonic() >= prove_from
            steady = prices if steady is None else past * steady + (1 - past) * prices
            least = self.add(self.pricer.search(steady), prices)
            if least == 0.0 and past > 0.0:
                steady = prices
                least = self.add(self.pricer.search(prices), prices)
            if least < -SEARCHED_TO * gap and not late:
                continue
            if loan > LOAN and not late:
                self.master.raise_penalty()
                continue
            # Late, atoms known to be cheaper than the target must not end the proof before it has said something.
            target = max(0.95 * gap, -2 * least if late else 0.0)
            proved_at = steady if late else prices
            proof = self.pricer.prove(proved_at, target, deadline)
            self.bound = max(self.bound, float(proved_at @ self.problem.prior) + proof.bound)
            if self.add(proof.atoms, prices) == 0.0 and least == 0.0:
                return

    def best(self) -> Split:
        """The atoms in use. Their weights are computed afresh, to rounding rather than to the solver's tolerance."""
        weights, _, loan = self.master.solve()
        atoms = self.master.atoms[weights > 0]
        if loan > LOAN:
            # Without loans only the atoms in use and those known to average to p: all of them could take very long.
            debtless = Master(self.problem.prior, 1.0)
            pool = np.concatenate([self.secure, atoms])
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
