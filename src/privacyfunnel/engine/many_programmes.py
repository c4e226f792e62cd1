"""Thousands of small linear programmes, each with a matrix of its own: min c·x subject to A x = b, 0 <= l <= x <= u.

The dual simplex method in lock step. Every variable is boxed, so every basis is dual feasible when each non-basic
variable sits at the bound that its reduced cost prefers. A dual step may pass several of these bounds at once.
Nothing here is trusted: what is built from the answers is checked afterwards.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray

FEASIBLE = 1e-10
SMALLEST_PIVOT = 1e-9
REFRESHED = 20  # pivots after which inverses are computed afresh


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """For each programme its last basic solution, multipliers and basis, and whether that is an optimum."""

    x: FloatArray  # (k, n)
    y: FloatArray  # (k, m)
    basis: IntArray  # (k, m)
    optimal: BoolArray  # (k,)


def solve_many(
    A: FloatArray,
    b: FloatArray,
    cost: FloatArray,
    low: FloatArray,
    high: FloatArray,
    basis: IntArray,
    which: IntArray,
) -> Answers:
    """Programme i uses A[which[i]], b[which[i]] and the i-th cost, bounds and starting basis."""
    count, n = cost.shape
    pivots = 20 + 10 * A.shape[1]
    x_out, y_out = np.zeros((count, n)), np.zeros(basis.shape)
    basis_out, optimal = basis.copy(), np.zeros(count, dtype=bool)
    live = np.arange(count)
    B = basis.copy()
    transposed = np.ascontiguousarray(A.transpose(0, 2, 1))  # (·, n, m): a column of A is contiguous
    binv = _inverses(transposed[which[:, None], B].transpose(0, 2, 1))
    for pivot in range(pivots):
        if pivot % REFRESHED == REFRESHED - 1:
            binv = _inverses(transposed[which[live][:, None], B].transpose(0, 2, 1))
        lengths = np.einsum("ijk,ijk->ij", binv, binv)
        sound = (np.isfinite(lengths) & (lengths > 0)).all(axis=1)  # else the basis is singular: there is no answer
        live, B, binv = live[sound], B[sound], binv[sound]
        if not live.size:
            break
        rows = np.arange(live.size)
        matrix, c, lo, hi = A[which[live]], cost[live], low[live], high[live]
        y = np.matmul(np.take_along_axis(c, B, 1)[:, None, :], binv)
        d = c - np.matmul(y, matrix)[:, 0]
        np.put_along_axis(d, B, 0.0, 1)
        x = np.where(d >= 0, lo, hi)
        np.put_along_axis(x, B, 0.0, 1)
        rest = b[which[live]][:, :, None] - np.matmul(matrix, x[:, :, None])
        x_basic = np.matmul(binv, rest)[:, :, 0]
        np.put_along_axis(x, B, x_basic, 1)
        above = x_basic - np.take_along_axis(hi, B, 1)
        below = np.take_along_axis(lo, B, 1) - x_basic
        broken = np.maximum(above, below)
        score = np.where(broken > FEASIBLE, broken * broken, 0.0) / lengths[sound]
        leave = np.argmax(score, axis=1)
        feasible = score[rows, leave] <= 0.0
        upwards = above[rows, leave] > 0
        rho = binv[rows, leave]
        alpha = np.matmul(rho[:, None, :], matrix)[:, 0] * np.where(upwards, 1.0, -1.0)[:, None]
        np.put_along_axis(alpha, B, 0.0, 1)
        enter, blocked = _entering(d, alpha, hi - lo, broken[rows, leave])
        done = feasible | ~blocked | (pivot + 1 == pivots)
        if done.any():
            at = live[done]
            x_out[at], y_out[at], basis_out[at], optimal[at] = x[done], y[done, 0], B[done], feasible[done]
            keep = ~done
            if not keep.any():
                break
            live, B, binv = live[keep], B[keep], binv[keep]
            leave, enter, rho, rows = leave[keep], enter[keep], rho[keep], rows[: live.size]
        binv = _pivoted(np.asarray(binv), transposed[which[live], enter], rho, leave)
        B[rows, leave] = enter
    return Answers(x_out, y_out, basis_out, optimal)


def _entering(d: FloatArray, alpha: FloatArray, width: FloatArray, need: FloatArray) -> tuple[IntArray, BoolArray]:
    """Which variable enters each basis, and whether any can.

    As the dual step grows, d_j - t alpha_j changes sign at t_j; passing it costs |alpha_j| (u_j - l_j) of slope.
    """
    rows = np.arange(len(need))
    crosses = np.where(d >= 0, alpha, -alpha) > SMALLEST_PIVOT
    t = np.full(d.shape, np.inf)
    np.divide(d, alpha, out=t, where=crosses)
    order = np.argsort(t, axis=1)
    fall = np.cumsum(np.take_along_axis(np.where(crosses, np.abs(alpha) * width, 0.0), order, 1), axis=1)
    reached = fall >= need[:, None]
    enter = order[rows, np.argmax(reached, axis=1)]
    return enter, reached.any(axis=1) & crosses[rows, enter]


def _inverses(bases: FloatArray) -> FloatArray:
    """The inverse of each; infinite where there is none, so that one of thousands does not end them all."""
    try:
        return np.asarray(np.linalg.inv(bases))
    except np.linalg.LinAlgError:
        inverses = np.full(bases.shape, np.inf)
        for i, basis in enumerate(bases):
            with suppress(np.linalg.LinAlgError):
                inverses[i] = np.linalg.inv(basis)
        return inverses


def _pivoted(binv: FloatArray, column: FloatArray, rho: FloatArray, leave: IntArray) -> FloatArray:
    """The inverses after `column` has taken the place `leave` in each basis; rho was that row of the inverse."""
    rows = np.arange(len(leave))
    w = np.matmul(binv, column[:, :, None])[:, :, 0]
    pivot_row = rho / w[rows, leave][:, None]
    w[rows, leave] -= 1.0
    return np.asarray(binv - w[:, :, None] * pivot_row[:, None, :])
