r"""Boxes on the image T v, bounded by chords.

On a box :math:`l \le t \le u` of the image the concave h lies above its chord :math:`\sigma t + \beta`, so

.. math:: \sum_x h(t_x) - \lambda\cdot v \;\ge\; \sum_x \beta_x + \min_v\ (\sigma \circ T - \lambda)\cdot v .

Two ways to bound the linear minimum, and each has its way to cut:

- `BoxedChords` minimises over atoms within the box, by small programmes that carry on from the basis of the box they
  came from. Vertices have few non-zero entries, so the largest entry is not small: the first boxes ask which input is
  the largest. Used where every input is a value.
- `ImageChords` minimises over the whole polytope, which any oracle can. A vertex v comes with the bound; where its
  image lies in the box, cutting the box there makes the chord exact at that vertex, and there are finitely many.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.clock import now
from privacyfunnel.engine.objective import Objective, chords, image
from privacyfunnel.engine.oracles.oracle import UNIT, BoxCosts, BoxOracle, Oracle
from privacyfunnel.engine.proofs.branch_and_bound import Boxes, Branching, clip_to_simplex
from privacyfunnel.engine.settings import SETTINGS


class BoxedChords:
    """Chords over boxes of entries; a box is low, high, the input that is the largest, and where its programme stands.

    With `resumes`, a box whose programme was stopped early goes on where it was, in place of being cut.
    """

    finds_vertices = False
    gather_factor = 0.0

    def __init__(self, oracle: BoxOracle, objective: Objective, *, resumes: bool = False) -> None:
        self.oracle, self.objective, self._resumes = oracle, objective, resumes
        self.batch = self.chunk = oracle.batch
        self.polish_every = SETTINGS.proofs.credal_polish if resumes else SETTINGS.proofs.chord_polish
        self._reach: FloatArray | None = None

    def _compute_reach(self, deadline: float) -> FloatArray:
        """The largest entries. They take a programme per input, so they wait for the first proof that has time."""
        if self._reach is not None:
            return self._reach
        reach = self.oracle.reach(deadline)
        if now() < deadline:
            self._reach = reach
        return reach

    def roots(self, prices: FloatArray, deadline: float) -> Boxes:
        """One box per input: that input is the largest entry."""
        reach = self._compute_reach(deadline)
        return largest_entry_boxes(reach, self.oracle.support, *self.oracle.box_states(prices.size))

    def cut(self, boxes: Boxes, prices: FloatArray, goal: float, deadline: float) -> Branching:
        """Bound by the programmes of the boxes; shrink those that stay, and cut them where the chord errs most."""
        rounding = SETTINGS.tolerance.near * (1.0 + float(np.abs(prices).max()))
        low, high, largest, *states = boxes.parts
        slope, constant = self._underestimator(low, high)
        programmes = BoxCosts(slope - prices, low, high, tuple(states), goal - constant)
        found = self.oracle.minimise_in_boxes(programmes, deadline)
        bound = np.maximum(found.lower + constant, boxes.bound)
        atoms = np.maximum(found.v, 0.0)
        inside = np.flatnonzero(bound < goal)
        room = (goal - constant + rounding - found.value)[inside]
        low, high = trim_boxes(low[inside], high[inside], found.reduced[inside], room)
        v = np.clip(atoms[inside], low, high)
        error, optimal = self._errors(v, low, high), found.optimal[inside]
        # Where the chords are exact, cutting cannot help: the bound of the box is final once its programme is solved.
        # Boxes are trimmed by the goal, so what was set aside is certain to that only.
        exact: BoolArray = error.sum(axis=1) <= rounding
        closed = min(goal, float(bound[inside][exact & optimal].min(initial=np.inf)))
        left = Boxes(bound[inside], (low, high, largest[inside], *(state[inside] for state in found.states)))
        waiting = exact & ~optimal if self._resumes else np.zeros_like(exact)
        rest = np.flatnonzero(~(exact & optimal) & ~waiting)
        going = halve_boxes(left[rest], v[rest], error[rest])
        if waiting.any():
            going = Boxes.concatenate([going, left[np.flatnonzero(waiting)]])
        return Branching(tighten_boxes(going), closed, atoms[found.optimal])

    def _underestimator(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes and a constant: linear on each box, and no more than the cost of any atom there."""
        slope, intercept = chords(self.objective, low, high)
        return slope, intercept.sum(axis=1)

    def _errors(self, v: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """By how much that lies below the cost of v, by entry."""
        slope, intercept = chords(self.objective, low, high)
        return np.asarray(self.objective.terms(v) - slope * v - intercept)


def largest_entry_boxes(reach: FloatArray, support: int, *parts: NDArray[Any]) -> Boxes:
    """One box per input, which is the largest of at most `support` entries; `parts` are whatever else it has."""
    d = reach.size
    low, high = np.zeros((d, d)), np.tile(np.minimum(reach, 0.5), (d, 1))
    np.fill_diagonal(low, 1.0 / support)
    np.fill_diagonal(high, reach)
    possible = np.flatnonzero(np.diag(low) <= np.diag(high))
    return tighten_boxes(Boxes(np.full(d, -np.inf), (low, high, np.arange(d), *parts))[possible])


def trim_boxes(
    low: FloatArray, high: FloatArray, reduced: FloatArray, room: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The boxes without the parts where the relaxation alone exceeds the goal, which is `room` above its value.

    Moving v_j away from the bound that its reduced cost d_j prefers costs |d_j| per unit.
    """
    step = np.maximum(room, 0.0)[:, None] / np.maximum(np.abs(reduced), SETTINGS.tolerance.near)
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
        low, high = clip_to_simplex(low, high)
    alive = np.flatnonzero((low <= high + SETTINGS.tolerance.near).all(axis=1))
    tight = Boxes(boxes.bound, (low, np.maximum(low, high), largest, *basis))
    return tight if alive.size == len(boxes) else tight[alive]


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
        if now() < deadline:
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
        splits = (bound < goal) & (excess[row, x] > SETTINGS.tolerance.rounding)
        closed = float(bound[~splits].min(initial=np.inf))
        row, x = row[splits], x[splits]
        return Branching(self._halve(low, high, inside[row, x], row, x, bound), closed, found.atoms)

    def _slopes(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """The slope of the chord of h on [low, high]; on a very short interval, where that is noise, of the tangent."""
        width, h = high - low, self.objective.terms
        tangent = self.objective.slopes((low + high) / 2, SETTINGS.tolerance.rounding) - 1.0
        chord = np.divide(h(high) - h(low), width, out=tangent.copy(), where=width > SETTINGS.tolerance.solved)
        return np.where(width > SETTINGS.tolerance.solved, chord, tangent)

    def _halve(
        self, low: FloatArray, high: FloatArray, at: FloatArray, row: IntArray, x: IntArray, bound: FloatArray
    ) -> Boxes:
        """Both sides of these boxes, cut at that place; those that hold nothing are dropped."""
        k = np.arange(row.size)
        parent = np.concatenate([row, row])
        low, high = low[parent], high[parent]
        high[k, x] = at
        low[row.size + k, x] = at
        low, high = clip_to_simplex(low, high)
        holds = (low <= high + SETTINGS.tolerance.rounding).all(axis=1)
        low, high = low[holds], high[holds]
        return Boxes(bound[parent[holds]], (low, np.maximum(low, high)))


class SquaredChords(BoxedChords):
    r"""BoxedChords with a square in the cost, for hundreds of inputs and few secrets.

    Write :math:`D = B B^\top`, and let d be any numbers with :math:`\tfrac12 (d_j + d_k) \ge D_{jk}` off the diagonal.
    Then :math:`E_{jk} = \tfrac12 (d_j + d_k) - D_{jk}`, 0 on the diagonal, is nowhere negative, and since
    :math:`\sum v = 1`

    .. math:: v^\top D v = \sum_j (D_{jj} - d_j) v_j^2 + d\cdot v - v^\top E v .

    On a box :math:`l \le v \le u` squares lie below their chords, :math:`v_j^2 \le (l_j + u_j) v_j - l_j u_j`, and
    :math:`v^\top E v \ge 2 (E l)\cdot v - l^\top E l`, as :math:`v - l \ge 0`; where :math:`D_{jj} < d_j`, a tangent
    replaces the chord. So the square is bounded by a linear function.

    Where a protocol can be good, M is nearly the diagonal of the prior and D nearly the unit matrix: then E is small,
    and an atom that costs little has one large entry. The first boxes ask which.
    """

    gather_factor = SETTINGS.proofs.squared_gather

    def __init__(self, oracle: BoxOracle, objective: Objective, reach: FloatArray | None = None) -> None:
        super().__init__(oracle, objective)
        self._reach = reach
        D = objective.gram_matrix
        assert D is not None
        self._even = off_diagonal_bound(D)
        self._less = 0.5 * (self._even[:, None] + self._even) - D
        np.fill_diagonal(self._less, 0.0)
        own = np.diag(D) - self._even
        self._own, self._short = np.maximum(own, 0.0), np.maximum(-own, 0.0)

    def _underestimator(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See BoxedChords."""
        slope, constant = super()._underestimator(low, high)
        at_low, middle = low @ self._less, 0.5 * (low + high)
        slope = slope - self._own * (low + high) + self._short * 2 * middle - self._even + 2 * at_low
        constant = constant + (low * high) @ self._own - middle**2 @ self._short
        return slope, constant - (at_low * low).sum(axis=1)

    def _errors(self, v: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """See BoxedChords."""
        beyond = v - low
        square = self._own * beyond * (high - v) + self._short * (v - 0.5 * (low + high)) ** 2
        square = square + beyond * (beyond @ self._less)
        return super()._errors(v, low, high) + square


def off_diagonal_bound(D: FloatArray) -> FloatArray:
    """Small d with (d_j + d_k) / 2 >= D_jk for all j ≠ k.

    The largest entry beside the diagonal will do; and if d will, so does its mean with max_k (2 D_jk − d_k), which is
    no larger.
    """
    off = D.copy()
    np.fill_diagonal(off, -np.inf)
    d = off.max(axis=1)
    for _ in range(SETTINGS.proofs.halvings):
        d = 0.5 * (d + (2 * off - d).max(axis=1))
    return np.asarray(d + max(0.0, float((off - 0.5 * (d[:, None] + d)).max())))
