r"""Parts of similar inputs: coarse problems to start from, and relaxations over parts.

*Coarse.* A protocol that looks only at the part of an input is a protocol, so the best of them is the same problem with
fewer inputs. Its split is one to start from; and since inputs of one part have nearly the same columns, the price of
the part is nearly the price of each.

*Similar* (docs/theory.md, Theorem 7d). Say :math:`\rho = e^{-\varepsilon - \eta}` and put inputs into one part when
:math:`\lfloor \ln(1 + L_z / \rho) / \eta \rfloor` agrees for every functional. Then an average L' of L over parts has
:math:`e^{-\eta}(L - \kappa) \le L' \le e^{\eta} L + \kappa` with :math:`\kappa = e^{-\varepsilon}(1 - e^{-\eta})`, so
that :math:`L' \cdot v` lies within a factor :math:`e^{\pm 2\eta}` of :math:`L \cdot v \ge e^{-\varepsilon}`: an atom
feasible for L at ε is feasible for L' at ε + 2η where all are compared with everybody, at ε + 4η where with each other.
"""

from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.reductions.base import PartsProblem, functionals
from privacyfunnel.engine.settings import SETTINGS


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
