"""Searching among some inputs at a time, where all of them take too long."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.objective import tangents
from privacyfunnel.engine.oracles.constraint_oracle import ConstraintOracle
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.search.searches import NEAR_ZERO, PREFERENCE, descend_by_tangents, distinct_atoms


class SubspaceMinimiser(Protocol):
    """Minimises linear costs over the atoms that have some inputs only."""

    def cheapest(self, cost: FloatArray, deadline: float = np.inf) -> FloatArray | None:
        """The cheapest atom; none where there is none, or none is found in time."""


class SubspaceSearch(ABC):
    """Walks by tangents each of which stays among some inputs, and a pool of the cheapest atoms that were met.

    An atom has few inputs, and most rows say nothing about a few, so that the programme of a step is small.
    """

    patience = 8  # each search looks at little
    pool: int  # atoms that are remembered
    longest: int  # steps

    def __init__(self, problem: Problem, together: int) -> None:
        self._problem, self._together = problem, together
        self._random = np.random.default_rng(1)
        self._pool = np.empty((0, problem.size))

    @cached_property
    def _full_oracle(self) -> SubspaceMinimiser:
        """The programme over all inputs, kept from walk to walk."""
        return self._oracle_for(np.arange(self._problem.size))

    @abstractmethod
    def _oracle_for(self, inputs: IntArray) -> SubspaceMinimiser:
        """The programme over these inputs, some or all."""

    @abstractmethod
    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """What walks pass that begin near what is missing."""

    @abstractmethod
    def _neighbourhood(self, inputs: IntArray) -> IntArray:
        """These inputs and others, up to as many as a walk may look at."""

    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """What walks pass that begin anywhere."""
        return self.cover(prices, self._problem.prior, clock)

    def polish(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """What walks from these atoms pass."""
        slopes = tangents(self._problem.objective, atoms, NEAR_ZERO)
        met = [
            self._walk(self._neighbourhood(np.flatnonzero(atom)), slope, prices, self.longest)
            for atom, slope in zip(atoms, slopes, strict=True)
        ]
        return self._add_to_pool(met, prices)

    def _cheapest(self, most: int, prices: FloatArray) -> FloatArray:
        """So many of the pool, those that cost least now."""
        return self._pool[np.argsort(self._reduced_costs(prices))[:most]]

    def _reduced_costs(self, prices: FloatArray) -> FloatArray:
        """The reduced cost of everything in the pool."""
        return np.asarray(self._problem.costs(self._pool) - self._pool @ prices)

    def _walk(
        self, inputs: IntArray, slopes: FloatArray, prices: FloatArray, longest: int, clock: Clock = FOREVER
    ) -> FloatArray:
        """The atoms on a walk among these inputs; none where these alone make no allowed atom."""
        d = self._problem.size
        programme = self._full_oracle if inputs.size == d else self._oracle_for(inputs)

        def cheapest(costs: FloatArray) -> FloatArray:
            v = programme.cheapest(costs[0, inputs], clock.deadline)
            if v is None:
                return np.empty((0, d))
            atom = np.zeros((1, d))
            atom[0, inputs] = v
            return atom

        return descend_by_tangents(cheapest, self._problem.objective, slopes[None, :], prices, longest)

    def _add_to_pool(self, met: Sequence[FloatArray], prices: FloatArray) -> FloatArray:
        """The different ones of these atoms; the pool keeps what costs least now, however long ago it was met."""
        atoms = distinct_atoms(np.concatenate([self._pool[:0], *met]))
        self._pool = distinct_atoms(np.concatenate([atoms, self._pool]))
        if len(self._pool) > self.pool:
            self._pool = self._cheapest(self.pool, prices)
        return atoms


class RandomSubspaceSearch(SubspaceSearch):
    """The inputs of each walk are chosen by chance, around an atom that is cheap already or what is wanted."""

    walks = 16
    pool = 512
    longest = 11

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """None: a programme per input, each far from the last, takes longer than what it finds is worth."""
        return self._pool[:0]

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """What walks pass that begin near what is missing, every other one from an atom that is cheap already."""
        d = self._problem.size
        near = self._cheapest(self.walks, prices)
        met: list[FloatArray] = []
        nowhere = 0
        for number, wanted in enumerate(self._random.choice(d, self.walks, p=missing / missing.sum())):
            if clock.late:
                break
            if number % 2 == 1 and number < len(near):
                slopes = tangents(self._problem.objective, near[[number]], NEAR_ZERO)[0]
                inputs = self._neighbourhood(np.flatnonzero(near[number]))
            else:
                slopes = self._random.exponential(size=d) * self._random.uniform(0, 2)
                slopes[wanted] -= self._random.uniform(*PREFERENCE)
                inputs = self._neighbourhood(np.array([wanted]))
            passed = self._walk(inputs, slopes, prices, self.longest, clock)
            nowhere += not len(passed)
            met.append(passed)
        if nowhere > self.walks // 2:  # at small ε no atom has few inputs
            self._together = min(2 * self._together, d)
        return self._add_to_pool(met, prices)

    def _oracle_for(self, inputs: IntArray) -> ConstraintOracle:
        if inputs.size == self._problem.size:
            return ConstraintOracle(self._problem)
        return ConstraintOracle(self._problem.restrict(inputs), once=True)

    def _neighbourhood(self, inputs: IntArray) -> IntArray:
        """These inputs and others, up to as many as a walk may look at."""
        d = self._problem.size
        if d <= self._together:
            return np.arange(d)
        others = self._random.permutation(np.setdiff1d(np.arange(d), inputs))
        return np.sort(np.concatenate([inputs, others])[: self._together])
