"""Steps from vertex to vertex of the polytope, many walks at once, towards small reduced cost.

The reduced cost is concave, so its minimum is at a vertex, and from any vertex all neighbours can be priced together:
letting a non-basic variable j enter moves the basic ones along a column of B^-1 A until one of them meets a bound. That
looks further than a tangent does, so it is how the search goes wherever the polytope has few rows.
"""

from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import FOREVER, WORK, Clock
from privacyfunnel.engine.lp.batched_simplex import inverses
from privacyfunnel.engine.objective import Objective, reduced_costs, tangents
from privacyfunnel.engine.oracles.polytope import Polytope
from privacyfunnel.engine.problem import atom_keys
from privacyfunnel.engine.search.tangent import square_slopes
from privacyfunnel.engine.settings import SETTINGS


@dataclass(frozen=True, slots=True, eq=False)
class Vertices:
    """Vertices with their bases: x is (k, n), basis is (k, m)."""

    x: FloatArray
    basis: IntArray

    def __getitem__(self, which: IntArray) -> "Vertices":
        return Vertices(self.x[which], self.basis[which])

    def concatenate(self, other: "Vertices") -> "Vertices":
        return Vertices(np.concatenate([self.x, other.x]), np.concatenate([self.basis, other.basis]))

    def index_by_atom(self, inputs: int) -> dict[bytes, int]:
        """For every different atom, up to rounding, the first vertex that is it."""
        first: dict[bytes, int] = {}
        for i, key in enumerate(atom_keys(self.x[:, :inputs])):
            first.setdefault(key, i)
        return first


@dataclass(frozen=True, slots=True, eq=False)
class VertexWalks:
    """Walks over the vertices of one polytope, downhill in cost(v) − prices·v, where every input is a value."""

    polytope: Polytope
    objective: Objective

    def cheapest(self, slopes: FloatArray, clock: Clock = FOREVER) -> Vertices:
        """A vertex that minimises slopes·v, for every row of slopes for which there is time."""
        found = self.polytope.solve_linear(slopes, clock.deadline)
        return Vertices(found.x, found.basis)[np.flatnonzero(found.optimal)]

    def descend(self, start: Vertices, prices: FloatArray, clock: Clock = FOREVER) -> Vertices:
        """From each vertex to a vertex none of whose neighbours has smaller reduced cost."""
        x, basis = start.x.copy(), start.basis.copy()
        live = np.arange(x.shape[0])
        for _ in range(SETTINGS.search.vertex_steps):
            if not live.size or clock.late:
                break
            better, new_x, new_basis = self._best_neighbours(x[live], basis[live], prices)
            live = live[better]
            x[live], basis[live] = new_x, new_basis
        return self.recompute(Vertices(x, basis))

    def trace(self, start: Vertices, prices: FloatArray, rounds: int, clock: Clock = FOREVER) -> Vertices:
        """The vertices on the walks downhill from these."""
        walks, together = start, start
        for _ in range(rounds):
            if clock.late:
                break
            better, x, basis = self._best_neighbours(walks.x, walks.basis, prices)
            if not better.size:
                break
            walks = Vertices(x, basis)
            together = together.concatenate(walks)
        return self.recompute(together)

    def _best_neighbours(
        self, x: FloatArray, basis: IntArray, prices: FloatArray
    ) -> tuple[IntArray, FloatArray, IntArray]:
        """Which vertices have a neighbour of smaller reduced cost, and the best such neighbours with their bases."""
        polytope, terms = self.polytope, self.objective.terms
        rows = np.arange(len(x))[:, None]
        d = polytope.inputs
        # (k, m, n): how basic variables fall as j rises
        W = np.matmul(self._inverses(polytope.matrix, basis), polytope.matrix)
        WORK.entries += SETTINGS.work.neighbour_passes * W.size
        x_basic = x[rows, basis]
        rises = x - polytope.low <= polytope.high - x
        W *= np.where(rises, 1.0, -1.0)[:, None, :]
        limit = np.full(W.shape, np.inf)
        np.divide(
            np.maximum(x_basic - polytope.low[basis], 0.0)[:, :, None],
            W,
            out=limit,
            where=SETTINGS.tolerance.solved < W,
        )
        np.divide(
            -np.maximum(polytope.high[basis] - x_basic, 0.0)[:, :, None],
            W,
            out=limit,
            where=-SETTINGS.tolerance.solved > W,
        )
        leave = np.argmin(limit, axis=1)
        step = np.take_along_axis(limit, leave[:, None, :], 1)[:, 0]
        span = polytope.high - polytope.low
        turns = step < span  # otherwise j goes to its other bound and the basis stays
        step = np.minimum(step, span)
        step[rows, basis] = 0.0
        moved = np.maximum(x_basic[:, :, None] - W * step[:, None, :], 0.0)
        entering = x + np.where(rises, step, -step)
        # The reduced cost of a neighbour: its basic entries, the one that enters, and the others, which stay.
        padded = np.concatenate([prices, np.zeros(x.shape[1] - d)])
        cost = np.where((basis < d)[:, :, None], terms(moved), 0.0).sum(axis=1)
        cost -= np.matmul(padded[basis][:, None, :], moved)[:, 0]
        cost[:, :d] += terms(np.maximum(entering[:, :d], 0.0)) - prices * entering[:, :d]
        others = x.copy()
        others[rows, basis] = 0.0
        rest = terms(others[:, :d]) - prices * others[:, :d]
        cost += rest.sum(axis=1, keepdims=True)
        cost[:, :d] -= rest
        if self.objective.gram_matrix is not None:
            cost -= self._squares(self.objective.gram_matrix, x, basis, W, np.where(rises, step, -step))
        cost[rows, basis] = np.inf
        best = np.argmin(cost, axis=1)
        lowest = np.take_along_axis(cost, best[:, None], 1)[:, 0]
        better = np.flatnonzero(
            lowest < reduced_costs(self.objective, np.maximum(x[:, :d], 0.0), prices) - SETTINGS.tolerance.improvement
        )
        best, nth = best[better], np.arange(better.size)
        new_x, new_basis = x[better], basis[better]
        new_x[nth[:, None], new_basis] = moved[better, :, best]
        new_x[nth, best] = entering[better, best]
        pivots = turns[better, best]
        new_basis[nth[pivots], leave[better, best][pivots]] = best[pivots]
        return better, new_x, new_basis

    @staticmethod
    def _squares(products: FloatArray, x: FloatArray, basis: IntArray, W: FloatArray, step: FloatArray) -> FloatArray:
        """‖Bᵀu‖² of every neighbour u = v + step_j (e_j − W_j), (k, n)."""
        d, n = len(products), x.shape[1]
        G = np.zeros((n, n))
        G[:d, :d] = products
        here = x @ G
        at, turned = G[basis], np.sign(step)  # W was turned where j falls, and so is the step
        among = np.take_along_axis(at, basis[:, None, :], 2)
        inner = here - turned * np.matmul(np.take_along_axis(here, basis, 1)[:, None, :], W)[:, 0]
        length = np.diag(G) - 2.0 * turned * (at * W).sum(axis=1) + (W * np.matmul(among, W)).sum(axis=1)
        square = np.einsum("ij,ij->i", here, x)[:, None] + 2.0 * step * inner
        return np.asarray(square + step**2 * length)

    def recompute(self, vertices: Vertices) -> Vertices:
        """The same vertices, computed afresh from their bases, so that no rounding of the walk remains."""
        polytope, x, basis = self.polytope, vertices.x, vertices.basis
        rows = np.arange(len(x))[:, None]
        snapped = np.where(x - polytope.low <= polytope.high - x, polytope.low, polytope.high)
        snapped[rows, basis] = 0.0
        rest = polytope.rhs - snapped @ polytope.matrix.T
        # Rows about rare inputs compare tiny probabilities: equilibrated, these come out to full relative precision.
        row_scale, column_scale = polytope.scales
        scaled = polytope.matrix * row_scale[:, None] * column_scale
        without_scales = np.matmul(self._inverses(scaled, basis), (rest * row_scale)[:, :, None])[:, :, 0]
        x_basic = without_scales * column_scale[basis]
        snapped[rows, basis] = x_basic
        sound = (
            (snapped >= polytope.low - SETTINGS.tolerance.solved)
            & (snapped <= polytope.high + SETTINGS.tolerance.solved)
        ).all(axis=1)
        return Vertices(np.clip(snapped, polytope.low, polytope.high), basis)[np.flatnonzero(sound)]

    @staticmethod
    def _inverses(matrix: FloatArray, basis: IntArray) -> FloatArray:
        return inverses(matrix.T[basis].transpose(0, 2, 1))


class VertexSearch:
    """Walks over the vertices of a polytope from chance starts, and from the best of a pool of those that were met."""

    starts = SETTINGS.search.vertex_starts  # walks at once
    patience = 1

    def __init__(self, polytope: Polytope, objective: Objective) -> None:
        self.walks, self.polytope = VertexWalks(polytope, objective), polytope
        self._random = np.random.default_rng(1)
        m, n = polytope.matrix.shape
        self._pool = Vertices(np.empty((0, n)), np.empty((0, m), dtype=np.int64))
        self._known: dict[bytes, None] = {}  # what is in the pool, in the same order

    def set_objective(self, objective: Objective) -> None:
        self.walks = replace(self.walks, objective=objective)

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """For each input the atom that gives it most, as far as there is time: the others are found when missing."""
        inputs, batch = self.polytope.inputs, self.polytope.batch
        until = clock.part(SETTINGS.search.starting_share)
        found = []
        for first in range(0, inputs, batch):
            if until.late:
                break
            some = -np.eye(min(batch, inputs - first), inputs, first)
            found.append(self._add_to_pool(self.walks.cheapest(some, until)))
        return np.concatenate(found) if found else self._pool.x[:0, :inputs]

    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
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
        starts = self.walks.cheapest(self._bias_slopes(self._noise(), wanted) - prices, clock)
        return self._add_to_pool(
            self.walks.trace(starts.concatenate(self._cheapest(prices)), prices, SETTINGS.search.short_steps, clock)
        )

    def _bias_slopes(self, noise: FloatArray, wanted: IntArray) -> FloatArray:
        """These slopes, in which one of these inputs is cheaper in each row."""
        noise = noise[: len(wanted)]
        noise[np.arange(len(wanted)), wanted] -= self._random.uniform(*SETTINGS.search.preference, size=len(wanted))
        return noise

    def polish(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        slopes = tangents(self.walks.objective, atoms, SETTINGS.tolerance.solved) - prices
        return self._add_to_pool(self.walks.descend(self.walks.cheapest(slopes), prices))

    def _noise(self) -> FloatArray:
        if self.walks.objective.square is None:
            scale = self._random.uniform(0, SETTINGS.search.noise, size=(self.starts, 1))
            return self._random.exponential(size=(self.starts, self.polytope.inputs)) * scale
        return square_slopes(self.walks.objective, self.starts, self._random)

    def _cheapest(self, prices: FloatArray) -> Vertices:
        """Those of the pool that cost least now."""
        reduced = reduced_costs(self.walks.objective, self._pool.x[:, : self.polytope.inputs], prices)
        return self._pool[np.argsort(reduced)[: self.starts]]

    def _add_to_pool(self, found: Vertices) -> FloatArray:
        """Remember these vertices as starts for later searches; the different ones, as atoms."""
        atoms = found.index_by_atom(self.polytope.inputs)
        new = [key for key in atoms if key not in self._known]
        if new:
            keys = [*new, *self._known][: SETTINGS.search.vertex_pool]
            self._known = dict.fromkeys(keys)
            fresh = found[np.array([atoms[key] for key in new], dtype=np.int64)]
            self._pool = fresh.concatenate(self._pool)[np.arange(len(keys))]
        return found.x[list(atoms.values()), : self.polytope.inputs]
