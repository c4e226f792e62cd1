r"""Subspace search: descents by tangents, each among few inputs, where one over all inputs takes too long.

An atom over the inputs Z is a v >= 0 on Z with sum 1 and :math:`A_Z v \ge 0`, A being the inequalities of the whole
problem. Most inequalities have no negative entry on a small Z and drop out, so each step is a small linear programme.

An atom that names an input must hide it among others in every class of that input. So a descent stays among inputs
that share the smallest classes with the one that is wanted: the nearness of two inputs is

.. math:: \sum_{l \ni x, z} 1 / m_l,

m_l being the mass of class l, times a random factor so that every input is considered. Inputs still missing late in a
run are rare ones that few atoms can hide; most descents therefore start between two known atoms: one that has the
wanted input, and a cheap one near it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.lp.highs import DUAL, INF, Programme
from privacyfunnel.engine.objective import tangents
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.search.tangent import descend_by_tangents, distinct_atoms
from privacyfunnel.engine.settings import SETTINGS


class RatioConstraints:
    """The inequalities of a problem in the ratios v/p; a subspace takes those that can fail on its inputs."""

    def __init__(self, problem: Problem) -> None:
        self._prior = problem.prior
        self._entries = np.ascontiguousarray((problem.inequalities * problem.prior).T)  # a row per input

    def restrict(self, inputs: IntArray) -> SubspaceOracle:
        """The linear programme over these inputs."""
        entries = self._entries[inputs]
        return SubspaceOracle(self._prior[inputs], entries[:, entries.min(axis=0) < 0])


class SubspaceOracle:
    """A linear programme whose costs change between solves; each constraint is scaled to a largest entry of 1.

    Though another cost leaves the last basis primal feasible, the dual simplex method of HiGHS is the faster one.
    """

    def __init__(self, prior: FloatArray, entries: FloatArray) -> None:
        self._prior = prior / prior.max()
        d, m = entries.shape
        by_input = np.column_stack([self._prior, entries / np.abs(entries).max(axis=0)])
        self._programme = Programme(simplex_strategy=DUAL)
        self._programme.add_rows(np.eye(1, m + 1)[0], np.append(1.0, np.full(m, INF)))
        self._programme.add_dense_columns(np.zeros(d), by_input)

    def cheapest(self, cost: FloatArray, deadline: float = np.inf) -> FloatArray | None:
        """The atom that minimises cost·v; None if these inputs make no atom, or time ran out."""
        self._programme.set_costs(cost * self._prior)
        if not self._programme.run(deadline):
            return None
        ratio = np.maximum(self._programme.solution, 0.0)
        v = np.where(ratio > SETTINGS.tolerance.near * ratio.max(), ratio, 0.0) * self._prior
        return np.asarray(v / v.sum()) if v.any() else None


class SubspaceSearch:
    """Descents among the neighbours of wanted inputs, most of them between known atoms, and a pool of cheap atoms."""

    patience = SETTINGS.search.subspace_patience

    def __init__(self, problem: Problem, together: int, at_first: int) -> None:
        """Descents look at `together` inputs; the first ones, of a single step, at `at_first`."""
        self._problem, d = problem, problem.size
        self._together, self._at_first = min(together, d), min(at_first, d)
        self._random = np.random.default_rng(1)
        self._pool = np.empty((0, d))
        members = problem.constraints.members[problem.constraints.compared_classes].astype(np.float64)
        self._near = (members.T / (members @ problem.prior)) @ members

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """For the likeliest inputs, while time lasts, the atom among its neighbours that gives it most."""
        d, until, atoms = self._problem.size, clock.part(SETTINGS.search.starting_share), []
        for x in np.argsort(-self._problem.prior, kind="stable").tolist():
            if until.late:
                break
            inputs = self._nearest(np.array([x]), self._at_first)
            atoms.append(self._walk(inputs, -np.eye(1, d, x)[0], np.zeros(d), 1, clock))
        return self._add_to_pool(atoms, np.zeros(d))

    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Atoms on descents that start anywhere."""
        return self.cover(prices, self._problem.prior, clock)

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Atoms on descents that start between an atom that has what is missing and one near it, both rather cheap."""
        d, atoms, failed = self._problem.size, list[FloatArray](), 0
        reduced = self._reduced_costs(prices)
        likely = self._pool * np.exp(-np.maximum(reduced, 0.0))[:, None]
        cheap = self._pool[np.argsort(reduced)[:d]]
        for number, wanted in enumerate(
            self._random.choice(d, SETTINGS.search.subspace_walks, p=missing / missing.sum())
        ):
            if clock.late:
                break
            if number % SETTINGS.search.fresh_walks and likely[:, wanted].any():
                one = self._pool[self._draw(likely[:, wanted])]
                slopes, inputs = self._start_between(one, cheap[self._draw(cheap @ (self._near @ one))])
            else:
                slopes = self._random.exponential(size=d) * self._random.uniform(0, SETTINGS.search.noise)
                slopes[wanted] -= self._random.uniform(*SETTINGS.search.preference)
                inputs = self._nearest(np.array([wanted]), self._together)
            atoms.append(self._walk(inputs, slopes, prices, SETTINGS.search.subspace_steps, clock))
            failed += not len(atoms[-1])
        if failed > SETTINGS.search.subspace_walks // 2:  # at small ε no atom has few inputs
            self._together = min(2 * self._together, d)
        return self._add_to_pool(atoms, prices)

    def polish(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        slopes = tangents(self._problem.objective, atoms, SETTINGS.tolerance.solved)
        feasible = [
            self._walk(
                self._nearest(np.flatnonzero(atom), self._together), slope, prices, SETTINGS.search.subspace_steps
            )
            for atom, slope in zip(atoms, slopes, strict=True)
        ]
        return self._add_to_pool(feasible, prices)

    def _start_between(self, one: FloatArray, other: FloatArray) -> tuple[FloatArray, IntArray]:
        """Slopes of the cost at a random mixture of two atoms, more or less sharp; its inputs and their neighbours."""
        share = self._random.random()
        mixed = share * one + (1 - share) * other
        least = 10 ** self._random.uniform(*SETTINGS.search.sharpness)
        inputs = self._nearest(np.flatnonzero(mixed), self._together)
        return tangents(self._problem.objective, mixed[None], least)[0], inputs

    def _draw(self, chances: FloatArray) -> int:
        """An index drawn with probabilities proportional to these; uniformly where all are 0."""
        total = float(chances.sum())
        return int(self._random.choice(chances.size, p=chances / total if total > 0 else None))

    def _nearest(self, inputs: IntArray, most: int) -> IntArray:
        """These inputs and their neighbours, `most` in all."""
        d = self._problem.size
        if d <= most:
            return np.arange(d)
        near = self._near[inputs].sum(axis=0) * self._random.exponential(size=d)
        near[inputs] = np.inf
        return np.sort(np.argpartition(-near, most)[: max(most, inputs.size)])

    @cached_property
    def _constraints(self) -> RatioConstraints:
        return RatioConstraints(self._problem)

    @cached_property
    def _full_oracle(self) -> SubspaceOracle:
        """The programme over all inputs, kept between descents."""
        return self._constraints.restrict(np.arange(self._problem.size))

    def _walk(
        self, inputs: IntArray, slopes: FloatArray, prices: FloatArray, longest: int, clock: Clock = FOREVER
    ) -> FloatArray:
        """The atoms of one descent among these inputs; none if these alone make no atom."""
        d = self._problem.size
        oracle = self._full_oracle if inputs.size == d else self._constraints.restrict(inputs)

        def cheapest(costs: FloatArray) -> FloatArray:
            v = oracle.cheapest(costs[0, inputs], clock.deadline)
            if v is None:
                return np.empty((0, d))
            atom = np.zeros((1, d))
            atom[0, inputs] = v
            return atom

        return descend_by_tangents(cheapest, self._problem.objective, slopes[None, :], prices, longest)

    def _reduced_costs(self, prices: FloatArray) -> FloatArray:
        return np.asarray(self._problem.costs(self._pool) - self._pool @ prices)

    def _add_to_pool(self, candidates: Sequence[FloatArray], prices: FloatArray) -> FloatArray:
        """The distinct atoms of these; the pool keeps those that are cheapest now."""
        atoms = distinct_atoms(np.concatenate([self._pool[:0], *candidates]))
        self._pool = distinct_atoms(np.concatenate([atoms, self._pool]))
        if len(self._pool) > SETTINGS.search.subspace_pool:
            self._pool = self._pool[np.argsort(self._reduced_costs(prices))[: SETTINGS.search.subspace_pool]]
        return atoms
