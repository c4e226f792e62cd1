r"""The search: atoms of small reduced cost, from many starts, without proof.

The reduced cost is concave, so it lies below its tangent at any atom v. The atom u that an oracle finds cheapest under
the tangent therefore costs no more than v does (docs/theory.md, Lemma 7c), and the walk goes on from there until
nothing is cheaper. Where the polytope has few rows, steps to the best neighbour of a vertex look further (vertices.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import cycle
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.objective import Objective, image, reduced_costs, tangents
from privacyfunnel.engine.oracle import Oracle
from privacyfunnel.engine.polytope import Polytope
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.programme import RowsOracle
from privacyfunnel.engine.vertices import IMPROVES, Vertices, Walks

PREFERENCE = (0.3, 2.0)  # nats: by how much an input that is missing is made cheaper where a walk starts
ALIKE = 10  # digits in which two atoms that are one agree
SPREAD = 0.3  # of chance distributions: most of each lies on few inputs
NEAR_ZERO = 1e-9  # an entry that is 0 has no tangent; it is treated as if it were this


class Search(Protocol):
    """Looks for atoms of small reduced cost."""

    patience: int  # after so many searches in vain nothing is left to be found

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """Atoms to begin with, among them for every input one that gives it much; or few where that takes long."""

    def downhill(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Where long walks end."""

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """What many short walks pass, above all where probability is missing."""

    def polished(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """Where walks from these atoms end."""


def descended(
    cheapest: Callable[[FloatArray], FloatArray],
    objective: Objective,
    slopes: FloatArray,
    prices: FloatArray,
    longest: int,
    least: float = NEAR_ZERO,
    clock: Clock = FOREVER,
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


def _different(atoms: FloatArray) -> FloatArray:
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
        self.walks, self.polytope = Walks(polytope, objective), polytope
        self._random = np.random.default_rng(1)
        m, n = polytope.matrix.shape
        self._pool = Vertices(np.empty((0, n)), np.empty((0, m), dtype=np.int64))
        self._known: dict[bytes, None] = {}  # what is in the pool, in the same order

    def charge(self, objective: Objective) -> None:
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
            found.append(self._pooled(self.walks.cheapest(some, until)))
        return np.concatenate(found) if found else self._pool.x[:0, :inputs]

    def downhill(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Where long walks end."""
        starts = self.walks.cheapest(self._noise() - prices, clock)
        return self._pooled(self.walks.descend(starts.joined(self._nearest(prices)), prices, clock))

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Many different atoms of small reduced cost, above all such that give probability to what is missing.

        Short walks rather than long ones: where there are many inputs no single atom matters, all on the way do.
        """
        return self.around(
            prices, self._random.choice(self.polytope.inputs, self.starts, p=missing / missing.sum()), clock
        )

    def around(self, prices: FloatArray, wanted: IntArray, clock: Clock = FOREVER) -> FloatArray:
        """What short walks pass that begin where each of these inputs, at most as many as `starts`, is made cheaper."""
        noise = self._noise()[: len(wanted)]
        noise[np.arange(len(wanted)), wanted] -= self._random.uniform(*PREFERENCE, size=len(wanted))
        starts = self.walks.cheapest(noise - prices, clock)
        return self._pooled(self.walks.passed(starts.joined(self._nearest(prices)), prices, self.short, clock))

    def polished(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """Vertices reached downhill from these atoms."""
        slopes = tangents(self.walks.objective, atoms, NEAR_ZERO) - prices
        return self._pooled(self.walks.descend(self.walks.cheapest(slopes), prices))

    def _noise(self) -> FloatArray:
        d, B = self.polytope.inputs, self.walks.objective.square
        if B is None:
            return self._random.exponential(size=(self.starts, d)) * self._random.uniform(0, 2, size=(self.starts, 1))
        # A square has slopes of its own size: along chance directions of B, and at chance distributions.
        along = self._random.normal(size=(self.starts, B.shape[1])) * self._random.uniform(0, 3, size=(self.starts, 1))
        at = self._random.dirichlet(np.full(d, SPREAD), self.starts) @ B
        return -2.0 * np.where(np.arange(self.starts)[:, None] % 2 == 0, along, at) @ B.T

    def _nearest(self, prices: FloatArray) -> Vertices:
        """Those of the pool that cost least now."""
        reduced = reduced_costs(self.walks.objective, self._pool.x[:, : self.polytope.inputs], prices)
        return self._pool[np.argsort(reduced)[: self.starts]]

    def _pooled(self, found: Vertices) -> FloatArray:
        """Remember these vertices as starts for later searches; the different ones, as atoms."""
        atoms = found.by_atom(self.polytope.inputs)
        new = [key for key in atoms if key not in self._known]
        if new:
            keys = [*new, *self._known][: self.pool]
            self._known = dict.fromkeys(keys)
            fresh = found[np.array([atoms[key] for key in new], dtype=np.int64)]
            self._pool = fresh.joined(self._pool)[np.arange(len(keys))]
        return found.x[list(atoms.values()), : self.polytope.inputs]


class InTurn:
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

    def downhill(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Where long walks end."""
        return next(self._turn).downhill(prices, clock)

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """What many short walks pass."""
        return next(self._turn).cover(prices, missing, clock)

    def polished(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """Where walks from these atoms end."""
        return next(self._turn).polished(atoms, prices)


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
        self._good = np.empty((0, self.objective.values))

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """For every input an atom that gives it as much probability as any does, and its value most of the rest."""
        value = self.objective.value
        same_value = (value[:, None] == value).astype(np.float64)
        return self._cheapest(-0.1 * same_value - np.eye(value.size), clock)

    def downhill(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """Distinct atoms, best first."""
        a = self.objective.values
        sharp = np.eye(a)[self._random.permutation(a)[: self._starts]]
        share = self._random.random((self._starts, 1))
        one, other = np.eye(a)[self._random.integers(a, size=(2, self._starts))]
        mixed = share * one + (1 - share) * other
        spread = self._random.dirichlet(np.full(a, 0.3), self._starts)
        return self._from(np.concatenate([sharp, mixed, spread, self._good]), prices, clock)

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """The same: walks are few, and all that they pass counts."""
        return self.downhill(prices, clock)

    def polished(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """What walks from these atoms pass."""
        return self._from(image(self.objective, atoms)[: self._starts], prices)

    def _from(self, t: FloatArray, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        slopes = self.objective.slopes(t, self.sharpest)[:, self.objective.value]

        def cheapest(costs: FloatArray) -> FloatArray:
            return self._cheapest(costs, clock)

        atoms = descended(cheapest, self.objective, slopes, prices, self.longest, self.least, clock)
        atoms = _different(atoms)
        atoms = atoms[np.argsort(reduced_costs(self.objective, atoms, prices), kind="stable")[: self.most]]
        self._good = image(self.objective, atoms[: self._starts])
        return atoms

    def _cheapest(self, costs: FloatArray, clock: Clock) -> FloatArray:
        """The cheapest atoms for any number of costs, of which the first few where time is up."""
        found, chunk = [], self.oracle.batch
        for i in range(0, len(costs), chunk):
            atoms = self.oracle.minimise(costs[i : i + chunk], clock.deadline).atoms
            if clock.late:
                break
            found.append(atoms)
        return np.concatenate(found) if found else np.empty((0, costs.shape[1]))


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

        return descended(cheapest, self._problem.objective, slopes[None, :], prices, self.longest + 1, NEAR_ZERO, clock)

    def _pooled(self, met: FloatArray) -> FloatArray:
        atoms = _different(met)
        self._pool = np.concatenate([atoms, self._pool])[: self.pool]
        return atoms
