r"""Atoms over two inputs, all of them priced at once, beside walks that look further.

An atom :math:`\alpha e_x + (1 - \alpha) e_z` keeps a row g iff :math:`\alpha g_x + (1 - \alpha) g_z \ge 0`: for every
pair of inputs α lies in an interval, and a concave cost is least at one of its ends. With a square in the cost, the
cost of all of them is a table. Most atoms of a good split over hundreds of values have one or two inputs, and chance
starts seldom meet the right two.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.objective import Objective, reduced_costs
from privacyfunnel.engine.problem import Problem

MOST = 400  # atoms of a table that are handed on
PER_INPUT = 6  # of these with the same first input
WALKED = 48  # of these that walks begin from
PLACE = 1e-12  # α within this of 0 or 1 is that


class PolishingSearch(Protocol):
    """A search that goes on with other objectives, and from given atoms."""

    def set_objective(self, objective: Objective) -> None: ...
    def start(self, clock: Clock = FOREVER) -> FloatArray: ...
    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray: ...
    def polish(self, atoms: FloatArray, prices: FloatArray) -> FloatArray: ...


class PairAtomSearch:
    """A search with the best atoms over two inputs, and walks from them, besides its own."""

    def __init__(self, search: PolishingSearch, problem: Problem) -> None:
        self._search, self._objective = search, problem.objective
        self._first, self._second, self._share = _pair_table(problem)

    def set_objective(self, objective: Objective) -> None:
        """See Charged."""
        self._objective = objective
        self._search.set_objective(objective)

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """See Search."""
        return self._search.start(clock)

    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """The best of the table, where walks from them end, and what the search finds."""
        twos = self._cheapest(prices)
        found = [twos, self._search.polish(twos[:WALKED], prices), self._search.descend(prices, clock)]
        return np.concatenate(found)

    def polish(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """See Search."""
        return self._search.polish(atoms, prices)

    def _cheapest(self, prices: FloatArray) -> FloatArray:
        """The atoms of least cost, not too many about one input."""
        a, products = self._share, self._objective.gram_matrix
        one = reduced_costs(self._objective, np.eye(prices.size), np.zeros_like(prices))  # −‖B_x‖², no entropy of one
        rest = 1.0 - a
        cost = a * (a * one[self._first] - prices[self._first]) + rest * (
            rest * one[self._second] - prices[self._second]
        )
        if products is not None:
            cost = cost - 2 * a * rest * products[self._first, self._second]
        cost = cost + self._objective.terms(a) + self._objective.terms(rest)
        order = np.argsort(cost)[: PER_INPUT * MOST]
        order = order[cost[order] < 0]
        order = order[_is_early(self._first[order]) & _is_early(self._second[order])][:MOST]
        atoms = np.zeros((len(order), prices.size))
        atoms[np.arange(len(order)), self._first[order]] = a[order]
        atoms[np.arange(len(order)), self._second[order]] += rest[order]
        return atoms


def _is_early(inputs: IntArray) -> BoolArray:
    """Whether each is among the first few of its kind."""
    order = np.argsort(inputs, kind="stable")
    starts = np.searchsorted(inputs[order], inputs[order])
    rank = np.empty(len(inputs), dtype=np.int64)
    rank[order] = np.arange(len(inputs)) - starts
    return rank < PER_INPUT


def _pair_table(problem: Problem) -> tuple[IntArray, IntArray, FloatArray]:
    """All pairs x < z that make an atom, with the least and the largest share of x there may be."""
    d = problem.size
    low, high = np.zeros((d, d)), np.ones((d, d))
    for g in problem.inequalities:
        rise = g[:, None] - g[None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            at = -g[None, :] / rise
        low = np.where(rise > 0, np.maximum(low, at), low)
        high = np.where(rise < 0, np.minimum(high, at), high)
        high = np.where((rise == 0) & (g[None, :] < 0), -1.0, high)
    x, z = np.nonzero(np.triu(low <= high, 1))
    share = np.concatenate([low[x, z], high[x, z]])
    share = np.where(share < PLACE, 0.0, np.where(share > 1 - PLACE, 1.0, share))
    return np.concatenate([x, x]), np.concatenate([z, z]), share
