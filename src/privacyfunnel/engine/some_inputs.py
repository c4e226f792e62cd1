"""Searching among some inputs at a time, where all of them take too long."""

from functools import cached_property

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.objective import reduced_costs, tangents
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.programme import RowsOracle
from privacyfunnel.engine.search import NEAR_ZERO, PREFERENCE, descended, different


class SomeInputsSearch:
    """Walks by tangents over some inputs at a time, where a promise has so many rows that each step is a programme.

    An atom has few inputs, and most rows say nothing about a few: so each walk stays among some inputs, chosen by
    chance around an atom that is cheap already.
    """

    patience = 8  # each search looks at little
    walks = 16
    pool = 512  # atoms that are remembered
    longest = 10  # steps

    def __init__(self, problem: Problem, together: int) -> None:
        self._problem = problem
        self._random = np.random.default_rng(1)
        self._pool = np.empty((0, problem.size))
        self._together = together

    @cached_property
    def _whole(self) -> RowsOracle:
        """The programme over all inputs, kept from walk to walk."""
        return RowsOracle(self._problem)

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """None: a programme per input, each far from the last, takes longer than what it finds is worth."""
        return self._pool[:0]

    def downhill(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """What walks pass that begin anywhere."""
        return self.cover(prices, self._problem.prior, clock)

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """What walks pass that begin near what is missing, every other one from an atom that is cheap already."""
        d = self._problem.size
        near = self._pool[np.argsort(reduced_costs(self._problem.objective, self._pool, prices))[: self.walks]]
        met: list[FloatArray] = []
        nowhere = 0
        for number, wanted in enumerate(self._random.choice(d, self.walks, p=missing / missing.sum())):
            if clock.late:
                break
            if number % 2 == 1 and number < len(near):
                slopes = tangents(self._problem.objective, near[[number]], NEAR_ZERO)[0]
                inputs = self._around(np.flatnonzero(near[number]))
            else:
                slopes = self._random.exponential(size=d) * self._random.uniform(0, 2)
                slopes[wanted] -= self._random.uniform(*PREFERENCE)
                inputs = self._around(np.array([wanted]))
            passed = self._walked(inputs, slopes, prices, clock)
            nowhere += not len(passed)
            met.append(passed)
        if nowhere > self.walks // 2:  # at small ε no atom has few inputs
            self._together = min(2 * self._together, d)
        return self._pooled(np.concatenate([self._pool[:0], *met]))

    def polished(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """What walks from these atoms pass."""
        slopes = tangents(self._problem.objective, atoms, NEAR_ZERO)
        met = [
            self._walked(self._around(np.flatnonzero(atom)), slope, prices)
            for atom, slope in zip(atoms, slopes, strict=True)
        ]
        return self._pooled(np.concatenate([self._pool[:0], *met]))

    def _around(self, inputs: IntArray) -> IntArray:
        """These inputs and others, up to as many as a walk may look at."""
        d = self._problem.size
        if d <= self._together:
            return np.arange(d)
        others = self._random.permutation(np.setdiff1d(np.arange(d), inputs))
        return np.sort(np.concatenate([inputs, others])[: self._together])

    def _walked(self, inputs: IntArray, slopes: FloatArray, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """The atoms on a walk among these inputs; none where these alone make no allowed atom."""
        d = self._problem.size
        oracle = self._whole if inputs.size == d else RowsOracle(self._problem.among(inputs), once=True)

        def cheapest(costs: FloatArray) -> FloatArray:
            v = oracle.cheapest(costs[0, inputs], clock.deadline)
            if v is None:
                return np.empty((0, d))
            atom = np.zeros((1, d))
            atom[0, inputs] = v
            return atom

        return descended(cheapest, self._problem.objective, slopes[None, :], prices, self.longest + 1)

    def _pooled(self, met: FloatArray) -> FloatArray:
        atoms = different(met)
        self._pool = np.concatenate([atoms, self._pool])[: self.pool]
        return atoms
