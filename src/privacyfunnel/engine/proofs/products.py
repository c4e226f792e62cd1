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
image, and its products with them. Boxes are cut where X is farthest from being a square.

Entropy in the cost, weighted by β, is concave: on a box :math:`t \ln t \le \text{chord} - k (t - l)(h - t)`, which is a
quadratic form as well (docs/theory.md).

Every pair of members P of A and R of B of credal sets is a constraint :math:`(\beta R - \alpha P) / p \cdot v \ge 0`
that atoms keep (oracles/credal_constraints.py), far too many to multiply them all. Since X stands for
:math:`w w^\top`, :math:`X a_i` stands for a multiple of w for every constraint :math:`a_i`: where the worst members
show that :math:`X a_i` is infeasible, the product of their constraint and :math:`a_i` is added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.clock import now
from privacyfunnel.engine.lp.highs import INF, PRIMAL, Basis, Programme
from privacyfunnel.engine.objective import Objective, chords
from privacyfunnel.engine.oracles.credal_constraints import CredalConstraints
from privacyfunnel.engine.oracles.oracle import UNIT
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.proofs.branch_and_bound import Boxes, Branching, pack_boxes, tighten_box
from privacyfunnel.engine.settings import SETTINGS

ProductCuts = Callable[[FloatArray, FloatArray], tuple[FloatArray, IntArray]]
"""From X and the rows there are: further rows, and for each the number of a row with which X breaks its product."""


@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """Products to begin with, as pairs of rows; and, where they are known, a basis and a dual matrix X."""

    one: FloatArray  # (k, size)
    other: FloatArray
    basis: Basis | None = None
    second: FloatArray | None = None

    @staticmethod
    def empty(size: int) -> WarmStart:
        """No products."""
        return WarmStart(np.empty((0, size)), np.empty((0, size)))


@dataclass(frozen=True, slots=True, eq=False)
class ProductBound:
    """A proved δ with wᵀDw <= δ, all rows there were in the end, and what the halves of a box may begin with."""

    largest: float
    rows: FloatArray
    warm_start: WarmStart


class ProductProgramme:
    """min δ such that no entry of D + Σ N_ij a_i a_jᵀ exceeds δ, N >= 0; products enter as they are needed."""

    def __init__(self, size: int, inputs: int, largest_floor: float) -> None:
        self._size, self._floor = size, largest_floor
        self._i, self._j = np.triu_indices(size)
        self._weighed = (self._i < inputs) & (self._j < inputs)  # the entries of v vᵀ, as opposed to those that meet t
        self._programme = Programme(simplex_strategy=PRIMAL)

    def solve(
        self,
        D: FloatArray,
        rows: FloatArray,
        first: WarmStart,
        goal: float,
        missing: ProductCuts | None = None,
        deadline: float = np.inf,
    ) -> ProductBound:
        """The least δ that was found; it is not sought below the goal. It holds whatever the solver says."""
        entries = D[self._i, self._j]
        self._begin(entries, goal)
        one, other, second = first.one, first.other, first.second
        S = self._product_entries(one, other)
        self._programme.add_dense_columns(np.zeros(len(S)), S)
        if first.basis is not None:
            self._programme.set_basis(first.basis)
        known = np.zeros((len(rows),) * 2, dtype=bool)
        best = self._upper_bound(entries, np.empty(0), S[:0])
        for number in range(SETTINGS.proofs.product_rounds):
            if second is not None:
                new = find_violated_pairs(rows, second, known, SETTINGS.proofs.products_per_round)
                if missing is not None:
                    more, times = missing(second, rows)
                    new = np.append(new[0], times), np.append(new[1], len(rows) + np.arange(len(more)))
                    rows, known = np.concatenate([rows, more]), np.pad(known, ((0, len(more)),) * 2)
                if number and not new[0].size:
                    break
                known[new] = True
                products = self._product_entries(rows[new[0]], rows[new[1]])
                self._programme.add_dense_columns(np.zeros(len(products)), products)
                S = np.concatenate([S, products])
                one, other = np.concatenate([one, rows[new[0]]]), np.concatenate([other, rows[new[1]]])
            if not self._programme.run_afresh():  # no error: bounds come from the formula
                return ProductBound(best, rows, WarmStart(first.one, first.other))
            before, best = best, min(best, self._upper_bound(entries, np.maximum(self._programme.solution[1:], 0.0), S))
            if best <= goal:
                return ProductBound(best, rows, first)  # nothing of the box is left
            second = self._matrix(-self._programme.multipliers)
            if now() >= deadline or (number and before - best < SETTINGS.proofs.product_gain * (best - goal)):
                break
        basis = self._programme.basis
        held = basis.is_basic
        held[0] = True  # δ itself
        return ProductBound(best, rows, WarmStart(one[held[1:]], other[held[1:]], basis.restrict(held), second))

    def _upper_bound(self, entries: FloatArray, N: FloatArray, S: FloatArray) -> float:
        """The largest entry, by the formula, rounded up; entries above 0 that meet t count with all they can add."""
        total = entries + N @ S
        total = total + 32 * UNIT * (np.abs(entries) + N @ np.abs(S))
        beyond = float(total[~self._weighed].max(initial=0.0))
        return float(total[self._weighed].max()) + beyond * (2 * self._floor + self._floor**2)

    def _product_entries(self, one: FloatArray, other: FloatArray) -> FloatArray:
        return np.asarray(0.5 * (one[:, self._i] * other[:, self._j] + other[:, self._i] * one[:, self._j]))

    def _matrix(self, dual: FloatArray) -> FloatArray:
        X = np.zeros((self._size,) * 2)
        X[self._i, self._j] = dual / 2
        return X + X.T

    def _begin(self, entries: FloatArray, goal: float) -> None:
        """δ alone: at least the goal, so that a box that is empty has a solution too."""
        self._programme.clear()
        self._programme.add_rows(np.full(entries.size, -INF), -entries)
        at = np.flatnonzero(self._weighed)
        self._programme.add_columns(
            np.ones(1),
            np.zeros(1, dtype=np.int64),
            at,
            -np.ones(at.size),
            low=np.array([goal - abs(goal) * SETTINGS.proofs.product_floor]),
        )


def find_violated_pairs(
    rows: FloatArray, second: FloatArray, known: BoolArray, count: int
) -> tuple[IntArray, IntArray]:
    """Pairs of rows whose product X takes for less than 0, at most so many, the most broken ones."""
    held = np.flatnonzero(second.any(axis=0))
    some = rows[:, held]
    value = np.triu(some @ second[np.ix_(held, held)] @ some.T)
    value[known] = 0.0
    broken = np.flatnonzero(value < -SETTINGS.tolerance.solved)
    order = broken[np.argsort(value.ravel()[broken])[:count]]
    return order // len(rows), order % len(rows)


class CredalProductCuts:
    """The rows of a problem's sets that a dual solution breaks most, each with what it is to be multiplied by."""

    def __init__(self, problem: Problem) -> None:
        self._rules, self._size = CredalConstraints.from_problem(problem), problem.size

    def __call__(self, second: FloatArray, rows: FloatArray) -> tuple[FloatArray, IntArray]:
        """See ProductCuts."""
        d = self._size
        times = (rows @ second)[:, :d] if len(rows) < SETTINGS.proofs.most_credal_cuts else np.empty((0, d))
        some = np.flatnonzero((times > SETTINGS.tolerance.near).any(axis=1))
        worst = self._rules.worst_constraint(times[some])
        by = np.einsum("ij,ij->i", worst, times[some])
        most = [
            i
            for i in np.argsort(by, kind="stable")[: SETTINGS.proofs.credal_cuts_per_round].tolist()
            if by[i] < -SETTINGS.tolerance.violated_credal_product
        ]
        more = np.zeros((len(most), rows.shape[1]))
        more[:, :d] = worst[most]
        return more, some[most]


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintCone:
    """Rows a·w >= 0 that every atom keeps, w = (v, t) with at most one t, and the largest t there is."""

    constraints: FloatArray  # (r, d) or (r, d + 1)
    image: FloatArray  # T, (values, d)
    floors: tuple[float, float]  # between which t lies; where there is none, anything

    @property
    def box_coordinates(self) -> FloatArray:
        """What boxes are about: the image, and t where there is one."""
        wider = self.constraints.shape[1] - self.image.shape[1]
        watched = np.pad(self.image, ((0, wider), (0, wider)))
        watched[len(self.image) :, self.image.shape[1] :] = 1.0
        return watched


def build_constraint_cone(problem: Problem, beyond: float = 0.0) -> ConstraintCone:
    """The rows of a problem, with a floor where each event is compared with each.

    For any weights w that sum to 1 the floor is at most w·Lv, and e^ε times it at least that; `beyond` is the most that
    an atom gives to inputs at which all L are 0.
    """
    image = (problem.objective.image_index == np.arange(problem.objective.image_size)[:, None]).astype(np.float64)
    L = problem.constraints.mutual_functionals
    if L is None:
        return ConstraintCone(problem.inequalities, image, (0.0, 0.0))
    floor = np.ones((len(L), 1))
    rows = np.concatenate([np.hstack([L, -floor]), np.hstack([-L, problem.exp_epsilon * floor])])
    average = L.mean(axis=0)
    if problem.constraints.share.shape[1] == len(L):
        average = problem.constraints.share[0] @ L
    least = float(average[average > 0].min()) * (1 - beyond)
    floors = (
        least / problem.exp_epsilon * (1 - SETTINGS.tolerance.rounding),
        float(average.max()) * (1 + SETTINGS.tolerance.rounding),
    )
    return ConstraintCone(rows / np.abs(rows).max(axis=1, keepdims=True), image, floors)


@dataclass(frozen=True, slots=True, eq=False)
class ProductBox:
    """Ranges of the image, and of t where there is one; rows besides; and products to begin with."""

    low: FloatArray
    high: FloatArray
    rows: FloatArray
    first: WarmStart

    def tighten(self, values: int) -> ProductBox | None:
        """The same box, shrunk since the image sums to 1; None if it is empty."""
        ends = tighten_box(self.low[:values], self.high[:values])
        if ends is None:
            return None
        return replace(self, low=np.append(ends[0], self.low[values:]), high=np.append(ends[1], self.high[values:]))


class ProductRelaxation:
    """Boxes one at a time, each by a linear programme over products of rows."""

    batch = chunk = 1
    polish_every = SETTINGS.proofs.product_polish
    finds_vertices = False
    gather_factor = 0.0

    def __init__(
        self,
        cone: ConstraintCone,
        objective: Objective,
        reach: FloatArray,
        missing: ProductCuts | None = None,
    ) -> None:
        self.cone, self.objective, self._reach, self._missing = cone, objective, reach, missing
        self._watched = cone.box_coordinates
        self._programme = ProductProgramme(cone.constraints.shape[1], cone.image.shape[1], cone.floors[1])

    def roots(self, prices: FloatArray, deadline: float) -> Boxes:
        """All there is."""
        first = WarmStart.empty(self.cone.constraints.shape[1])
        low, high = np.zeros(self._reach.size), self._reach
        if len(self._watched) > self._reach.size:
            low, high = np.append(low, self.cone.floors[0]), np.append(high, self.cone.floors[1])
        root = ProductBox(low, high, first.one, first).tighten(self._reach.size)
        return pack_boxes([] if root is None else [root], -np.inf)

    def cut(self, boxes: Boxes, prices: FloatArray, goal: float, deadline: float) -> Branching:
        """Bound the box, and cut it where X is farthest from a square."""
        box: ProductBox = boxes.parts[0][0]
        none = np.empty((0, prices.size))
        D = self._form(box, prices)
        solved = self._programme.solve(D, self._constraints(box), box.first, -goal, self._missing, deadline)
        bound = max(-solved.largest, float(boxes.bound[0]))
        if bound >= goal:
            return Branching(pack_boxes([], bound), goal, none)
        halves, atom = self._halves(self._warm_start(box, solved), solved.warm_start.second, D)
        if halves is None:
            return Branching(pack_boxes([], bound), bound, none)
        return Branching(pack_boxes(halves, bound), goal, none if atom is None else atom[None, :])

    def _constraints(self, box: ProductBox) -> FloatArray:
        """The cone's rows and those of the box, and what others it has."""
        one = np.arange(self._watched.shape[1]) < self.cone.image.shape[1]  # Σ v = 1
        above, below = self._watched - box.low[:, None] * one, box.high[:, None] * one - self._watched
        return np.concatenate([self.cone.constraints, above, below, box.rows])

    def _warm_start(self, box: ProductBox, solved: ProductBound) -> ProductBox:
        """The box with the products that counted, and of further rows those that are in them."""
        further = solved.rows[len(self.cone.constraints) + 2 * len(self._watched) :]
        held = {row.tobytes() for row in solved.warm_start.other} if len(further) else set()
        return replace(box, rows=further[[row.tobytes() in held for row in further]], first=solved.warm_start)

    def _form(self, box: ProductBox, prices: FloatArray) -> FloatArray:
        """D, with wᵀDw at least ‖Bᵀv‖² + λ·v − βH(Tv) in the box."""
        B, T = self.objective.square, self.cone.image
        assert B is not None
        d = len(B)
        linear, form = prices.copy(), B @ B.T
        if self.objective.weight:
            slope, intercept, k = self._chords(box)
            linear -= slope @ T + intercept.sum()
            low, high = box.low[: len(T), None], box.high[: len(T), None]
            form = form - _products(T - low, high - T, k)
        D = np.zeros((self.cone.constraints.shape[1],) * 2)
        D[:d, :d] = form + 0.5 * (linear[:, None] + linear[None, :])
        return D

    def _entropy_gap(self, box: ProductBox, t: FloatArray) -> FloatArray:
        """By how much the entropy's terms exceed the forms that stand for them."""
        if not self.objective.weight:
            return np.zeros_like(t)
        slope, intercept, k = self._chords(box)
        low, high = box.low[: t.size], box.high[: t.size]
        form = slope * t + intercept + k * (t - low) * (high - t)
        return np.asarray(self.objective.terms(t) - form)

    def _chords(self, box: ProductBox) -> tuple[FloatArray, FloatArray, FloatArray]:
        """β h(t) >= slope t + intercept + k (t − l)(h − t) on the box."""
        low, high = box.low[: len(self.cone.image)], box.high[: len(self.cone.image)]
        slope, intercept = chords(self.objective, low, high)
        width = high - low
        rise = self.objective.weight * (1.0 + np.log(np.maximum(high, SETTINGS.tolerance.tiny))) + slope
        k = np.where(
            width > SETTINGS.tolerance.thin_range,
            np.maximum(rise, 0.0) / np.maximum(width, SETTINGS.tolerance.thin_range),
            0.0,
        )
        return slope, intercept, k * (1 - SETTINGS.tolerance.solved)

    def _halves(
        self, box: ProductBox, second: FloatArray | None, D: FloatArray
    ) -> tuple[list[ProductBox] | None, FloatArray | None]:
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
            if v.min() >= -SETTINGS.tolerance.near and v.sum() > 0.5:
                atom = np.maximum(v, 0.0) / np.maximum(v, 0.0).sum()
            error = error + self._entropy_gap(box, np.clip(at, box.low[:values], box.high[:values]))
        x = int(np.argmax(np.where(width > SETTINGS.tolerance.thin_range, error, -np.inf)))
        if width[x] <= SETTINGS.tolerance.thin_range:
            return None, atom
        low, high = box.low[x], box.high[x]
        middle = np.clip(
            0.5 * at[x] + 0.25 * (low + high),
            low + SETTINGS.proofs.cut_margin * width[x],
            high - SETTINGS.proofs.cut_margin * width[x],
        )
        above, below = box.low.copy(), box.high.copy()
        above[x] = below[x] = middle
        both = (replace(box, high=below).tighten(values), replace(box, low=above).tighten(values))
        return [half for half in both if half is not None], atom


def _products(one: FloatArray, other: FloatArray, weights: FloatArray) -> FloatArray:
    """Σ_i weights_i ½ (a_i b_iᵀ + b_i a_iᵀ)."""
    half = (one * weights[:, None]).T @ other
    return np.asarray(0.5 * (half + half.T))
