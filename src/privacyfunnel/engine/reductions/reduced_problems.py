r"""Reductions: other problems that say something about this one.

*Same* and *inner*: fewer inputs. Divide the inputs into parts C with :math:`p_C = \sum_{z\in C} p_z`. A protocol
that looks only at the part is a protocol, and its atoms are :math:`v_z = v_C\, p_z / p_C`. The rows see such an atom
through

.. math:: L \cdot v = \sum_C L_C v_C, \qquad L_C = \sum_{z \in C} L_z\, p_z / p_C,

so the best of them is the same problem with fewer inputs. Its split is a split of the whole prior, to start from; and
since inputs of one part have nearly the same columns, the price of the part is nearly the price of each.

Where the columns of a part agree, nothing is lost: its inputs are told apart for free afterwards. An atom on the part
becomes one atom per input, with the same entropy, and the value of the split is the same.

*Inner*: balanced blocks. Divide the inputs into blocks b of mass :math:`m_b`, each with a prior of its own
:math:`p_b` that is allowed. Splits of the blocks are together a split of the whole, of value :math:`\sum_b m_b` times
theirs. A vertex has no more inputs than there are secrets, so atoms that stay within some hundred inputs lose little,
and each block is the same problem, small.

*Outer*: fewer rows, or looser ones, and so a bound from below on what this problem costs.

*Nearly alike* (docs/theory.md, Theorem 7d). Say :math:`\rho = e^{-\varepsilon - \eta}` and put inputs into one part
when :math:`\lfloor \ln(1 + L_z / \rho) / \eta \rfloor` agrees for every functional. Then an average L' of L over
parts has :math:`e^{-\eta}(L - \kappa) \le L' \le e^{\eta} L + \kappa` with
:math:`\kappa = e^{-\varepsilon}(1 - e^{-\eta})`, so that :math:`L' \cdot v` lies within a factor
:math:`e^{\pm 2\eta}` of :math:`L \cdot v \ge e^{-\varepsilon}`: an atom allowed for L at ε is allowed for L' at
ε + 2η where all are compared with everybody, at ε + 4η where with each other.

*At their best* (docs/theory.md, Theorem 7e). Whatever the parts C, an atom with :math:`L \cdot v \le e^{\varepsilon}`
has :math:`\sum_C v_C \min_C L \le e^{\varepsilon}`, and one with :math:`L \cdot v \ge e^{-\varepsilon}` has
:math:`\sum_C v_C \max_C L \ge e^{-\varepsilon}`. Each is a row against everybody once L is moved so far that its other
side holds anyway.

*Fewer secrets* (docs/theory.md, Theorem 7a). A promise about every secret holds for groups of secrets as well, so the
polytope of the groups contains that of the secrets, and its cheapest split costs no more. With two groups every vertex
is one value or a pair, and the cheapest split is found and proved at once; each group more costs more time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, dense
from privacyfunnel.engine.objective import Entropy
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.reductions.refinement import densify_if_small, refine_merged
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.constraints import LinearConstraints


@dataclass(frozen=True, slots=True, eq=False)
class ReducedProblem:
    """The smaller problem, the part of every input, and the input's share of its part."""

    original: Problem
    problem: Problem
    part_of: IntArray
    share: FloatArray

    @classmethod
    def from_parts(cls, problem: Problem, part_of: IntArray) -> "ReducedProblem":
        """The problem over these parts."""
        mass = np.bincount(part_of, problem.prior).astype(np.float64)
        share = problem.prior / mass[part_of]
        rows = problem.constraints.average(part_of, share)
        small = Problem(mass, rows, problem.epsilon, Entropy.from_groups(np.arange(mass.size)))
        return cls(problem, small, part_of, share)

    def expand(self, atoms: FloatArray) -> FloatArray:
        """Atoms over parts as atoms over inputs."""
        return np.asarray(atoms[:, self.part_of] * self.share)

    def aggregate(self, atoms: FloatArray) -> FloatArray:
        """Atoms over inputs as atoms over parts."""
        parts = np.zeros((self.problem.size, len(atoms)))
        np.add.at(parts, self.part_of, atoms.T)
        return parts.T

    def refine(self, split: Split, most_atoms: int | None = None) -> Split:
        """The split of the large problem, where inputs of a part are alike: every atom names one input of each part."""
        if self.problem.size == self.original.size:
            return replace(split, atoms=densify_if_small(split.atoms))
        named = refine_merged(split, self.part_of, self.share, most_atoms)
        return replace(named, value=float(named.weights @ self.original.costs(named.atoms)))


def merge_equal(problem: Problem) -> ReducedProblem:
    """The problem with inputs merged whose columns agree; only where every input is a value of its own."""
    d = problem.size
    every = np.arange(d)
    if problem.credal_sets is not None:  # a set of priors may tell apart what the table does not
        return ReducedProblem(problem, problem, every, np.ones(d))
    if not problem.objective.is_identity or not len(problem.constraints):
        return (
            ReducedProblem(problem, problem, every, np.ones(d))
            if len(problem.constraints)
            else ReducedProblem.from_parts(problem, 0 * every)
        )
    columns = _functionals(problem)
    scale = np.maximum(np.abs(columns).max(axis=1, keepdims=True), SETTINGS.tolerance.tiny)
    order, part_of, parts = (
        np.lexsort(np.round(columns / scale, SETTINGS.tolerance.atom_digits)),
        np.zeros(d, dtype=np.int64),
        0,
    )
    first = int(order[0])
    for other in order[1:]:
        if (np.abs(columns[:, first] - columns[:, other]) > SETTINGS.tolerance.merged * scale[:, 0]).any():
            parts += 1
            first = int(other)
        part_of[other] = parts
    if parts + 1 == d:
        return ReducedProblem(problem, problem, every, np.ones(d))
    return ReducedProblem.from_parts(problem, part_of)


def coarsen(problem: Problem, most: int) -> ReducedProblem:
    """The problem over at most so many parts of inputs whose columns are alike.

    A point per input is its columns, each divided by the root of its largest entry. An entry of L_s is P(s|z)/P(s), at
    most 1/P(s): so distances are about those of χ² between posteriors of the secret.
    """
    rows = np.concatenate(problem.constraints.dense)
    points = np.asarray((rows / np.sqrt(np.maximum(rows.max(axis=1, keepdims=True), SETTINGS.tolerance.tiny))).T)
    return ReducedProblem.from_parts(problem, _parts(points, problem.prior, most))


def _parts(points: FloatArray, p: FloatArray, most: int) -> IntArray:
    """Parts of small spread Σ p·distance²: centres far apart to begin with, then means (Lloyd)."""
    centres = points[[int(np.argmax(p))]]
    nearest = _distances(points, centres)[:, 0]
    while len(centres) < most and (p * nearest).max() > 0:
        new = points[[int(np.argmax(p * nearest))]]
        centres = np.concatenate([centres, new])
        nearest = np.minimum(nearest, _distances(points, new)[:, 0])
    part_of = np.zeros(p.size, dtype=np.int64)
    for _ in range(SETTINGS.reductions.centre_rounds):
        height = max(1, SETTINGS.reductions.distances // len(centres))
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


def merge_similar(problem: Problem, eta: float) -> Problem:
    """The problem over parts of nearly alike inputs, at a promise loose enough to allow all that this one does."""
    rho = np.exp(-problem.epsilon - eta)
    cells = np.floor(np.log1p(_functionals(problem) / rho) / eta)
    part_of = np.unique(cells, axis=1, return_inverse=True)[1].reshape(-1)
    looser = problem.epsilon + (2 if problem.constraints.compares_with_everybody else 4) * eta * (
        1 + SETTINGS.tolerance.parts
    )
    return replace(ReducedProblem.from_parts(problem, part_of).problem, epsilon=looser)


def narrow_parts(problem: Problem, most: int) -> IntArray:
    """At most so many parts of inputs that rows hardly tell apart.

    A part is as wide as its rarest inputs make it, so that these count for more than their mass.
    """
    L = dense(problem.constraints.functionals[problem.constraints.pairs[:, 0]])
    return _parts(np.log1p(problem.exp_epsilon * L).T, np.sqrt(problem.prior), most)


def relax_parts(problem: Problem, part_of: IntArray) -> Problem:
    """The problem over these parts, each seen by each side of each row as its input that breaks it least.

    Everything is compared with everybody. With l = min L the row l·v <= e^ε is N·v <= e^ε for
    N = e^ε (c + l)/(c + e^ε), and with h = max L the row h·v >= e^-ε is that for N = e^ε (c − h)/(c − e^-ε).
    N·v >= e^-ε holds anyway where c (e^2ε − 1) >= e^ε, and where (c − max h) e^2ε >= c − e^-ε.
    """
    L, loud = dense(problem.constraints.functionals[problem.constraints.pairs[:, 0]]), problem.exp_epsilon
    order = np.argsort(part_of, kind="stable")
    firsts = np.searchsorted(part_of[order], np.arange(part_of.max() + 1))
    least, largest = (extreme.reduceat(L[:, order], firsts, axis=1) for extreme in (np.minimum, np.maximum))
    slack = 2.0 * loud / (loud**2 - 1.0)
    above = 1.0 + 2.0 * L.max(axis=1, keepdims=True) / (1.0 - loud**-2)
    upper = loud * (slack + least) / (slack + loud)
    lower = loud * (above - largest) / (above - 1.0 / loud)
    k = 2 * len(L)
    each, pairs = np.eye(k + 1, k, dtype=bool), np.stack([np.arange(k), np.full(k, k)], axis=1)
    each[k] = True
    rows = LinearConstraints.from_groups(np.concatenate([upper, lower]), np.full(k, 1.0 / k), each, pairs)
    mass = np.bincount(part_of, problem.prior).astype(np.float64)
    return Problem.from_values(mass, rows, problem.epsilon * (1 + SETTINGS.tolerance.parts))


def _functionals(problem: Problem) -> FloatArray:
    """The functionals that rows compare, each once."""
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

    def restrict_to(self, few: Sequence[int]) -> Problem:
        """The problem in which these secrets alone are compared, where all are with everybody."""
        rows = self.problem.constraints
        one = rows.secrets[rows.pairs[:, 0]]
        return self.problem.replace_constraints(
            rows.select_pairs((one.sum(axis=1) == 1) & one[:, list(few)].any(axis=1))
        )


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


@dataclass(frozen=True, slots=True, eq=False)
class InputPart:
    """A class: its inputs, their mass, and the problem within it."""

    inputs: IntArray
    mass: float
    problem: Problem


def balance_blocks(problem: Problem, most: int) -> list[InputPart]:
    """Blocks of at most about so many inputs, each with a prior that is allowed.

    What an input adds to the imbalance Σ p (L − 1) of its block is a vector, of the length that χ² gives it; those of
    long vectors have their place first, each where Σ ‖imbalance‖² / mass over all blocks rises least. Blocks that stay
    out of balance are joined to others.
    """
    d, rows, L = problem.size, problem.constraints, _functionals(problem)
    chance = (rows.secrets * rows.share[rows.of_class]).sum(axis=1)[np.unique(rows.pairs)]
    vectors = (chance[:, None] * (L - 1.0) * problem.prior).T
    count = -(-d // most)
    imbalance, mass, room = np.zeros((count, len(L))), np.zeros(count), np.full(count, most)
    badness, block_of = np.zeros(count), np.zeros(d, dtype=np.int64)
    for z in np.argsort(-np.square(vectors).sum(axis=1) / problem.prior, kind="stable").tolist():
        after = np.square(imbalance + vectors[z]).sum(axis=1) / (mass + problem.prior[z])
        block = int(np.argmin(np.where(room > 0, after - badness, np.inf)))
        imbalance[block] += vectors[z]
        mass[block] += problem.prior[z]
        badness[block], room[block], block_of[z] = after[block], room[block] - 1, block
    together = _join_until_feasible(problem, [np.flatnonzero(block_of == block) for block in range(count)])
    return [build_block(problem, inputs) for inputs in together]


def _join_until_feasible(problem: Problem, blocks: list[IntArray]) -> list[IntArray]:
    """The blocks, those out of balance joined to others; all inputs together are allowed.

    The one furthest out is joined to the smallest of those that mend it, and the rarest of these, or else to the one
    that mends most.
    """
    sums = np.array(
        [[side[:, inputs] @ problem.prior[inputs] for side in problem.constraints.dense] for inputs in blocks]
    )
    most = SETTINGS.slack.balanced * problem.epsilon
    while len(blocks) > 1 and (out := _imbalance(sums)).max() > most:
        worst = int(np.argmax(out))
        after = _imbalance(sums + sums[worst])
        size = np.array([inputs.size + problem.prior[inputs].sum() for inputs in blocks])
        after[worst] = np.inf
        mended = after <= most
        other = int(np.argmin(np.where(mended, size, np.inf) if mended.any() else after))
        sums[other] += sums[worst]
        blocks[other] = np.sort(np.concatenate([blocks[other], blocks[worst]]))
        sums = np.delete(sums, worst, axis=0)
        del blocks[worst]
    return blocks


def _imbalance(sums: FloatArray) -> FloatArray:
    """The largest log-ratio of each block, from the sums Σ p L of both sides of its rows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(np.log(sums[:, 0] / sums[:, 1]))
    return np.asarray(np.where(np.isnan(ratio), 0.0, ratio).max(axis=1, initial=0.0))  # nothing on both sides is even


def build_block(problem: Problem, inputs: IntArray) -> InputPart:
    """The block of these inputs."""
    mass = float(problem.prior[inputs].sum())
    part = problem.restrict(inputs)
    return InputPart(inputs, mass, replace(part, prior=part.prior / mass))
