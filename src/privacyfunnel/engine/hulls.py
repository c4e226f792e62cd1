r"""Sets of priors: linear minima over the atoms that keep a promise for all of their members, with a proof of each.

With f = v / p an atom is allowed iff for every rule (A, B, α, β)

.. math:: \alpha\, h_A(f) \le \beta\, l_B(f), \qquad h_A(f) = \max_{P \in U_A} P \cdot f,\quad
   l_B(f) = \min_{R \in U_B} R \cdot f .

Minima are found by rows that arrive where an atom breaks them (hull_simplex.py).
"""

from __future__ import annotations

import time

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.hull_simplex import Bases, solve
from privacyfunnel.engine.oracle import Cheapest
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.rules import Rules

DUST = 1e-12  # of the largest ratio v/p
SAFE = 1e-9  # what the largest entries are rounded up by
AT_ONCE = 65_536  # numbers in the bases of one batch: they stay in the cache


class HullOracle:
    """All rules of a problem, asked one batch of costs at a time."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.rules = problem, Rules.of(problem)
        self._reach, self._seen = np.ones(problem.size), 0

    @property
    def batch(self) -> int:
        """How many programmes are worked on together."""
        return max(1, AT_ONCE // self.problem.size**2)

    def minimise(self, costs: FloatArray, deadline: float = np.inf) -> Cheapest:
        """The cheapest atom for every row of costs; where time is up, the prior, and what is known by then."""
        k, d = costs.shape
        found = solve(self.rules, costs, np.zeros((k, d)), np.ones((k, d)), Bases.first(k, d), deadline=deadline)
        ratio = np.maximum(found.v, 0.0) / self.problem.prior
        ratio = np.where(ratio > DUST * ratio.max(axis=1, keepdims=True), ratio, 0.0)
        ratio[~found.optimal] = 1.0
        atoms = ratio * self.problem.prior
        return Cheapest(found.lower, atoms / atoms.sum(axis=1, keepdims=True))

    def reach(self, deadline: float) -> FloatArray:
        """For every input the largest probability that any allowed atom gives it; 1 where there is no time to see."""
        d = self.problem.size
        while self._seen < d and time.monotonic() < deadline:
            some = np.arange(self._seen, min(self._seen + self.batch, d))
            self._reach[some] = np.clip(SAFE - self.minimise(-np.eye(d)[some], deadline).lower, 0.0, 1.0)
            if time.monotonic() < deadline:
                self._seen += some.size
        return self._reach
