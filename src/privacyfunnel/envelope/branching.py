"""Proof by branch and bound that no allowed atom has reduced cost below a target.

On a box l <= v <= u the concave -t ln t lies above its chord, so a linear programme bounds the reduced cost from below.
The atoms that matter are vertices of the polytope, which have few non-zero entries, so the largest entry is not small:
the first branching asks which input is the largest; after that the box is cut where the chord errs most.
"""

import time
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.envelope.polytope import Polytope
from privacyfunnel.envelope.problem import Pricing
from privacyfunnel.envelope.simplex import solve
from privacyfunnel.envelope.vertices import entropy_terms, reduced_costs

BATCH = 512
ROUNDING = 1e-12
SLOP = 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """Open boxes: bounds on v, the input that is the largest, the basis to start from, the bound known so far."""

    low: FloatArray  # (k, d)
    high: FloatArray  # (k, d)
    largest: IntArray  # (k,)
    basis: IntArray  # (k, m)
    bound: FloatArray  # (k,)

    def __getitem__(self, which: IntArray) -> "Nodes":
        return Nodes(self.low[which], self.high[which], self.largest[which], self.basis[which], self.bound[which])

    def __len__(self) -> int:
        return self.bound.size

    def __add__(self, other: "Nodes") -> "Nodes":
        return Nodes(
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
            np.concatenate([self.largest, other.largest]),
            np.concatenate([self.basis, other.basis]),
            np.concatenate([self.bound, other.bound]),
        )


def chords(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slope and intercept of the chord of -t ln t on [low, high], elementwise."""
    at_low, at_high = entropy_terms(low), entropy_terms(high)
    width = high - low
    slope = np.zeros_like(low)
    np.divide(at_high - at_low, width, out=slope, where=width > 0)
    return slope, at_low - slope * low


def tightened(nodes: Nodes) -> Nodes:
    """The same boxes, shrunk by Σ v = 1 and by which entry is the largest; empty ones are dropped."""
    low, high, rows = nodes.low.copy(), nodes.high.copy(), np.arange(len(nodes))
    for _ in range(2):
        top = high[rows, nodes.largest]
        high = np.minimum(high, top[:, None])
        low[rows, nodes.largest] = np.maximum(low[rows, nodes.largest], low.max(axis=1))
        high = np.minimum(high, 1.0 - (low.sum(axis=1, keepdims=True) - low) + SLOP)
        low = np.maximum(low, 1.0 - (high.sum(axis=1, keepdims=True) - high) - SLOP)
    alive = np.flatnonzero((low <= high + 1e-12).all(axis=1))
    tight = Nodes(low, np.maximum(low, high), nodes.largest, nodes.basis, nodes.bound)
    return tight if alive.size == len(nodes) else tight[alive]


class Prover:
    """Branch and bound over one polytope; `visited` counts boxes over all proofs."""

    def __init__(self, polytope: Polytope, reach: FloatArray) -> None:
        self.polytope = polytope
        self.reach = reach
        self.visited = 0

    def roots(self) -> Nodes:
        """One box per input: that input is the largest entry."""
        d = self.polytope.inputs
        low = np.zeros((d, d))
        np.fill_diagonal(low, 1.0 / self.polytope.support)
        high = np.tile(np.minimum(self.reach, 0.5), (d, 1))
        np.fill_diagonal(high, self.reach)
        possible = np.flatnonzero(np.diag(low) <= np.diag(high))
        nodes = Nodes(
            low, high, np.arange(d), np.tile(self.polytope.basis, (d, 1)), np.full(d, -np.inf)
        )
        return tightened(nodes[possible])

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Pricing:
        """See Pricer.prove. Atoms returned are the relaxations' solutions of reduced cost below -target."""
        p, d = self.polytope, self.polytope.inputs
        rounding = ROUNDING * (1.0 + float(np.abs(prices).max()))
        goal = -target + rounding
        open_nodes = self.roots()
        closed = np.inf  # smallest bound among the boxes that were finished
        while len(open_nodes):
            if time.monotonic() > deadline:
                break
            if len(open_nodes) > BATCH:
                order = np.argpartition(open_nodes.bound, BATCH)
                nodes, open_nodes = open_nodes[order[:BATCH]], open_nodes[order[BATCH:]]
            else:
                nodes, open_nodes = open_nodes, open_nodes[np.arange(0)]
            slope, intercept = chords(nodes.low, nodes.high)
            k = len(nodes)
            self.visited += k
            cost = np.zeros((k, p.low.size))
            cost[:, :d] = slope - prices
            low, high = np.tile(p.low, (k, 1)), np.tile(p.high, (k, 1))
            low[:, :d], high[:, :d] = nodes.low, nodes.high
            constant = intercept.sum(axis=1)
            solved = solve(p.matrix, p.rhs, cost, low, high, nodes.basis, goal - constant)
            bound = np.maximum(solved.bound + constant, nodes.bound)
            beyond = bound >= goal
            closed = min(closed, float(bound[beyond].min(initial=np.inf)))
            v = np.clip(solved.x[:, :d], nodes.low, nodes.high)
            found = np.flatnonzero(solved.optimal & (reduced_costs(v, prices) < -target - rounding))
            error = entropy_terms(v) - slope * v - intercept
            children = self._cut(nodes, v, error, solved.basis, bound, np.flatnonzero(~beyond))
            open_nodes = open_nodes + children
            if found.size:
                lowest = min(closed, float(open_nodes.bound.min(initial=np.inf)))
                return Pricing(lowest - rounding, v[found])
        lowest = min(closed, float(open_nodes.bound.min(initial=np.inf)))
        return Pricing(lowest - rounding, np.empty((0, d)))

    def _cut(
        self, nodes: Nodes, v: FloatArray, error: FloatArray, basis: IntArray, bound: FloatArray, which: IntArray
    ) -> Nodes:
        """Both halves of the boxes `which`, cut where the chord errs most."""
        rows = np.arange(which.size)
        at = np.argmax(error[which], axis=1)
        low, high = nodes.low[which], nodes.high[which]
        left, right = low[rows, at], high[rows, at]
        cut = np.clip(v[which][rows, at], left + 0.1 * (right - left), right - 0.1 * (right - left))
        lower_high, upper_low = high.copy(), low.copy()
        lower_high[rows, at] = cut
        upper_low[rows, at] = cut
        largest = nodes.largest[which]
        halves = Nodes(low, lower_high, largest, basis[which], bound[which]) + Nodes(
            upper_low, high, largest, basis[which], bound[which]
        )
        return tightened(halves)
