"""Sets of priors over few inputs: linear minima in batches, by rows that arrive where an atom breaks them.

Rows are found by sorting and never written down, so that programmes are as small as there are inputs (hull_simplex.py).
Over many inputs that takes too many of them: hulls.py writes the sets out instead.
"""

from __future__ import annotations

import time

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.lp.credal_simplex import Bases, Minima, solve
from privacyfunnel.engine.oracles.credal_constraints import CredalConstraints
from privacyfunnel.engine.oracles.oracle import LinearMinima
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.settings import SETTINGS


class CredalBatchOracle:
    """All rules of a problem, asked one batch of costs at a time."""

    def __init__(self, problem: Problem, pivots: int) -> None:
        self.problem, self._rules = problem, CredalConstraints.from_problem(problem)
        self._pivots = pivots  # of a box
        self._reach, self._seen = np.ones(problem.size), 0

    @property
    def batch(self) -> int:
        """How many programmes are worked on together."""
        return max(1, SETTINGS.lp.credal_numbers // self.problem.size**2)

    def minimise(self, costs: FloatArray, deadline: float = np.inf) -> LinearMinima:
        """The cheapest atom for every row of costs; where time is up, the prior, and what is known by then."""
        k, d = costs.shape
        first = Bases.initial(costs.argmin(axis=1), d)
        found = solve(self._rules, costs, np.zeros((k, d)), np.ones((k, d)), first, deadline=deadline)
        ratio = np.maximum(found.v, 0.0) / self.problem.prior
        ratio = np.where(ratio > SETTINGS.tolerance.solver_dust * ratio.max(axis=1, keepdims=True), ratio, 0.0)
        ratio[~found.optimal] = 1.0
        atoms = ratio * self.problem.prior
        return LinearMinima(found.lower, atoms / atoms.sum(axis=1, keepdims=True))

    def minimise_in_boxes(
        self, costs: FloatArray, low: FloatArray, high: FloatArray, bases: Bases, cutoff: FloatArray, deadline: float
    ) -> Minima:
        """Bounds on the cheapest atom in each box, as far as a few pivots lead; the next go on from there."""
        return solve(self._rules, costs, low, high, bases, cutoff, deadline, self._pivots)

    def reach(self, deadline: float) -> FloatArray:
        """For every input the largest probability that any allowed atom gives it; 1 where there is no time to see."""
        d = self.problem.size
        while self._seen < d and time.monotonic() < deadline:
            some = np.arange(self._seen, min(self._seen + self.batch, d))
            self._reach[some] = np.clip(
                SETTINGS.tolerance.reach - self.minimise(-np.eye(d)[some], deadline).lower, 0.0, 1.0
            )
            if time.monotonic() < deadline:
                self._seen += some.size
        return self._reach
