r"""Searching among neighbours, where rows look at classes of inputs (SRLIP) and each step is a programme.

An atom that names an input must hide it in every class that it is in, beside others of the same class. So a walk stays
among the inputs that share the smallest classes with the one that is wanted: the nearness of two inputs is

.. math:: \sum_{l \ni x, z} 1 / m_l,

m_l being the mass of class l, with some chance so that everybody has a turn. Few rows say anything about so few.
"""

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.objective import tangents
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.search import PREFERENCE
from privacyfunnel.engine.some_inputs import AmongInputs

SHARPEST, BLUNTEST = -6.0, -1.0  # powers of ten: what entries of a mixture are taken to have at least


class NeighbourSearch(AmongInputs):
    """Walks by tangents among the neighbours of what is wanted, and between atoms that are cheap already."""

    walks = 24
    pool = 1024
    longest = 10
    starting = 0.1  # of the time left, for the first atoms: a programme per input

    def __init__(self, problem: Problem, together: int) -> None:
        super().__init__(problem, min(together, problem.size))
        members = problem.rows.members[problem.rows.compared].astype(np.float64)
        self._near = (members.T / (members @ problem.prior)) @ members

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """For the likeliest inputs, as far as there is time, the atom among its neighbours that gives it most."""
        d, until, met = self._problem.size, clock.part(self.starting), []
        for x in np.argsort(-self._problem.prior, kind="stable").tolist():
            if until.late:
                break
            met.append(self._walked(self._around(np.array([x])), -np.eye(1, d, x)[0], np.zeros(d), 1, clock))
        return self._pooled(met, np.zeros(d))

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """What walks pass that begin near what is missing, and every other one between two atoms that are cheap."""
        d, met = self._problem.size, []
        cheap = self._cheapest(4 * self.walks, prices)
        for number, wanted in enumerate(self._random.choice(d, self.walks, p=missing / missing.sum())):
            if clock.late:
                break
            if number % 2 == 1 and len(cheap):
                share = self._random.random()
                one, other = cheap[self._random.choice(len(cheap), 2)]
                mixed = share * one + (1 - share) * other
                slopes = tangents(self._problem.objective, mixed[None], 10 ** self._random.uniform(SHARPEST, BLUNTEST))
                inputs = self._around(np.flatnonzero(mixed))
            else:
                slopes = self._random.exponential(size=(1, d)) * self._random.uniform(0, 2)
                slopes[0, wanted] -= self._random.uniform(*PREFERENCE)
                inputs = self._around(np.array([wanted]))
            met.append(self._walked(inputs, slopes[0], prices, self.longest, clock))
        return self._pooled(met, prices)

    def _around(self, inputs: IntArray) -> IntArray:
        """These inputs and their neighbours, up to as many as a walk may look at."""
        d = self._problem.size
        if d <= self._together:
            return np.arange(d)
        near = self._near[inputs].sum(axis=0) * self._random.exponential(size=d)
        near[inputs] = np.inf
        return np.sort(np.argpartition(-near, self._together)[: max(self._together, inputs.size)])
