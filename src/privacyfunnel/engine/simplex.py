"""Many small linear programmes at once: min c·x subject to A x = b, l <= x <= u, for a batch of (c, l, u).

The dual simplex method with long steps, in lock step over the batch. Every variable is boxed, so every basis is dual
feasible (a variable sits at the bound that its reduced cost prefers) and every step yields a bound,

    y·b + Σ_j min(d_j l_j, d_j u_j)   with   d = c - y A,

which holds for *any* multipliers y. It is evaluated from that formula, so a wrong pivot can only weaken it, never
make it false, and neither can a clock that ends it early. All programmes may share one A, or have one each.
"""

import time
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray

FEASIBLE = 1e-10
SMALLEST_PIVOT = 1e-9  # a smaller one would blow up rounding
MOST_PIVOTS, PIVOTS_PER_ROW = 200, 10  # a programme that takes more is given up: its bound still holds
REFRESHED = 25  # pivots after which inverses are computed afresh


@dataclass(frozen=True, slots=True, eq=False)
class Programmes:
    """k programmes, and a basis to start each from."""

    matrix: FloatArray  # (m, n), or (g, m, n) where `which` says whose each is
    rhs: FloatArray  # (m,), or (g, m)
    cost: FloatArray  # (k, n)
    low: FloatArray  # (k, n)
    high: FloatArray  # (k, n)
    basis: IntArray  # (k, m)
    which: IntArray | None = None  # (k,), the matrix of each programme


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """For each programme: a valid lower bound, and the last basic solution with its basis and multipliers."""

    bound: FloatArray  # (k,), infinite when infeasible
    x: FloatArray  # (k, n)
    basis: IntArray  # (k, m)
    multipliers: FloatArray  # (k, m), the last y
    optimal: BoolArray  # (k,)


class _Matrices:
    """A, of all programmes or of each, for those that are still worked on."""

    def __init__(self, programmes: Programmes) -> None:
        A, which = programmes.matrix, programmes.which
        self._shared = which is None
        self._A, self._rhs = A, programmes.rhs
        # A column of A is contiguous here.
        self._columns = A.T if self._shared else np.ascontiguousarray(A.transpose(0, 2, 1))
        self._which = np.zeros(len(programmes.cost), dtype=np.int64) if which is None else which

    def keep(self, which: BoolArray) -> None:
        """Go on with these alone."""
        self._which = self._which[which]

    def columns(self, j: IntArray) -> FloatArray:
        """Column(s) j of each: (k,) gives (k, m), (k, i) gives (k, i, m)."""
        if self._shared:
            return np.asarray(self._columns[j])
        return np.asarray(self._columns[self._which if j.ndim == 1 else self._which[:, None], j])

    def left(self, y: FloatArray) -> FloatArray:
        """y A."""
        return np.asarray(y @ self._A if self._shared else np.matmul(y[:, None, :], self._A[self._which])[:, 0])

    def rest(self, x: FloatArray) -> FloatArray:
        """b − A x."""
        if self._shared:
            return np.asarray(self._rhs - x @ self._A.T)
        return np.asarray(self._rhs[self._which] - np.matmul(self._A[self._which], x[:, :, None])[:, :, 0])

    def against(self, y: FloatArray) -> FloatArray:
        """y·b."""
        return np.asarray(y @ self._rhs if self._shared else np.einsum("ij,ij->i", y, self._rhs[self._which]))


def inverses(bases: FloatArray) -> FloatArray:
    """The inverse of every matrix; infinite where there is none, so that one of thousands does not end them all."""
    try:
        return np.asarray(np.linalg.inv(bases), dtype=np.float64)
    except np.linalg.LinAlgError:
        found = np.full(bases.shape, np.inf)
        for i, basis in enumerate(bases):
            with suppress(np.linalg.LinAlgError):
                found[i] = np.linalg.inv(basis)
        return found


def solve(programmes: Programmes, cutoff: FloatArray | None = None, deadline: float = np.inf) -> Solved:
    """Bounds on a batch of programmes; each stops at its optimum, or once its bound reaches its cutoff.

    All stop where they are when the clock (time.monotonic) passes the deadline.
    """
    A = _Matrices(programmes)
    count, m = programmes.basis.shape
    most = max(MOST_PIVOTS, 2 * PIVOTS_PER_ROW + PIVOTS_PER_ROW * m)
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
    binv = inverses(A.columns(basis).transpose(0, 2, 1))
    for pivots in range(1, most + 1):
        if pivots % REFRESHED == 0:
            binv = inverses(A.columns(basis).transpose(0, 2, 1))
        lengths = np.einsum("ijk,ijk->ij", binv, binv)
        sound = (np.isfinite(lengths) & (lengths > 0)).all(axis=1)  # else the basis is singular: there is no answer
        if not sound.all():
            A.keep(sound)
            live, c, lo, hi, span = live[sound], c[sound], lo[sound], hi[sound], span[sound]
            basis, binv, lengths = basis[sound], binv[sound], lengths[sound]
            if not live.size:
                break
        rows = np.arange(live.size)
        y = np.matmul(np.take_along_axis(c, basis, 1)[:, None, :], binv)[:, 0]
        d = c - A.left(y)
        x = np.where(d >= 0, lo, hi)
        out.bound[live] = np.maximum(out.bound[live], A.against(y) + np.einsum("ij,ij->i", d, x))
        np.put_along_axis(x, basis, 0.0, 1)
        np.put_along_axis(d, basis, 0.0, 1)
        x_basic = np.matmul(binv, A.rest(x)[:, :, None])[:, :, 0]
        np.put_along_axis(x, basis, x_basic, 1)
        above = x_basic - np.take_along_axis(hi, basis, 1)
        broken = np.maximum(above, np.take_along_axis(lo, basis, 1) - x_basic)
        # Steepest edge: the explicit inverse gives the exact weights.
        score = np.where(broken > FEASIBLE, broken * broken, 0.0) / lengths
        leave = np.argmax(score, axis=1)
        feasible = score[rows, leave] <= 0.0
        rho = binv[rows, leave]
        alpha = A.left(rho) * np.where(above[rows, leave] > 0, 1.0, -1.0)[:, None]
        np.put_along_axis(alpha, basis, 0.0, 1)
        enter, blocked = _entering(d, alpha, span, broken[rows, leave])
        stuck = np.flatnonzero(~feasible & ~blocked)
        if stuck.size:
            empty = _excluded(A.left(rho)[stuck], A.against(rho)[stuck], lo[stuck], hi[stuck], rho[stuck])
            out.bound[live[stuck[empty]]] = np.inf
        last = pivots == most or time.monotonic() >= deadline
        finished = feasible | ~blocked | (out.bound[live] >= cutoff[live]) | last
        if finished.any():
            done = live[finished]
            out.x[done], out.basis[done], out.multipliers[done] = x[finished], basis[finished], y[finished]
            out.optimal[done] = feasible[finished]
            keep = ~finished
            A.keep(keep)
            live, c, lo, hi, span = live[keep], c[keep], lo[keep], hi[keep], span[keep]
            basis, binv, leave, enter, rho = basis[keep], binv[keep], leave[keep], enter[keep], rho[keep]
            if not live.size:
                break
        rows = np.arange(live.size)
        basis[rows, leave] = enter
        w = np.matmul(binv, A.columns(enter)[:, :, None])[:, :, 0]
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


def _excluded(alpha: FloatArray, aim: FloatArray, low: FloatArray, high: FloatArray, rho: FloatArray) -> BoolArray:
    """Whether rho·A x = rho·b has no solution in the box: a proof that the programme is empty, for any rho."""
    least = np.minimum(alpha * low, alpha * high).sum(axis=1)
    most = np.maximum(alpha * low, alpha * high).sum(axis=1)
    margin = 10 * FEASIBLE * np.maximum(1.0, np.abs(rho).sum(axis=1))
    return np.asarray((least > aim + margin) | (most < aim - margin))
