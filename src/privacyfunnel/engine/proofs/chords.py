r"""Boxes on the image T v, bounded by chords.

On a box :math:`l \le t \le u` of the image the concave h lies above its chord :math:`\sigma t + \beta`, so

.. math:: \sum_x h(t_x) - \lambda\cdot v \;\ge\; \sum_x \beta_x + \min_v\ (\sigma \circ T - \lambda)\cdot v .

Two ways to bound the linear minimum, and each has its way to cut:

- `BoxedChords` minimises over atoms within the box, by small programmes that carry on from the basis of the box they
  came from. Vertices have few non-zero entries, so the largest entry is not small: the first boxes ask which input is
  the largest. Used where every input is a value.
- `OpenChords` minimises over the whole polytope, which any oracle can. A corner v comes with the bound; where its image
  lies in the box, cutting the box there makes the chord exact at that corner, and there are finitely many corners.
"""

import time
from dataclasses import replace

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.lp.batched_simplex import solve
from privacyfunnel.engine.objective import Objective, chords, image
from privacyfunnel.engine.oracles.oracle import UNIT, Oracle
from privacyfunnel.engine.oracles.polytope import Polytope
from privacyfunnel.engine.proofs.branch_and_bound import Boxes, Branching
from privacyfunnel.engine.settings import SETTINGS


class BoxedChords:
    """Chords over boxes of entries; a box is low, high, the input that is the largest, and a basis to start from."""

    polish_every = SETTINGS.proofs.chord_polish
    finds_vertices = False
    gather_factor = 0.0

    def __init__(self, polytope: Polytope, objective: Objective) -> None:
        self.polytope, self.objective = polytope, objective
        self.batch = self.chunk = polytope.batch
        self._reach: FloatArray | None = None

    def _compute_reach(self, deadline: float) -> FloatArray:
        """See Polytope.reach. It takes a programme per input, so it waits for the first proof that has time for it."""
        if self._reach is not None:
            return self._reach
        reach = self.polytope.reach(deadline)
        if time.monotonic() < deadline:
            self._reach = reach
        return reach

    def roots(self, prices: FloatArray, deadline: float) -> Boxes:
        """One box per input: that input is the largest entry."""
        d, reach = self.polytope.inputs, self._compute_reach(deadline)
        low = np.zeros((d, d))
        np.fill_diagonal(low, 1.0 / self.polytope.support)
        high = np.tile(np.minimum(reach, 0.5), (d, 1))
        np.fill_diagonal(high, reach)
        possible = np.flatnonzero(np.diag(low) <= np.diag(high))
        basis = np.tile(self.polytope.basis, (d, 1))
        return tighten_boxes(Boxes(np.full(d, -np.inf), (low, high, np.arange(d), basis))[possible])

    def cut(self, boxes: Boxes, prices: FloatArray, goal: float, deadline: float) -> Branching:
        """Bound by the programmes of the boxes; shrink those that stay, and cut them where the chord errs most."""
        p, d = self.polytope, self.polytope.inputs
        rounding = SETTINGS.tolerance.bound * (1.0 + float(np.abs(prices).max()))
        low, high, largest, basis = boxes.parts
        slope, constant = self._underestimator(low, high)
        cost = np.zeros((len(boxes), p.low.size))
        cost[:, :d] = slope - prices
        solved = solve(replace(p.programmes(cost, low, high), basis=basis), goal - constant, deadline)
        bound = np.maximum(solved.bound + constant, boxes.bound)
        atoms = np.maximum(solved.x[:, :d], 0.0)
        inside = np.flatnonzero(bound < goal)
        optimal, v = solved.optimal[inside], atoms[inside]
        low, high = self._trim(
            low[inside], high[inside], cost[inside], solved.multipliers[inside], goal - constant[inside] + rounding
        )
        v = np.clip(v, low, high)
        error = self._errors(v, low, high)
        # Where the chords no longer err, cutting cannot help: what the box says is final. Boxes are trimmed by the
        # goal, so what was set aside costs no more than that for certain.
        final: BoolArray = optimal & (error.sum(axis=1) <= rounding)
        closed = min(goal, float(bound[inside][final].min(initial=np.inf)))
        rest = np.flatnonzero(~final)
        left = Boxes(bound[inside], (low, high, largest[inside], solved.basis[inside]))[rest]
        return Branching(tighten_boxes(halve_boxes(left, v[rest], error[rest])), closed, atoms[solved.optimal])

    def _underestimator(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes and a constant: what is linear on each box, and no more than what an atom there costs."""
        slope, intercept = chords(self.objective, low, high)
        return slope, intercept.sum(axis=1)

    def _errors(self, v: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """By how much that lies below the cost of v, by entry."""
        slope, intercept = chords(self.objective, low, high)
        return np.asarray(self.objective.terms(v) - slope * v - intercept)

    def _trim(
        self, low: FloatArray, high: FloatArray, cost: FloatArray, multipliers: FloatArray, goal: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """See `trimmed`: the relaxation here is a programme with multipliers."""
        p, d = self.polytope, self.polytope.inputs
        box = p.programmes(cost, low, high)
        reduced = cost - multipliers @ p.matrix
        value = multipliers @ p.rhs + np.minimum(reduced * box.low, reduced * box.high).sum(axis=1)
        return trim_boxes(low, high, reduced[:, :d], goal - value)


def trim_boxes(
    low: FloatArray, high: FloatArray, reduced: FloatArray, room: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The boxes without the parts where the relaxation alone exceeds the goal, which is `room` above its value.

    Moving v_j away from the bound that its reduced cost d_j prefers costs |d_j| per unit.
    """
    step = np.maximum(room, 0.0)[:, None] / np.maximum(np.abs(reduced), SETTINGS.tolerance.flat)
    most = np.where(reduced > 0, np.minimum(high, low + step), high)
    return np.where(reduced < 0, np.maximum(low, high - step), low), most


def tighten_boxes(boxes: Boxes) -> Boxes:
    """The same boxes, shrunk by Σ v = 1 and by which entry is the largest; empty ones are dropped."""
    low, high, largest, *basis = boxes.parts
    low, rows = low.copy(), np.arange(len(boxes))
    for _ in range(2):
        top = high[rows, largest]
        high = np.minimum(high, top[:, None])
        low[rows, largest] = np.maximum(low[rows, largest], low.max(axis=1))
        high, low = _clip_to_simplex(low, high)
    alive = np.flatnonzero((low <= high + SETTINGS.tolerance.empty).all(axis=1))
    tight = Boxes(boxes.bound, (low, np.maximum(low, high), largest, *basis))
    return tight if alive.size == len(boxes) else tight[alive]


def _clip_to_simplex(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Upper and lower ends, shrunk since the other entries' ends leave no more and no less; rounded outwards."""
    high = np.minimum(high, 1.0 - (low.sum(axis=1, keepdims=True) - low) + SETTINGS.tolerance.outward)
    low = np.maximum(low, 1.0 - (high.sum(axis=1, keepdims=True) - high) - SETTINGS.tolerance.outward)
    return high, low


def halve_boxes(boxes: Boxes, v: FloatArray, error: FloatArray) -> Boxes:
    """Both halves of the boxes, cut where the chord errs most."""
    low, high, largest, *basis = boxes.parts
    rows = np.arange(len(boxes))
    at = np.argmax(error * v, axis=1)
    left, right = low[rows, at], high[rows, at]
    # Halfway between the relaxation's solution and the box's middle: fewer boxes than at either end.
    middle = 0.5 * v[rows, at] + 0.25 * (left + right)
    lower_high, upper_low = high.copy(), low.copy()
    lower_high[rows, at] = middle
    upper_low[rows, at] = middle
    one, other = (low, lower_high, largest, *basis), (upper_low, high, largest, *basis)
    return Boxes.concatenate([Boxes(boxes.bound, one), Boxes(boxes.bound, other)])


class ImageChords:
    """Chords over boxes of the image; a box is low and high."""

    polish_every = 0
    finds_vertices = True
    gather_factor = 0.0

    def __init__(self, oracle: Oracle, objective: Objective) -> None:
        self.oracle, self.objective = oracle, objective
        self.batch, self.chunk = oracle.batch, max(1, oracle.batch // 8)
        self._found: tuple[FloatArray, FloatArray] | None = None

    def _ranges(self, deadline: float) -> tuple[FloatArray, FloatArray]:
        """The least and the largest entry of any atom's image, rounded outward; found anew where time was up before."""
        if self._found is not None:
            return self._found
        each = (self.objective.image_index == np.arange(self.objective.image_size)[:, None]).astype(np.float64)
        least, most = self.oracle.minimise(each, deadline).lower, -self.oracle.minimise(-each, deadline).lower
        ranges = np.maximum(least, 0.0), np.minimum(most, 1.0)
        if time.monotonic() < deadline:
            self._found = ranges
        return ranges

    def roots(self, prices: FloatArray, deadline: float) -> Boxes:
        """All there is."""
        low, high = self._ranges(deadline)
        return Boxes(np.array([-np.inf]), (low[None], high[None]))

    def cut(self, boxes: Boxes, prices: FloatArray, goal: float, deadline: float) -> Branching:
        """Bound by the oracle's minima under the chords; cut where the chord errs most at the corner."""
        h, (low, high) = self.objective.terms, boxes.parts
        slopes = self._slopes(low, high)
        found = self.oracle.minimise(slopes[:, self.objective.image_index] - prices, deadline)
        ends = np.minimum(h(low) - slopes * low, h(high) - slopes * high)
        # |h(t)| and |σ t| stay below 1 at the ends of a chord; at each there are a handful of roundings.
        margin = 16 * UNIT * (low.shape[1] + np.abs(slopes * high).sum(axis=1))
        bound = np.maximum(found.lower + ends.sum(axis=1) - margin, boxes.bound)
        inside = np.clip(image(self.objective, found.atoms), low, high)
        excess = h(inside) - h(low) - slopes * (inside - low)
        x, row = excess.argmax(axis=1), np.arange(len(boxes))
        splits = (bound < goal) & (excess[row, x] > SETTINGS.tolerance.exact_chord)
        closed = float(bound[~splits].min(initial=np.inf))
        row, x = row[splits], x[splits]
        return Branching(self._halve(low, high, inside[row, x], row, x, bound), closed, found.atoms)

    def _slopes(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """The slope of the chord of h on [low, high]; on a very short interval, where that is noise, of the tangent."""
        width, h = high - low, self.objective.terms
        tangent = self.objective.slopes((low + high) / 2, SETTINGS.tolerance.exact_chord) - 1.0
        chord = np.divide(h(high) - h(low), width, out=tangent.copy(), where=width > SETTINGS.tolerance.thin)
        return np.where(width > SETTINGS.tolerance.thin, chord, tangent)

    def _halve(
        self, low: FloatArray, high: FloatArray, at: FloatArray, row: IntArray, x: IntArray, bound: FloatArray
    ) -> Boxes:
        """Both sides of these boxes, cut at that place; those that hold nothing are dropped."""
        k = np.arange(row.size)
        parent = np.concatenate([row, row])
        low, high = low[parent], high[parent]
        high[k, x] = at
        low[row.size + k, x] = at
        high, low = _clip_to_simplex(low, high)
        holds = (low <= high + SETTINGS.tolerance.exact_chord).all(axis=1)
        low, high = low[holds], high[holds]
        return Boxes(bound[parent[holds]], (low, np.maximum(low, high)))
