r"""What searches share, and tangent search over any oracle.

Every search solves the pricing problem heuristically: given prices λ, it returns atoms of small reduced cost

.. math:: \min_{v \in V}\ \operatorname{cost}(v) - \lambda\cdot v .

The reduced cost is concave, so it lies below its tangent at any atom v. The atom that minimises the tangent therefore
costs no more than v (docs/theory.md, Lemma 7c); the descent repeats this step until nothing improves. Starting points
depend on the objective. For an entropy they are sharp, mixed and random images, and the images of the best atoms of the
last search. A squared term has slopes of its own size: then descents start along random directions of B, at random
distributions, and at the pooled atoms that are cheapest at the present prices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.objective import Objective, image, reduced_costs, tangents
from privacyfunnel.engine.oracles.oracle import Oracle, cheapest_atoms
from privacyfunnel.engine.problem import Problem, atom_keys
from privacyfunnel.engine.settings import SETTINGS


class Search(Protocol):
    """Finds atoms of small reduced cost; proves nothing."""

    patience: int  # consecutive searches without a find after which the pricing problem counts as solved

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """First atoms; for every input one that gives it much, unless that takes long."""

    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """End points of long descents."""

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Atoms passed by many short descents that start near inputs with `missing` probability."""

    def polish(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """End points of descents from these atoms."""


class ObjectiveSearch(Protocol):
    """A search whose objective can be replaced between calls."""

    def set_objective(self, objective: Objective) -> None: ...
    def start(self, clock: Clock = FOREVER) -> FloatArray: ...
    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray: ...


def descend_by_tangents(
    cheapest: Callable[[FloatArray], FloatArray],
    objective: Objective,
    slopes: FloatArray,
    prices: FloatArray,
    longest: int,
    least: float = SETTINGS.tolerance.solved,
) -> FloatArray:
    """All atoms on these descents; each starts at the minimum of its slopes and stops when nothing improves."""
    before, visited = np.full(len(slopes), np.inf), []
    for _ in range(longest):
        atoms = cheapest(slopes - prices)
        if len(atoms) < len(before):  # the oracle found nothing, or ran out of time
            break
        reduced = reduced_costs(objective, atoms, prices)
        better = reduced < before - SETTINGS.tolerance.improvement
        if not better.any():
            break
        visited.append(atoms[better])
        before = reduced[better]
        slopes = tangents(objective, atoms[better], least)
    return np.concatenate(visited) if visited else np.empty((0, prices.size))


def distinct_atoms(atoms: FloatArray) -> FloatArray:
    """The atoms that differ by more than rounding."""
    first = {key: i for i, key in reversed(list(enumerate(atom_keys(atoms))))}
    return atoms[sorted(first.values())]


def square_slopes(objective: Objective, count: int, random: np.random.Generator) -> FloatArray:
    """Slopes of a squared term: every other one along a random direction of B, the others at random distributions."""
    B = objective.square
    assert B is not None
    along = random.normal(size=(count, B.shape[1])) * random.uniform(0, SETTINGS.search.farthest, size=(count, 1))
    at = random.dirichlet(np.full(len(B), SETTINGS.search.spread), count)
    slopes = tangents(objective, at, SETTINGS.tolerance.solved)
    return np.where(np.arange(count)[:, None] % 2 == 0, -2.0 * along @ B.T, slopes)


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
            return self._descend(
                np.concatenate([square_slopes(self.objective, self._starts, self._random), self._pool_slopes(prices)]),
                prices,
                clock,
            )
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
        order = np.argsort(reduced_costs(self.objective, atoms, prices), kind="stable")
        self._best = atoms[order[: SETTINGS.search.tangent_atoms]]
        return self._best

    def _add_to_pool(self, atoms: FloatArray) -> FloatArray:
        self._pool = np.concatenate([atoms, self._pool])[: SETTINGS.search.tangent_pool]
        return atoms
