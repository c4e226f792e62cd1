r"""Rules of sets of priors, :math:`\alpha\, h_A(f) \le \beta\, l_B(f)` with f = v / p, and which an atom breaks.

:math:`h_A(f) = \max_{P \in U_A} P \cdot f` and :math:`l_B(f) = \min_{R \in U_B} R \cdot f` are greedy: sort f, begin
at the lower ends, and hand out the rest. Ends are multiples of 2⁻⁴⁰, so that members are exact in floats.

Every pair of members P of A and R of B is a row that allowed atoms keep,

.. math:: (\beta R - \alpha P) / p \cdot v \ge 0,

and the greedy ones are the row that f breaks most.

The rules of sets of priors as rows of one linear programme: all multiples of allowed atoms (constraint_oracle.py).

A rule α h_A(f) ≤ β l_B(f), f = v / p, holds iff there are numbers above h_A and below l_B between which it holds, and
for a box cut by the simplex

.. math:: h \ge l\cdot f + (1 - \Sigma l)\, t + (u - l)\cdot s, \quad s \ge f - t,\ s \ge 0

has a solution (t, s) iff :math:`h \ge h_A(f)`; likewise for :math:`l_B`. All of it is homogeneous in v.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, dense, sparse
from privacyfunnel.engine.oracles.oracle import UNIT
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.credal.clopper_pearson import SCALE


@dataclass(frozen=True, eq=False)
class CredalConstraints:
    """Boxes of distributions, and which are compared: α h_A <= β l_B. The table's own events are boxes of a point."""

    prior: FloatArray  # (d,)
    low: FloatArray  # (k, d)
    high: FloatArray
    one: IntArray  # (n,), A
    other: IntArray  # (n,), B
    alpha: FloatArray  # (n,)
    beta: FloatArray
    rounding_scale: FloatArray  # (n,), what α was rounded from: it may be a small difference

    @classmethod
    def from_problem(cls, problem: Problem) -> CredalConstraints:
        """The rules of the problem's sets and of its rows."""
        sets, rows, loud = problem.credal_sets, problem.constraints, problem.exp_epsilon
        points = dense(rows.functionals) * problem.prior
        g, h = rows.pairs.T
        (up, down), most = (np.isfinite(limit) for limit in problem.limits), np.concatenate(problem.limits)
        most, g, h = most[np.append(up, down)], np.append(g[up], h[down]), np.append(h[up], g[down])
        ones = np.ones(len(most))
        if sets is None:
            return cls(problem.prior, points, points, g, h, ones, most, ones)
        (e, f), pi = sets.pairs.T, sets.share / SCALE
        g, h = g + len(sets.low), h + len(sets.low)
        alpha = np.concatenate([1 - loud * pi, 1 - pi, ones])
        binding = np.flatnonzero(alpha > 0)  # else E is so large a part of both that the rule always holds
        return cls(
            prior=problem.prior,
            low=np.concatenate([sets.low / SCALE, points]),
            high=np.concatenate([sets.high / SCALE, points]),
            one=np.concatenate([e, f, g])[binding],
            other=np.concatenate([f, e, h])[binding],
            alpha=alpha[binding],
            beta=np.concatenate([loud * (1 - pi), loud - pi, most])[binding],
            rounding_scale=np.concatenate([1 + loud * pi, np.ones(len(pi)), ones])[binding],
        )

    @cached_property
    def _width(self) -> FloatArray:
        return self.high - self.low

    @cached_property
    def _free_mass(self) -> FloatArray:
        return np.asarray(1 - self.low.sum(axis=1))

    @cached_property
    def _wide_boxes(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Which boxes are more than a point, the widths of these, (d, w), and what they have left."""
        which = np.flatnonzero(self._width.any(axis=1))
        return which, np.ascontiguousarray(self._width[which].T), self._free_mass[which]

    def worst_constraint(self, atoms: FloatArray, dear: FloatArray | None = None) -> FloatArray:
        """For each v (k, d), allowed or not, the row of largest entry 1 that it breaks most, or keeps most barely.

        Where f ties, as it does wherever v is 0, members that forbid most of what is not `dear` are taken. Rows are
        rounded so that every allowed atom keeps them for certain.
        """
        ratio = atoms / self.prior
        key = ratio
        if dear is not None:
            key = ratio - SETTINGS.tolerance.feasible * np.abs(ratio).max(axis=1, keepdims=True) * dear
        order = np.argsort(key, axis=1)
        highest, lowest = self._extremes(ratio, order)
        excess = self.alpha * highest[:, self.one] - self.beta * lowest[:, self.other]
        rule = np.argmax(excess / (self.alpha + self.beta), axis=1)
        one, other = self.one[rule], self.other[rule]
        most, least = self._member(one, order[:, ::-1]), self._member(other, order)
        above, below = self.alpha[rule, None] * most, self.beta[rule, None] * least
        room = self.rounding_scale[rule, None] * most + below
        rows = (below - above + 16 * self.prior.size * UNIT * room) / self.prior
        return np.asarray(rows / np.abs(rows).max(axis=1, keepdims=True))

    def violations(self, f: FloatArray) -> IntArray:
        """The rules that f breaks by more than rounding."""
        highest = lowest = self.low @ f
        if self._wide_boxes[0].size:
            highest, lowest = (side[0] for side in self._extremes(f[None], np.argsort(f)[None]))
        one, other = self.alpha * highest[self.one], self.beta * lowest[self.other]
        return np.flatnonzero(one > other + SETTINGS.tolerance.solved * np.maximum(highest[self.one], 1.0))

    def _extremes(self, ratio: FloatArray, order: IntArray) -> tuple[FloatArray, FloatArray]:
        """h and l of every box, at every f, (k, boxes); `order` sorts f."""
        which, width, left = self._wide_boxes
        lowest = ratio @ self.low.T
        highest = lowest.copy()
        rising, room = np.take_along_axis(ratio, order, 1), width[order]
        for found, f, part in ((lowest, rising, room), (highest, rising[:, ::-1], room[:, ::-1])):
            handed = np.clip(left - (np.cumsum(part, axis=1) - part), 0.0, part)
            found[:, which] += np.einsum("kdw,kd->kw", handed, f)
        return highest, lowest

    def _member(self, event: IntArray, order: IntArray) -> FloatArray:
        """The member of each of these boxes that has as much as it can of the first inputs of its order."""
        room = np.take_along_axis(self._width[event], order, 1)
        member = self.low[event]
        handed = np.clip(self._free_mass[event, None] - (np.cumsum(room, axis=1) - room), 0.0, room)
        np.put_along_axis(member, order, np.take_along_axis(member, order, 1) + handed, 1)
        return member


def credal_cone_constraints(constraints: CredalConstraints, prior: FloatArray, on: IntArray) -> sparse.csr_array:
    """Rows with rows·(v, …) ≤ 0 for some further entries, none below 0, exactly where v keeps these rules."""
    d = prior.size
    one, other = np.unique(constraints.one[on]), np.unique(constraints.other[on])
    above, below = [_Side(constraints, int(e), 1.0) for e in one], [_Side(constraints, int(e), -1.0) for e in other]
    sides = [*above, *below]
    starts = d + np.concatenate([[0], np.cumsum([side.columns for side in sides])]).astype(np.int64)
    parts = [side.rows(prior, int(start), int(starts[-1])) for side, start in zip(sides, starts[:-1], strict=True)]
    h, n = starts[np.searchsorted(one, constraints.one[on])], np.arange(len(on))
    low = starts[len(one) + np.searchsorted(other, constraints.other[on])]
    entries = np.concatenate([constraints.alpha[on], -constraints.beta[on]])
    compared = sparse.csr_array(
        (entries, (np.concatenate([n, n]), np.concatenate([h, low]))), shape=(len(on), int(starts[-1]))
    )
    return sparse.csr_array(sparse.vstack([*parts, compared]))


class _Side:
    """h of one box (sign 1), or l (sign −1): its column, t, and an s for every input where the box is wide."""

    def __init__(self, rules: CredalConstraints, event: int, sign: float) -> None:
        self.low, self.high, self.sign = rules.low[event], rules.high[event], sign
        self.wide = np.flatnonzero(self.high > self.low)
        self.columns = 2 + self.wide.size if self.wide.size else 1

    def rows(self, prior: FloatArray, start: int, width: int) -> sparse.csr_array:
        """± (f − t) ≤ s for the wide inputs, and h at least, or l at most, what it may be."""
        n, sign = self.wide.size, self.sign
        filled = np.flatnonzero(self.low)
        row = [np.full(filled.size, n), np.array([n])]
        column = [filled, np.array([start])]
        entries = [sign * self.low[filled] / prior[filled], np.array([-sign])]
        if n:
            k, t, s = np.arange(n), start + 1, start + 2 + np.arange(n)
            row += [k, k, k, np.full(n + 1, n)]
            column += [self.wide, np.full(n, t), s, np.append(s, t)]
            entries += [sign / prior[self.wide], np.full(n, -sign), np.full(n, -1.0)]
            entries += [np.append((self.high - self.low)[self.wide], sign * (1 - self.low.sum()))]
        where = np.concatenate(row), np.concatenate(column)
        return sparse.csr_array((np.concatenate(entries), where), shape=(n + 1, width))
