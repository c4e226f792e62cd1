r"""Inputs that no constraint distinguishes are merged; at the end each is named on its own, at no cost.

An atom that names one input of each of its parts costs what the atom over parts does, however the inputs are combined;
they must only average to the prior. The inputs of a part lie side by side on [0, 1], each as wide as its share, and so
do the atoms, each as wide as what it has of the part: an atom names those inputs that lie in its own stretch, and
hardly one is named by two. A point of [0, 1] picks a place in the atom's stretch of every part at once, so that

.. math:: \#\text{atoms} \le \#\text{inputs} + 2\,\#\text{entries of the atoms over parts}.

Relaxations: problems with fewer or looser constraints, whose bounds hold for the original.

*Groups of secrets* (docs/theory.md, Theorem 7a). A promise about every secret holds for groups of secrets as well, so
the polytope of the groups contains that of the secrets, and its cheapest split costs no more. With two groups every
vertex is one value or a pair, and the cheapest split is found and proved at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, Matrix, dense, nonzero_entries, sparse
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.settings import SETTINGS


@dataclass(frozen=True, slots=True, eq=False)
class PartsProblem:
    r"""The problem over parts C of inputs, of mass :math:`p_C`; an atom over parts is :math:`v_z = v_C\, p_z / p_C`.

    Constraints see it through :math:`L \cdot v = \sum_C v_C \sum_{z \in C} L_z\, p_z / p_C`.
    """

    original: Problem
    problem: Problem
    part_of: IntArray
    share: FloatArray  # of each input in its part

    @classmethod
    def from_parts(cls, problem: Problem, part_of: IntArray) -> PartsProblem:
        mass = np.bincount(part_of, problem.prior).astype(np.float64)
        share = problem.prior / mass[part_of]
        rows = problem.constraints.average(part_of, share)
        return cls(problem, Problem.from_values(mass, rows, problem.epsilon), part_of, share)

    @classmethod
    def identity(cls, problem: Problem) -> PartsProblem:
        """Every input a part of its own."""
        return cls(problem, problem, np.arange(problem.size), np.ones(problem.size))

    def aggregate(self, atoms: FloatArray) -> FloatArray:
        """Atoms over inputs as atoms over parts."""
        parts = np.zeros((self.problem.size, len(atoms)))
        np.add.at(parts, self.part_of, atoms.T)
        return parts.T

    def invert(self, split: Split, most_atoms: int | None = None) -> Split:
        """Every atom names one input of each part, as far as `most_atoms` allow."""
        if self.problem.size == self.original.size:
            return replace(split, atoms=densify_if_small(split.atoms))
        named = refine_merged(split, self.part_of, self.share, most_atoms)
        return replace(named, value=float(named.weights @ self.original.costs(named.atoms)))


@dataclass(frozen=True, slots=True)
class MergeEqual:
    """Merge inputs whose columns are equal, where every input is a value of its own."""

    def accepts(self, problem: Problem) -> bool:
        """A credal set may distinguish what the table does not; without constraints all inputs are equal."""
        return problem.credal_sets is None and (problem.objective.is_identity or not len(problem.constraints))

    def apply(self, problem: Problem) -> PartsProblem:
        """The problem over parts of equal inputs."""
        d = problem.size
        if not self.accepts(problem):
            return PartsProblem.identity(problem)
        if not len(problem.constraints):
            return PartsProblem.from_parts(problem, np.zeros(d, dtype=np.int64))
        columns = functionals(problem)
        scale = np.maximum(np.abs(columns).max(axis=1, keepdims=True), SETTINGS.tolerance.tiny)
        order = np.lexsort(np.round(columns / scale, SETTINGS.tolerance.atom_digits))
        part_of, parts, first = np.zeros(d, dtype=np.int64), 0, int(order[0])
        for other in order[1:]:
            if (np.abs(columns[:, first] - columns[:, other]) > SETTINGS.tolerance.rounding * scale[:, 0]).any():
                parts += 1
                first = int(other)
            part_of[other] = parts
        return PartsProblem.identity(problem) if parts + 1 == d else PartsProblem.from_parts(problem, part_of)


def refine_merged(split: Split, part_of: IntArray, share: FloatArray, most_atoms: int | None) -> Split:
    """The split over inputs, given the part of each and its share of it; its value is that of the split over parts.

    Where too many atoms came of it, some name all inputs of their stretches at once, and cost more.
    """
    order, count = np.argsort(part_of, kind="stable"), np.bincount(part_of)
    members = np.split(order, np.cumsum(count)[:-1])
    edges = [np.append(np.cumsum(share[inputs])[:-1], 1.0) for inputs in members]
    row, column, entry = nonzero_entries(split.atoms)
    ends = np.searchsorted(row, np.arange(1, len(split.weights)))
    supports, chances = np.split(column, ends), np.split(entry, ends)
    stretches = np.split(_stretches(column, split.weights[row] * entry), ends)
    first = order[np.cumsum(count) - count]  # the only input of a part that has one
    several = [np.flatnonzero(count[support] > 1) for support in supports]
    cuts = [
        _cuts([edges[part] for part in support[some]], of[some])
        for support, of, some in zip(supports, stretches, several, strict=True)
    ]
    size = len(part_of)
    most = max(SETTINGS.reductions.refined_entries // size, 2 * size) if most_atoms is None else most_atoms
    left_whole = _atoms_to_keep(split.weights, np.array([len(places) - 1 for places in cuts]), most)
    weights: list[float] = []
    named: list[IntArray] = []  # the inputs of each atom, and what each of them has
    having: list[FloatArray] = []
    for i, (q, support, chance) in enumerate(zip(split.weights, supports, chances, strict=True)):
        width, middle = np.diff(cuts[i]), (cuts[i][:-1] + cuts[i][1:]) / 2
        chosen = np.tile(first[support], (len(width), 1))
        for k in several[i]:
            part, (begin, end) = support[k], stretches[i][k]
            place = np.searchsorted(edges[part], begin + middle * (end - begin), side="right")
            chosen[:, k] = members[part][np.minimum(place, count[part] - 1)]
        if left_whole[i]:
            inputs, at = np.unique(chosen, return_inverse=True)
            weights.append(q)
            named.append(inputs)
            having.append(np.bincount(at.reshape(-1), np.outer(width, chance).reshape(-1)).astype(np.float64))
        else:
            weights.extend(q * width)
            named.extend(chosen)
            having.extend([chance] * len(width))
    of = np.repeat(np.arange(len(named)), [len(inputs) for inputs in named])
    cells = (of, np.concatenate(named))
    atoms = sparse.csr_array((np.concatenate(having), cells), shape=(len(named), size))
    return replace(split, weights=np.array(weights), atoms=densify_if_small(atoms))


def _stretches(part: IntArray, mass: FloatArray) -> FloatArray:
    """Where each of these masses begins and ends if those of one part fill [0, 1] in their order."""
    order = np.argsort(part, kind="stable")
    first = np.flatnonzero(np.diff(part[order], prepend=-1))
    stretches = np.empty((len(part), 2))
    for own in np.split(order, first[1:]):
        end = np.cumsum(mass[own]) / mass[own].sum()
        end[-1] = 1.0
        stretches[own] = np.column_stack([np.append(0.0, end[:-1]), end])
    return stretches


def _cuts(edges: list[FloatArray], stretches: FloatArray) -> FloatArray:
    """The places of [0, 1] at which an atom goes on to another input of some part."""
    if not edges:
        return np.array([0.0, 1.0])
    places = [np.array([0.0, 1.0])]
    for of_part, (begin, end) in zip(edges, stretches, strict=True):
        inside = of_part[(of_part > begin) & (of_part < end)]
        places.append((inside - begin) / (end - begin))
    cuts = np.unique(np.concatenate(places))
    cuts = cuts[np.append(np.diff(cuts) > SETTINGS.tolerance.width, True)]
    cuts[0] = 0.0
    return np.asarray(cuts)


def _atoms_to_keep(weights: FloatArray, pieces: IntArray, most: int) -> BoolArray:
    """The atoms that are told no finer: a solve cut short may leave many on very many values each.

    What cutting an atom gains grows with its weight, so the heaviest per piece are cut first.
    """
    order = np.argsort(-weights / pieces, kind="stable")
    whole = np.ones(len(weights), dtype=bool)
    whole[order] = np.cumsum(pieces[order]) + np.arange(len(order))[::-1] > most
    return whole


def densify_if_small(atoms: Matrix) -> Matrix:
    return dense(atoms) if atoms.shape[0] * atoms.shape[1] <= SETTINGS.reductions.dense_entries else atoms


def functionals(problem: Problem) -> FloatArray:
    """The functionals that constraints compare, each once."""
    return dense(problem.constraints.functionals[np.unique(problem.constraints.pairs)])


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
