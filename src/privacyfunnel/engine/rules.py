r"""Rules of sets of priors, :math:`\alpha\, h_A(f) \le \beta\, l_B(f)` with f = v / p, and which an atom breaks.

:math:`h_A(f) = \max_{P \in U_A} P \cdot f` and :math:`l_B(f) = \min_{R \in U_B} R \cdot f` are greedy: sort f, begin
at the lower ends, and hand out the rest. Ends are multiples of 2⁻⁴⁰, so that members are exact in floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, dense
from privacyfunnel.engine.problem import Problem
from privacyfunnel.model.binomial import SCALE

BROKEN = 1e-9  # relative: a rule that is broken by more is not broken by rounding


@dataclass(frozen=True, eq=False)
class Rules:
    """Boxes of distributions, and which are compared: α h_A <= β l_B. The table's own events are boxes of a point."""

    low: FloatArray  # (k, d)
    high: FloatArray
    one: IntArray  # (n,), A
    other: IntArray  # (n,), B
    alpha: FloatArray  # (n,)
    beta: FloatArray
    rounded: FloatArray  # (n,), what α was rounded from: it may be a small difference

    @classmethod
    def of(cls, problem: Problem) -> Rules:
        """The rules of the problem's sets and of its rows."""
        sets, rows, loud = problem.sets, problem.rows, problem.loud
        if sets is None:
            raise ValueError("rules over sets of priors need such sets")
        (e, f), pi = sets.pairs.T, sets.share / SCALE
        points = dense(rows.functionals) * problem.prior
        (g, h), ones = rows.pairs.T + len(sets.low), np.ones(len(rows))
        alpha = np.concatenate([1 - loud * pi, 1 - pi, ones, ones])
        said = np.flatnonzero(alpha > 0)  # else E is so large a part of both that the rule always holds
        return cls(
            low=np.concatenate([sets.low / SCALE, points]),
            high=np.concatenate([sets.high / SCALE, points]),
            one=np.concatenate([e, f, g, h])[said],
            other=np.concatenate([f, e, h, g])[said],
            alpha=alpha[said],
            beta=np.concatenate([loud * (1 - pi), loud - pi, loud * ones, loud * ones])[said],
            rounded=np.concatenate([1 + loud * pi, np.ones(len(pi)), ones, ones])[said],
        )

    @cached_property
    def _width(self) -> FloatArray:
        return self.high - self.low

    @cached_property
    def _left(self) -> FloatArray:
        return np.asarray(1 - self.low.sum(axis=1, keepdims=True))

    def members(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Of every box the members with the largest and the least P·f."""
        order = np.argsort(f)
        room, left = self._width[:, order], self._left
        rising = np.clip(left - (np.cumsum(room, axis=1) - room), 0.0, room)
        back = room[:, ::-1]
        falling = np.clip(left - (np.cumsum(back, axis=1) - back), 0.0, back)[:, ::-1]
        most, least = self.low.copy(), self.low.copy()
        most[:, order] += falling
        least[:, order] += rising
        return most, least

    def extremes(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """h and l of every box, at one f."""
        most, least = self.members(f)
        return most @ f, least @ f

    def broken(self, f: FloatArray) -> IntArray:
        """The rules that f breaks by more than rounding."""
        highest, lowest = self.extremes(f)
        one, other = self.alpha * highest[self.one], self.beta * lowest[self.other]
        return np.flatnonzero(one > other + BROKEN * np.maximum(highest[self.one], 1.0))
