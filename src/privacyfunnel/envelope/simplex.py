"""Many small linear programmes at once: min c·x subject to A x = b, l <= x <= u, for a batch of (c, l, u).

The dual simplex method with long steps, in lock step over the batch. Every variable is boxed, so every basis is dual
feasible (a variable sits at the bound that its reduced cost prefers) and every step yields a bound,

    y·b + Σ_j min(d_j l_j, d_j u_j)   with   d = c - y A,

which holds for *any* multipliers y. It is evaluated from that formula, so a wrong pivot can only weaken it, never
make it false.
"""

from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray

FEASIBLE = 1e-10
SMALLEST_PIVOT = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """For each programme: a valid lower bound, and the last basic solution with its basis and multipliers."""

    bound: FloatArray  # (k,), infinite when infeasible
    x: FloatArray  # (k, n)
    basis: IntArray  # (k, m)
    multipliers: FloatArray  # (k, m), the last y
    optimal: BoolArray  # (k,)


def inverses(matrix: FloatArray, basis: IntArray) -> FloatArray:
    """The inverse of every basis matrix, (k, m, m)."""
    return np.asarray(np.linalg.inv(matrix.T[basis].transpose(0, 2, 1)), dtype=np.float64)


def solve(
    matrix: FloatArray,
    rhs: FloatArray,
    cost: FloatArray,
    low: FloatArray,
    high: FloatArray,
    basis: IntArray,
    cutoff: FloatArray,
    max_pivots: int = 200,
) -> Solved:
    """Bounds on a batch of programmes that share A and b; each stops once its bound reaches its cutoff."""
    count, columns = cost.shape
    basis = basis.copy()
    bound = np.full(count, -np.inf)
    x_out = np.zeros((count, columns))
    y_out = np.zeros(basis.shape)
    optimal = np.zeros(count, dtype=bool)
    live = np.arange(count)
    binv = inverses(matrix, basis)
    c, lo, hi, span, B = cost, low, high, high - low, basis.copy()
    for pivots in range(max_pivots):
        rows = np.arange(live.size)
        y = np.matmul(np.take_along_axis(c, B, 1)[:, None, :], binv)[:, 0]
        d = c - y @ matrix
        x = np.where(d >= 0, lo, hi)
        value = y @ rhs + np.einsum("ij,ij->i", d, x)
        bound[live] = np.maximum(bound[live], value)
        np.put_along_axis(x, B, 0.0, 1)
        np.put_along_axis(d, B, 0.0, 1)
        x_basic = np.matmul(binv, (rhs - x @ matrix.T)[:, :, None])[:, :, 0]
        np.put_along_axis(x, B, x_basic, 1)
        above = x_basic - np.take_along_axis(hi, B, 1)
        below = np.take_along_axis(lo, B, 1) - x_basic
        broken = np.maximum(above, below)
        # Steepest edge: the explicit inverse gives the exact weights.
        score = np.where(broken > FEASIBLE, broken * broken, 0.0) / np.einsum("ijk,ijk->ij", binv, binv)
        leave = np.argmax(score, axis=1)
        feasible = score[rows, leave] <= 0.0
        delta = broken[rows, leave]
        sign = np.where(above[rows, leave] > 0, 1.0, -1.0)
        rho = binv[rows, leave]
        alpha = (rho * sign[:, None]) @ matrix
        np.put_along_axis(alpha, B, 0.0, 1)
        # d_j(t) = d_j - t alpha_j changes sign at t_j; each crossing lowers the slope of the dual objective.
        falls = np.where(d >= 0, alpha, -alpha)
        crosses = falls > SMALLEST_PIVOT
        t = np.full(d.shape, np.inf)
        np.divide(np.abs(d), falls, out=t, where=crosses)
        order = np.argsort(t, axis=1)
        falls *= span
        np.copyto(falls, 0.0, where=~crosses)
        slope = np.cumsum(np.take_along_axis(falls, order, 1), axis=1)
        reached = slope >= delta[:, None]
        stop = np.argmax(reached, axis=1)
        enter = order[rows, stop]
        blocked = reached[rows, stop] & crosses[rows, enter]
        stuck = np.flatnonzero(~feasible & ~blocked)
        if stuck.size:
            empty = _excluded(matrix, rhs, lo[stuck], hi[stuck], rho[stuck])
            bound[live[stuck[empty]]] = np.inf
        finished = feasible | ~blocked | (bound[live] >= cutoff[live]) | (pivots + 1 == max_pivots)
        if finished.any():
            x_out[live[finished]] = x[finished]
            y_out[live[finished]] = y[finished]
            basis[live[finished]] = B[finished]
            optimal[live[finished]] = feasible[finished]
            keep = ~finished
            if not keep.any():
                return Solved(bound, x_out, basis, y_out, optimal)
            live, c, lo, hi, span = live[keep], c[keep], lo[keep], hi[keep], span[keep]
            B, binv = B[keep], binv[keep]
            leave, enter, rho, rows = leave[keep], enter[keep], rho[keep], rows[: live.size]
        w = np.matmul(binv, matrix.T[enter][:, :, None])[:, :, 0]
        pivot_row = rho / w[rows, leave][:, None]
        w[rows, leave] -= 1.0
        binv = binv - w[:, :, None] * pivot_row[:, None, :]
        B[rows, leave] = enter
    raise AssertionError("the last pivot finishes every programme")


def _excluded(matrix: FloatArray, rhs: FloatArray, low: FloatArray, high: FloatArray, rho: FloatArray) -> BoolArray:
    """Whether rho·A x = rho·b has no solution in the box: a proof that the programme is empty, for any rho."""
    alpha = rho @ matrix
    aim = rho @ rhs
    least = np.minimum(alpha * low, alpha * high).sum(axis=1)
    most = np.maximum(alpha * low, alpha * high).sum(axis=1)
    margin = 10 * FEASIBLE * np.maximum(1.0, np.abs(rho).sum(axis=1))
    return np.asarray((least > aim + margin) | (most < aim - margin))
