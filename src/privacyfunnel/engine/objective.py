r"""The objective: what an atom costs, and how its cost is bounded from above and from below.

With an image t = T v, where T sums v over the inputs that belong together, an atom costs

.. math:: \operatorname{cost}(v) = \beta H(T v) - \lVert B^\top v\rVert^2 ,

which is concave: a tangent lies above it everywhere, a chord of :math:`h(t) = -t \ln t` below h between its ends.
Information has β = 1 and no B. Where the second moment :math:`M = \sum_y q_y t_y t_y^\top` of a split counts, the
convex :math:`\operatorname{tr}(F F^\top M^{-1})` falls by :math:`\lVert B^\top t\rVert^2`, :math:`B = M^{-1} F`, per
unit of weight on an atom.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, Matrix, entropy_terms, nonzero_entries
from privacyfunnel.engine.settings import SETTINGS


@dataclass(frozen=True, eq=False)
class Objective:
    """β H(T v) − ‖Bᵀv‖², in nats where β = 1."""

    image_index: IntArray  # the entry of the image that each input belongs to, numbered without holes
    image_size: int
    is_identity: bool  # whether every input is an entry of its own
    weight: float = 1.0  # β
    square: FloatArray | None = None  # B, a row per input

    @classmethod
    def from_groups(cls, group: IntArray) -> Objective:
        """The entropy over the groups of inputs."""
        found, value = np.unique(group, return_inverse=True)
        value = value.astype(np.int64).reshape(-1)
        return cls(value, found.size, bool(np.array_equal(value, np.arange(value.size))))

    @cached_property
    def gram_matrix(self) -> FloatArray | None:
        """B Bᵀ, in which what rows have in common is short, however long they are."""
        return None if self.square is None else np.asarray(self.square @ self.square.T)

    def restrict(self, inputs: IntArray) -> Objective:
        """The entropy of atoms that have these inputs only."""
        return Objective.from_groups(self.image_index[inputs])

    def terms(self, t: FloatArray) -> FloatArray:
        """β h(t), elementwise; nothing is computed where β = 0."""
        return self.weight * entropy_terms(t) if self.weight else np.zeros_like(t)

    def slopes(self, t: FloatArray, least: float) -> FloatArray:
        r"""By Gibbs' inequality :math:`H(u) \le -\sum_x u_x \ln t_x` for every distribution u; 0 counts as `least`."""
        return -self.weight * np.log(np.maximum(t, least)) if self.weight else np.zeros_like(t)


def image(objective: Objective, atoms: FloatArray) -> FloatArray:
    """T v for every row v."""
    if objective.is_identity:
        return atoms
    k = atoms.shape[0]
    index = np.arange(k)[:, None] * objective.image_size + objective.image_index
    sums: FloatArray = np.bincount(index.ravel(), atoms.ravel(), k * objective.image_size).astype(np.float64)
    return sums.reshape(k, objective.image_size)


def costs(objective: Objective, atoms: Matrix) -> FloatArray:
    """The cost of every row. Atoms have few non-zero entries, so only those are looked at, unless inputs are summed."""
    if isinstance(atoms, np.ndarray) and not objective.is_identity:
        separate = np.empty(len(atoms))
        for first in range(0, len(atoms), rows := max(1, SETTINGS.lp.sums // atoms.shape[1])):
            some = slice(first, first + rows)
            separate[some] = objective.terms(image(objective, atoms[some])).sum(axis=1)
        return separate - squares(objective, atoms)
    row, z, entries = nonzero_entries(atoms)
    if not objective.is_identity:
        cell, where = np.unique(row * objective.image_size + objective.image_index[z], return_inverse=True)
        row, entries = cell // objective.image_size, np.bincount(where, entries).astype(np.float64)
    separate = np.bincount(row, objective.terms(entries), minlength=atoms.shape[0]).astype(np.float64)
    return separate - squares(objective, atoms)


def squares(objective: Objective, atoms: Matrix) -> FloatArray:
    """‖Bᵀv‖² for every row v; 0 where there is no B."""
    if objective.square is None:
        return np.zeros(atoms.shape[0])
    return np.asarray(((atoms @ objective.square) ** 2).sum(axis=1))


def reduced_costs(objective: Objective, atoms: FloatArray, prices: FloatArray) -> FloatArray:
    """cost(v) − prices·v for every row."""
    separate = objective.terms(image(objective, atoms)).sum(axis=1) - atoms @ prices
    return np.asarray(separate - squares(objective, atoms))


def tangents(objective: Objective, atoms: FloatArray, least: float) -> FloatArray:
    """For every row the slopes, by input, of a linear function above the cost that meets it there."""
    slopes = objective.slopes(image(objective, atoms), least)[:, objective.image_index]
    B = objective.square
    return slopes if B is None else slopes - 2.0 * (atoms @ B) @ B.T


def chords(objective: Objective, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slope and intercept of the chord of h on [low, high], elementwise; on an interval that is a point, slope 0."""
    at_low, at_high = objective.terms(low), objective.terms(high)
    width = high - low
    slope = np.zeros_like(low)
    np.divide(at_high - at_low, width, out=slope, where=width > 0)
    return slope, at_low - slope * low
