r"""Tangent search over any oracle: repeated linear minimisation of the tangent of a concave cost.

.. math:: v_{k+1} \in \arg\min_{v \in V}\ (\nabla\operatorname{cost}(v_k) - \lambda)\cdot v .

Starting points depend on the objective. For an entropy they are sharp, mixed and random images, and the images of the
best atoms of the last search. A squared term has slopes of its own size: then descents start along random directions
of B, at random distributions, and at the pooled atoms that are cheapest at the present prices.
"""

from __future__ import annotations

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.objective import Objective, image, reduced_costs, tangents
from privacyfunnel.engine.oracles.oracle import Oracle, cheapest_atoms
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.search.base import descend_by_tangents, distinct_atoms
from privacyfunnel.engine.settings import SETTINGS


class TangentSearch:
    """Descents by tangents from `starts` points of each kind."""

    patience = 1

    def __init__(self, oracle: Oracle, problem: Problem, starts: int) -> None:
        self.oracle, self.objective, self._starts = oracle, problem.objective, starts
        self._random = np.random.default_rng(1)
        self._pool = np.empty((0, problem.size))  # of a squared cost
        self._best = self._pool  # of an entropy: the last search's atoms, cheapest first

    def set_objective(self, objective: Objective) -> None:
        self.objective = objective

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """For every input an atom that gives it as much as any does, and its value most of the rest."""
        value = self.objective.image_index
        own = SETTINGS.search.own_value * (value[:, None] == value) if not self.objective.is_identity else 0.0
        return self._add_to_pool(cheapest_atoms(self.oracle, -own - np.eye(value.size), clock))

    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Distinct atoms of these descents, cheapest first where the cost is an entropy."""
        if self.objective.square is not None:
            return self._descend(np.concatenate([self._random_slopes(), self._pool_slopes(prices)]), prices, clock)
        a = self.objective.image_size
        sharp = np.eye(a)[self._random.permutation(a)[: self._starts]]
        share = self._random.random((self._starts, 1))
        one, other = np.eye(a)[self._random.integers(a, size=(2, self._starts))]
        spread = self._random.dirichlet(np.full(a, SETTINGS.search.spread), self._starts)
        good = image(self.objective, self._best[: self._starts])
        images = np.concatenate([sharp, share * one + (1 - share) * other, spread, good])
        return self._descend(self._image_slopes(images), prices, clock)

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """The same as `descend`: descents are few, and every atom they pass is returned."""
        return self.descend(prices, clock)

    def polish(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        some = atoms[: self._starts]
        if self.objective.square is not None:
            return self._descend(tangents(self.objective, some, SETTINGS.tolerance.solved), prices)
        return self._descend(self._image_slopes(image(self.objective, some)), prices)

    def _image_slopes(self, images: FloatArray) -> FloatArray:
        return self.objective.slopes(images, SETTINGS.search.sharpest)[:, self.objective.image_index]

    def _pool_slopes(self, prices: FloatArray) -> FloatArray:
        near = np.argsort(reduced_costs(self.objective, self._pool, prices))[: self._starts]
        return tangents(self.objective, self._pool[near], SETTINGS.tolerance.solved)

    def _random_slopes(self) -> FloatArray:
        """Every other one along a random direction of B, the others at random distributions."""
        k, B = self._starts, self.objective.square
        assert B is not None
        at = self._random.dirichlet(np.full(len(B), SETTINGS.search.spread), k)
        slopes = tangents(self.objective, at, SETTINGS.tolerance.solved)
        along = self._random.normal(size=(k, B.shape[1])) * self._random.uniform(
            0, SETTINGS.search.farthest, size=(k, 1)
        )
        return np.where(np.arange(k)[:, None] % 2 == 0, -2.0 * along @ B.T, slopes)

    def _descend(self, slopes: FloatArray, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        squared = self.objective.square is not None

        def cheapest(costs: FloatArray) -> FloatArray:
            # With few atoms in the master, prices of squared costs exceed any solver's tolerance: rescale them.
            scale = np.maximum(np.abs(costs).max(axis=1, keepdims=True), 1.0) if squared else 1.0
            return cheapest_atoms(self.oracle, costs / scale, clock)

        least = SETTINGS.tolerance.solved if squared else SETTINGS.search.least_entry
        atoms = descend_by_tangents(cheapest, self.objective, slopes, prices, SETTINGS.search.tangent_steps, least)
        if squared:
            return self._add_to_pool(atoms)
        atoms = distinct_atoms(atoms)
        self._best = atoms[
            np.argsort(reduced_costs(self.objective, atoms, prices), kind="stable")[: SETTINGS.search.tangent_atoms]
        ]
        return self._best

    def _add_to_pool(self, atoms: FloatArray) -> FloatArray:
        self._pool = np.concatenate([atoms, self._pool])[: SETTINGS.search.tangent_pool]
        return atoms
