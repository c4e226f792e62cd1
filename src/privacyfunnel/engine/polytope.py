"""The promise's polytope in the form that the simplex method wants: A x = b, l <= x <= u, with x = (v, slacks).

The rows of a promise are homogeneous. Three shapes of them are recognised, the first two because they are smaller:

- every D_i·v is 1 (LIP): one row N_i·v = z_i with e^-ε <= z_i <= e^ε;
- all pairs among k functionals are compared (LDP): a floor t with t <= L_s·v <= e^ε t, two rows per functional;
- anything else: one row per inequality (N - e^ε D)·v <= 0.

An inequality that holds at every corner of the simplex, or follows from another one on its own, is left out.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.problem import Splitting
from privacyfunnel.engine.simplex import Programmes, solve

SAFE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Polytope:
    """{x : A x = b, low <= x <= high}; its first `inputs` coordinates are the atom v."""

    matrix: FloatArray  # (m, n)
    rhs: FloatArray  # (m,)
    low: FloatArray  # (n,)
    high: FloatArray  # (n,)
    basis: IntArray  # (m,), a basis to start from
    inputs: int
    support: int  # a vertex has at most this many non-zero entries
    scales: tuple[FloatArray, FloatArray]  # of rows and columns: A scaled by both has entries of comparable size

    def programmes(
        self, cost: FloatArray, v_low: FloatArray | None = None, v_high: FloatArray | None = None
    ) -> Programmes:
        """min cost·x over the polytope, for every row of `cost`; with bounds on v of their own where given."""
        k, d = cost.shape[0], self.inputs
        low, high = np.tile(self.low, (k, 1)), np.tile(self.high, (k, 1))
        if v_low is not None:
            low[:, :d] = v_low
        if v_high is not None:
            high[:, :d] = v_high
        return Programmes(self.matrix, self.rhs, cost, low, high, np.tile(self.basis, (k, 1)))

    def cone(self) -> FloatArray:
        """Rows with rows·(v, t) <= 0 exactly for multiples v of atoms; t are auxiliary columns, if there are any."""
        slacks = self.matrix.shape[0] - 1
        columns = self.low.size - slacks
        A, low, high = self.matrix[1:, :columns], self.low[columns:, None], self.high[columns:, None]
        everyone = np.concatenate([np.ones(self.inputs), np.zeros(columns - self.inputs)])
        return np.concatenate([A - high * everyone, low * everyone - A])

    def reach(self) -> FloatArray:
        """For every input the largest probability that any allowed atom gives it, (inputs,), rounded up."""
        d = self.inputs
        cost = np.zeros((d, self.low.size))
        cost[np.arange(d), np.arange(d)] = -1.0
        most = -solve(self.programmes(cost)).bound
        return np.clip(most + SAFE, 0.0, 1.0)


def dense(rows: FloatArray | csr_array) -> FloatArray:
    """Comparison rows as a plain array."""
    return np.asarray(rows.toarray() if isinstance(rows, csr_array) else rows, dtype=np.float64)


def polytope_of(problem: Splitting) -> Polytope:
    """The polytope of a problem, in the smallest of the known shapes."""
    N, D = dense(problem.numerators), dense(problem.denominators)
    loud = float(np.exp(problem.epsilon))
    functionals = np.concatenate([np.ones((1, problem.prior.size)), N, D])
    support = int(np.linalg.matrix_rank(functionals))
    each_other = compared_with_each_other(problem)
    if compared_with_everybody(problem):
        A, low, high = _ranges(N, 1 / loud, loud)
    elif each_other is not None:
        A, low, high = _floors(each_other, loud)
    else:
        rows = inequalities(problem)
        A, low, high = _one_sided(rows[_not_implied(rows)])
    return _assembled(A, low, high, problem.prior, support)


def boxed(prior: FloatArray, functionals: FloatArray, low: float, high: float) -> Polytope:
    """Every functional within [e^low, e^high]."""
    support = int(np.linalg.matrix_rank(np.concatenate([np.ones((1, prior.size)), functionals])))
    return _assembled(*_ranges(functionals, float(np.exp(low)), float(np.exp(high))), prior, support)


def _assembled(A: FloatArray, low: FloatArray, high: FloatArray, prior: FloatArray, support: int) -> Polytope:
    """Add Σ v = 1, and one slack per row with its bounds; `A` may have a column t after the inputs."""
    d = prior.size
    m, extra = A.shape[0], A.shape[1] - d
    matrix = np.zeros((m + 1, d + extra + m))
    matrix[0, :d] = 1.0
    matrix[1:, : d + extra] = A
    matrix[1:, d + extra :] = -np.eye(m)
    rhs = np.zeros(m + 1)
    rhs[0] = 1.0
    bottom = np.concatenate([np.zeros(d + extra), low])
    top = np.concatenate([np.ones(d), np.full(extra, np.abs(A[:, :d]).max(initial=0.0)), high])
    basis = np.concatenate([[0], np.arange(d + extra, d + extra + m)])
    by_prior = np.concatenate([prior, np.ones(extra)])
    row_scale = 1.0 / np.abs(matrix[:, : d + extra] * by_prior).max(axis=1)
    scales = (row_scale, np.concatenate([by_prior, 1.0 / row_scale[1:]]))
    return Polytope(matrix, rhs, bottom, top, basis, d, min(support, m + 1), scales)


def _ranges(N: FloatArray, quiet: float, loud: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """N_i·v within [quiet, loud]; rows that stay inside at every corner of the simplex say nothing."""
    least, most = N.min(axis=1), N.max(axis=1)
    says = (least < quiet) | (most > loud)
    return N[says], np.maximum(least, quiet)[says], np.minimum(most, loud)[says]


def compared_with_everybody(problem: Splitting) -> bool:
    """Whether every D_i·v is 1, as under LIP."""
    return bool(np.abs(dense(problem.denominators) - 1.0).max(initial=0.0) <= 1e-12)


def compared_with_each_other(problem: Splitting) -> FloatArray | None:
    """The distinct functionals among the rows, three or more, if each is compared with each, as under LDP."""
    N, D = dense(problem.numerators), dense(problem.denominators)
    L, index = np.unique(np.concatenate([N, D]), axis=0, return_inverse=True)
    index = index.reshape(-1)
    one, other = np.minimum(*np.split(index, 2)), np.maximum(*np.split(index, 2))
    pairs = {(int(i), int(j)) for i, j in zip(one, other, strict=True) if i != j}
    k = L.shape[0]
    return L if k >= 3 and len(pairs) == k * (k - 1) // 2 else None


def _floors(L: FloatArray, loud: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """t <= L_s·v <= e^ε t. The upper row of s is needed only where L_s can exceed e^ε times the least."""
    t = np.ones((L.shape[0], 1))
    needs_upper = (loud * L.min(axis=0) < L).any(axis=1)
    needs_lower = (loud * L - L.max(axis=0) < 0).any(axis=1)
    A = np.concatenate([np.hstack([L, -t])[needs_lower], np.hstack([-L, loud * t])[needs_upper]])
    most = np.concatenate([L.max(axis=1)[needs_lower], np.full(int(needs_upper.sum()), loud * L.max())])
    return A, np.zeros(A.shape[0]), most


def inequalities(problem: Splitting) -> FloatArray:
    """(e^ε D - N)·v >= 0 and (e^ε N - D)·v >= 0 where they say anything, each scaled to largest entry 1."""
    N, D = dense(problem.numerators), dense(problem.denominators)
    loud = float(np.exp(problem.epsilon))
    A = np.concatenate([loud * D - N, loud * N - D])
    A = A[A.min(axis=1) < 0]
    return np.asarray(np.unique(A / np.abs(A).max(axis=1, keepdims=True), axis=0))


def _one_sided(A: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A·v >= 0."""
    return A, np.zeros(A.shape[0]), A.max(axis=1)


def _not_implied(A: FloatArray) -> IntArray:
    """Rows that no other single row implies: row i follows from row j when A_i >= f A_j for some f >= 0."""
    kept = list(range(A.shape[0]))
    for i in range(A.shape[0]):
        others = A[[j for j in kept if j != i]]
        ratio = np.full(others.shape, np.inf)
        np.divide(A[i], others, out=ratio, where=others != 0)
        # f <= A_i/A_j where A_j > 0, f >= A_i/A_j where A_j < 0, and A_i >= 0 where A_j = 0.
        most = np.where(others > 0, ratio, np.inf).min(axis=1)
        least = np.maximum(np.where(others < 0, ratio, 0.0).max(axis=1), 0.0)
        zero_is_fine = np.where(others == 0, A[i] >= 0, True).all(axis=1)
        if ((least <= most) & zero_is_fine).any():
            kept.remove(i)
    return np.array(kept, dtype=np.int64)
