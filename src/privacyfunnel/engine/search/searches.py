r"""The search: atoms of small reduced cost, from many starts, without proof.

The reduced cost is concave, so it lies below its tangent at any atom v. The atom u that an oracle finds cheapest under
the tangent therefore costs no more than v does (docs/theory.md, Lemma 7c), and the walk goes on from there until
nothing is cheaper. Where the polytope has few rows, steps to the best neighbour of a vertex look further (vertices.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.objective import Objective, image, reduced_costs, tangents
from privacyfunnel.engine.oracles.oracle import Oracle, cheapest_atoms
from privacyfunnel.engine.oracles.polytope import Polytope
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.search.vertices import IMPROVES, VertexWalks, Vertices

PREFERENCE = (0.3, 2.0)  # nats: by how much an input that is missing is made cheaper where a walk starts
ALIKE = 10  # digits in which two atoms that are one agree
SPREAD = 0.3  # of chance distributions: most of each lies on few inputs
NEAR_ZERO = 1e-9  # an entry that is 0 has no tangent; it is treated as if it were this


class Search(Protocol):
    """Looks for atoms of small reduced cost."""

    patience: int  # after so many searches in vain nothing is left to be found

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """Atoms to begin with, among them for every input one that gives it much; or few where that takes long."""

    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Where long walks end."""

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """What many short walks pass, above all where probability is missing."""

    def polish(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """Where walks from these atoms end."""


def descend_by_tangents(
    cheapest: Callable[[FloatArray], FloatArray],
    objective: Objective,
    slopes: FloatArray,
    prices: FloatArray,
    longest: int,
    least: float = NEAR_ZERO,
) -> FloatArray:
    """The atoms that walks by tangents pass; each begins where its slopes are least and ends where none is cheaper."""
    before, met = np.full(len(slopes), np.inf), []
    for _ in range(longest):
        atoms = cheapest(slopes - prices)
        if len(atoms) < len(before):  # the oracle found nothing, or not in time
            break
        reduced = reduced_costs(objective, atoms, prices)
        better = reduced < before - IMPROVES
        if not better.any():
            break
        met.append(atoms[better])
        before = reduced[better]
        slopes = tangents(objective, atoms[better], least)
    return np.concatenate(met) if met else np.empty((0, prices.size))


def distinct_atoms(atoms: FloatArray) -> FloatArray:
    """The atoms that differ by more than rounding."""
    first: dict[bytes, int] = {}
    for i, atom in enumerate(np.round(atoms, ALIKE)):
        first.setdefault(atom.tobytes(), i)
    return atoms[list(first.values())]


class VertexSearch:
    """Walks over the vertices of a polytope from chance starts, and from the best of a pool of those that were met."""

    patience = 1
    starts = 64  # walks at once
    pool = 4096  # vertices that are remembered
    short = 8  # steps of a walk where all that it passes counts
    starting = 0.1  # of the time left, for the first atoms: a programme per input

    def __init__(self, polytope: Polytope, objective: Objective) -> None:
        self.walks, self.polytope = VertexWalks(polytope, objective), polytope
        self._random = np.random.default_rng(1)
        m, n = polytope.matrix.shape
        self._pool = Vertices(np.empty((0, n)), np.empty((0, m), dtype=np.int64))
        self._known: dict[bytes, None] = {}  # what is in the pool, in the same order

    def set_objective(self, objective: Objective) -> None:
        """Go on with another objective; what was met is remembered."""
        self.walks = replace(self.walks, objective=objective)

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """For each input the atom that gives it most, as far as there is time: the others are found when missing."""
        inputs, batch = self.polytope.inputs, self.polytope.batch
        until = clock.part(self.starting)
        found = []
        for first in range(0, inputs, batch):
            if until.late:
                break
            some = -np.eye(min(batch, inputs - first), inputs, first)
            found.append(self._add_to_pool(self.walks.cheapest(some, until)))
        return np.concatenate(found) if found else self._pool.x[:0, :inputs]

    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Where long walks end."""
        starts = self.walks.cheapest(self._noise() - prices, clock)
        return self._add_to_pool(self.walks.descend(starts.concatenate(self._cheapest(prices)), prices, clock))

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Many different atoms of small reduced cost, above all such that give probability to what is missing.

        Short walks rather than long ones: where there are many inputs no single atom matters, all on the way do.
        """
        return self.search_around(
            prices, self._random.choice(self.polytope.inputs, self.starts, p=missing / missing.sum()), clock
        )

    def search_around(self, prices: FloatArray, wanted: IntArray, clock: Clock = FOREVER) -> FloatArray:
        """What short walks pass that begin where each of these inputs, at most as many as `starts`, is made cheaper."""
        starts = self.walks.cheapest(self._bias_slopes(wanted) - prices, clock)
        return self._add_to_pool(
            self.walks.trace(starts.concatenate(self._cheapest(prices)), prices, self.short, clock)
        )

    def _bias_slopes(self, wanted: IntArray) -> FloatArray:
        """Slopes by chance, in which one of these inputs is cheaper in each row."""
        noise = self._noise()[: len(wanted)]
        noise[np.arange(len(wanted)), wanted] -= self._random.uniform(*PREFERENCE, size=len(wanted))
        return noise

    def polish(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """Vertices reached downhill from these atoms."""
        slopes = tangents(self.walks.objective, atoms, NEAR_ZERO) - prices
        return self._add_to_pool(self.walks.descend(self.walks.cheapest(slopes), prices))

    def _noise(self) -> FloatArray:
        d, B = self.polytope.inputs, self.walks.objective.square
        if B is None:
            return self._random.exponential(size=(self.starts, d)) * self._random.uniform(0, 2, size=(self.starts, 1))
        # A square has slopes of its own size: along chance directions of B, and at chance distributions.
        along = self._random.normal(size=(self.starts, B.shape[1])) * self._random.uniform(0, 3, size=(self.starts, 1))
        at = self._random.dirichlet(np.full(d, SPREAD), self.starts) @ B
        return -2.0 * np.where(np.arange(self.starts)[:, None] % 2 == 0, along, at) @ B.T

    def _cheapest(self, prices: FloatArray) -> Vertices:
        """Those of the pool that cost least now."""
        reduced = reduced_costs(self.walks.objective, self._pool.x[:, : self.polytope.inputs], prices)
        return self._pool[np.argsort(reduced)[: self.starts]]

    def _add_to_pool(self, found: Vertices) -> FloatArray:
        """Remember these vertices as starts for later searches; the different ones, as atoms."""
        atoms = found.index_by_atom(self.polytope.inputs)
        new = [key for key in atoms if key not in self._known]
        if new:
            keys = [*new, *self._known][: self.pool]
            self._known = dict.fromkeys(keys)
            fresh = found[np.array([atoms[key] for key in new], dtype=np.int64)]
            self._pool = fresh.concatenate(self._pool)[np.arange(len(keys))]
        return found.x[list(atoms.values()), : self.polytope.inputs]


class RoundRobinSearch(VertexSearch):
    """The same where no proof says what walks from chance starts have missed: every input has its turn."""

    starting = 0.5

    def __init__(self, polytope: Polytope, objective: Objective) -> None:
        super().__init__(polytope, objective)
        self.patience = -(-polytope.inputs // self.starts)  # in vain: once around
        self._next = 0

    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Where long walks end that begin where each of the next inputs is made cheaper."""
        wanted = (self._next + np.arange(self.starts)) % self.polytope.inputs
        self._next = int(wanted[-1]) + 1
        starts = self.walks.cheapest(self._bias_slopes(wanted) - prices, clock)
        return self._add_to_pool(self.walks.descend(starts.concatenate(self._cheapest(prices)), prices, clock))


class AlternatingSearch:
    r"""Several searches in turn.

    Where secrets are compared with each other (LDP), an atom is allowed iff all :math:`L_s \cdot v` lie in one box
    :math:`[e^{-a}, e^{\varepsilon - a}]` with :math:`0 \le a \le \varepsilon`. For a given a that is a promise like
    LIP, with one row per secret; with a free it takes two rows per secret and a floor, and walks take several times as
    long. So walks go over a few boxes in turn, and the master mixes what they find; the last turn is the polytope's
    own, for what lies in none of these boxes.
    """

    def __init__(self, searches: Sequence[Search]) -> None:
        self.searches = searches
        self.patience = len(searches)  # in vain: one of each
        self._turn = cycle(searches)

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """What the first one starts with."""
        return self.searches[0].start(clock)

    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Where long walks end."""
        return next(self._turn).descend(prices, clock)

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """What many short walks pass."""
        return next(self._turn).cover(prices, missing, clock)

    def polish(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """Where walks from these atoms end."""
        return next(self._turn).polish(atoms, prices)


class TangentSearch:
    """Walks by tangents over any oracle, from sharp, mixed and random images and from those that were good before."""

    patience = 1
    longest = 12  # steps
    sharpest = 1e-3  # what an image is taken to have at least where a walk begins …
    least = 1e-6  # … and on its way
    most = 128  # atoms of a search

    def __init__(self, oracle: Oracle, problem: Problem, starts: int) -> None:
        self.oracle, self.objective = oracle, problem.objective
        self._starts = starts
        self._random = np.random.default_rng(1)
        self._good = np.empty((0, self.objective.image_size))

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """For every input an atom that gives it as much probability as any does, and its value most of the rest."""
        value = self.objective.image_index
        same_value = (value[:, None] == value).astype(np.float64)
        return cheapest_atoms(self.oracle, -0.1 * same_value - np.eye(value.size), clock)

    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Distinct atoms, best first."""
        a = self.objective.image_size
        sharp = np.eye(a)[self._random.permutation(a)[: self._starts]]
        share = self._random.random((self._starts, 1))
        one, other = np.eye(a)[self._random.integers(a, size=(2, self._starts))]
        mixed = share * one + (1 - share) * other
        spread = self._random.dirichlet(np.full(a, 0.3), self._starts)
        return self._walk_from(np.concatenate([sharp, mixed, spread, self._good]), prices, clock)

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """The same: walks are few, and all that they pass counts."""
        return self.descend(prices, clock)

    def polish(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """What walks from these atoms pass."""
        return self._walk_from(image(self.objective, atoms)[: self._starts], prices)

    def _walk_from(self, t: FloatArray, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        slopes = self.objective.slopes(t, self.sharpest)[:, self.objective.image_index]

        def cheapest(costs: FloatArray) -> FloatArray:
            return cheapest_atoms(self.oracle, costs, clock)

        atoms = descend_by_tangents(cheapest, self.objective, slopes, prices, self.longest, self.least)
        atoms = distinct_atoms(atoms)
        atoms = atoms[np.argsort(reduced_costs(self.objective, atoms, prices), kind="stable")[: self.most]]
        self._good = image(self.objective, atoms[: self._starts])
        return atoms
