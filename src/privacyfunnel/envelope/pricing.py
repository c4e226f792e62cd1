"""Pricers for protocols that see X only."""

import time

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.envelope.branching import Prover
from privacyfunnel.envelope.polytope import polytope_of
from privacyfunnel.envelope.problem import Pricing, Splitting
from privacyfunnel.envelope.vertices import Vertices, cheapest_vertices, descend, reduced_costs

STARTS = 64
POOL = 4096


class VertexPricer:
    """Local search over vertices of the polytope, and branch and bound for the proof."""

    def __init__(self, problem: Splitting) -> None:
        self.polytope = polytope_of(problem)
        self.prover = Prover(self.polytope, self.polytope.reach())
        self._random = np.random.default_rng(1)
        m, n = self.polytope.matrix.shape
        self._pool = Vertices(np.empty((0, n)), np.empty((0, m), dtype=np.int64))

    def search(self, prices: FloatArray) -> FloatArray:
        d = self.polytope.inputs
        noise = self._random.exponential(size=(STARTS, d)) * self._random.uniform(0, 2, size=(STARTS, 1))
        starts = cheapest_vertices(self.polytope, noise - prices)
        if self._pool.x.shape[0]:
            cost = reduced_costs(self._pool.x[:, :d], prices)
            near = np.argsort(cost)[:STARTS]
            starts = _joined(starts, self._pool[near])
        return self._descended(starts, prices)

    def _descended(self, starts: Vertices, prices: FloatArray) -> FloatArray:
        d = self.polytope.inputs
        found = descend(self.polytope, starts, prices)
        _, first = np.unique(np.round(found.x[:, :d], 10), axis=0, return_index=True)
        found = found[first]
        pool = _joined(found, self._pool)
        _, first = np.unique(np.round(pool.x[:, :d], 10), axis=0, return_index=True)
        first = np.sort(first)[:POOL]
        self._pool = pool[first]
        return found.x[:, :d]

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Pricing:
        proof = self.prover.prove(prices, target, deadline)
        if not proof.atoms.shape[0]:
            return proof
        slopes = -np.log(np.maximum(proof.atoms, 1e-9)) - prices
        found = self._descended(cheapest_vertices(self.polytope, slopes), prices)
        return Pricing(proof.bound, np.concatenate([proof.atoms, found]))


def _joined(one: Vertices, other: Vertices) -> Vertices:
    return Vertices(np.concatenate([one.x, other.x]), np.concatenate([one.basis, other.basis]))
