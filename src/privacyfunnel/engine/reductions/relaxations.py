r"""Relaxations: problems with fewer or looser constraints, whose bounds hold for the original.

*Groups of secrets* (docs/theory.md, Theorem 7a). A promise about every secret holds for groups of secrets as well, so
the polytope of the groups contains that of the secrets, and its cheapest split costs no more. With two groups every
vertex is one value or a pair, and the cheapest split is found and proved at once.

*Similar inputs* (docs/theory.md, Theorem 7d). Say :math:`\rho = e^{-\varepsilon - \eta}` and put inputs into one part
when :math:`\lfloor \ln(1 + L_z / \rho) / \eta \rfloor` agrees for every functional. Then an average L' of L over parts
has :math:`e^{-\eta}(L - \kappa) \le L' \le e^{\eta} L + \kappa` with :math:`\kappa = e^{-\varepsilon}(1 - e^{-\eta})`,
so that :math:`L' \cdot v` lies within a factor :math:`e^{\pm 2\eta}` of :math:`L \cdot v \ge e^{-\varepsilon}`: an atom
feasible for L at ε is feasible for L' at ε + 2η where all are compared with everybody, at ε + 4η where with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.reductions.merge_equal import PartsProblem, functionals
from privacyfunnel.engine.settings import SETTINGS


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
