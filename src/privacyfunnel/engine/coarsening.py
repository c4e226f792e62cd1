r"""Fewer inputs: values that say nearly the same about the secret, published together.

Let the inputs be divided into parts C with :math:`p_C = \sum_{z\in C} p_z`. A protocol that looks only at the part is a
protocol, and its atoms are :math:`v_z = v_C\, p_z / p_C`. The rows see such an atom through

.. math:: N_i \cdot v = \sum_C N_{i,C} v_C, \qquad N_{i,C} = \sum_{z \in C} N_{i,z}\, p_z / p_C,

so the best of them is the same problem with fewer inputs. Its split is a split of the whole prior, to start from; and
since inputs of one part have nearly the same columns, the price of the part is nearly the price of each.
"""

from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.polytope import dense
from privacyfunnel.engine.problem import Splitting

ROUNDS = 20
BLOCK = 1 << 22  # distances that are computed together


@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    """The smaller problem, the part of every input, and the input's share of its part."""

    problem: Splitting
    part_of: IntArray
    share: FloatArray

    def expanded(self, atoms: FloatArray) -> FloatArray:
        """Atoms over parts as atoms over inputs."""
        return np.asarray(atoms[:, self.part_of] * self.share)

    def reduced(self, atoms: FloatArray) -> FloatArray:
        """The atoms over inputs that treat every part as one, as atoms over parts."""
        parts = np.zeros((self.problem.prior.size, len(atoms)))
        np.add.at(parts, self.part_of, atoms.T)
        whole = np.isclose(parts.T[:, self.part_of] * self.share, atoms, rtol=1e-9, atol=0.0).all(axis=1)
        return np.asarray(parts.T[whole])


def coarse(problem: Splitting, most: int) -> Coarse:
    """The problem over at most so many parts of inputs whose columns are alike."""
    p = problem.prior
    part_of = _parts(_columns(problem), p, most)
    mass = np.bincount(part_of, p).astype(np.float64)
    share = p / mass[part_of]
    averaged = np.zeros((p.size, mass.size))
    averaged[np.arange(p.size), part_of] = share
    small = Splitting(
        mass,
        np.arange(mass.size),
        np.asarray(problem.numerators @ averaged),
        np.asarray(problem.denominators @ averaged),
        problem.epsilon,
    )
    return Coarse(small, part_of, share)


def _columns(problem: Splitting) -> FloatArray:
    """A point per input: its columns, each row divided by the root of its largest entry.

    An entry of N is P(s|z)/P(s), at most 1/P(s): so distances are about those of χ² between posteriors of the secret.
    """
    rows = np.concatenate([dense(problem.numerators), dense(problem.denominators)])
    return np.asarray((rows / np.sqrt(np.maximum(rows.max(axis=1, keepdims=True), 1e-300))).T)


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
