r"""Many small linear programmes at once: min c·x subject to A x = b, l <= x <= u, for a batch of (c, l, u).

The dual simplex method with long steps, in lock step over the batch. Every variable is boxed, so every basis is dual
feasible (a variable sits at the bound that its reduced cost prefers) and every step yields a bound,

    y·b + Σ_j min(d_j l_j, d_j u_j)   with   d = c - y A,

which holds for *any* multipliers y. It is evaluated from that formula, so a wrong pivot can only weaken it, never
make it false, and neither can a clock that ends it early.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.clock import WORK, now
from privacyfunnel.engine.settings import SETTINGS


@dataclass(frozen=True, slots=True, eq=False)
class Programmes:
    """k programmes, and a basis to start each from."""

    matrix: FloatArray  # (m, n)
    rhs: FloatArray  # (m,)
    cost: FloatArray  # (k, n)
    low: FloatArray  # (k, n)
    high: FloatArray  # (k, n)
    basis: IntArray  # (k, m)


@dataclass(frozen=True, slots=True, eq=False)
class BatchSolution:
    """For each programme: a valid lower bound, and the last basic solution with its basis and multipliers."""

    bound: FloatArray  # (k,), infinite when infeasible
    x: FloatArray  # (k, n)
    basis: IntArray  # (k, m)
    multipliers: FloatArray  # (k, m), the last y
    optimal: BoolArray  # (k,)


def inverses(bases: FloatArray) -> FloatArray:
    """The inverse of every matrix; no numbers where there is none, so that one of thousands does not end them all.

    Infinite ones would do, but for what they are times nothing, of which numpy warns.
    """
    try:
        return np.asarray(np.linalg.inv(bases), dtype=np.float64)
    except np.linalg.LinAlgError:
        found = np.full(bases.shape, np.nan)
        for i, basis in enumerate(bases):
            with suppress(np.linalg.LinAlgError):
                found[i] = np.linalg.inv(basis)
        return found


def solve(programmes: Programmes, cutoff: FloatArray | None = None, deadline: float = np.inf) -> BatchSolution:
    """Bounds on a batch of programmes; each stops at its optimum, or once its bound reaches its cutoff.

    All stop where they are when the clock (`clock.now`) passes the deadline.
    """
    count, m = programmes.basis.shape
    most = max(SETTINGS.lp.most_pivots, 2 * SETTINGS.lp.pivots_per_row + SETTINGS.lp.pivots_per_row * m)
    if cutoff is None:
        cutoff = np.full(count, np.inf)
    out = BatchSolution(
        np.full(count, -np.inf),
        np.zeros(programmes.cost.shape),
        programmes.basis.copy(),
        np.zeros(programmes.basis.shape),
        np.zeros(count, dtype=bool),
    )
    live = _ActiveBatch(programmes)
    for pivots in range(1, most + 1):
        if pivots % SETTINGS.lp.refresh == 0:
            live.refresh()
        lengths = np.einsum("ijk,ijk->ij", live.binv, live.binv)
        sound = (np.isfinite(lengths) & (lengths > 0)).all(axis=1)  # else the basis is singular: there is no answer
        if not sound.all():
            live.keep(sound)
            lengths = lengths[sound]
        if not live.number.size:
            break
        y, d, x, bound = live.solution()
        out.bound[live.number] = np.maximum(out.bound[live.number], bound)
        above, broken = live.excess(x)
        # Steepest edge: the explicit inverse gives the exact weights.
        score = np.where(broken > SETTINGS.tolerance.feasible, broken * broken, 0.0) / lengths
        if pivots > SETTINGS.lp.random_after:
            score *= np.random.default_rng(pivots).random(score.shape)
        rows, leave = live.rows[:, 0], np.argmax(score, axis=1)
        feasible = score[rows, leave] <= 0.0
        rho = live.binv[rows, leave]
        alpha = rho @ live.A
        along = alpha * np.where(above[rows, leave] > 0, 1.0, -1.0)[:, None]
        along[live.rows, live.basis] = 0.0
        # A row that misses its bound by no more than rounding proves nothing: then others must be looked at as well.
        margin = margins(rho)
        enter, blocked = ratio_test(d, along, live.span, broken[rows, leave] - margin)
        stuck = np.flatnonzero(~feasible & ~blocked)
        if stuck.size:
            empty = _is_infeasible(
                alpha[stuck], (rho @ live.rhs)[stuck], live.low[stuck], live.high[stuck], margin[stuck]
            )
            out.bound[live.number[stuck[empty]]] = np.inf
        last = pivots == most or now() >= deadline
        finished = feasible | ~blocked | (out.bound[live.number] >= cutoff[live.number]) | last
        if finished.any():
            done = live.number[finished]
            out.x[done], out.basis[done], out.multipliers[done] = x[finished], live.basis[finished], y[finished]
            out.optimal[done] = feasible[finished]
            going = ~finished
            live.keep(going)
            leave, enter, rho = leave[going], enter[going], rho[going]
        live.pivot(leave, enter, rho)
    return out


class _ActiveBatch:
    """The programmes that are still worked on, with their bases and the inverses of these."""

    def __init__(self, programmes: Programmes) -> None:
        self.A, self.rhs, self._columns = programmes.matrix, programmes.rhs, programmes.matrix.T
        self.number = np.arange(len(programmes.cost))
        self.cost, self.low, self.high = programmes.cost, programmes.low, programmes.high
        self.span = programmes.high - programmes.low
        self.basis = programmes.basis.copy()
        self.rows = self.number[:, None]  # with `basis` it points at the basic entries
        self.refresh()

    def refresh(self) -> None:
        self.binv = inverses(self._columns[self.basis].transpose(0, 2, 1))

    def keep(self, which: BoolArray) -> None:
        self.number, self.cost = self.number[which], self.cost[which]
        self.low, self.high, self.span = self.low[which], self.high[which], self.span[which]
        self.basis, self.binv = self.basis[which], self.binv[which]
        self.rows = np.arange(self.number.size)[:, None]

    def solution(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Multipliers, reduced costs, the basic solution, and the bound that the multipliers give."""
        y = np.matmul(self.cost[self.rows, self.basis][:, None, :], self.binv)[:, 0]
        d = self.cost - y @ self.A
        x = np.where(d >= 0, self.low, self.high)
        bound = y @ self.rhs + np.einsum("ij,ij->i", d, x)
        x[self.rows, self.basis] = 0.0
        d[self.rows, self.basis] = 0.0
        x[self.rows, self.basis] = np.matmul(self.binv, (self.rhs - x @ self.A.T)[:, :, None])[:, :, 0]
        return y, d, x, bound

    def excess(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By how much basic variables lie above their upper bound, and outside of their bounds."""
        basic = x[self.rows, self.basis]
        above = basic - self.high[self.rows, self.basis]
        return above, np.maximum(above, self.low[self.rows, self.basis] - basic)

    def pivot(self, leave: IntArray, enter: IntArray, rho: FloatArray) -> None:
        """Let `enter` take the place `leave` in each basis; rho was that row of the inverse."""
        rows = self.rows[:, 0]
        WORK.pivots += len(leave)
        WORK.entries += self.cost.size * self.basis.shape[1]
        self.basis[rows, leave] = enter
        w = np.matmul(self.binv, self._columns[enter][:, :, None])[:, :, 0]
        pivot_row = rho / w[rows, leave][:, None]
        w[rows, leave] -= 1.0
        self.binv = self.binv - w[:, :, None] * pivot_row[:, None, :]


def ratio_test(d: FloatArray, alpha: FloatArray, span: FloatArray, delta: FloatArray) -> tuple[IntArray, BoolArray]:
    """Which variable enters, and whether any does: the ratio test with long steps.

    Along the step t the reduced costs are d_j - t alpha_j. Where one changes sign its variable jumps to its other
    bound, which lowers the slope of the dual objective; the step goes on until that slope is gone.
    """
    falls = np.where(d >= 0, alpha, -alpha)
    crosses = falls > SETTINGS.tolerance.solved
    t = np.full(d.shape, np.inf)
    np.divide(np.abs(d), falls, out=t, where=crosses)
    order = np.argsort(t, axis=1)
    falls *= span
    np.copyto(falls, 0.0, where=~crosses)
    rows = np.arange(d.shape[0])
    slope = np.cumsum(falls[rows[:, None], order], axis=1)
    reached = slope >= delta[:, None]
    stop = np.argmax(reached, axis=1)
    enter = order[rows, stop]
    return enter, reached[rows, stop] & crosses[rows, enter]


def margins(rho: FloatArray) -> FloatArray:
    """What rounding may move rho·A x by."""
    return np.asarray(10 * SETTINGS.tolerance.feasible * np.maximum(1.0, np.abs(rho).sum(axis=1)))


def _is_infeasible(
    alpha: FloatArray, aim: FloatArray, low: FloatArray, high: FloatArray, margin: FloatArray
) -> BoolArray:
    """Whether rho·A x = rho·b has no solution in the box, alpha being rho·A: a proof that the programme is empty."""
    least = np.minimum(alpha * low, alpha * high).sum(axis=1)
    most = np.maximum(alpha * low, alpha * high).sum(axis=1)
    return np.asarray((least > aim + margin) | (most < aim - margin))
