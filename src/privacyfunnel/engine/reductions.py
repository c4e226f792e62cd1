r"""Reductions: other problems that say something about this one.

*Same* and *inner*: fewer inputs. Divide the inputs into parts C with :math:`p_C = \sum_{z\in C} p_z`. A protocol
that looks only at the part is a protocol, and its atoms are :math:`v_z = v_C\, p_z / p_C`. The rows see such an atom
through

.. math:: L \cdot v = \sum_C L_C v_C, \qquad L_C = \sum_{z \in C} L_z\, p_z / p_C,

so the best of them is the same problem with fewer inputs. Its split is a split of the whole prior, to start from; and
since inputs of one part have nearly the same columns, the price of the part is nearly the price of each.

Where the columns of a part agree, nothing is lost: its inputs are told apart for free afterwards. An atom on the part
becomes one atom per input, with the same entropy, and the value of the split is the same.

*Outer*: fewer rows, and so a bound from below on what this problem costs.

*Fewer secrets* (docs/theory.md, Theorem 7a). A promise about every secret holds for groups of secrets as well, so the
polytope of the groups contains that of the secrets, and its cheapest split costs no more. With two groups every vertex
is one value or a pair, and the cheapest split is found and proved at once; each group more costs more time.

*One side channel at a time* (Theorem 7b). Take disjoint classes l of inputs, of masses :math:`m_l` under the prior.
What an atom leaves open is which class it is, and which input of its class; each has a least of its own,

.. math:: \min \sum_y q_y H(v_y) \ \ge\ \min \sum_y q_y H(T v_y) + \sum_l m_l \min \sum_y q_y H(v_y)
   \text{ over splits of } p_l \text{ into atoms that the rows inside } l \text{ allow,}

T v being the masses of the classes. The first has all rows, but few values; the parts have few inputs and few rows.
Under SRLIP the classes of one side channel J are the values of :math:`X_J`, and each part is a problem under LIP, or
with the rows of the classes in it under SRLIP again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, dense
from privacyfunnel.engine.objective import Entropy
from privacyfunnel.engine.problem import Problem, Split

MOST_ENTRIES = 2 * 10**7  # numbers in the atoms of a split whose inputs are told apart
ALIKE = 1e-13  # relative; equal columns that were computed differ by this much at most
ROUNDS = 20  # of moving centres
BLOCK = 1 << 22  # distances that are computed together


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """The smaller problem, the part of every input, and the input's share of its part."""

    whole: Problem
    problem: Problem
    part_of: IntArray
    share: FloatArray

    @classmethod
    def of(cls, problem: Problem, part_of: IntArray) -> "Reduced":
        """The problem over these parts."""
        mass = np.bincount(part_of, problem.prior).astype(np.float64)
        share = problem.prior / mass[part_of]
        rows = problem.rows.averaged(part_of, share)
        small = Problem(mass, rows, problem.epsilon, Entropy.of(np.arange(mass.size)))
        return cls(problem, small, part_of, share)

    def expanded(self, atoms: FloatArray) -> FloatArray:
        """Atoms over parts as atoms over inputs."""
        return np.asarray(atoms[:, self.part_of] * self.share)

    def lifted(self, atoms: FloatArray) -> FloatArray:
        """Atoms over inputs as atoms over parts."""
        parts = np.zeros((self.problem.size, len(atoms)))
        np.add.at(parts, self.part_of, atoms.T)
        return parts.T

    def told_apart(self, split: Split, most_atoms: int | None = None) -> Split:
        """The split of the large problem, where inputs of a part are alike: every atom names one input of each part.

        The inputs of a part lie side by side on [0, 1], each as wide as its share; a point of [0, 1] picks one in
        every part of the atom at once.
        """
        size = self.whole.size
        if self.problem.size == size:
            return split
        weights, atoms = [], []
        members = [np.flatnonzero(self.part_of == part) for part in range(self.problem.size)]
        count = np.array([len(inputs) for inputs in members])
        edges = [np.append(np.cumsum(self.share[inputs])[:-1], 1.0) for inputs in members]
        supports = [np.flatnonzero(atom) for atom in split.atoms]
        cuts = [np.unique(np.concatenate([[0.0], *(edges[part] for part in support)])) for support in supports]
        most = max(MOST_ENTRIES // size, 2 * size) if most_atoms is None else most_atoms
        left_whole = _left_whole(split.weights, np.array([len(places) - 1 for places in cuts]), most)
        for i, (q, atom, support) in enumerate(zip(split.weights, split.atoms, supports, strict=True)):
            if left_whole[i]:
                weights.append(q)
                atoms.append(self.expanded(atom[None, :])[0])
                continue
            alone = np.where(count[self.part_of] == 1, atom[self.part_of], 0.0)
            several = support[count[support] > 1]
            for left, right in pairwise(cuts[i]):
                fine = alone.copy()
                for part in several:
                    fine[members[part][np.searchsorted(edges[part], left, side="right")]] = atom[part]
                weights.append(q * (right - left))
                atoms.append(fine)
        value = float(np.array(weights) @ self.whole.costs(np.array(atoms)))
        return Split(np.array(weights), np.array(atoms), value, split.bound)


def _left_whole(weights: FloatArray, pieces: IntArray, most: int) -> BoolArray:
    """The atoms that are told no finer: a solve cut short may leave many on very many values each.

    What cutting an atom gains grows with its weight, so the heaviest per piece are cut first.
    """
    order = np.argsort(-weights / pieces, kind="stable")
    whole = np.ones(len(weights), dtype=bool)
    whole[order] = np.cumsum(pieces[order]) + np.arange(len(order))[::-1] > most
    return whole


def merged(problem: Problem) -> Reduced:
    """The problem with inputs merged whose columns agree; only where every input is a value of its own."""
    d = problem.size
    every = np.arange(d)
    if problem.sets is not None:  # a set of priors may tell apart what the table does not
        return Reduced(problem, problem, every, np.ones(d))
    if not problem.objective.plain or not len(problem.rows):
        return Reduced(problem, problem, every, np.ones(d)) if len(problem.rows) else Reduced.of(problem, 0 * every)
    columns = dense(problem.rows.functionals[np.unique(problem.rows.pairs)])
    scale = np.maximum(np.abs(columns).max(axis=1, keepdims=True), 1e-300)
    order, part_of, parts = np.lexsort(np.round(columns / scale, 10)), np.zeros(d, dtype=np.int64), 0
    first = int(order[0])
    for other in order[1:]:
        if (np.abs(columns[:, first] - columns[:, other]) > ALIKE * scale[:, 0]).any():
            parts += 1
            first = int(other)
        part_of[other] = parts
    if parts + 1 == d:
        return Reduced(problem, problem, every, np.ones(d))
    return Reduced.of(problem, part_of)


def coarse(problem: Problem, most: int) -> Reduced:
    """The problem over at most so many parts of inputs whose columns are alike.

    A point per input is its columns, each divided by the root of its largest entry. An entry of L_s is P(s|z)/P(s), at
    most 1/P(s): so distances are about those of χ² between posteriors of the secret.
    """
    rows = np.concatenate(problem.rows.dense)
    points = np.asarray((rows / np.sqrt(np.maximum(rows.max(axis=1, keepdims=True), 1e-300))).T)
    return Reduced.of(problem, _parts(points, problem.prior, most))


def _parts(points: FloatArray, p: FloatArray, most: int) -> IntArray:
    """Parts of small spread Σ p·distance²: centres far apart to begin with, then means (Lloyd)."""
    centres = points[[int(np.argmax(p))]]
    nearest = _distances(points, centres)[:, 0]
    while len(centres) < most and (p * nearest).max() > 0:
        new = points[[int(np.argmax(p * nearest))]]
        centres = np.concatenate([centres, new])
        nearest = np.minimum(nearest, _distances(points, new)[:, 0])
    part_of = np.zeros(p.size, dtype=np.int64)
    for _ in range(ROUNDS):
        height = max(1, BLOCK // len(centres))
        blocks = [_distances(points[i : i + height], centres).argmin(axis=1) for i in range(0, p.size, height)]
        before, part_of = part_of, np.unique(np.concatenate(blocks), return_inverse=True)[1].reshape(-1)
        if np.array_equal(before, part_of):
            break
        mass = np.bincount(part_of, p)
        centres = np.stack([np.bincount(part_of, p * column) / mass for column in points.T], axis=1)
    return part_of


def _distances(points: FloatArray, centres: FloatArray) -> FloatArray:
    """Squared distances, points × centres."""
    squares = (points**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2.0 * points @ centres.T
    return np.asarray(np.maximum(squares, 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A problem whose secrets can be grouped."""

    problem: Problem
    count: int  # of secrets

    def singled_out(self, few: Sequence[int]) -> Problem | None:
        """The problem in which these secrets stay as they are, and all others are one group."""
        groups = np.zeros((len(few) + 1, self.count), dtype=bool)
        groups[np.arange(len(few)), list(few)] = True
        groups[-1] = ~groups.any(axis=0)
        rows = self.problem.rows.grouped(groups)
        return None if rows is None else self.problem.easier(rows)


def grouped_secrets(problem: Problem) -> Groups | None:
    """The secrets behind the rows, three or more, where all rows are about everybody."""
    rows = problem.rows
    if rows.share.shape[1] < 3 or not problem.objective.plain or rows.grouped(np.eye(rows.share.shape[1]) > 0) is None:
        return None
    return Groups(problem, rows.share.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A class: its inputs, their mass, and the problem within it."""

    inputs: IntArray
    mass: float
    problem: Problem


def side_channels(problem: Problem, *, deeper: bool = False) -> list[tuple[Part, ...]]:
    """Ways to divide inputs into classes that rows look at, fewest and largest first; none that has all rows in one.

    Every way that holds the likeliest input has a class that does. A class has its own rows, which are those of LIP;
    deeper, also the rows of all classes in it.
    """
    rows = problem.rows
    if not rows.local:
        return []
    likeliest = rows.compared[rows.members[rows.compared, int(np.argmax(problem.prior))]]
    ways = {tuple(way) for way in rows.disjoint_classes(likeliest)}
    ordered = sorted(ways, key=lambda way: (len(way), -int(rows.members[list(way)].sum())))
    found = (tuple(_part(problem, number, deeper) for number in way) for way in ordered)
    return [parts for parts in found if len(parts[0].problem.rows) < len(rows)]


def which_class(problem: Problem, parts: Sequence[Part]) -> Problem | None:
    """The same problem where only the class of an input counts, all in none being one; None where there is one."""
    number = np.zeros(problem.size, dtype=np.int64)
    for i, part in enumerate(parts):
        number[part.inputs] = i + 1
    objective = Entropy.of(number)
    return replace(problem, objective=objective) if objective.values > 1 else None


def one_side_channel(problem: Problem) -> Part | None:
    """The class of the rows that look at most inputs; None where those are all rows."""
    ways = side_channels(problem)
    return ways[0][0] if ways else None


def _part(problem: Problem, number: int, deeper: bool) -> Part:
    inputs = np.flatnonzero(problem.rows.members[number])
    mass = float(problem.prior[inputs].sum())
    rows = problem.rows.within(number, mass, deeper=deeper)
    objective = Entropy.of(np.arange(inputs.size))
    return Part(inputs, mass, Problem(problem.prior[inputs] / mass, rows, problem.epsilon, objective))
