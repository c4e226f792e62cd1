r"""The average-leakage master (the classical Privacy Funnel): one more constraint, about an average.

.. math:: \min \sum_y q_y H(v_y) \quad\text{s.t.}\quad \sum_y q_y v_y = p,\quad \sum_y q_y H(A v_y) \ge r,\quad q \ge 0,

where A = P(S | X), so that :math:`r = H(S) - M` says :math:`I(S;Y) \le M`. Atoms may have to keep a promise besides.
For any prices λ and μ ≥ 0, every such split costs at least

.. math:: \lambda\cdot p + \mu r + \min_v \bigl(H(v) - \mu H(A v) - \lambda\cdot v\bigr).

Prices are (λ, μ) together. Atoms are found by descent (search/direction.py); the minimum is proved by boxes
(proofs/entropic.py; docs/theory.md, Theorem 43).
"""

from __future__ import annotations

import numpy as np

from privacyfunnel.arrays import FloatArray, entropy_terms
from privacyfunnel.engine.clock import Clock
from privacyfunnel.engine.driver import Master
from privacyfunnel.engine.lp.highs import INF, Programme
from privacyfunnel.engine.objective import reduced_costs
from privacyfunnel.engine.oracles.polytope import build_polytope
from privacyfunnel.engine.problem import EntropyFloor, Problem, Proof
from privacyfunnel.engine.proofs.branch_and_bound import BranchAndBound
from privacyfunnel.engine.proofs.entropic import (
    AverageObjective,
    GibbsBoxes,
    Minimiser,
    minimise_greedily,
    polytope_minimiser,
)
from privacyfunnel.engine.search.direction import AverageDescent
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.errors import SolverError


class AverageMaster(Master):
    """A linear programme over known atoms, with a constraint on the average; search and proof at its prices."""

    def __init__(self, problem: Problem, average: EntropyFloor) -> None:
        self.problem, self.average, self.size = problem, average, problem.size + 1
        self.value = np.inf
        self.is_unconstrained = not len(problem.constraints)
        self._descent = AverageDescent(problem, average.secrets)
        self._worth, self._random = SETTINGS.tolerance.feasible, np.random.default_rng(0)
        self._minimise: Minimiser = minimise_greedily
        self._reach = np.ones(problem.size)
        self._support = min(len(average.secrets), problem.size)
        if not self.is_unconstrained:
            polytope = build_polytope(problem)
            self._minimise = polytope_minimiser(polytope)
            self._reach = polytope.reach(np.inf)
            about_all = len(problem.constraints.even) == 1 and bool(problem.constraints.full_classes[0])
            self._support = self._support if about_all else problem.size
        self._programme = Programme()
        ones = np.ones(problem.size)
        self._programme.add_rows(np.append(ones, average.least), np.append(ones, INF))
        self._atoms, self._weights = np.empty((0, problem.size)), np.empty(0)

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> None:
        """The prior, the prior moved towards every input, and atoms that are known already."""
        self._worth = max(SETTINGS.tolerance.feasible, SETTINGS.averages.worth * gap)
        first = [self.problem.prior[None], self.problem.first_atoms()]
        self._add(np.concatenate(first if start is None else [*first, start]))

    def _add(self, atoms: FloatArray) -> None:
        """Columns of the master: an atom's part of each input, and the entropy of the secret that it leaves."""
        left = entropy_terms(atoms @ self.average.secrets.T).sum(axis=1)
        entries = np.concatenate([atoms / self.problem.prior, left[:, None]], axis=1)
        row, index = np.nonzero(entries)
        starts = np.searchsorted(row, np.arange(len(entries)))
        self._programme.add_columns(entropy_terms(atoms).sum(axis=1), starts, index, entries[row, index])
        self._atoms = np.concatenate([self._atoms, atoms])

    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        if not self._programme.run():
            self._programme.clear_basis()
            if not self._programme.run():
                raise SolverError(
                    f"The master of an average must be solved; HiGHS returned {self._programme.status}. Report this."
                )
        self._weights = np.maximum(self._programme.solution, 0.0)
        dual = self._programme.multipliers
        self.value = float(self._weights @ entropy_terms(self._atoms).sum(axis=1))
        return np.append(dual[:-1] / self.problem.prior, max(float(dual[-1]), 0.0)), 0.0

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        """Descents from mixtures of known atoms and from random ones; longer ones from what is worth having."""
        averages = SETTINGS.averages
        half = averages.starts // 2
        starts = np.concatenate(
            [self._mix_atom_pairs(half), self._random.dirichlet(np.full(self.problem.size, averages.spread), half)]
        )
        good = self._select(self._descent.descend(starts, prices[:-1], float(prices[-1]), averages.steps), prices)
        if not len(good):
            return good
        further = self._descent.descend(good, prices[:-1], float(prices[-1]), averages.late_steps)
        return np.concatenate([good, further])

    def _mix_atom_pairs(self, count: int) -> FloatArray:
        first, second = self._random.integers(0, len(self._atoms), (2, count))
        share = self._random.random((count, 1))
        return np.asarray(share * self._atoms[first] + (1 - share) * self._atoms[second])

    def _select(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """Feasible atoms of negative reduced cost, the cheapest first, each once."""
        atoms = self._make_feasible(atoms)
        reduced = reduced_costs(self._objective(prices), atoms, prices[:-1])
        order = np.argsort(reduced)
        order = order[reduced[order] < -self._worth]
        _, first = np.unique(np.round(atoms[order], SETTINGS.averages.atom_digits), axis=0, return_index=True)
        return np.asarray(atoms[order[np.sort(first)[: SETTINGS.averages.added]]])

    def _make_feasible(self, atoms: FloatArray) -> FloatArray:
        """The atoms, moved towards the prior as far as the promise requires."""
        if self.is_unconstrained or not len(atoms):
            return atoms
        atoms = self.problem.mix_with_prior(atoms)
        return np.asarray(atoms[self.problem.is_feasible(atoms)])

    def _objective(self, prices: FloatArray) -> AverageObjective:
        return AverageObjective.from_secrets(self.average.secrets, float(prices[-1]))

    def learn(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Add those of negative reduced cost; the least of these."""
        new = self._select(atoms, prices)
        self._add(new)
        return float(reduced_costs(self._objective(prices), new, prices[:-1]).min(initial=0.0))

    def proof_target(self, gap: float, least: float, late: bool) -> float:
        return SETTINGS.averages.proved_to * max(gap, 0.0)

    def best(self, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
        used = self._weights > 0
        atoms = self._atoms[: len(used)]  # without those that were added since the last solve
        return self._weights[used] / self._weights.sum(), atoms[used], self.value

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Proof:
        """A lower bound on the reduced cost of every atom, and atoms met on the way."""
        cost, mu = self._objective(prices), float(prices[-1])
        if self.is_unconstrained and mu <= 1.0:
            units = np.eye(self.problem.size)
            return Proof(float(reduced_costs(cost, units, prices[:-1]).min()), units)
        boxes = GibbsBoxes(cost, self._minimise, self._support, self._reach)

        def polish(atoms: FloatArray, at: FloatArray) -> FloatArray:
            return self._make_feasible(self._descent.descend(atoms, at, mu, SETTINGS.averages.steps))

        return BranchAndBound(boxes, cost, polish).prove(prices[:-1], target, deadline)
