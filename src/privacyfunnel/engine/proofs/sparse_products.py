r"""The programme of product_programme.py where a form has many entries of which few matter: these arrive as well.

With hundreds of inputs most entries of :math:`D + \sum N_{ij} \operatorname{sym}(a_i a_j^\top)` are far below δ. The
programme knows those that were largest so far; which others are too large is seen by evaluating the whole form, and so
is the bound, which therefore holds whatever the programme knows.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.lp.highs import INF, Programme
from privacyfunnel.engine.oracles.oracle import UNIT
from privacyfunnel.engine.proofs.product_programme import (
    MOST_ROUNDS,
    ProductBound,
    ProductCuts,
    WarmStart,
    find_violated_pairs,
)

PRODUCTS_PER_ROUND, ENTRIES_PER_ROUND = 200, 400  # that enter together
GAINS = 0.1  # of what is missing to the goal: a round that gains less is the last, and the box is cut
USED = 1e-12  # a product whose multiplier is above this is handed on to the halves of a box
TOO_LARGE = 1e-9  # relative to the form: an entry above δ by more enters


class SparseProductProgramme:
    """min δ such that no entry exceeds δ, N >= 0; products and entries enter as they are needed."""

    def __init__(self, size: int, inputs: int, largest_floor: float) -> None:
        self._weighed = np.zeros((size, size), dtype=bool)  # the entries of v vᵀ, as opposed to those that meet t
        self._weighed[:inputs, :inputs] = True
        self._upper = np.triu(np.ones((size, size), dtype=bool))
        self._floor = largest_floor
        self._programme = Programme()

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
        one, other = first.one, first.other
        known = np.zeros((len(rows),) * 2, dtype=bool)
        best, _ = self._upper_bound(D, one[:0], other[:0], np.empty(0))
        used, second, before = WarmStart(one, other), None, np.inf
        entries = self._begin(D, goal)
        self._add_products(_products(one, other, entries))
        for _ in range(MOST_ROUNDS):
            if not self._run(deadline):
                return ProductBound(best, rows, replace(used, second=None))
            delta, N = float(self._programme.solution[0]), np.maximum(self._programme.solution[1:], 0.0)
            here, total = self._upper_bound(D, one, other, N)
            if here <= best:
                best, used = here, WarmStart(one[N > USED], other[N > USED])
            if best <= goal or time.monotonic() >= deadline:
                break
            second = self._matrix(-self._programme.multipliers, entries, len(D))
            more = self._find_violated_entries(total, delta, entries, float(np.abs(D).max()))
            if not more[0].size and before - delta < GAINS * (delta - goal):
                break
            before = delta if not more[0].size else np.inf
            new = find_violated_pairs(rows, second, known, PRODUCTS_PER_ROUND)
            if not new[0].size and not more[0].size:
                break
            self._add_entries(D, _products(one, other, more), more)
            entries = np.append(entries[0], more[0]), np.append(entries[1], more[1])
            known[new] = True
            self._add_products(_products(rows[new[0]], rows[new[1]], entries))
            one, other = np.concatenate([one, rows[new[0]]]), np.concatenate([other, rows[new[1]]])
        return ProductBound(best, rows, replace(used, second=second))

    def _upper_bound(
        self, D: FloatArray, one: FloatArray, other: FloatArray, N: FloatArray
    ) -> tuple[float, FloatArray]:
        """The largest entry, by the formula, rounded up (entries above 0 that meet t count with all they can add); and
        the whole form."""
        some = N > 0
        a, b = one[some] * N[some, None], other[some]
        half, size = a.T @ b, np.abs(a).T @ np.abs(b)
        total = D + 0.5 * (half + half.T)
        above = total + (32 + 2 * len(a)) * UNIT * (np.abs(D) + 0.5 * (size + size.T))
        beyond = float(above[~self._weighed].max(initial=0.0))
        return float(above[self._weighed].max()) + beyond * (2 * self._floor + self._floor**2), total

    def _begin(self, D: FloatArray, goal: float) -> tuple[IntArray, IntArray]:
        """δ alone, at least the goal, and the entries that exceed it, and the diagonal."""
        i, j = np.nonzero(self._upper & ((goal < D) | np.eye(len(D), dtype=bool)))
        self._programme.clear()
        self._programme.add_rows(np.full(i.size, -INF), -D[i, j])
        at = np.flatnonzero(self._weighed[i, j])
        self._programme.add_columns(
            np.ones(1), np.zeros(1, dtype=np.int64), at, -np.ones(at.size), low=np.array([goal - abs(goal) * 1e-3])
        )
        return i, j

    def _add_products(self, products: FloatArray) -> None:
        row, entry = np.nonzero(products)
        starts = np.searchsorted(row, np.arange(len(products)))
        self._programme.add_columns(np.zeros(len(products)), starts, entry, products[row, entry])

    def _add_entries(self, D: FloatArray, products: FloatArray, entries: tuple[IntArray, IntArray]) -> None:
        """Rows for further entries, over δ and the products there are."""
        weights = np.concatenate([-1.0 * self._weighed[entries][None], products]).T
        row, column = np.nonzero(weights)
        starts = np.searchsorted(row, np.arange(len(weights)))
        self._programme.add_sparse_rows(np.full(len(weights), -INF), -D[entries], starts, column, weights[row, column])

    def _find_violated_entries(
        self, total: FloatArray, delta: float, entries: tuple[IntArray, IntArray], size: float
    ) -> tuple[IntArray, IntArray]:
        excess = np.where(self._upper, total - np.where(self._weighed, delta, 0.0), -np.inf)
        excess[entries] = -np.inf
        large = np.flatnonzero(excess > TOO_LARGE * size)
        order = large[np.argsort(-excess.ravel()[large])[:ENTRIES_PER_ROUND]]
        return order // len(total), order % len(total)

    def _matrix(self, dual: FloatArray, entries: tuple[IntArray, IntArray], size: int) -> FloatArray:
        X = np.zeros((size, size))
        X[entries] = dual / 2
        return X + X.T

    def _run(self, deadline: float) -> bool:
        """Solve, afresh where the last basis leads nowhere. A failure is no error: bounds come from the formula."""
        if self._programme.run(deadline):
            return True
        self._programme.clear_basis()
        return self._programme.run(deadline)


def _products(one: FloatArray, other: FloatArray, entries: tuple[IntArray, IntArray]) -> FloatArray:
    """The chosen entries of sym(a_i a_jᵀ), a row per pair."""
    i, j = entries
    return np.asarray(0.5 * (one[:, i] * other[:, j] + other[:, i] * one[:, j]))
