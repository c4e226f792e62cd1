r"""Parts of similar inputs: coarse problems to start from, and relaxations over parts.

*Coarse.* A protocol that looks only at the part of an input is a protocol, so the best of them is the same problem with
fewer inputs. Its split is one to start from; and since inputs of one part have nearly the same columns, the price of
the part is nearly the price of each.

*Similar* (docs/theory.md, Theorem 7d). Say :math:`\rho = e^{-\varepsilon - \eta}` and put inputs into one part when
:math:`\lfloor \ln(1 + L_z / \rho) / \eta \rfloor` agrees for every functional. Then an average L' of L over parts has
:math:`e^{-\eta}(L - \kappa) \le L' \le e^{\eta} L + \kappa` with :math:`\kappa = e^{-\varepsilon}(1 - e^{-\eta})`, so
that :math:`L' \cdot v` lies within a factor :math:`e^{\pm 2\eta}` of :math:`L \cdot v \ge e^{-\varepsilon}`: an atom
feasible for L at ε is feasible for L' at ε + 2η where all are compared with everybody, at ε + 4η where with each other.

*At their best* (docs/theory.md, Theorem 7e). Whatever the parts C, an atom with :math:`L \cdot v \le e^{\varepsilon}`
has :math:`\sum_C v_C \min_C L \le e^{\varepsilon}`, and one with :math:`L \cdot v \ge e^{-\varepsilon}` has
:math:`\sum_C v_C \max_C L \ge e^{-\varepsilon}`. Each is a constraint against everybody once L is moved so far that its
other side holds anyway.
"""

from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, dense
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.reductions.base import PartsProblem, functionals
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.constraints import LinearConstraints


@dataclass(frozen=True, slots=True)
class Coarsen:
    """The problem over at most `most` parts of inputs with similar columns.

    A point per input is its columns, each divided by the root of its largest entry. An entry of L_s is P(s|z)/P(s), at
    most 1/P(s): so distances are about those of χ² between posteriors of the secret.
    """

    most: int

    def accepts(self, problem: Problem) -> bool:
        """Any problem of more inputs whose inputs are values."""
        return problem.objective.is_identity and problem.size > self.most

    def apply(self, problem: Problem) -> PartsProblem:
        """The problem over parts."""
        rows = np.concatenate(problem.constraints.dense)
        largest = np.maximum(rows.max(axis=1, keepdims=True), SETTINGS.tolerance.tiny)
        return PartsProblem.from_parts(
            problem, _parts(np.asarray((rows / np.sqrt(largest)).T), problem.prior, self.most)
        )


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
    cells = np.floor(np.log1p(functionals(problem) / rho) / eta)
    part_of = np.unique(cells, axis=1, return_inverse=True)[1].reshape(-1)
    looser = problem.epsilon + (2 if problem.constraints.compares_with_everybody else 4) * eta * (
        1 + SETTINGS.tolerance.parts
    )
    return replace(PartsProblem.from_parts(problem, part_of).problem, epsilon=looser)


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
