"""Searching among very many inputs, of which few are likely and all others rare.

An atom that names a rare input needs some likely ones beside it, which make up for what it would tell, and hardly ever
another rare one. So each walk stays among the likeliest inputs, the core, and a block of others: a step then prices
some hundred inputs, however many there are, and every input has its turn.
"""

from functools import cache

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.polytope import polytope_of
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.search import VertexSearch

REMEMBERED = 512  # vertices of each block
ROUNDS = 5  # calls in which every block has its turn


class BlockSearch:
    """Walks over vertices among the core and a block of other inputs."""

    patience = 2 * ROUNDS

    def __init__(self, problem: Problem, core: int) -> None:
        self._problem = problem
        order = np.argsort(-problem.prior, kind="stable")
        self._core = order[:core]
        self._blocks = np.array_split(order, -(-problem.size // VertexSearch.starts))
        self._waited = np.ones(len(self._blocks))  # calls since each had its turn
        self._among = cache(self._searched)

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """None: every input has its turn anyway."""
        return np.empty((0, self._problem.size))

    def downhill(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """The same as `cover`."""
        return self.cover(prices, self._problem.prior, clock)

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        """What walks pass that begin near every input of some blocks: which miss much, or have waited for long."""
        met = [np.empty((0, self._problem.size))]
        self._waited += 1
        urgent = self._waited * np.array([missing[block].sum() for block in self._blocks])
        for number in np.argsort(-urgent)[: -(-len(self._blocks) // ROUNDS)].tolist():
            if clock.late:
                break
            inputs, search = self._among(number)
            wanted = np.searchsorted(inputs, np.sort(self._blocks[number]))
            met.append(self._whole(inputs, search.around(prices[inputs], wanted, clock)))
            self._waited[number] = 0
        return np.concatenate(met)

    def polished(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """Nothing: no proof asks for it."""
        return atoms[:0]

    def _searched(self, block: int) -> tuple[IntArray, VertexSearch]:
        inputs = np.union1d(self._core, self._blocks[block])
        part = self._problem.among(inputs)
        search = VertexSearch(polytope_of(part), part.objective)
        search.pool = REMEMBERED
        return inputs, search

    def _whole(self, inputs: IntArray, atoms: FloatArray) -> FloatArray:
        whole = np.zeros((len(atoms), self._problem.size))
        whole[:, inputs] = atoms
        return whole
