"""Walks by tangents where a square counts, over any oracle (search.py, Lemma 7c): a search whose objective changes.

A square has slopes of its own size. So walks begin along chance directions of B and at distributions over few inputs,
and at the atoms met so far that are cheapest at the new prices.
"""

from __future__ import annotations

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.objective import Objective, reduced_costs, tangents
from privacyfunnel.engine.oracles.oracle import Oracle, cheapest_atoms
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.search.searches import NEAR_ZERO, descend_by_tangents

LONGEST = 12  # steps; most walks have ended by then
POOL = 1024  # atoms that are remembered
SPREAD = 0.3  # of chance distributions: most of each lies on few inputs
FARTHEST = 3.0  # times a chance direction of B


class MomentTangentSearch:
    """Walks from chance starts, and from the best of a pool of the atoms that were met."""

    def __init__(self, oracle: Oracle, problem: Problem, starts: int) -> None:
        self.oracle, self.objective, self._size, self._starts = oracle, problem.objective, problem.size, starts
        self._random = np.random.default_rng(1)
        self._pool = np.empty((0, problem.size))

    def set_objective(self, objective: Objective) -> None:
        """Go on with another objective; what was met is remembered."""
        self.objective = objective

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """For each input an atom that gives it most."""
        return self._add_to_pool(cheapest_atoms(self.oracle, -np.eye(self._size), clock))

    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """What walks pass that begin anywhere, and at what was good before."""
        near = np.argsort(reduced_costs(self.objective, self._pool, prices))[: self._starts]
        good = tangents(self.objective, self._pool[near], NEAR_ZERO)
        return self._walk(np.concatenate([self._random_slopes(), good]), prices, clock)

    def polish(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """What walks from these atoms pass."""
        return self._walk(tangents(self.objective, atoms[: self._starts], NEAR_ZERO), prices)

    def _random_slopes(self) -> FloatArray:
        k, B = self._starts, self.objective.square
        at = self._random.dirichlet(np.full(self._size, SPREAD), k)
        slopes = tangents(self.objective, at, NEAR_ZERO)
        if B is None:
            return slopes
        along = self._random.normal(size=(k, B.shape[1])) * self._random.uniform(0, FARTHEST, size=(k, 1))
        return np.where(np.arange(k)[:, None] % 2 == 0, -2.0 * along @ B.T, slopes)

    def _walk(self, slopes: FloatArray, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        def cheapest(costs: FloatArray) -> FloatArray:
            """Of costs in a unit of their own: prices are beyond any solver's tolerance while atoms are few."""
            return cheapest_atoms(self.oracle, costs / np.maximum(np.abs(costs).max(axis=1, keepdims=True), 1.0), clock)

        return self._add_to_pool(descend_by_tangents(cheapest, self.objective, slopes, prices, LONGEST))

    def _add_to_pool(self, atoms: FloatArray) -> FloatArray:
        self._pool = np.concatenate([atoms, self._pool])[:POOL]
        return atoms
