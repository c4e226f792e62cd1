"""The pricer for protocols that see X only, and the choice among all pricers."""

from typing import ClassVar

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.envelope.branching import Prover
from privacyfunnel.envelope.interval import IntervalPricer, coordinate
from privacyfunnel.envelope.lines import lines_of
from privacyfunnel.envelope.lines_branching import LinesProver
from privacyfunnel.envelope.polytope import polytope_of
from privacyfunnel.envelope.problem import Pricer, Pricing, Splitting
from privacyfunnel.envelope.vertices import Vertices, cheapest_vertices, descend, passed, reduced_costs

STARTS = 64
POOL = 4096
SHORT_WALK = 8  # steps
PREFERENCE = (0.3, 2.0)  # nats: by how much an input that is missing is made cheaper where a walk starts


def pricer_for(problem: Splitting) -> Pricer:
    """The pricer that suits the structure of the problem."""
    if not problem.sees_values_only:
        from privacyfunnel.envelope.with_secret import pricer_with_secret

        return pricer_with_secret(problem)
    r = coordinate(problem)
    return VertexPricer(problem, by_classes=True) if r is None else IntervalPricer(problem, r)


class VertexPricer:
    """Local search over vertices of the polytope, and branch and bound for the proof."""

    steadiness: ClassVar[float] = 0.0

    def __init__(self, problem: Splitting, by_classes: bool = False) -> None:
        self.polytope = polytope_of(problem)
        lines = lines_of(problem, self.polytope) if by_classes else None
        self.by_classes = lines is not None
        self.prover: Prover | LinesProver
        if lines is None:
            self.prover = Prover(self.polytope, self.polytope.reach(), self._polished)
        else:
            self.prover = LinesProver(lines, self._polished)
        self._random = np.random.default_rng(1)
        m, n = self.polytope.matrix.shape
        self._pool = Vertices(np.empty((0, n)), np.empty((0, m), dtype=np.int64))
        self._known: dict[bytes, None] = {}  # what is in the pool, in the same order

    def start(self) -> FloatArray:
        d = self.polytope.inputs
        return self._pooled(cheapest_vertices(self.polytope, -np.eye(d)))

    def search(self, prices: FloatArray) -> FloatArray:
        d = self.polytope.inputs
        noise = self._random.exponential(size=(STARTS, d)) * self._random.uniform(0, 2, size=(STARTS, 1))
        starts = cheapest_vertices(self.polytope, noise - prices)
        near = np.argsort(reduced_costs(self._pool.x[:, :d], prices))[:STARTS]
        return self._pooled(descend(self.polytope, starts.joined(self._pool[near]), prices))

    def cover(self, prices: FloatArray, missing: FloatArray) -> FloatArray:
        """Many different atoms of small reduced cost, above all such that give probability to what is missing.

        Short walks rather than long ones: where there are many inputs no single atom matters, all on the way do.
        """
        d = self.polytope.inputs
        noise = self._random.exponential(size=(STARTS, d)) * self._random.uniform(0, 2, size=(STARTS, 1))
        wanted = self._random.choice(d, STARTS, p=missing / missing.sum())
        noise[np.arange(STARTS), wanted] -= self._random.uniform(*PREFERENCE, size=STARTS)
        starts = cheapest_vertices(self.polytope, noise - prices)
        near = np.argsort(reduced_costs(self._pool.x[:, :d], prices))[:STARTS]
        return self._pooled(passed(self.polytope, starts.joined(self._pool[near]), prices, SHORT_WALK))

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Pricing:
        return self.prover.prove(prices, target, deadline)

    def _polished(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """Vertices reached downhill from these atoms."""
        slopes = -np.log(np.maximum(atoms, 1e-9)) - prices
        return self._pooled(descend(self.polytope, cheapest_vertices(self.polytope, slopes), prices))

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
