r"""The shape of a reduction: another problem that says something about this one.

A reduction `accepts` a problem or not; `apply` makes the smaller problem; `invert` turns a split of that into a split
of the original. Inner reductions (merge_equal.py, coarsen.py) have splits of the original; outer ones, relaxations with
fewer or looser constraints (group_secrets.py, lazy_constraints.py), have bounds for it; their splits are inverted by
mixing in as much of the prior as makes every atom feasible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, dense
from privacyfunnel.engine.objective import Objective
from privacyfunnel.engine.problem import Problem, Split


class Reduced(Protocol):
    """A smaller problem, and the way back."""

    @property
    def problem(self) -> Problem:
        """The smaller problem."""

    def invert(self, split: Split) -> Split:
        """A split of the original problem."""


class Reduction(Protocol):
    """How a problem is made smaller."""

    def accepts(self, problem: Problem) -> bool:
        """Whether this makes the problem smaller."""

    def apply(self, problem: Problem) -> Reduced:
        """The smaller problem."""


@dataclass(frozen=True, slots=True, eq=False)
class PartsProblem:
    r"""The problem over parts C of inputs, of mass :math:`p_C`; atoms are :math:`v_z = v_C\, p_z / p_C`.

    Constraints see such an atom through :math:`L \cdot v = \sum_C v_C \sum_{z \in C} L_z\, p_z / p_C`.
    """

    original: Problem
    problem: Problem
    part_of: IntArray
    share: FloatArray  # of each input in its part

    @classmethod
    def from_parts(cls, problem: Problem, part_of: IntArray) -> Self:
        """The problem over these parts."""
        mass = np.bincount(part_of, problem.prior).astype(np.float64)
        share = problem.prior / mass[part_of]
        rows = problem.constraints.average(part_of, share)
        small = Problem(mass, rows, problem.epsilon, Objective.from_groups(np.arange(mass.size)))
        return cls(problem, small, part_of, share)

    @classmethod
    def identity(cls, problem: Problem) -> Self:
        """Every input a part of its own."""
        return cls(problem, problem, np.arange(problem.size), np.ones(problem.size))

    def expand(self, atoms: FloatArray) -> FloatArray:
        """Atoms over parts as atoms over inputs."""
        return np.asarray(atoms[:, self.part_of] * self.share)

    def aggregate(self, atoms: FloatArray) -> FloatArray:
        """Atoms over inputs as atoms over parts."""
        parts = np.zeros((self.problem.size, len(atoms)))
        np.add.at(parts, self.part_of, atoms.T)
        return parts.T

    def invert(self, split: Split) -> Split:
        """The same split, in which a part is seen as its inputs in proportion."""
        atoms = self.expand(dense(split.atoms))
        return replace(split, atoms=atoms, value=float(split.weights @ self.original.costs(atoms)))


@dataclass(frozen=True, slots=True, eq=False)
class RelaxedProblem:
    """A problem with fewer or looser constraints, whose bound holds for the original."""

    original: Problem
    problem: Problem

    def invert(self, split: Split) -> Split:
        """All atoms moved towards the prior until every constraint holds, which keeps their average."""
        return mix_in_prior(self.original, split, self.original.prior_share(dense(split.atoms)))


def mix_in_prior(problem: Problem, split: Split, needed: FloatArray) -> Split:
    """The split with the largest of these shares of the prior in every atom."""
    share = float(needed.max(initial=0.0))
    atoms = share * problem.prior + (1 - share) * dense(split.atoms)
    return replace(split, atoms=atoms, value=float(split.weights @ problem.costs(atoms)))


@dataclass(frozen=True, slots=True, eq=False)
class InputPart:
    """A class of inputs, its mass, and the problem within it."""

    inputs: IntArray
    mass: float
    problem: Problem


def functionals(problem: Problem) -> FloatArray:
    """The functionals that constraints compare, each once."""
    return dense(problem.constraints.functionals[np.unique(problem.constraints.pairs)])
