"""Rows that arrive when an atom breaks them, where a promise has far more rows than ever matter.

With some of the rows alone every split costs no more than with all of them, so the bound holds; and once no atom in use
breaks any other row, the split is one of the whole problem. Where time runs out before that, all atoms are drawn
towards the prior until every row holds, which keeps their average.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import Clock
from privacyfunnel.engine.plan import split
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.settings import SETTINGS


class ConstraintSource(Protocol):
    """Whoever knows all rows, or can find those that matter."""

    def initial_problem(self) -> Problem:
        """The problem with rows to begin with."""

    def extend_problem(self, problem: Problem, atoms: FloatArray) -> Problem | None:
        """The problem with rows besides that these atoms break; None where they break none."""

    def prior_share(self, atoms: FloatArray) -> FloatArray:
        """How much of the prior must be mixed into each atom until all rows allow it."""


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintList:
    """A problem whose rows are all there, most of them never needed."""

    problem: Problem

    def initial_problem(self) -> Problem:
        """The rows that single inputs would break most; all of them where they are few."""
        if len(self.problem.constraints) <= SETTINGS.plan.few_lazy:
            return self.problem
        alone = self._excess(np.eye(self.problem.size))
        return self._select(np.unique(alone.argmax(axis=0)))

    def extend_problem(self, problem: Problem, atoms: FloatArray) -> Problem | None:
        """The row that each atom breaks most."""
        excess = self._excess(atoms) - self.problem.epsilon
        broken = excess.max(axis=0, initial=0.0) > SETTINGS.tolerance.lazy_constraint * self.problem.epsilon
        known = {tuple(pair) for pair in problem.constraints.pairs.tolist()}
        fresh = [i for i in np.unique(excess.argmax(axis=0)[broken]) if tuple(self._pairs[i].tolist()) not in known]
        if not fresh:
            return None
        return problem.replace_constraints(
            replace(problem.constraints, pairs=np.concatenate([problem.constraints.pairs, self._pairs[fresh]]))
        )

    def prior_share(self, atoms: FloatArray) -> FloatArray:
        """See Problem.drawn_in."""
        return self.problem.prior_share(atoms)

    @property
    def _pairs(self) -> IntArray:
        return self.problem.constraints.pairs

    def _select(self, which: IntArray) -> Problem:
        return self.problem.replace_constraints(self.problem.constraints.select_pairs(which))

    def _excess(self, atoms: FloatArray) -> FloatArray:
        """|ln L_E·v / L_F·v| of every row and atom."""
        one, other = self.problem.constraints.evaluate(atoms)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.abs(np.log(one / other))
        return np.where((one <= 0) & (other <= 0), 0.0, size)


def split_with_lazy_constraints(source: ConstraintSource, *, gap: float, time_limit: float) -> Split:
    """The cheapest split up to `gap` under all rows of the source, or what there is time for."""
    clock = Clock.from_limit(time_limit)
    problem = source.initial_problem()
    while True:
        found = split(problem, gap=gap, time_limit=max(clock.seconds_left, SETTINGS.reductions.lazy_share * time_limit))
        used = found.weights > 0
        weights, atoms = found.weights[used], np.maximum(found.atoms[used], 0.0)
        larger = source.extend_problem(problem, atoms)
        if larger is None:
            return Split(weights, atoms, found.value, found.bound)
        if clock.late:
            needed = float(source.prior_share(atoms).max())
            atoms = needed * problem.prior + (1 - needed) * atoms
            return Split(weights, atoms, float(weights @ problem.costs(atoms)), found.bound)
        problem = larger
