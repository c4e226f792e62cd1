r"""Rows that sets of priors ask of atoms, found where a proof by products misses them (products.py).

Every pair of members P of A and R of B is a row :math:`(\beta R - \alpha P) / p \cdot v \ge 0` that atoms keep
(hulls.py); there are far too many to multiply them all. A dual solution X stands for :math:`w w^\top`, and then
:math:`X a_i` for a multiple of w, for every row :math:`a_i` that w keeps: where the worst members show that
:math:`X a_i` is not allowed, the product of their row and :math:`a_i` is worth having.
"""

from __future__ import annotations

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.oracles.credal_constraints import CredalConstraints
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.settings import SETTINGS


class CredalProductCuts:
    """The rows of a problem's sets that a dual solution breaks most, each with what it is to be multiplied by."""

    def __init__(self, problem: Problem) -> None:
        self._rules, self._size = CredalConstraints.from_problem(problem), problem.size

    def __call__(self, second: FloatArray, rows: FloatArray) -> tuple[FloatArray, IntArray]:
        """See Missing."""
        d = self._size
        times = (rows @ second)[:, :d] if len(rows) < SETTINGS.proofs.most_credal_cuts else np.empty((0, d))
        some = np.flatnonzero((times > SETTINGS.tolerance.entry).any(axis=1))
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
