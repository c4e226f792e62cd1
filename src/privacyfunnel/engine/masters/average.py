r"""The classical Privacy Funnel, with its proof: one more row in the master, about an average.

.. math:: \min \sum_y q_y H(v_y) \quad\text{s.t.}\quad \sum_y q_y v_y = p,\quad \sum_y q_y H(A v_y) \ge r,\quad q \ge 0,

where A = P(S | X), so that :math:`r = H(S) - M` says :math:`I(S;Y) \le M`. Atoms may have to keep a promise besides.
For any prices λ and μ ≥ 0, every such split costs at least

.. math:: \lambda\cdot p + \mu r + \min_v \bigl(H(v) - \mu H(A v) - \lambda\cdot v\bigr).

Atoms are sought by walks that never go up (walks.py), and the minimum is proved by boxes (gibbs.py); docs/theory.md,
Theorem 43.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.lp.highs import INF, Programme
from privacyfunnel.engine.objective import reduced_costs
from privacyfunnel.engine.oracles.polytope import build_polytope
from privacyfunnel.engine.problem import Problem, Split
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
from privacyfunnel.model.information import entropy_terms

Progress = Callable[[float, float], None]


@dataclass(frozen=True, slots=True, eq=False)
class EntropyFloor:
    """What must be left open about the secret: Σ q H(A v) >= least."""

    secrets: FloatArray  # A: (c, d), P(S | input)
    least: float


def split_on_average(
    problem: Problem,
    average: EntropyFloor,
    *,
    bound_average: EntropyFloor | None = None,
    gap: float = 1e-6,
    time_limit: float | None = None,
    progress: Progress | None = None,
    start: FloatArray | None = None,
) -> Split:
    """The cheapest split that leaves that much open, up to `gap`; at the time limit the best so far, with its bound.

    `bounded` is what the bound is to hold for, where that is a little less than what is solved for; `start` are allowed
    atoms that are known already.
    """
    first = np.concatenate([problem.prior[None], problem.first_atoms(), *([] if start is None else [start])])
    return _AverageGeneration(problem, average, bound_average or average, first).run(
        gap, SETTINGS.averages.seconds if time_limit is None else time_limit, progress
    )


class _AverageGeneration:
    def __init__(self, problem: Problem, average: EntropyFloor, bounded: EntropyFloor, first: FloatArray) -> None:
        self.problem, self.average, self.bounded, self.atoms = problem, average, bounded, first
        self.free = not len(problem.constraints)
        self.walks = AverageDescent(problem, average.secrets)
        self.worth = SETTINGS.tolerance.new_atom
        self.rng = np.random.default_rng(0)
        self.minimise: Minimiser = minimise_greedily
        self.reach = np.ones(problem.size)
        self.support = min(len(average.secrets), problem.size)
        if not self.free:
            polytope = build_polytope(problem)
            self.minimise = polytope_minimiser(polytope)
            self.reach = polytope.reach(np.inf)
            about_all = len(problem.constraints.even) == 1 and bool(problem.constraints.full_classes[0])
            self.support = self.support if about_all else problem.size
        self.programme = Programme()
        p = problem.prior
        self.programme.add_rows(
            np.concatenate([np.ones(p.size), [average.least]]), np.concatenate([np.ones(p.size), [INF]])
        )
        self._add_columns(self.atoms)

    def run(self, gap: float, time_limit: float, progress: Progress | None) -> Split:
        begun, self.worth = time.monotonic(), max(SETTINGS.tolerance.new_atom, SETTINGS.averages.worth * gap)
        deadline, bound, steady, price = begun + time_limit, -np.inf, None, 0.0
        first_proof = begun + SETTINGS.averages.early * time_limit
        while True:
            weights, value, prices, mu = self._solve()
            if progress is not None:
                progress(value, bound)
            now = time.monotonic()
            if value - bound <= gap or now >= deadline:
                break
            steady = (
                prices
                if steady is None
                else SETTINGS.averages.damping * steady + (1 - SETTINGS.averages.damping) * prices
            )
            price = SETTINGS.averages.damping * price + (1 - SETTINGS.averages.damping) * mu if price else mu
            late = now > first_proof and bound == -np.inf
            new = self._search(steady, price, prices, mu)
            if not len(new):
                steady, price = prices, mu
                new = self._search(prices, mu, prices, mu)
            if not len(new) or late:
                lower, met = self._prove(prices, mu, SETTINGS.averages.proved_to * max(gap, 0.0), deadline)
                bound = max(bound, float(prices @ self.problem.prior + mu * self.bounded.least + lower))
                new = np.concatenate([new, self._select_atoms(met, prices, mu)])
                if not len(new):
                    break
            self.atoms = np.concatenate([self.atoms, new])
            self._add_columns(new)
        used = weights > 0
        return Split(weights[used] / weights.sum(), self.atoms[used], value, bound)

    def _add_columns(self, atoms: FloatArray) -> None:
        """New columns of the master: an atom's part of each input, and what it leaves open about the secret."""
        open_ = entropy_terms(atoms @ self.average.secrets.T).sum(axis=1)
        entries = np.concatenate([atoms / self.problem.prior, open_[:, None]], axis=1)
        row, index = np.nonzero(entries)
        starts = np.searchsorted(row, np.arange(len(entries)))
        self.programme.add_columns(entropy_terms(atoms).sum(axis=1), starts, index, entries[row, index])

    def _solve(self) -> tuple[FloatArray, float, FloatArray, float]:
        """The best weights, what they cost, and the prices of the inputs and of the average."""
        if not self.programme.run():
            self.programme.clear_basis()
            if not self.programme.run():
                raise SolverError(
                    f"The funnel's master must be solved; HiGHS said {self.programme.status}. Report this."
                )
        weights = np.maximum(self.programme.solution, 0.0)
        dual = self.programme.multipliers
        value = float(weights @ entropy_terms(self.atoms).sum(axis=1))
        return weights, value, dual[:-1] / self.problem.prior, max(float(dual[-1]), 0.0)

    def _search(self, prices: FloatArray, mu: float, true_prices: FloatArray, true_mu: float) -> FloatArray:
        """Atoms of negative reduced cost at the true prices, from walks at those given."""
        starts = np.concatenate(
            [
                self._mix_atom_pairs(),
                self.rng.dirichlet(np.full(self.problem.size, SETTINGS.averages.spread), SETTINGS.averages.starts // 2),
            ]
        )
        found = self.walks.descend(starts, prices, mu, SETTINGS.averages.steps)
        good = self._select_atoms(found, true_prices, true_mu)
        if not len(good):
            return good
        further = self.walks.descend(good, prices, mu, SETTINGS.averages.late_steps)
        return self._select_atoms(np.concatenate([good, further]), true_prices, true_mu)

    def _mix_atom_pairs(self) -> FloatArray:
        """Mixtures of two atoms that are known."""
        first, second = self.rng.integers(0, len(self.atoms), (2, SETTINGS.averages.starts // 2))
        share = self.rng.random((SETTINGS.averages.starts // 2, 1))
        return np.asarray(share * self.atoms[first] + (1 - share) * self.atoms[second])

    def _select_atoms(self, atoms: FloatArray, prices: FloatArray, mu: float) -> FloatArray:
        """Those that keep the promise and lower the master's value, the best first, each once."""
        atoms = self._make_feasible(atoms)
        cost = self._cost(mu)
        reduced = reduced_costs(cost, atoms, prices)
        order = np.argsort(reduced)
        order = order[reduced[order] < -self.worth]
        _, first = np.unique(np.round(atoms[order], SETTINGS.averages.atom_digits), axis=0, return_index=True)
        return np.asarray(atoms[order[np.sort(first)[: SETTINGS.averages.added]]])

    def _make_feasible(self, atoms: FloatArray) -> FloatArray:
        """The atoms, drawn in as far as the promise asks."""
        if self.free or not len(atoms):
            return atoms
        atoms = self.problem.mix_with_prior(atoms)
        return np.asarray(atoms[self.problem.is_feasible(atoms)])

    def _prove(self, prices: FloatArray, mu: float, target: float, deadline: float) -> tuple[float, FloatArray]:
        """A lower bound on the reduced cost of every atom, and atoms met on the way."""
        cost = self._cost(mu)
        if self.free and mu <= 1.0:
            units = np.eye(self.problem.size)
            return float(reduced_costs(cost, units, prices).min()), units
        boxes = GibbsBoxes(cost, self.minimise, self.support, self.reach)
        search = BranchAndBound(
            boxes,
            cost,
            lambda atoms, at: self._make_feasible(self.walks.descend(atoms, at, mu, SETTINGS.averages.steps)),
        )
        proof = search.prove(prices, target, deadline)
        return proof.bound, proof.atoms

    def _cost(self, mu: float) -> AverageObjective:
        return AverageObjective(np.arange(self.problem.size), self.average.secrets, mu)
