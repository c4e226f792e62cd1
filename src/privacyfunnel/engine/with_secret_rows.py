r"""Any promise, for protocols that see S: linear minima over the polytope of atoms by HiGHS, with a proof of each.

The polytope is :math:`\{v \ge 0,\ \sum v = 1,\ e^{-\varepsilon} D_i v \le N_i v \le e^{\varepsilon} D_i v\}`. For *any*
multipliers :math:`y, w \ge 0` and any upper bounds r on the entries of atoms,

.. math:: \min_v c\cdot v \;\ge\; \min\{r_y\cdot v : 0 \le v \le r,\ \textstyle\sum v = 1\}, \qquad
   r_y = c - y (N - e^{-\varepsilon} D) - w (e^{\varepsilon} D - N),

so the solver's multipliers are only advice: the bound is evaluated from this formula and holds whatever they are.
"""

from typing import Any

import highspy
import numpy as np
from scipy.sparse import block_array, coo_array, csr_array, eye_array

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.problem import Splitting
from privacyfunnel.engine.with_secret_box import UNIT, cheapest_in_box
from privacyfunnel.engine.with_secret_branching import Cheapest, marginals
from privacyfunnel.errors import SolverError

TOLERANCE = 1e-9
DUST = 1e-15


class SecretRows:
    """The polytope of a problem in one HiGHS model whose costs change, so each solve starts from the last basis.

    Variables are the ratios v_z / p_z, which are 1 at the prior, and t_k = D_k·v for each distinct row of D: then a
    comparison has few entries, however many inputs its events have.
    """

    batch = 128

    def __init__(self, problem: Splitting) -> None:
        _, group = np.unique(problem.group, return_inverse=True)
        self.group: IntArray = group.astype(np.int64).reshape(-1)
        self._prior = problem.prior
        self._loud = float(np.exp(problem.epsilon))
        self._N, self._D = csr_array(problem.numerators), csr_array(problem.denominators)
        self._reach = self._largest_entries()
        self._roundings = (
            int(np.max(self._N.astype(bool).sum(axis=0) + self._D.astype(bool).sum(axis=0), initial=0)) + 8
        )
        self._highs = self._model()

    def minimise(self, costs: FloatArray) -> Cheapest:
        k, d = costs.shape
        rows = self._N.shape[0]
        atoms = np.empty((k, d))
        above, below = np.empty((k, rows)), np.empty((k, rows))
        inputs = np.arange(d, dtype=np.int32)
        for i, cost in enumerate(costs):
            self._highs.changeColsCost(d, inputs, cost * self._prior)
            self._highs.run()
            status = self._highs.getModelStatus()
            if status != highspy.HighsModelStatus.kOptimal:
                raise SolverError(f"A pricing problem must be solved to optimality; HiGHS said {status}. Report this.")
            solution = self._highs.getSolution()
            atoms[i] = np.array(solution.col_value)[:d] * self._prior
            multipliers = np.array(solution.row_dual)
            above[i], below[i] = multipliers[-2 * rows : -rows], -multipliers[-rows:]
        # A value goes as a whole: what a promise compares within it would not survive the loss of a part.
        atoms = np.where(marginals(atoms, self.group)[:, self.group] > DUST, np.maximum(atoms, 0.0), 0.0)
        atoms /= atoms.sum(axis=1, keepdims=True)
        return Cheapest(self.bound(costs, np.maximum(above, 0.0), np.maximum(below, 0.0)), atoms)

    def bound(self, costs: FloatArray, above: FloatArray, below: FloatArray) -> FloatArray:
        """The lower bound above, for multipliers y = `above` and w = `below` of every cost."""
        on_n, on_d = above - below, self._loud * below - above / self._loud
        rest = costs - on_n @ self._N - on_d @ self._D
        size = np.abs(costs) + (above + below) @ self._N + (above + self._loud * below) @ self._D
        lower, _ = cheapest_in_box(rest - self._roundings * UNIT * size, np.zeros_like(self._reach), self._reach)
        return lower

    def _largest_entries(self) -> FloatArray:
        """An upper bound on v_z for every input: N_i[z] v_z <= N_i·v <= e^ε D_i·v <= e^ε max D_i, rounded up."""
        reach = np.ones(self._prior.size)
        if self._N.shape[0]:
            most = np.asarray(self._D.max(axis=1).toarray()).reshape(-1)
            N = coo_array(self._N)
            np.minimum.at(reach, N.col, self._loud * most[N.row] / N.data * (1 + 8 * UNIT))
        return reach

    def _model(self) -> Any:
        d, rows = self._prior.size, self._N.shape[0]
        p = csr_array(self._prior[None])
        N, D = self._N.multiply(p).tocsr(), self._D.multiply(p).tocsr()
        distinct, which = _distinct(D)
        t = distinct.shape[0]
        pick = csr_array((np.ones(rows), (np.arange(rows), which)), shape=(rows, t))
        matrix = (
            block_array(
                [[p, None], [distinct, -eye_array(t)], [N, -pick / self._loud], [N, -pick * self._loud]], format="csr"
            )
            if rows
            else p
        )
        inf = highspy.kHighsInf
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = d + t, matrix.shape[0]
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = np.zeros(d + t), np.zeros(d + t), np.full(d + t, inf)
        lp.row_lower_ = np.concatenate([[1.0], np.zeros(t + rows), np.full(rows, -inf)])
        lp.row_upper_ = np.concatenate([[1.0], np.zeros(t), np.full(rows, inf), np.zeros(rows)])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
        lp.a_matrix_.value_ = np.asarray(matrix.data, dtype=np.float64)
        highs = _new_solver()
        for option, setting in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "off"),
            ("simplex_strategy", 4),  # primal: after a change of costs the old basis is still feasible
            ("primal_feasibility_tolerance", TOLERANCE),
            ("dual_feasibility_tolerance", TOLERANCE),
        ):
            highs.setOptionValue(option, setting)
        if highs.passModel(lp) == highspy.HighsStatus.kError:
            raise SolverError("HiGHS must accept the pricing problem; it did not. Report this.")
        return highs


def _new_solver() -> Any:
    make: Any = highspy.Highs
    return make()


def _distinct(rows: csr_array) -> tuple[csr_array, IntArray]:
    """The distinct rows, and for each row which of them it is."""
    rows.sort_indices()
    number: dict[tuple[bytes, bytes], int] = {}
    which, first = [], []
    for i in range(rows.shape[0]):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        key = (rows.indices[part].tobytes(), rows.data[part].tobytes())
        if key not in number:
            number[key] = len(number)
            first.append(i)
        which.append(number[key])
    return rows[np.array(first, dtype=np.int64)], np.array(which, dtype=np.int64)
