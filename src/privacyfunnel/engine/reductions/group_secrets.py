"""Relaxations with fewer secrets (docs/theory.md, Theorem 7a).

A promise about every secret holds for groups of secrets as well, so the polytope of the groups contains that of the
secrets, and its cheapest split costs no more. With two groups every vertex is one value or a pair, and the cheapest
split is found and proved at once; each further group costs more time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.reductions.base import RelaxedProblem


@dataclass(frozen=True, slots=True)
class GroupSecrets:
    """The problem in which these secrets stay as they are, and all others are one group."""

    few: tuple[int, ...]

    def accepts(self, problem: Problem) -> bool:
        """Problems of three secrets or more, all of whose constraints concern everybody."""
        groups = group_secrets(problem)
        return groups is not None and groups.single_out(self.few) is not None

    def apply(self, problem: Problem) -> RelaxedProblem:
        """The problem of the groups."""
        groups = group_secrets(problem)
        easier = None if groups is None else groups.single_out(self.few)
        if easier is None:
            raise ValueError("the secrets of this problem cannot be grouped")
        return RelaxedProblem(problem, easier)


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
