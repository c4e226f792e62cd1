r"""The best products of rows to add to a quadratic form: a linear programme whose columns arrive as they are needed.

.. math:: \min \delta \quad\text{such that no entry of}\quad
   D + \sum_{i \le j} N_{ij}\, \tfrac12 (a_i a_j^\top + a_j a_i^\top) \quad\text{exceeds } \delta,\ N \ge 0 .

Its dual values X stand for :math:`w w^\top`. The bound is evaluated by the formula from whatever N a solver says.
Rows themselves may arrive as well, where somebody sees from X that they are missing.

Half of a box keeps the rows of the whole, so that its products, their basis and X are what its halves begin with.

Rows that sets of priors ask of atoms, found where a proof by products misses them (products.py).

Every pair of members P of A and R of B is a row :math:`(\beta R - \alpha P) / p \cdot v \ge 0` that atoms keep
(oracles/credal_constraints.py); there are far too many to multiply them all. A dual solution X stands for
:math:`w w^\top`, and then :math:`X a_i` for a multiple of w, for every row :math:`a_i` that w keeps: where the worst
members show that :math:`X a_i` is not allowed, the product of their row and :math:`a_i` is worth having."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.clock import now
from privacyfunnel.engine.lp.highs import INF, PRIMAL, Basis, Programme
from privacyfunnel.engine.oracles.credal_constraints import CredalConstraints
from privacyfunnel.engine.oracles.oracle import UNIT
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.settings import SETTINGS

ProductCuts = Callable[[FloatArray, FloatArray], tuple[FloatArray, IntArray]]
"""From X and the rows there are: further rows, and for each the number of a row with which X breaks its product."""


@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """Products to begin with, as pairs of rows; and, where they are known, a basis and a dual matrix X."""

    one: FloatArray  # (k, size)
    other: FloatArray
    basis: Basis | None = None
    second: FloatArray | None = None

    @staticmethod
    def empty(size: int) -> WarmStart:
        """No products."""
        return WarmStart(np.empty((0, size)), np.empty((0, size)))


@dataclass(frozen=True, slots=True, eq=False)
class ProductBound:
    """A proved δ with wᵀDw <= δ, all rows there were in the end, and what the halves of a box may begin with."""

    largest: float
    rows: FloatArray
    warm_start: WarmStart


class ProductProgramme:
    """min δ such that no entry of D + Σ N_ij a_i a_jᵀ exceeds δ, N >= 0; products enter as they are needed."""

    def __init__(self, size: int, inputs: int, largest_floor: float) -> None:
        self._size, self._floor = size, largest_floor
        self._i, self._j = np.triu_indices(size)
        self._weighed = (self._i < inputs) & (self._j < inputs)  # the entries of v vᵀ, as opposed to those that meet t
        self._programme = Programme(simplex_strategy=PRIMAL)

    def solve(
        self,
        D: FloatArray,
        rows: FloatArray,
        first: WarmStart,
        goal: float,
        missing: ProductCuts | None = None,
        deadline: float = np.inf,
    ) -> ProductBound:
        """The least δ that was found; it is not sought below the goal. It holds whatever the solver says."""
        entries = D[self._i, self._j]
        self._begin(entries, goal)
        one, other, second = first.one, first.other, first.second
        S = self._product_entries(one, other)
        self._add(S)
        if first.basis is not None:
            self._programme.set_basis(first.basis)
        known = np.zeros((len(rows),) * 2, dtype=bool)
        best = self._upper_bound(entries, np.empty(0), S[:0])
        for number in range(SETTINGS.proofs.product_rounds):
            if second is not None:
                new = find_violated_pairs(rows, second, known, SETTINGS.proofs.products_per_round)
                if missing is not None:
                    more, times = missing(second, rows)
                    new = np.append(new[0], times), np.append(new[1], len(rows) + np.arange(len(more)))
                    rows, known = np.concatenate([rows, more]), np.pad(known, ((0, len(more)),) * 2)
                if number and not new[0].size:
                    break
                known[new] = True
                products = self._product_entries(rows[new[0]], rows[new[1]])
                self._add(products)
                S = np.concatenate([S, products])
                one, other = np.concatenate([one, rows[new[0]]]), np.concatenate([other, rows[new[1]]])
            if not self._run():
                return ProductBound(best, rows, WarmStart(first.one, first.other))
            before, best = best, min(best, self._upper_bound(entries, np.maximum(self._programme.solution[1:], 0.0), S))
            if best <= goal:
                return ProductBound(best, rows, first)  # nothing of the box is left
            second = self._matrix(-self._programme.multipliers)
            if now() >= deadline or (number and before - best < SETTINGS.proofs.product_gain * (best - goal)):
                break
        basis = self._programme.basis
        held = basis.is_basic
        held[0] = True  # δ itself
        return ProductBound(best, rows, WarmStart(one[held[1:]], other[held[1:]], basis.restrict(held), second))

    def _upper_bound(self, entries: FloatArray, N: FloatArray, S: FloatArray) -> float:
        """The largest entry, by the formula, rounded up; entries above 0 that meet t count with all they can add."""
        total = entries + N @ S
        total = total + 32 * UNIT * (np.abs(entries) + N @ np.abs(S))
        beyond = float(total[~self._weighed].max(initial=0.0))
        return float(total[self._weighed].max()) + beyond * (2 * self._floor + self._floor**2)

    def _product_entries(self, one: FloatArray, other: FloatArray) -> FloatArray:
        return np.asarray(0.5 * (one[:, self._i] * other[:, self._j] + other[:, self._i] * one[:, self._j]))

    def _matrix(self, dual: FloatArray) -> FloatArray:
        X = np.zeros((self._size,) * 2)
        X[self._i, self._j] = dual / 2
        return X + X.T

    def _begin(self, entries: FloatArray, goal: float) -> None:
        """δ alone: at least the goal, so that a box that is empty has a solution too."""
        self._programme.clear()
        self._programme.add_rows(np.full(entries.size, -INF), -entries)
        at = np.flatnonzero(self._weighed)
        self._programme.add_columns(
            np.ones(1),
            np.zeros(1, dtype=np.int64),
            at,
            -np.ones(at.size),
            low=np.array([goal - abs(goal) * SETTINGS.proofs.product_floor]),
        )

    def _add(self, products: FloatArray) -> None:
        row, entry = np.nonzero(products)
        starts = np.searchsorted(row, np.arange(len(products)))
        self._programme.add_columns(np.zeros(len(products)), starts, entry, products[row, entry])

    def _run(self) -> bool:
        """Solve, afresh where the last basis leads nowhere. A failure is no error: bounds come from the formula."""
        if self._programme.run():
            return True
        self._programme.clear_basis()
        return self._programme.run()


def find_violated_pairs(
    rows: FloatArray, second: FloatArray, known: BoolArray, count: int
) -> tuple[IntArray, IntArray]:
    """Pairs of rows whose product X takes for less than 0, at most so many, the most broken ones."""
    held = np.flatnonzero(second.any(axis=0))
    some = rows[:, held]
    value = np.triu(some @ second[np.ix_(held, held)] @ some.T)
    value[known] = 0.0
    broken = np.flatnonzero(value < -SETTINGS.tolerance.solved)
    order = broken[np.argsort(value.ravel()[broken])[:count]]
    return order // len(rows), order % len(rows)


class CredalProductCuts:
    """The rows of a problem's sets that a dual solution breaks most, each with what it is to be multiplied by."""

    def __init__(self, problem: Problem) -> None:
        self._rules, self._size = CredalConstraints.from_problem(problem), problem.size

    def __call__(self, second: FloatArray, rows: FloatArray) -> tuple[FloatArray, IntArray]:
        """See ProductCuts."""
        d = self._size
        times = (rows @ second)[:, :d] if len(rows) < SETTINGS.proofs.most_credal_cuts else np.empty((0, d))
        some = np.flatnonzero((times > SETTINGS.tolerance.near).any(axis=1))
        worst = self._rules.worst_constraint(times[some])
        by = np.einsum("ij,ij->i", worst, times[some])
        most = [
            i
            for i in np.argsort(by, kind="stable")[: SETTINGS.proofs.credal_cuts_per_round].tolist()
            if by[i] < -SETTINGS.tolerance.violated_credal_product
        ]
        more = np.zeros((len(most), rows.shape[1]))
        more[:, :d] = worst[most]
        return more, some[most]
