r"""Rules of sets of priors, :math:`\alpha\, h_A(f) \le \beta\, l_B(f)` with f = v / p, and which an atom breaks.

:math:`h_A(f) = \max_{P \in U_A} P \cdot f` and :math:`l_B(f) = \min_{R \in U_B} R \cdot f` are greedy: sort f, begin
at the lower ends, and hand out the rest. Ends are multiples of 2⁻⁴⁰, so that members are exact in floats.

Every pair of members P of A and R of B is a row that allowed atoms keep,

.. math:: (\beta R - \alpha P) / p \cdot v \ge 0,

and the greedy ones are the row that f breaks most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, dense
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
        if sets is None:
            raise ValueError("rules over sets of priors need such sets")
        (e, f), pi = sets.pairs.T, sets.share / SCALE
        points = dense(rows.functionals) * problem.prior
        (g, h), ones = rows.pairs.T + len(sets.low), np.ones(len(rows))
        alpha = np.concatenate([1 - loud * pi, 1 - pi, ones, ones])
        said = np.flatnonzero(alpha > 0)  # else E is so large a part of both that the rule always holds
        return cls(
            prior=problem.prior,
            low=np.concatenate([sets.low / SCALE, points]),
            high=np.concatenate([sets.high / SCALE, points]),
            one=np.concatenate([e, f, g, h])[said],
            other=np.concatenate([f, e, h, g])[said],
            alpha=alpha[said],
            beta=np.concatenate([loud * (1 - pi), loud - pi, loud * ones, loud * ones])[said],
            rounding_scale=np.concatenate([1 + loud * pi, np.ones(len(pi)), ones, ones])[said],
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
            key = ratio - SETTINGS.tolerance.tie * np.abs(ratio).max(axis=1, keepdims=True) * dear
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
        highest, lowest = (side[0] for side in self._extremes(f[None], np.argsort(f)[None]))
        one, other = self.alpha * highest[self.one], self.beta * lowest[self.other]
        return np.flatnonzero(one > other + SETTINGS.tolerance.violated_rule * np.maximum(highest[self.one], 1.0))

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
