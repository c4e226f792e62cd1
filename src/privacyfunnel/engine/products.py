r"""Boxes on the image, bounded by products of rows: how a square that is to be small is proved not to exceed something.

Let every atom keep the rows :math:`a_i \cdot w \ge 0`, where w is v itself, or v and a floor t under LDP
(:math:`t \le L_s\cdot v \le e^{\varepsilon} t`, which takes far fewer rows). Write what is to be bounded as a quadratic
form, :math:`w^\top D w`; linear terms are multiplied by :math:`1 = \sum v`. For any :math:`N \ge 0`, products of rows
being at least 0,

.. math:: w^\top D w \;\le\; w^\top \Bigl(D + \sum_{i \le j} N_{ij}\, \tfrac12 (a_i a_j^\top + a_j a_i^\top)\Bigr) w
   \;\le\; \delta,

where δ is the largest entry of that matrix: the entries of :math:`v v^\top` are weights that sum to 1. (Entries that
meet t must be at most 0.) The best N is a linear programme whose columns, the products, are brought in as they are
needed; its dual values X stand for :math:`w w^\top`. A box :math:`l \le T v \le h` adds two rows for every entry of the
image, and its products with them. Boxes are cut where X is farthest from being a square; under LDP the first ones
divide the range of the floor.

Entropy in the cost, weighted by β, is concave: on a box :math:`t \ln t \le \text{chord} - k (t - l)(h - t)`, which is a
quadratic form as well (docs/theory.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.best_first import Boxes, Cut
from privacyfunnel.engine.curved import Curved
from privacyfunnel.engine.objective import chords
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.product_programme import BestProducts, Handed, Largest, Missing, ProductProgramme

FLOORS = 6  # parts of the floor's range: a box with a narrow one bounds as well as under LIP
THIN = 1e-7  # a range shorter than this is not cut
SLOP = 1e-13  # ranges are rounded outwards by this
EMPTY = 1e-12  # a box whose ends cross by more than this holds nothing
TINIEST = 1e-300  # what a logarithm is taken of in place of 0
SLIVER = 1e-9  # what a curvature is made smaller by, so that rounding does not make it too large
MIDDLE = 0.1  # of a range: a cut is at least this far from its ends


@dataclass(frozen=True, slots=True, eq=False)
class Cone:
    """Rows a·w >= 0 that every atom keeps, w = (v, t) with at most one t, and the largest t there is."""

    rows: FloatArray  # (r, d) or (r, d + 1)
    image: FloatArray  # T, (values, d)
    floors: tuple[float, float]  # between which t lies; where there is none, anything

    @property
    def watched(self) -> FloatArray:
        """What boxes are about: the image, and t where there is one."""
        wider = self.rows.shape[1] - self.image.shape[1]
        watched = np.pad(self.image, ((0, wider), (0, wider)))
        watched[len(self.image) :, self.image.shape[1] :] = 1.0
        return watched


def cone_of(problem: Problem, beyond: float = 0.0) -> Cone:
    """The rows of a problem, with a floor where each event is compared with each.

    For any weights w that sum to 1 the floor is at most w·Lv, and e^ε times it at least that; `beyond` is the most that
    an atom gives to inputs at which all L are 0.
    """
    image = (problem.objective.value == np.arange(problem.objective.values)[:, None]).astype(np.float64)
    L = problem.rows.each_other
    if L is None:
        return Cone(problem.inequalities, image, (0.0, 0.0))
    floor = np.ones((len(L), 1))
    rows = np.concatenate([np.hstack([L, -floor]), np.hstack([-L, problem.loud * floor])])
    average = L.mean(axis=0)
    if problem.rows.share.shape[1] == len(L):
        average = problem.rows.share[0] @ L
    least = float(average[average > 0].min()) * (1 - beyond)
    floors = (least / problem.loud * (1 - SLOP), float(average.max()) * (1 + SLOP))
    return Cone(rows / np.abs(rows).max(axis=1, keepdims=True), image, floors)


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Ranges of the image, and of t where there is one; rows besides; and products to begin with."""

    low: FloatArray
    high: FloatArray
    rows: FloatArray
    first: Handed

    def tightened(self, values: int) -> Box | None:
        """The same box, shrunk since the image sums to 1; None if it is empty."""
        low, high = self.low[:values], self.high[:values]
        for _ in range(2):
            high = np.minimum(high, 1.0 - (low.sum() - low) + SLOP)
            low = np.maximum(low, 1.0 - (high.sum() - high) - SLOP)
        if (low > high + EMPTY).any():
            return None
        low, high = np.clip(low, 0.0, 1.0), np.clip(np.maximum(low, high), 0.0, 1.0)
        ends = np.append(low, self.low[values:]), np.append(high, self.high[values:])
        return replace(self, low=ends[0], high=ends[1])


class Products:
    """Boxes one at a time, each by a linear programme over products of rows."""

    batch = chunk = 1
    polish_every = 8
    corners = False
    gathers = 0.0

    def __init__(
        self,
        cone: Cone,
        objective: Curved,
        reach: FloatArray,
        missing: Missing | None = None,
        best_products: type[BestProducts] = ProductProgramme,
    ) -> None:
        self.cone, self.objective, self._reach, self._missing = cone, objective, reach, missing
        self._watched = cone.watched
        self._programme = best_products(cone.rows.shape[1], cone.image.shape[1], cone.floors[1])

    def roots(self, prices: FloatArray, deadline: float) -> Boxes:
        """All there is, with the floor's range in parts."""
        first = Handed.nothing(self.cone.rows.shape[1])
        low, high = np.zeros(self._reach.size), self._reach
        if len(self._watched) == self._reach.size:
            boxes = [Box(low, high, first.one, first)]
        else:
            edges = np.geomspace(*self.cone.floors, FLOORS + 1)
            boxes = [Box(np.append(low, a), np.append(high, b), first.one, first) for a, b in pairwise(edges)]
        shrunk = (box.tightened(self._reach.size) for box in boxes)
        return _queued([box for box in shrunk if box is not None], -np.inf)

    def cut(self, boxes: Boxes, prices: FloatArray, goal: float, deadline: float) -> Cut:
        """Bound the box, and cut it where X is farthest from a square."""
        box: Box = boxes.parts[0][0]
        none = np.empty((0, prices.size))
        D = self._form(box, prices)
        solved = self._programme.solve(D, self._rows(box), box.first, -goal, self._missing, deadline)
        bound = max(-solved.largest, float(boxes.bound[0]))
        if bound >= goal:
            return Cut(_queued([], bound), goal, none)
        halves, atom = self._halves(self._handed_on(box, solved), solved.handed.second, D)
        if halves is None:
            return Cut(_queued([], bound), bound, none)
        return Cut(_queued(halves, bound), goal, none if atom is None else atom[None, :])

    def _rows(self, box: Box) -> FloatArray:
        """The cone's rows and those of the box, and what others it has."""
        one = np.arange(self._watched.shape[1]) < self.cone.image.shape[1]  # Σ v = 1
        above, below = self._watched - box.low[:, None] * one, box.high[:, None] * one - self._watched
        return np.concatenate([self.cone.rows, above, below, box.rows])

    def _handed_on(self, box: Box, solved: Largest) -> Box:
        """The box with the products that counted, and of further rows those that are in them."""
        further = solved.rows[len(self.cone.rows) + 2 * len(self._watched) :]
        held = {row.tobytes() for row in solved.handed.other} if len(further) else set()
        return replace(box, rows=further[[row.tobytes() in held for row in further]], first=solved.handed)

    def _form(self, box: Box, prices: FloatArray) -> FloatArray:
        """D, with wᵀDw at least ‖Bᵀv‖² + λ·v − βH(Tv) in the box."""
        B, T = self.objective.square, self.cone.image
        d = len(B)
        linear, form = prices.copy(), B @ B.T
        if self.objective.weight:
            slope, intercept, k = self._chords(box)
            linear -= slope @ T + intercept.sum()
            low, high = box.low[: len(T), None], box.high[: len(T), None]
            form = form - _products(T - low, high - T, k)
        D = np.zeros((self.cone.rows.shape[1],) * 2)
        D[:d, :d] = form + 0.5 * (linear[:, None] + linear[None, :])
        return D

    def _left_out(self, box: Box, t: FloatArray) -> FloatArray:
        """By how much the entropy's terms exceed the forms that stand for them."""
        if not self.objective.weight:
            return np.zeros_like(t)
        slope, intercept, k = self._chords(box)
        low, high = box.low[: t.size], box.high[: t.size]
        form = slope * t + intercept + k * (t - low) * (high - t)
        return np.asarray(self.objective.terms(t) - form)

    def _chords(self, box: Box) -> tuple[FloatArray, FloatArray, FloatArray]:
        """β h(t) >= slope t + intercept + k (t − l)(h − t) on the box."""
        low, high = box.low[: len(self.cone.image)], box.high[: len(self.cone.image)]
        slope, intercept = chords(self.objective, low, high)
        width = high - low
        rise = self.objective.weight * (1.0 + np.log(np.maximum(high, TINIEST))) + slope
        k = np.where(width > THIN, np.maximum(rise, 0.0) / np.maximum(width, THIN), 0.0)
        return slope, intercept, k * (1 - SLIVER)

    def _halves(self, box: Box, second: FloatArray | None, D: FloatArray) -> tuple[list[Box] | None, FloatArray | None]:
        """Two boxes that hold the box, None where it is a point already; and the atom that X stands for."""
        T, atom = self.cone.image, None
        values, d = T.shape
        width = (box.high - box.low)[:values]
        if second is None:
            at, error = 0.5 * (box.low + box.high), width
        else:
            X = second[:d, :d]
            v = X.sum(axis=1)
            at, error = T @ v, T @ (D[:d, :d] * (X - np.outer(v, v))).sum(axis=1)
            if v.min() >= -EMPTY and v.sum() > 0.5:
                atom = np.maximum(v, 0.0) / np.maximum(v, 0.0).sum()
            error = error + self._left_out(box, np.clip(at, box.low[:values], box.high[:values]))
        x = int(np.argmax(np.where(width > THIN, error, -np.inf)))
        if width[x] <= THIN:
            return None, atom
        low, high = box.low[x], box.high[x]
        middle = np.clip(0.5 * at[x] + 0.25 * (low + high), low + MIDDLE * width[x], high - MIDDLE * width[x])
        above, below = box.low.copy(), box.high.copy()
        above[x] = below[x] = middle
        both = (replace(box, high=below).tightened(values), replace(box, low=above).tightened(values))
        return [half for half in both if half is not None], atom


def _products(one: FloatArray, other: FloatArray, weights: FloatArray) -> FloatArray:
    """Σ_i weights_i ½ (a_i b_iᵀ + b_i a_iᵀ)."""
    half = (one * weights[:, None]).T @ other
    return np.asarray(0.5 * (half + half.T))


def _queued(boxes: list[Box], bound: float) -> Boxes:
    """Boxes as they wait."""
    objects = np.empty(len(boxes), dtype=object)
    objects[:] = boxes
    return Boxes(np.full(len(boxes), bound), (objects,))
