"""Proof by branch and bound that no allowed atom has reduced cost below a target.

On a box l <= v <= u the concave -t ln t lies above its chord, so a linear programme bounds the reduced cost from below.
The atoms that matter are vertices of the polytope, which have few non-zero entries, so the largest entry is not small:
the first branching asks which input is the largest; after that the box is cut where the chord errs most.
"""

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.polytope import Polytope
from privacyfunnel.engine.problem import Pricing
from privacyfunnel.engine.simplex import solve
from privacyfunnel.engine.vertices import entropy_terms, reduced_costs

BATCH_ENTRIES = 40_000
POLISHED = 16
POLISH_EVERY = 4
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

    @staticmethod
    def joined(parts: "list[Nodes]") -> "Nodes":
        """All boxes of the parts."""
        if len(parts) == 1:
            return parts[0]
        return Nodes(
            np.concatenate([part.low for part in parts]),
            np.concatenate([part.high for part in parts]),
            np.concatenate([part.largest for part in parts]),
            np.concatenate([part.basis for part in parts]),
            np.concatenate([part.bound for part in parts]),
        )


class Queue:
    """Open boxes in chunks, the chunk with the lowest bound first. Chunks are never copied while they wait."""

    def __init__(self, nodes: Nodes, batch: int) -> None:
        self.batch = batch
        self.heap: list[tuple[float, int, Nodes]] = []
        self._pushed = 0
        self.push(nodes)

    def push(self, nodes: Nodes) -> None:
        """Add boxes, in chunks of like bounds."""
        order = np.argsort(nodes.bound)
        for start in range(0, len(nodes), self.batch):
            chunk = nodes[order[start : start + self.batch]]
            self._pushed += 1
            heapq.heappush(self.heap, (float(chunk.bound[0]), self._pushed, chunk))

    def worst(self) -> Nodes:
        """About a batch of boxes, from the chunks with the lowest bounds."""
        taken = [heapq.heappop(self.heap)[2]]
        size = len(taken[0])
        while self.heap and size + len(self.heap[0][2]) <= self.batch:
            taken.append(heapq.heappop(self.heap)[2])
            size += len(taken[-1])
        return Nodes.joined(taken)

    @property
    def bound(self) -> float:
        """The lowest bound of any open box."""
        return self.heap[0][0] if self.heap else np.inf


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

    def __init__(self, polytope: Polytope, polish: Callable[[FloatArray, FloatArray], FloatArray]) -> None:
        self.polytope = polytope
        self.polish = polish
        self.visited = 0

    @cached_property
    def reach(self) -> FloatArray:
        """See Polytope.reach. It takes a programme per input, so it waits for the first proof."""
        return self.polytope.reach()

    def roots(self) -> Nodes:
        """One box per input: that input is the largest entry."""
        d = self.polytope.inputs
        low = np.zeros((d, d))
        np.fill_diagonal(low, 1.0 / self.polytope.support)
        high = np.tile(np.minimum(self.reach, 0.5), (d, 1))
        np.fill_diagonal(high, self.reach)
        possible = np.flatnonzero(np.diag(low) <= np.diag(high))
        nodes = Nodes(low, high, np.arange(d), np.tile(self.polytope.basis, (d, 1)), np.full(d, -np.inf))
        return tightened(nodes[possible])

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Pricing:
        """See Pricer.prove. Atoms returned are the relaxations' solutions of reduced cost below -target."""
        p, d = self.polytope, self.polytope.inputs
        rounding = ROUNDING * (1.0 + float(np.abs(prices).max()))
        goal = -target + rounding
        queue = Queue(self.roots(), max(64, BATCH_ENTRIES // p.low.size))
        # What was set aside so far costs at least this. Boxes are trimmed by the goal, so it is never more.
        closed = goal
        batches = 0
        while queue.heap:
            if time.monotonic() > deadline:
                break
            nodes = queue.worst()
            self.visited += len(nodes)
            slope, intercept = chords(nodes.low, nodes.high)
            cost = np.zeros((len(nodes), p.low.size))
            cost[:, :d] = slope - prices
            constant = intercept.sum(axis=1)
            programmes = replace(p.programmes(cost, nodes.low, nodes.high), basis=nodes.basis)
            solved = solve(programmes, goal - constant)
            bound = np.maximum(solved.bound + constant, nodes.bound)
            atoms = np.maximum(solved.x[:, :d], 0.0)
            found = self._improving(atoms[solved.optimal], prices, -target - rounding, batches)
            batches += 1
            inside = np.flatnonzero(bound < goal)
            optimal, v = solved.optimal[inside], atoms[inside]
            nodes = Nodes(
                nodes.low[inside], nodes.high[inside], nodes.largest[inside], solved.basis[inside], bound[inside]
            )
            nodes = self._worthwhile(
                nodes, cost[inside], solved.multipliers[inside], goal - constant[inside] + rounding
            )
            v = np.clip(v, nodes.low, nodes.high)
            slope, intercept = chords(nodes.low, nodes.high)
            error = entropy_terms(v) - slope * v - intercept
            # Where the chords no longer err, cutting cannot help: what the box says is final.
            final = optimal & (error.sum(axis=1) <= rounding)
            closed = min(closed, float(nodes.bound[final].min(initial=np.inf)))
            rest = np.flatnonzero(~final)
            queue.push(_halves(nodes[rest], v[rest], error[rest]))
            if found.size:
                return Pricing(min(closed, queue.bound) - rounding, found)
        return Pricing(min(closed, queue.bound) - rounding, np.empty((0, d)))

    def _improving(self, atoms: FloatArray, prices: FloatArray, below: float, batch: int) -> FloatArray:
        """Vertices of reduced cost below what is to be proved, near the best of these atoms."""
        cost = reduced_costs(atoms, prices)
        first = np.argsort(cost)[:POLISHED]
        if not first.size or (cost[first[0]] >= below and batch % POLISH_EVERY):
            return np.empty((0, atoms.shape[1]))
        better = self.polish(atoms[first], prices)
        return better[reduced_costs(better, prices) < below]

    def _worthwhile(self, nodes: Nodes, cost: FloatArray, multipliers: FloatArray, goal: FloatArray) -> Nodes:
        """The boxes without the parts where the relaxation alone exceeds the goal.

        Moving v_j away from the bound that its reduced cost d_j prefers costs |d_j| per unit.
        """
        p, d = self.polytope, self.polytope.inputs
        box = p.programmes(cost, nodes.low, nodes.high)
        reduced = cost - multipliers @ p.matrix
        value = multipliers @ p.rhs + np.minimum(reduced * box.low, reduced * box.high).sum(axis=1)
        reduced = reduced[:, :d]
        step = np.maximum(goal - value, 0.0)[:, None] / np.maximum(np.abs(reduced), 1e-12)
        high = np.where(reduced > 0, np.minimum(nodes.high, nodes.low + step), nodes.high)
        low = np.where(reduced < 0, np.maximum(nodes.low, nodes.high - step), nodes.low)
        return Nodes(low, high, nodes.largest, nodes.basis, nodes.bound)


def _halves(nodes: Nodes, v: FloatArray, error: FloatArray) -> Nodes:
    """Both halves of the boxes, cut where the chord errs most."""
    rows = np.arange(len(nodes))
    at = np.argmax(error * v, axis=1)
    left, right = nodes.low[rows, at], nodes.high[rows, at]
    # Halfway between the relaxation's solution and the box's middle: fewer boxes than at either end.
    cut = 0.5 * v[rows, at] + 0.25 * (left + right)
    lower_high, upper_low = nodes.high.copy(), nodes.low.copy()
    lower_high[rows, at] = cut
    upper_low[rows, at] = cut
    return tightened(Nodes.joined([replace(nodes, high=lower_high), replace(nodes, low=upper_low)]))
