r"""Rows that sets of priors ask of atoms, found where a proof by products misses them (products.py).

Every pair of members P of A and R of B is a row :math:`(\beta R - \alpha P) / p \cdot v \ge 0` that atoms keep
(hulls.py); there are far too many to multiply them all. A dual solution X stands for :math:`w w^\top`, and then
:math:`X a_i` for a multiple of w, for every row :math:`a_i` that w keeps: where the worst members show that
:math:`X a_i` is not allowed, the product of their row and :math:`a_i` is worth having.
"""

from __future__ import annotations

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.oracle import UNIT
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.rules import Rules

PER_ROUND = 40  # rows that arrive together
MOST_ROWS = 300  # at one box: with more of them every round takes longer than they are worth
BROKEN = 1e-7  # a product below minus this is worth a row
NONE = 1e-12  # of an atom: what is less is nothing


class MissingRows:
    """The rows of a problem's sets that a dual solution breaks most, each with what it is to be multiplied by."""

    def __init__(self, problem: Problem) -> None:
        self._rules, self._prior = Rules.of(problem), problem.prior

    def __call__(self, second: FloatArray, rows: FloatArray) -> tuple[FloatArray, IntArray]:
        """See Missing."""
        d, found = self._prior.size, []
        for i, w in enumerate((rows @ second)[:, :d] if len(rows) < MOST_ROWS else ()):
            if w.max() > NONE:
                row = self._worst(w)
                found.append((float(row @ w), i, row))
        found = sorted((each for each in found if each[0] < -BROKEN), key=lambda each: each[:2])[:PER_ROUND]
        more = np.zeros((len(found), rows.shape[1]))
        for k, (_, _, row) in enumerate(found):
            more[k, :d] = row
        return more, np.array([i for _, i, _ in found], dtype=np.int64)

    def _worst(self, w: FloatArray) -> FloatArray:
        """The row that w breaks most, of largest entry 1; rounded so that every atom keeps it for certain."""
        rules = self._rules
        most, least = rules.members(w / self._prior)
        one, other = rules.alpha[:, None] * most[rules.one], rules.beta[:, None] * least[rules.other]
        room = rules.rounded[:, None] * most[rules.one] + other
        rows = (other - one + 16 * self._prior.size * UNIT * room) / self._prior
        rows = rows / np.abs(rows).max(axis=1, keepdims=True)
        return np.asarray(rows[np.argmin(rows @ w)])
