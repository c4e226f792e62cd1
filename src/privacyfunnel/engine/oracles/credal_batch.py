r"""Sets of priors over few inputs: linear minima in batches, by rows that arrive where an atom breaks them.

Rows are found by sorting and never written down, so that programmes are as small as there are inputs (`solve` below).
Over many inputs that takes too many of them: constraint_oracle.py writes the sets out instead.

Many linear programmes over sets of priors at once: min c·v subject to Σ v = 1, l <= v <= u, and all their rules.

The rules are far too many constraints to write down (credal_constraints.py), but at any v the one that it violates
most is found by sorting. So the dual simplex method runs in the d inputs themselves: a basis is d rows that v meets, Σ
v = 1 among them, and where v breaks another row, that one takes the place of one of these. Every row has a least and a
largest value, :math:`b_i \le a_i \cdot v \le t_i`, so that any basis is dual feasible, and steps are long, as in
lp/batched_simplex.py.

For *any* weights :math:`w_i \ge 0` of rows :math:`a_i \cdot v \ge 0` that every allowed atom keeps,

.. math:: c \cdot v \ge r \cdot v, \qquad r = c - \sum_i w_i a_i,

so that the method's multipliers are only advice: the bound is min r·v over the box and the simplex. A wrong pivot can
weaken it, never make it false, and neither can a clock that ends it early.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.clock import WORK, now
from privacyfunnel.engine.lp.batched_simplex import inverses, ratio_test
from privacyfunnel.engine.oracles.credal_constraints import CredalConstraints
from privacyfunnel.engine.oracles.oracle import UNIT, BoxCosts, BoxMinima, LinearMinima, cheapest_in_box
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.settings import SETTINGS

ROW, SUM = -1, -2  # in place of an input: a row of the rules, and Σ v = 1


@dataclass(frozen=True, slots=True, eq=False)
class Bases:
    """For each programme d rows: inputs whose bounds are met, and rows of the rules."""

    kinds: IntArray  # (k, d), the input, or ROW or SUM
    rows: NDArray[np.object_]  # (k,), of each programme those of kind ROW, in their order, (n, d)

    def normals(self) -> FloatArray:
        """The rows written out, (k, d, d)."""
        normals = np.eye(self.kinds.shape[1])[np.maximum(self.kinds, 0)]
        normals[self.kinds == SUM] = 1.0
        if len(self.rows):
            normals[self.kinds == ROW] = np.concatenate(list(self.rows))
        return normals

    @classmethod
    def initial(cls, free: IntArray, d: int) -> Bases:
        """Every input at a bound, but for one of each programme: begun at the cheapest one, no entry is beyond 1."""
        rows = np.empty(len(free), dtype=object)
        rows[:] = [np.empty((0, d))] * len(free)
        kinds = np.tile(np.arange(d), (len(free), 1))
        kinds[np.arange(len(free)), free] = SUM
        return cls(kinds, rows)


@dataclass(frozen=True, slots=True, eq=False)
class Minima:
    """For each programme: a bound that holds, the last v and its basis, and the relaxation that gives the bound."""

    lower: FloatArray  # (k,), infinite when there is no v
    v: FloatArray  # (k, d)
    reduced: FloatArray  # (k, d), r less what all inputs have in common
    value: FloatArray  # (k,), of the relaxation in which `reduced` are the costs of moving
    bases: Bases
    optimal: BoolArray  # (k,)


def solve(
    constraints: CredalConstraints,
    cost: FloatArray,
    low: FloatArray,
    high: FloatArray,
    bases: Bases,
    cutoff: FloatArray | None = None,
    deadline: float = np.inf,
    most: int | None = None,
) -> Minima:
    """Bounds on a batch of programmes; each stops at its optimum, or once its bound reaches its cutoff.

    All stop where they are at the most-th basis, or when the clock (`clock.now`) passes the deadline.
    """
    count, d = cost.shape
    stop = np.full(count, np.inf) if cutoff is None else cutoff + SETTINGS.tolerance.cutoff * (1 + np.abs(cutoff))
    live = _CredalBatch(constraints, cost, low, high, bases)
    out = _Results(cost)
    most = max(SETTINGS.lp.most_pivots, SETTINGS.lp.credal_pivots_per_input * d) if most is None else most
    for pivots in range(1, most + 1):
        if pivots % SETTINGS.lp.refresh == 0:
            live.refresh()
        lengths = np.einsum("ijk,ijk->ij", live.inverse, live.inverse)
        sound = np.asarray((np.isfinite(lengths) & (lengths > 0)).all(axis=1))  # else the basis is singular: no answer
        live.keep(sound)
        if not live.number.size:
            break
        y, bottom, top = live.multipliers()
        b = np.where(y >= 0, bottom, top)
        v = np.matmul(live.inverse, b[:, :, None])[:, :, 0]
        broken = live.most_violated(v, y, lengths[sound])
        feasible = broken.amount <= SETTINGS.tolerance.feasible
        along = np.where(broken.is_below[:, None], broken.in_basis, -broken.in_basis)
        along[live.kinds == SUM] = 0.0
        leave, blocked = ratio_test(y, along, top - bottom, broken.amount - SETTINGS.tolerance.feasible)
        last = pivots == most or now() >= deadline
        enough = np.einsum("ij,ij->i", y, b) >= stop[live.number]
        finished = feasible | ~blocked | enough | last
        if finished.any():
            out.store(live, finished, y, v, feasible)
            out.mark_infeasible(live, ~feasible & ~blocked, broken)
            going = ~finished
            live.keep(going)
            leave, broken = leave[going], broken[going]
        live.pivot(leave, broken)
    return out.minima(low, high)


@dataclass(frozen=True, slots=True, eq=False)
class _Violation:
    """Of each programme the row that v breaks most: by how much, which, and what it is in terms of the basis."""

    amount: FloatArray  # (k,)
    is_below: BoolArray  # (k,), whether it is its least value that is not reached
    kind: IntArray  # (k,)
    row: FloatArray  # (k, d)
    in_basis: FloatArray  # (k, d), with row = at · normals

    def __getitem__(self, which: BoolArray) -> _Violation:
        return _Violation(
            self.amount[which], self.is_below[which], self.kind[which], self.row[which], self.in_basis[which]
        )


class _CredalBatch:
    """The programmes that are still worked on, with their bases and the inverses of these."""

    def __init__(
        self, rules: CredalConstraints, cost: FloatArray, low: FloatArray, high: FloatArray, bases: Bases
    ) -> None:
        self.rules, self.number = rules, np.arange(len(cost))
        self.cost, self.low, self.high = cost, low, high
        self.kinds, self.normals = bases.kinds.copy(), bases.normals()
        self.refresh()

    def refresh(self) -> None:
        self.inverse = inverses(self.normals)

    def keep(self, which: BoolArray) -> None:
        if which.all():
            return
        self.number, self.cost = self.number[which], self.cost[which]
        self.low, self.high = self.low[which], self.high[which]
        self.kinds, self.normals, self.inverse = self.kinds[which], self.normals[which], self.inverse[which]

    def multipliers(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of the rows of the basis: multipliers, and the least and largest value of each."""
        y = np.matmul(self.cost[:, None, :], self.inverse)[:, 0]
        z, plain = np.maximum(self.kinds, 0), self.kinds >= 0
        bottom = np.where(plain, np.take_along_axis(self.low, z, 1), np.where(self.kinds == SUM, 1.0, 0.0))
        return y, bottom, np.where(plain, np.take_along_axis(self.high, z, 1), 1.0)

    def most_violated(self, v: FloatArray, y: FloatArray, lengths: FloatArray) -> _Violation:
        """Steepest edge: the inverse, whose rows have these squared lengths, gives the exact weights."""
        k = np.arange(len(v))
        under, over = self.low - v, v - self.high
        beyond = np.maximum(under, over)
        score = np.where(beyond > SETTINGS.tolerance.feasible, beyond * beyond, 0.0) / lengths
        z = np.argmax(score, axis=1)
        dear = np.zeros((len(v), v.shape[1] - min(ROW, SUM)))  # what moving an input off its bound costs
        np.put_along_axis(dear, self.kinds, y, 1)  # rows that are no bounds go to the end
        rows = self.rules.worst_constraint(
            v, dear[:, : v.shape[1]] / np.maximum(np.abs(y).max(axis=1, keepdims=True), SETTINGS.tolerance.feasible)
        )
        at, missing = np.matmul(rows[:, None, :], self.inverse)[:, 0], -np.einsum("ij,ij->i", rows, v)
        of_row = np.where(missing > SETTINGS.tolerance.feasible, missing * missing, 0.0) / np.einsum("ij,ij->i", at, at)
        ruled = of_row > score[k, z]
        return _Violation(
            np.where(ruled, missing, beyond[k, z]),
            ruled | (under[k, z] > over[k, z]),
            np.where(ruled, ROW, z),
            np.where(ruled[:, None], rows, np.eye(v.shape[1])[z]),
            np.where(ruled[:, None], at, self.inverse[k, z]),
        )

    def pivot(self, leave: IntArray, broken: _Violation) -> None:
        """Let the broken row take the place `leave` in each basis."""
        k = np.arange(len(leave))
        WORK.pivots += len(leave)
        WORK.entries += self.inverse.size
        self.normals[k, leave], self.kinds[k, leave] = broken.row, broken.kind
        at = broken.in_basis.copy()
        column = self.inverse[k, :, leave] / at[k, leave, None]
        at[k, leave] -= 1.0
        self.inverse = self.inverse - column[:, :, None] * at[:, None, :]


class _Results:
    """What is known of the programmes that are done; of the others, the box and the simplex alone."""

    def __init__(self, cost: FloatArray) -> None:
        self._cost, count, d = cost, *cost.shape
        bases = Bases.initial(cost.argmin(axis=1), d)  # also in place of a singular one
        self.v, self.optimal = np.full((count, d), 1.0 / d), np.zeros(count, dtype=bool)
        self.kinds, self.rows = bases.kinds, bases.rows
        self.common, self.weighed, self.size = np.zeros(count), np.zeros((count, d)), np.zeros((count, d))
        self.why_none: list[tuple[int, FloatArray, FloatArray]] = []

    def store(self, live: _CredalBatch, which: BoolArray, y: FloatArray, v: FloatArray, feasible: BoolArray) -> None:
        done, kinds, normals = live.number[which], live.kinds[which], live.normals[which]
        self.v[done], self.optimal[done], self.kinds[done] = v[which], feasible[which], kinds
        weights = np.where(kinds == ROW, np.maximum(y[which], 0.0), 0.0)
        self.weighed[done], self.size[done] = _sums(weights, normals)
        self.common[done] = np.einsum("ij,ij->i", y[which], kinds == SUM)
        for i, kind, rows in zip(done.tolist(), kinds, normals, strict=True):
            self.rows[i] = rows[kind == ROW]

    def mark_infeasible(self, live: _CredalBatch, which: BoolArray, broken: _Violation) -> None:
        """Remember why there is no v: what a broken row is made of says which rows contradict the box."""
        turned = np.where(broken.is_below[:, None], -broken.in_basis, broken.in_basis)[which]
        weights = np.where(live.kinds[which] == ROW, np.maximum(turned, 0.0), 0.0)
        weighed, size = _sums(weights, live.normals[which])
        own = np.where(broken.kind[which] == ROW, 1.0, 0.0)[:, None] * broken.row[which]
        self.why_none += zip(live.number[which].tolist(), weighed + own, size + np.abs(own), strict=True)

    def minima(self, low: FloatArray, high: FloatArray) -> Minima:
        """Bounds by their formula."""
        d = low.shape[1]
        r = self._cost - self.weighed
        lower = cheapest_in_box(r - (8 * d + 32) * UNIT * (np.abs(self._cost) + self.size), low, high)[0]
        if self.why_none:
            number = np.array([i for i, _, _ in self.why_none])
            weighed, size = (np.array([each[k] for each in self.why_none]) for k in (1, 2))
            # With no cost at all r·v is above 0: no atom of the box is allowed.
            least = cheapest_in_box(-weighed - (8 * d + 32) * UNIT * size, low[number], high[number])[0]
            lower[number[least > 0]] = np.inf
        reduced = r - self.common[:, None]
        value = self.common + np.minimum(reduced * low, reduced * high).sum(axis=1)
        return Minima(lower, self.v, reduced, value, Bases(self.kinds, self.rows), self.optimal)


def _sums(weights: FloatArray, normals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ w a, and Σ w |a|."""
    return tuple(np.matmul(weights[:, None, :], of)[:, 0] for of in (normals, np.abs(normals)))


class CredalBatchOracle:
    """All rules of a problem, asked one batch of costs at a time."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self._rules = problem, CredalConstraints.from_problem(problem)
        self._reach, self._seen = np.ones(problem.size), 0

    @property
    def batch(self) -> int:
        return max(1, SETTINGS.lp.credal_numbers // self.problem.size**2)

    def minimise(self, costs: FloatArray, deadline: float = np.inf) -> LinearMinima:
        """The cheapest atom for every row of costs; where time is up, the prior, and what is known by then."""
        k, d = costs.shape
        first = Bases.initial(costs.argmin(axis=1), d)
        found = solve(self._rules, costs, np.zeros((k, d)), np.ones((k, d)), first, deadline=deadline)
        ratio = np.maximum(found.v, 0.0) / self.problem.prior
        ratio = np.where(ratio > SETTINGS.tolerance.near * ratio.max(axis=1, keepdims=True), ratio, 0.0)
        ratio[~found.optimal] = 1.0
        atoms = ratio * self.problem.prior
        return LinearMinima(found.lower, atoms / atoms.sum(axis=1, keepdims=True))

    @property
    def support(self) -> int:
        return self.problem.size

    def box_states(self, count: int) -> tuple[NDArray[Any], ...]:
        first = Bases.initial(np.arange(count), count)
        return first.kinds, first.rows

    def minimise_in_boxes(self, boxes: BoxCosts, deadline: float) -> BoxMinima:
        """Bounds on the cheapest atom in each box, as far as a few pivots lead; the next call goes on from there."""
        start, pivots = Bases(*boxes.states), SETTINGS.lp.pivots_per_box
        found = solve(self._rules, boxes.costs, boxes.low, boxes.high, start, boxes.cutoff, deadline, pivots)
        states = found.bases.kinds, found.bases.rows
        return BoxMinima(found.lower, found.v, found.reduced, found.value, states, found.optimal)

    def reach(self, deadline: float) -> FloatArray:
        """For every input the largest probability that any allowed atom gives it; 1 where there is no time to see."""
        d = self.problem.size
        while self._seen < d and now() < deadline:
            some = np.arange(self._seen, min(self._seen + self.batch, d))
            self._reach[some] = np.clip(
                SETTINGS.tolerance.solved - self.minimise(-np.eye(d)[some], deadline).lower, 0.0, 1.0
            )
            if now() < deadline:
                self._seen += some.size
        return self._reach
