r"""Any promise: linear minima over the polytope of atoms by HiGHS, with a proof of each.

The polytope is :math:`\{v \ge 0,\ \sum v = 1,\ e^{-\varepsilon} D_i v \le N_i v \le e^{\varepsilon} D_i v\}`. For *any*
multipliers :math:`y, w \ge 0` and any upper bounds r on the entries of atoms,

.. math:: \min_v c\cdot v \;\ge\; \min\{r_y\cdot v : 0 \le v \le r,\ \textstyle\sum v = 1\}, \qquad
   r_y = c - y (N - e^{-\varepsilon} D) - w (e^{\varepsilon} D - N),

so the solver's multipliers are only advice: the bound is evaluated from this formula and holds whatever they are.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from privacyfunnel.arrays import FloatArray, sparse
from privacyfunnel.engine.clock import now
from privacyfunnel.engine.lp.highs import DUAL, INF, PRIMAL, Programme
from privacyfunnel.engine.objective import image
from privacyfunnel.engine.oracles.oracle import UNIT, LinearMinima, cheapest_in_box
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.errors import SolverError


class ConstraintOracle:
    """The polytope of a problem in one HiGHS model whose costs change, so each solve starts from the last basis.

    Variables are the ratios v_z / p_z, which are 1 at the prior, and t_k = D_k·v for each event D_k that others are
    compared with: then a comparison has few entries, however many inputs its events have. Sides of comparisons that
    hold at every single input say nothing and are left out.
    """

    batch = SETTINGS.lp.constraint_batch

    def __init__(self, problem: Problem, *, once: bool = False) -> None:
        self._problem = problem
        n, d = problem.constraints.dense
        self._below = np.flatnonzero(
            (problem.exp_epsilon * n < d).any(axis=1)
        )  # where N_i v >= e^-ε D_i v says something
        self._above = np.flatnonzero((problem.exp_epsilon * d < n).any(axis=1))
        # A model that is solved once begins from nothing, where presolving helps; else costs change and it stays.
        options = {"presolve": "choose", "simplex_strategy": DUAL} if once else {"simplex_strategy": PRIMAL}
        self._programme = Programme(**options)
        self._build()

    def cheapest(self, cost: FloatArray, deadline: float = np.inf) -> FloatArray | None:
        """The atom that minimises cost·v; none where the solver finds none, or not in time."""
        p = self._problem
        self._programme.set_costs(cost * p.prior)
        if not self._programme.run(deadline):
            return None
        ratio = np.maximum(self._programme.solution[: p.size], 0.0)
        if not ratio.any():
            return None
        if p.objective.is_identity:
            v = np.where(ratio > SETTINGS.tolerance.solver_dust * ratio.max(), ratio, 0.0) * p.prior
        else:
            # A value goes as a whole: what a promise compares within it would not survive the loss of a part.
            v = ratio * p.prior
            v = np.where(
                image(p.objective, v[None, :])[0, p.objective.image_index] > SETTINGS.tolerance.value_dust, v, 0.0
            )
        return np.asarray(v / v.sum())

    def minimise(self, costs: FloatArray, deadline: float = np.inf) -> LinearMinima:
        """The cheapest atom for every row of costs, with the bound above; the prior where time is up."""
        atoms = np.tile(self._problem.prior / self._problem.prior.sum(), (len(costs), 1))
        y, w = np.zeros((len(costs), len(self._below))), np.zeros((len(costs), len(self._above)))
        for i, cost in enumerate(costs):
            atom = self.cheapest(cost, deadline)
            if self._programme.late or now() >= deadline:
                break
            if atom is None:
                raise SolverError(
                    f"A pricing problem must be solved to optimality; HiGHS said {self._programme.status}. Report this."
                )
            atoms[i] = atom
            multipliers = self._programme.multipliers[self._first_row :]
            y[i], w[i] = multipliers[: len(self._below)], -multipliers[len(self._below) :]
        return LinearMinima(self.bound(costs, np.maximum(y, 0.0), np.maximum(w, 0.0)), atoms)

    def bound(self, costs: FloatArray, y: FloatArray, w: FloatArray) -> FloatArray:
        """The lower bound above, for any multipliers of the rows that say something, a row of each per cost."""
        (low, low_size), (high, high_size) = self._sides
        rest = costs - y @ low - w @ high
        size = np.abs(costs) + y @ low_size + w @ high_size
        margin = self._roundings * UNIT * size
        return cheapest_in_box(rest - margin, np.zeros_like(self._reach), self._reach)[0]

    @cached_property
    def _sides(self) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """N − e^-ε D and e^ε D − N of the rows that say something, each with what its entries are rounded from."""
        n, d = self._problem.constraints.dense
        loud, b, a = self._problem.exp_epsilon, self._below, self._above
        return (n[b] - d[b] / loud, n[b] + d[b] / loud), (loud * d[a] - n[a], loud * d[a] + n[a])

    @cached_property
    def _roundings(self) -> int:
        """How many terms the sum for one input has at most, and a few more."""
        terms = sum(np.count_nonzero(size, axis=0) for _, size in self._sides)
        return 2 * int(np.max(terms, initial=0)) + 8

    @cached_property
    def _reach(self) -> FloatArray:
        """An upper bound on v_z for every input: N_i[z] v_z <= N_i·v <= e^ε D_i·v <= e^ε max D_i, rounded up."""
        n, d = self._problem.constraints.dense
        most = np.full_like(n, np.inf)
        np.divide(self._problem.exp_epsilon * d.max(axis=1, initial=0.0)[:, None], n, out=most, where=n > 0)
        return np.asarray(np.minimum(most.min(axis=0, initial=1.0) * (1 + 8 * UNIT), 1.0))

    def _build(self) -> None:
        p, rows = self._problem, self._problem.constraints
        pairs = np.concatenate([self._below, self._above])
        against, which = np.unique(rows.pairs[pairs, 1], return_inverse=True)
        t, k = len(against), len(pairs)
        scale = sparse.csr_array(p.prior[None])
        events = sparse.csr_array(sparse.csr_array(rows.functionals[against]).multiply(scale))
        N = sparse.csr_array(sparse.csr_array(rows.numerators[pairs]).multiply(scale))
        factor = np.where(np.arange(k) < len(self._below), 1 / p.exp_epsilon, p.exp_epsilon)
        pick = sparse.csr_array((-factor, (np.arange(k), which.reshape(-1))), shape=(k, t))
        none = sparse.csr_array((1, t))
        matrix = sparse.vstack(
            [sparse.hstack([scale, none]), sparse.hstack([events, -sparse.eye_array(t)]), sparse.hstack([N, pick])]
        )
        self._first_row = 1 + t
        at_least, at_most = np.zeros(len(self._below)), np.zeros(len(self._above))
        self._programme.add_rows(
            np.concatenate([[1.0], np.zeros(t), at_least, at_most - INF]),
            np.concatenate([[1.0], np.zeros(t), at_least + INF, at_most]),
        )
        columns = sparse.csc_array(matrix)
        self._programme.add_columns(np.zeros(p.size + t), columns.indptr[:-1], columns.indices, columns.data)
