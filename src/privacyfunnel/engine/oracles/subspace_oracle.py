r"""Linear minima over the atoms that have some inputs only: small programmes, made in a moment and solved a few times.

An atom among the inputs Z is a v >= 0 on Z with sum 1 and :math:`A_Z v \ge 0`, A being the inequalities of the whole
problem. A row without a negative entry on Z holds anyway; where rows look at classes, most say nothing about a few
inputs. No bound is asked for, so nothing but A is needed: walks are short and there are thousands of them, and making
their programmes must not take longer than solving them.
"""

from __future__ import annotations

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.lp.highs import DUAL, INF, Programme
from privacyfunnel.engine.problem import Problem

DUST = 1e-12  # of the largest ratio v/p


class RatioConstraints:
    """The inequalities of a problem, in the ratios v/p; a programme takes those that say something about its inputs."""

    def __init__(self, problem: Problem) -> None:
        self._prior = problem.prior
        self._entries = np.ascontiguousarray((problem.inequalities * problem.prior).T)  # a line per input

    def restrict(self, inputs: IntArray) -> SubspaceOracle:
        """The programme among these inputs."""
        entries = self._entries[inputs]
        return SubspaceOracle(self._prior[inputs], entries[:, entries.min(axis=0) < 0])


class SubspaceOracle:
    """A programme whose costs change from solve to solve; each row is scaled to a largest entry of 1.

    Though another cost leaves the last basis feasible, the dual simplex method of HiGHS is the quicker one.
    """

    def __init__(self, prior: FloatArray, entries: FloatArray) -> None:
        self._prior = prior / prior.max()
        d, m = entries.shape
        by_input = np.column_stack([self._prior, entries / np.abs(entries).max(axis=0)])
        column, row = np.nonzero(by_input)
        self._programme = Programme(simplex_strategy=DUAL)
        self._programme.add_rows(np.eye(1, m + 1)[0], np.append(1.0, np.full(m, INF)))
        self._programme.add_columns(np.zeros(d), np.searchsorted(column, np.arange(d)), row, by_input[column, row])

    def cheapest(self, cost: FloatArray, deadline: float = np.inf) -> FloatArray | None:
        """The atom that minimises cost·v; none where these inputs alone make none, or none is found in time."""
        self._programme.set_costs(cost * self._prior)
        if not self._programme.run(deadline):
            return None
        ratio = np.maximum(self._programme.solution, 0.0)
        v = np.where(ratio > DUST * ratio.max(), ratio, 0.0) * self._prior
        return np.asarray(v / v.sum()) if v.any() else None
