"""Lazy constraints: those that arrive when an atom violates them, where a promise has far more than ever matter.

With some of the constraints every split costs no more than with all of them, so the bound holds; and once no atom in
use violates any other constraint, the split is one of the whole problem. If time runs out before that, all atoms are
moved towards the prior until every constraint holds, which keeps their average.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, dense
from privacyfunnel.engine.clock import Clock
from privacyfunnel.engine.plan import split
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.reductions.base import RelaxedProblem
from privacyfunnel.engine.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class LazyConstraints:
    """The problem with the constraints that single inputs would violate most."""

    def accepts(self, problem: Problem) -> bool:
        """Problems of many constraints; of few, all are there from the start."""
        return len(problem.constraints) > SETTINGS.plan.few_lazy

    def apply(self, problem: Problem) -> RelaxedProblem:
        """Those constraints, or all where they are few."""
        if not self.accepts(problem):
            return RelaxedProblem(problem, problem)
        first = np.unique(_log_ratios(problem, np.eye(problem.size)).argmax(axis=0))
        return RelaxedProblem(problem, problem.replace_constraints(problem.constraints.select_pairs(first)))

    def extend(self, reduced: RelaxedProblem, atoms: FloatArray) -> RelaxedProblem | None:
        """With the constraints besides that these atoms violate most; None where they violate none."""
        whole, problem = reduced.original, reduced.problem
        pairs: IntArray = whole.constraints.pairs
        excess = _log_ratios(whole, atoms) - whole.epsilon
        violated = excess.max(axis=0, initial=0.0) > SETTINGS.tolerance.lazy_constraint * whole.epsilon
        known = {tuple(pair) for pair in problem.constraints.pairs.tolist()}
        fresh = [i for i in np.unique(excess.argmax(axis=0)[violated]) if tuple(pairs[i].tolist()) not in known]
        if not fresh:
            return None
        more = replace(problem.constraints, pairs=np.concatenate([problem.constraints.pairs, pairs[fresh]]))
        return replace(reduced, problem=problem.replace_constraints(more))


def _log_ratios(problem: Problem, atoms: FloatArray) -> FloatArray:
    """|ln L_E·v / L_F·v| of every constraint and atom."""
    one, other = problem.constraints.evaluate(atoms)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.abs(np.log(one / other))
    return np.where((one <= 0) & (other <= 0), 0.0, size)


def split_with_lazy_constraints(problem: Problem, *, gap: float, time_limit: float) -> Split:
    """The cheapest split up to `gap`, or the best that time allows."""
    clock, reduction = Clock.from_limit(time_limit), LazyConstraints()
    reduced = reduction.apply(problem)
    while True:
        least = SETTINGS.reductions.lazy_share * time_limit
        found = split(reduced.problem, gap=gap, time_limit=max(clock.seconds_left, least))
        used = found.weights > 0
        found = replace(found, weights=found.weights[used], atoms=np.maximum(dense(found.atoms)[used], 0.0))
        larger = reduction.extend(reduced, dense(found.atoms))
        if larger is None:
            return found
        if clock.late:
            return reduced.invert(found)
        reduced = larger
