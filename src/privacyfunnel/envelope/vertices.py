"""Walks over the vertices of the polytope, many at once, towards small reduced cost H(v) - prices·v.

The reduced cost is concave, so its minimum is at a vertex, and from any vertex all neighbours can be priced together:
letting a non-basic variable j enter moves the basic ones along a column of B^-1 A until one of them meets a bound.
"""

from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.envelope.polytope import Polytope
from privacyfunnel.envelope.simplex import inverses, solve

IMPROVES = 1e-11
STEP = 1e-9


def entropy_terms(v: FloatArray) -> FloatArray:
    """-v ln v, elementwise, with 0 at 0."""
    return -v * np.log(np.maximum(v, 1e-300))


def reduced_costs(v: FloatArray, prices: FloatArray) -> FloatArray:
    """H(v) - prices·v for every row of v."""
    return np.asarray(entropy_terms(v).sum(axis=-1) - v @ prices)


@dataclass(frozen=True, slots=True, eq=False)
class Vertices:
    """Vertices with their bases: x is (k, n), basis is (k, m)."""

    x: FloatArray
    basis: IntArray

    def __getitem__(self, which: IntArray) -> "Vertices":
        return Vertices(self.x[which], self.basis[which])

    def joined(self, other: "Vertices") -> "Vertices":
        """These and the others."""
        return Vertices(np.concatenate([self.x, other.x]), np.concatenate([self.basis, other.basis]))

    def distinct(self, inputs: int) -> "Vertices":
        """One of each, in the order of their first appearance."""
        _, first = np.unique(np.round(self.x[:, :inputs], 10), axis=0, return_index=True)
        return self[np.sort(first)]


def cheapest_vertices(polytope: Polytope, slopes: FloatArray) -> Vertices:
    """A vertex that minimises slopes·v, for every row of slopes."""
    k = slopes.shape[0]
    cost = np.zeros((k, polytope.low.size))
    cost[:, : polytope.inputs] = slopes
    solved = solve(
        polytope.matrix,
        polytope.rhs,
        cost,
        np.tile(polytope.low, (k, 1)),
        np.tile(polytope.high, (k, 1)),
        np.tile(polytope.basis, (k, 1)),
        np.full(k, np.inf),
    )
    return Vertices(solved.x, solved.basis)[np.flatnonzero(solved.optimal)]


def descend(polytope: Polytope, start: Vertices, prices: FloatArray, rounds: int = 30) -> Vertices:
    """From each vertex to a vertex none of whose neighbours has smaller reduced cost."""
    A, d, n = polytope.matrix, polytope.inputs, polytope.low.size
    out_x, out_basis = start.x.copy(), start.basis.copy()
    live = np.arange(start.x.shape[0])
    padded_prices = np.concatenate([prices, np.zeros(n - d)])
    for _ in range(rounds):
        if not live.size:
            break
        x, basis = out_x[live], out_basis[live]
        k = np.arange(live.size)
        binv = inverses(A, basis)
        W = np.matmul(binv, A)  # (k, m, n): how the basic variables fall as variable j rises
        x_basic = np.take_along_axis(x, basis, 1)
        room_down = np.maximum(x_basic - polytope.low[basis], 0.0)[:, :, None]
        room_up = np.maximum(polytope.high[basis] - x_basic, 0.0)[:, :, None]
        rises = x - polytope.low <= polytope.high - x
        W *= np.where(rises, 1.0, -1.0)[:, None, :]
        limit = np.full(W.shape, np.inf)
        np.divide(room_down, W, out=limit, where=W > STEP)
        np.divide(-room_up, W, out=limit, where=W < -STEP)
        leave = np.argmin(limit, axis=1)
        step = np.take_along_axis(limit, leave[:, None, :], 1)[:, 0]
        span = polytope.high - polytope.low
        flips = step >= span
        step = np.minimum(step, span)
        np.put_along_axis(step, basis, 0.0, 1)
        moved = x_basic[:, :, None] - W * step[:, None, :]
        np.maximum(moved, 0.0, out=moved)
        structural = (basis < d)[:, :, None]
        terms = np.where(structural, entropy_terms(moved), 0.0)
        cost = terms.sum(axis=1) - np.matmul(padded_prices[basis][:, None, :], moved)[:, 0]
        entering = x + np.where(rises, step, -step)
        cost[:, :d] += entropy_terms(np.maximum(entering[:, :d], 0.0)) - prices * entering[:, :d]
        at_top = x.copy()
        np.put_along_axis(at_top, basis, 0.0, 1)
        rest = entropy_terms(at_top[:, :d]) - prices * at_top[:, :d]
        cost += rest.sum(axis=1, keepdims=True)
        cost[:, :d] -= rest
        np.put_along_axis(cost, basis, np.inf, 1)
        now = reduced_costs(np.maximum(x[:, :d], 0.0), prices)
        best = np.argmin(cost, axis=1)
        better = cost[k, best] < now - IMPROVES
        k, best = k[better], best[better]
        live = live[better]
        if not live.size:
            break
        new_x, new_basis = x[better], basis[better]
        rows = np.arange(live.size)
        np.put_along_axis(new_x, new_basis, moved[k, :, best], 1)
        new_x[rows, best] = entering[k, best]
        turns = ~flips[k, best]
        new_basis[rows[turns], leave[k, best][turns]] = best[turns]
        out_x[live], out_basis[live] = new_x, new_basis
    return settled(polytope, Vertices(out_x, out_basis))


def settled(polytope: Polytope, vertices: Vertices) -> Vertices:
    """The same vertices, computed afresh from their bases, so that no rounding of the walk remains."""
    x, basis = vertices.x, vertices.basis
    snapped = np.where(x - polytope.low <= polytope.high - x, polytope.low, polytope.high)
    np.put_along_axis(snapped, basis, 0.0, 1)
    rest = polytope.rhs - snapped @ polytope.matrix.T
    # Rows about rare inputs compare tiny probabilities: equilibrated, these come out to full relative precision.
    row_scale, column_scale = polytope.scales
    scaled = polytope.matrix * row_scale[:, None] * column_scale
    unscaled = np.matmul(inverses(scaled, basis), (rest * row_scale)[:, :, None])[:, :, 0]
    x_basic = unscaled * column_scale[basis]
    np.put_along_axis(snapped, basis, x_basic, 1)
    sound = ((snapped >= polytope.low - STEP) & (snapped <= polytope.high + STEP)).all(axis=1)
    return Vertices(np.clip(snapped, polytope.low, polytope.high), basis)[np.flatnonzero(sound)]
