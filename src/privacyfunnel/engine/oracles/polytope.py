"""The promise's polytope in the form that the simplex method wants: A x = b, l <= x <= u, with x = (v, slacks).

The rows of a promise are homogeneous. They know what they compare, and two shapes are smaller than the general one:

- everything is compared with everybody (LIP): one row L_E·v = z with e^-bε <= z <= e^aε;
- all pairs among k functionals are compared (LDP): a floor t with t <= L_s·v <= e^ε t, two rows per functional;
- anything else: one row per inequality (L_E − e^aε L_F)·v <= 0.

An inequality that holds at every corner of the simplex is left out.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import now
from privacyfunnel.engine.lp.batched_simplex import BatchSolution, Programmes, solve
from privacyfunnel.engine.oracles.oracle import BoxCosts, BoxMinima, LinearMinima
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.settings import SETTINGS


@dataclass(frozen=True, slots=True, eq=False)
class Polytope:
    """{x : A x = b, low <= x <= high}; its first `inputs` coordinates are the atom v."""

    matrix: FloatArray  # (m, n)
    rhs: FloatArray  # (m,)
    low: FloatArray  # (n,)
    high: FloatArray  # (n,)
    basis: IntArray  # (m,), a basis to start from
    inputs: int
    support: int  # a vertex has at most this many non-zero entries (docs/theory.md, Lemma 8)
    scales: tuple[FloatArray, FloatArray]  # of rows and columns: A scaled by both has entries of comparable size

    @property
    def batch(self) -> int:
        return max(SETTINGS.lp.least_batch, SETTINGS.lp.batch_numbers // self.low.size)

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

    def solve_linear(self, slopes: FloatArray, deadline: float = np.inf) -> BatchSolution:
        """min slopes·v, for every row; bounds that hold where time is up before."""
        cost = np.zeros((slopes.shape[0], self.low.size))
        cost[:, : self.inputs] = slopes
        return solve(self.programmes(cost), deadline=deadline)

    def minimise(self, costs: FloatArray, deadline: float = np.inf) -> LinearMinima:
        found = self.solve_linear(costs, deadline)
        return LinearMinima(found.bound, np.maximum(found.x[:, : self.inputs], 0.0))

    def box_states(self, count: int) -> tuple[NDArray[Any], ...]:
        return (np.tile(self.basis, (count, 1)),)

    def minimise_in_boxes(self, boxes: BoxCosts, deadline: float) -> BoxMinima:
        """By small programmes that start from the basis of the box they came from."""
        k, d = boxes.costs.shape
        cost = np.zeros((k, self.low.size))
        cost[:, :d] = boxes.costs
        box = replace(self.programmes(cost, boxes.low, boxes.high), basis=boxes.states[0])
        found = solve(box, boxes.cutoff, deadline)
        some = np.flatnonzero(found.bound < boxes.cutoff)
        reduced, value = np.zeros((k, d)), np.full(k, -np.inf)
        by_row = cost[some] - found.multipliers[some] @ self.matrix
        ends = np.minimum(by_row * box.low[some], by_row * box.high[some]).sum(axis=1)
        reduced[some], value[some] = by_row[:, :d], found.multipliers[some] @ self.rhs + ends
        return BoxMinima(found.bound, found.x[:, :d], reduced, value, (found.basis,), found.optimal)

    def reach(self, deadline: float) -> FloatArray:
        """For every input the largest probability that any allowed atom gives it, (inputs,), rounded up.

        Where time is up, what is known by then, and 1 where that is nothing.
        """
        most = np.ones(self.inputs)
        for first in range(0, self.inputs, self.batch):
            if now() >= deadline:
                break
            some = np.arange(first, min(first + self.batch, self.inputs))
            most[some] = -self.solve_linear(-np.eye(self.inputs)[some], deadline).bound
        return np.clip(most + SETTINGS.tolerance.solved, 0.0, 1.0)


def build_polytope(problem: Problem) -> Polytope:
    """The polytope of a problem, in the smallest of the known shapes."""
    rows, loud = problem.constraints, problem.exp_epsilon
    secrets = rows.share.shape[1] if len(rows.even) == 1 and rows.full_classes[0] else problem.size
    if rows.compares_with_everybody:
        above, below = problem.limits
        return _assemble(*_ranges(rows.dense[0], 1 / below, above), problem.prior, secrets)
    if rows.mutual_functionals is not None:
        return _assemble(*_floors(rows.mutual_functionals, loud), problem.prior, secrets)
    A = problem.inequalities
    return _assemble(A, np.zeros(A.shape[0]), A.max(axis=1, initial=0.0), problem.prior, secrets)


def _assemble(A: FloatArray, low: FloatArray, high: FloatArray, prior: FloatArray, support: int) -> Polytope:
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
    return Polytope(matrix, rhs, bottom, top, basis, d, min(support, m + 1, d), scales)


def _ranges(N: FloatArray, quiet: FloatArray, loud: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """N_i·v within [quiet, loud]; rows that stay inside at every corner of the simplex say nothing."""
    least, most = N.min(axis=1), N.max(axis=1)
    says = (least < quiet) | (most > loud)
    return N[says], np.maximum(least, quiet)[says], np.minimum(most, loud)[says]


def _floors(L: FloatArray, loud: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """t <= L_s·v <= e^ε t. The upper row of s is needed only where L_s can exceed e^ε times the least."""
    t = np.ones((L.shape[0], 1))
    needs_upper = (loud * L.min(axis=0) < L).any(axis=1)
    needs_lower = (loud * L - L.max(axis=0) < 0).any(axis=1)
    A = np.concatenate([np.hstack([L, -t])[needs_lower], np.hstack([-L, loud * t])[needs_upper]])
    most = np.concatenate([L.max(axis=1)[needs_lower], np.full(int(needs_upper.sum()), loud * L.max())])
    return A, np.zeros(A.shape[0]), most
