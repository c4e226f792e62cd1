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
MOST_PIVOTS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Programmes:
    """k programmes with the same A and b, and a basis to start each from."""

    matrix: FloatArray  # (m, n)
    rhs: FloatArray  # (m,)
    cost: FloatArray  # (k, n)
    low: FloatArray  # (k, n)
    high: FloatArray  # (k, n)
    basis: IntArray  # (k, m)


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


def solve(programmes: Programmes, cutoff: FloatArray | None = None) -> Solved:
    """Bounds on a batch of programmes; each stops at its optimum, or once its bound reaches its cutoff."""
    A, rhs = programmes.matrix, programmes.rhs
    count = programmes.cost.shape[0]
    if cutoff is None:
        cutoff = np.full(count, np.inf)
    out = Solved(
        np.full(count, -np.inf),
        np.zeros(programmes.cost.shape),
        programmes.basis.copy(),
        np.zeros(programmes.basis.shape),
        np.zeros(count, dtype=bool),
    )
    live = np.arange(count)
    c, lo, hi, basis = programmes.cost, programmes.low, programmes.high, programmes.basis.copy()
    span = hi - lo
    binv = inverses(A, basis)
    for pivots in range(1, MOST_PIVOTS + 1):
        rows = np.arange(live.size)
        y = np.matmul(np.take_along_axis(c, basis, 1)[:, None, :], binv)[:, 0]
        d = c - y @ A
        x = np.where(d >= 0, lo, hi)
        out.bound[live] = np.maximum(out.bound[live], y @ rhs + np.einsum("ij,ij->i", d, x))
        np.put_along_axis(x, basis, 0.0, 1)
        np.put_along_axis(d, basis, 0.0, 1)
        x_basic = np.matmul(binv, (rhs - x @ A.T)[:, :, None])[:, :, 0]
        np.put_along_axis(x, basis, x_basic, 1)
        above = x_basic - np.take_along_axis(hi, basis, 1)
        broken = np.maximum(above, np.take_along_axis(lo, basis, 1) - x_basic)
        # Steepest edge: the explicit inverse gives the exact weights.
        score = np.where(broken > FEASIBLE, broken * broken, 0.0) / np.einsum("ijk,ijk->ij", binv, binv)
        leave = np.argmax(score, axis=1)
        feasible = score[rows, leave] <= 0.0
        rho = binv[rows, leave]
        alpha = (rho * np.where(above[rows, leave] > 0, 1.0, -1.0)[:, None]) @ A
        np.put_along_axis(alpha, basis, 0.0, 1)
        enter, blocked = _entering(d, alpha, span, broken[rows, leave])
        stuck = np.flatnonzero(~feasible & ~blocked)
        if stuck.size:
            empty = _excluded(programmes, lo[stuck], hi[stuck], rho[stuck])
            out.bound[live[stuck[empty]]] = np.inf
        finished = feasible | ~blocked | (out.bound[live] >= cutoff[live]) | (pivots == MOST_PIVOTS)
        if finished.any():
            done = live[finished]
            out.x[done], out.basis[done], out.multipliers[done] = x[finished], basis[finished], y[finished]
            out.optimal[done] = feasible[finished]
            keep = ~finished
            live, c, lo, hi, span = live[keep], c[keep], lo[keep], hi[keep], span[keep]
            basis, binv, leave, enter, rho = basis[keep], binv[keep], leave[keep], enter[keep], rho[keep]
            if not live.size:
                break
        rows = np.arange(live.size)
        basis[rows, leave] = enter
        w = np.matmul(binv, A.T[enter][:, :, None])[:, :, 0]
        pivot_row = rho / w[rows, leave][:, None]
        w[rows, leave] -= 1.0
        binv = binv - w[:, :, None] * pivot_row[:, None, :]
    return out


def _entering(d: FloatArray, alpha: FloatArray, span: FloatArray, delta: FloatArray) -> tuple[IntArray, BoolArray]:
    """Which variable enters, and whether any does: the ratio test with long steps.

    Along the step t the reduced costs are d_j - t alpha_j. Where one changes sign its variable jumps to its other
    bound, which lowers the slope of the dual objective; the step goes on until that slope is gone.
    """
    falls = np.where(d >= 0, alpha, -alpha)
    crosses = falls > SMALLEST_PIVOT
    t = np.full(d.shape, np.inf)
    np.divide(np.abs(d), falls, out=t, where=crosses)
    order = np.argsort(t, axis=1)
    falls *= span
    np.copyto(falls, 0.0, where=~crosses)
    slope = np.cumsum(np.take_along_axis(falls, order, 1), axis=1)
    reached = slope >= delta[:, None]
    rows = np.arange(d.shape[0])
    stop = np.argmax(reached, axis=1)
    enter = order[rows, stop]
    return enter, reached[rows, stop] & crosses[rows, enter]


def _excluded(programmes: Programmes, low: FloatArray, high: FloatArray, rho: FloatArray) -> BoolArray:
    """Whether rho·A x = rho·b has no solution in the box: a proof that the programme is empty, for any rho."""
    alpha = rho @ programmes.matrix
    aim = rho @ programmes.rhs
    least = np.minimum(alpha * low, alpha * high).sum(axis=1)
    most = np.maximum(alpha * low, alpha * high).sum(axis=1)
    margin = 10 * FEASIBLE * np.maximum(1.0, np.abs(rho).sum(axis=1))
    return np.asarray((least > aim + margin) | (most < aim - margin))
