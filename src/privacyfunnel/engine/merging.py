"""Inputs that the promise cannot tell apart, merged before and split after.

Two values whose columns in N and D agree are told apart for free: an atom on the merged value becomes one atom per
part, with the same entropy, and the value of the split is the same.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.polytope import dense
from privacyfunnel.engine.problem import Split, Splitting
from privacyfunnel.engine.vertices import entropy_terms

MOST_ENTRIES = 2 * 10**7  # numbers in the atoms of an expanded split
ALIKE = 1e-13  # relative; equal columns that were computed differ by this much at most


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """The smaller problem, and for every input of the large one its part in the small one."""

    problem: Splitting
    part_of: IntArray
    prior: FloatArray

    def reduced(self, atoms: FloatArray) -> FloatArray:
        """Atoms of the large problem as atoms of the small one."""
        small = np.zeros((self.problem.prior.size, len(atoms)))
        np.add.at(small, self.part_of, atoms.T)
        return small.T

    def expanded(self, split: Split, most_atoms: int | None = None) -> Split:
        """The split of the large problem: every atom names one input of each merged one.

        The inputs of a part lie side by side on [0, 1], each as wide as its share; a point of [0, 1] picks one in
        every part of the atom at once.
        """
        if self.problem.prior.size == self.prior.size:
            return split
        weights, atoms = [], []
        share = self.prior / np.bincount(self.part_of, self.prior)[self.part_of]
        members = [np.flatnonzero(self.part_of == part) for part in range(self.problem.prior.size)]
        count = np.array([len(inputs) for inputs in members])
        edges = [np.append(np.cumsum(share[inputs])[:-1], 1.0) for inputs in members]
        supports = [np.flatnonzero(atom) for atom in split.atoms]
        cuts = [np.unique(np.concatenate([[0.0], *(edges[part] for part in support)])) for support in supports]
        most = max(MOST_ENTRIES // self.prior.size, 2 * self.prior.size) if most_atoms is None else most_atoms
        whole = _left_whole(split.weights, np.array([len(places) - 1 for places in cuts]), most)
        for i, (q, atom, support) in enumerate(zip(split.weights, split.atoms, supports, strict=True)):
            if whole[i]:
                weights.append(q)
                atoms.append(atom[self.part_of] * share)
                continue
            alone = np.where(count[self.part_of] == 1, atom[self.part_of], 0.0)
            several = support[count[support] > 1]
            for left, right in pairwise(cuts[i]):
                fine = alone.copy()
                for part in several:
                    fine[members[part][np.searchsorted(edges[part], left, side="right")]] = atom[part]
                weights.append(q * (right - left))
                atoms.append(fine)
        value = float(np.array(weights) @ entropy_terms(np.array(atoms)).sum(axis=1))
        return Split(np.array(weights), np.array(atoms), value, split.bound)


def _left_whole(weights: FloatArray, pieces: IntArray, most: int) -> BoolArray:
    """The atoms that are told no finer: a solve cut short may leave many on very many values each.

    What cutting an atom gains grows with its weight, so the heaviest per piece are cut first.
    """
    order = np.argsort(-weights / pieces, kind="stable")
    whole = np.ones(len(weights), dtype=bool)
    whole[order] = np.cumsum(pieces[order]) + np.arange(len(order))[::-1] > most
    return whole


def merged(problem: Splitting) -> Merged:
    """The problem with inputs merged whose columns agree; only where every input is a value of its own."""
    d = problem.prior.size
    if not problem.sees_values_only:
        return Merged(problem, np.arange(d), problem.prior)
    rows = np.concatenate([np.ones((1, d)), dense(problem.numerators), dense(problem.denominators)])
    scale = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-300)
    order, part_of, parts = np.lexsort(np.round(rows / scale, 10)), np.zeros(d, dtype=np.int64), 0
    first = [int(order[0])]
    for other in order[1:]:
        if (np.abs(rows[:, first[-1]] - rows[:, other]) > ALIKE * scale[:, 0]).any():
            parts += 1
            first.append(int(other))
        part_of[other] = parts
    if parts + 1 == d:
        return Merged(problem, np.arange(d), problem.prior)
    small = Splitting(
        np.bincount(part_of, problem.prior).astype(np.float64),
        np.arange(parts + 1),
        dense(problem.numerators)[:, first],
        dense(problem.denominators)[:, first],
        problem.epsilon,
    )
    return Merged(small, part_of, problem.prior)
