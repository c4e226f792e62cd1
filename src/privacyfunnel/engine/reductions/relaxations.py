r"""Relaxations: problems with fewer or looser constraints, whose bounds hold for the original.

*Groups of secrets* (docs/theory.md, Theorem 7a). A promise about every secret holds for groups of secrets as well, so
the polytope of the groups contains that of the secrets, and its cheapest split costs no more. With two groups every
vertex is one value or a pair, and the cheapest split is found and proved at once.

*Similar inputs* (docs/theory.md, Theorem 7d). Say :math:`\rho = e^{-\varepsilon - \eta}` and put inputs into one part
when :math:`\lfloor \ln(1 + L_z / \rho) / \eta \rfloor` agrees for every functional. Then an average L' of L over parts
has :math:`e^{-\eta}(L - \kappa) \le L' \le e^{\eta} L + \kappa` with :math:`\kappa = e^{-\varepsilon}(1 - e^{-\eta})`,
so that :math:`L' \cdot v` lies within a factor :math:`e^{\pm 2\eta}` of :math:`L \cdot v \ge e^{-\varepsilon}`: an atom
feasible for L at ε is feasible for L' at ε + 2η where all are compared with everybody, at ε + 4η where with each other.

*Lazy constraints* arrive when an atom violates them, where a promise has far more than ever matter. Once no atom in use
violates any other constraint, the split is one of the whole problem; else all its atoms are moved towards the prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, dense
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.reductions.merge_equal import PartsProblem, functionals
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.comparisons import leak_sizes


@dataclass(frozen=True, slots=True, eq=False)
class SecretGroups:
    """A problem whose secrets can be grouped."""

    problem: Problem
    count: int  # of secrets

    def single_out(self, few: Sequence[int]) -> Problem | None:
        """The problem in which these secrets stay as they are, and all others are one group."""
        groups = np.zeros((len(few) + 1, self.count), dtype=bool)
        groups[np.arange(len(few)), list(few)] = True
        groups[-1] = ~groups.any(axis=0)
        rows = self.problem.constraints.group_secrets(groups)
        return None if rows is None else self.problem.replace_constraints(rows)


def group_secrets(problem: Problem) -> SecretGroups | None:
    """The secrets behind the rows, three or more, where all rows are about everybody."""
    rows = problem.constraints
    if (
        rows.share.shape[1] < 3
        or not problem.objective.is_identity
        or rows.group_secrets(np.eye(rows.share.shape[1]) > 0) is None
    ):
        return None
    return SecretGroups(problem, rows.share.shape[1])


def merge_similar(problem: Problem, eta: float) -> Problem:
    """The problem over parts of nearly alike inputs, at a promise loose enough to allow all that this one does.

    With scales this is proved where all are compared with everybody: elsewhere nothing may keep L·v from 0.
    """
    if problem.constraints.scales is not None and not problem.constraints.compares_with_everybody:
        return problem
    scales = problem.constraints.either_scale
    finite = scales[np.isfinite(scales)]
    rho = np.exp(-problem.epsilon * float(finite.max(initial=1.0)) - eta)
    cells = np.floor(np.log1p(functionals(problem) / rho) / eta)
    part_of = np.unique(cells, axis=1, return_inverse=True)[1].reshape(-1)
    looser = problem.epsilon + (2 if problem.constraints.compares_with_everybody else 4) * eta * (
        1 + SETTINGS.tolerance.solved
    ) / float(finite.min(initial=1.0))
    return replace(PartsProblem.from_parts(problem, part_of).problem, epsilon=looser)


@dataclass(frozen=True, slots=True, eq=False)
class RelaxedProblem:
    """A problem with fewer or looser constraints, whose bound holds for the original."""

    original: Problem
    problem: Problem

    def invert(self, split: Split) -> Split:
        """All atoms moved towards the prior until every constraint holds, which keeps their average."""
        atoms = dense(split.atoms)
        share = float(self.original.prior_share(atoms).max(initial=0.0))
        atoms = share * self.original.prior + (1 - share) * atoms
        return replace(split, atoms=atoms, value=float(split.weights @ self.original.costs(atoms)))


@dataclass(frozen=True, slots=True)
class LazyConstraints:
    """The problem with the constraints that single inputs would violate most."""

    def accepts(self, problem: Problem) -> bool:
        """Problems of many constraints; of few, all are there from the start."""
        return len(problem.constraints) > SETTINGS.plan.few_lazy

    def apply(self, problem: Problem) -> RelaxedProblem:
        """Those constraints alone."""
        first = np.unique(_log_ratios(problem, np.eye(problem.size)).argmax(axis=0))
        return RelaxedProblem(problem, problem.replace_constraints(problem.constraints.select_pairs(first)))

    def extend(self, reduced: RelaxedProblem, atoms: FloatArray) -> RelaxedProblem | None:
        """With the constraints besides that these atoms violate most; None where they violate none."""
        whole, problem = reduced.original, reduced.problem
        pairs: IntArray = whole.constraints.pairs
        excess = _log_ratios(whole, atoms) - whole.epsilon
        violated = excess.max(axis=0, initial=0.0) > SETTINGS.tolerance.solved * whole.epsilon
        known = {tuple(pair) for pair in problem.constraints.pairs.tolist()}
        fresh = [i for i in np.unique(excess.argmax(axis=0)[violated]) if tuple(pairs[i].tolist()) not in known]
        if not fresh:
            return None
        known_too = [i for i, pair in enumerate(pairs.tolist()) if tuple(pair) in known]
        more = whole.constraints.select_pairs(np.sort([*known_too, *fresh]))
        return replace(reduced, problem=problem.replace_constraints(more))


def _log_ratios(problem: Problem, atoms: FloatArray) -> FloatArray:
    """The leak of every constraint and atom: |ln L_E·v / L_F·v| where scales are 1."""
    one, other = (np.maximum(side, 0.0) for side in problem.constraints.evaluate(atoms))
    return leak_sizes(one, other, problem.constraints.scales)
