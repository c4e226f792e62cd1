"""The search: walks over the vertices of one polytope, from chance starts and from the best vertices met before."""

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.polytope import Polytope
from privacyfunnel.engine.vertices import Vertices, cheapest_vertices, descend, passed, reduced_costs

STARTS = 64
POOL = 4096
SHORT_WALK = 8  # steps
PREFERENCE = (0.3, 2.0)  # nats: by how much an input that is missing is made cheaper where a walk starts


class Walks:
    """Walks over the vertices of a polytope, and a pool of those that were met."""

    patience = 1  # after so many searches in vain nothing is left to be found

    def __init__(self, polytope: Polytope) -> None:
        self.polytope = polytope
        self._random = np.random.default_rng(1)
        m, n = polytope.matrix.shape
        self._pool = Vertices(np.empty((0, n)), np.empty((0, m), dtype=np.int64))
        self._known: dict[bytes, None] = {}  # what is in the pool, in the same order

    def towards_each(self) -> FloatArray:
        """For each input the atom that gives it most."""
        return self._pooled(cheapest_vertices(self.polytope, -np.eye(self.polytope.inputs)))

    def downhill(self, prices: FloatArray) -> FloatArray:
        """Where long walks end."""
        starts = cheapest_vertices(self.polytope, self._noise() - prices)
        return self._pooled(descend(self.polytope, starts.joined(self._nearest(prices)), prices))

    def cover(self, prices: FloatArray, missing: FloatArray) -> FloatArray:
        """Many different atoms of small reduced cost, above all such that give probability to what is missing.

        Short walks rather than long ones: where there are many inputs no single atom matters, all on the way do.
        """
        noise = self._noise()
        wanted = self._random.choice(self.polytope.inputs, STARTS, p=missing / missing.sum())
        noise[np.arange(STARTS), wanted] -= self._random.uniform(*PREFERENCE, size=STARTS)
        starts = cheapest_vertices(self.polytope, noise - prices)
        return self._pooled(passed(self.polytope, starts.joined(self._nearest(prices)), prices, SHORT_WALK))

    def polished(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """Vertices reached downhill from these atoms."""
        slopes = -np.log(np.maximum(atoms, 1e-9)) - prices
        return self._pooled(descend(self.polytope, cheapest_vertices(self.polytope, slopes), prices))

    def _noise(self) -> FloatArray:
        d = self.polytope.inputs
        return self._random.exponential(size=(STARTS, d)) * self._random.uniform(0, 2, size=(STARTS, 1))

    def _nearest(self, prices: FloatArray) -> Vertices:
        """Those of the pool that cost least now."""
        costs = reduced_costs(self._pool.x[:, : self.polytope.inputs], prices)
        return self._pool[np.argsort(costs)[:STARTS]]

    def _pooled(self, found: Vertices) -> FloatArray:
        """Remember these vertices as starts for later searches; the different ones, as atoms."""
        atoms = found.by_atom(self.polytope.inputs)
        new = [key for key in atoms if key not in self._known]
        if new:
            keys = [*new, *self._known][:POOL]
            self._known = dict.fromkeys(keys)
            fresh = found[np.array([atoms[key] for key in new], dtype=np.int64)]
            self._pool = fresh.joined(self._pool)[np.arange(len(keys))]
        return found.x[list(atoms.values()), : self.polytope.inputs]
