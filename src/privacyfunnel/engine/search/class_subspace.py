r"""Searching among neighbours, where rows look at classes of inputs (SRLIP) and each step is a programme.

An atom that names an input must hide it in every class that it is in, beside others of the same class. So a walk stays
among the inputs that share the smallest classes with the one that is wanted: the nearness of two inputs is

.. math:: \sum_{l \ni x, z} 1 / m_l,

m_l being the mass of class l, with some chance so that everybody has a turn. Few rows say anything about so few.

Where inputs are many, what is missing in the end are rare ones that few atoms can hide. From nowhere a walk hardly
finds such an atom; most begin between two that are known: one that has the wanted input, and a cheap one near it.
"""

from functools import cached_property

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.objective import tangents
from privacyfunnel.engine.oracles.subspace_oracle import RatioConstraints, SubspaceOracle
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.search.searches import PREFERENCE
from privacyfunnel.engine.search.subspace import SubspaceSearch

SHARPEST, BLUNTEST = -4.0, -1.0  # powers of ten: what entries of a mixture are taken to have at least
FROM_NOWHERE = 8  # every so many walks, one begins near the wanted input alone, whatever is known


class ClassSubspaceSearch(SubspaceSearch):
    """Walks by tangents among the neighbours of what is wanted, most of them between atoms that are known already."""

    walks = 24
    pool = 2048
    longest = 10
    starting = 0.1  # of the time left, for the first atoms: a programme per input

    def __init__(self, problem: Problem, together: int, at_first: int) -> None:
        """Walks look at `together` inputs; the first ones, of a single step, at `at_first`."""
        super().__init__(problem, min(together, problem.size))
        self._at_first = min(at_first, problem.size)
        members = problem.constraints.members[problem.constraints.compared_classes].astype(np.float64)
        self._near = (members.T / (members @ problem.prior)) @ members

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """For the likeliest inputs, as far as there is time, the atom among its neighbours that gives it most."""
        d, until, met = self._problem.size, clock.part(self.starting), []
        for x in np.argsort(-self._problem.prior, kind="stable").tolist():
            if until.late:
                break
            inputs = self._nearest(np.array([x]), self._at_first)
            met.append(self._walk(inputs, -np.eye(1, d, x)[0], np.zeros(d), 1, clock))
        return self._add_to_pool(met, np.zeros(d))

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """What walks pass that begin between an atom that has what is missing and one near it, both rather cheap."""
        d, met = self._problem.size, []
        reduced = self._reduced_costs(prices)
        likely = self._pool * np.exp(-np.maximum(reduced, 0.0))[:, None]
        cheap = self._pool[np.argsort(reduced)[:d]]
        for number, wanted in enumerate(self._random.choice(d, self.walks, p=missing / missing.sum())):
            if clock.late:
                break
            if number % FROM_NOWHERE and likely[:, wanted].any():
                one = self._pool[self._draw(likely[:, wanted])]
                slopes, inputs = self._start_between(one, cheap[self._draw(cheap @ (self._near @ one))])
            else:
                slopes = self._random.exponential(size=d) * self._random.uniform(0, 2)
                slopes[wanted] -= self._random.uniform(*PREFERENCE)
                inputs = self._neighbourhood(np.array([wanted]))
            met.append(self._walk(inputs, slopes, prices, self.longest, clock))
        return self._add_to_pool(met, prices)

    def _start_between(self, one: FloatArray, other: FloatArray) -> tuple[FloatArray, IntArray]:
        """The slopes of the cost somewhere between two atoms, more or less sharp; and their inputs and neighbours."""
        share = self._random.random()
        mixed = share * one + (1 - share) * other
        least = 10 ** self._random.uniform(SHARPEST, BLUNTEST)
        return tangents(self._problem.objective, mixed[None], least)[0], self._neighbourhood(np.flatnonzero(mixed))

    def _draw(self, chances: FloatArray) -> int:
        """A number drawn with these chances, up to a factor; with equal ones where all are 0."""
        total = float(chances.sum())
        return int(self._random.choice(chances.size, p=chances / total if total > 0 else None))

    @cached_property
    def _constraints(self) -> RatioConstraints:
        return RatioConstraints(self._problem)

    def _oracle_for(self, inputs: IntArray) -> SubspaceOracle:
        return self._constraints.restrict(inputs)

    def _neighbourhood(self, inputs: IntArray) -> IntArray:
        """These inputs and their neighbours, up to as many as a walk may look at."""
        return self._nearest(inputs, self._together)

    def _nearest(self, inputs: IntArray, most: int) -> IntArray:
        d = self._problem.size
        if d <= most:
            return np.arange(d)
        near = self._near[inputs].sum(axis=0) * self._random.exponential(size=d)
        near[inputs] = np.inf
        return np.sort(np.argpartition(-near, most)[: max(most, inputs.size)])
