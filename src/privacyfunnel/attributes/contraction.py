r"""P(y | E) of a product of protocols, one per attribute, by contracting one attribute at a time:

.. math:: P(y \mid E) = \sum_x P(x \mid E) \prod_j Q^j(y^j \mid x^j).

Where an attacker knows attributes J, everybody who is compared shares :math:`x^J`, so :math:`Q^j(y^j|x^j)` for j in J
is the same factor on both sides of every ratio: it cancels, and only the other attributes' outputs are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.promises import Comparisons

WORKED_ON = 1 << 21  # entries of P(y | E) that are worked on at a time


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Some pairs of events and all outputs of the attributes that nobody knew: P(y|E) and P(y|F)."""

    pairs: IntArray  # their numbers in the comparisons
    one: FloatArray  # pairs × outputs
    other: FloatArray
    shape: tuple[int, ...]  # how many outputs each unknown attribute has
    unknown: tuple[int, ...]

    def output(self, column: int, factors: int) -> tuple[int, ...]:
        """The output of that column, one number per attribute; known attributes show their first one."""
        found = [0] * factors
        for j, y in zip(self.unknown, np.unravel_index(column, self.shape), strict=True):
            found[j] = int(y)
        return tuple(found)


def contracted(
    channels: Sequence[FloatArray], combos: IntArray, comparisons: Comparisons, wanted: BoolArray | None = None
) -> Iterator[Pairs]:
    """P(y|E) for the pairs that are `wanted` (default all), in parts that fit in memory."""
    # Large attributes first, while the table is still sparse.
    unknown = sorted((j for j in range(len(channels)) if j not in comparisons.known), key=lambda j: -len(channels[j]))
    shape = tuple(channels[j].shape[1] for j in unknown)
    steps = _contractions(channels, combos, unknown)
    p = comparisons.distributions
    pairs = np.arange(len(comparisons.pairs)) if wanted is None else np.flatnonzero(wanted)
    at_once = max(1, WORKED_ON // max(1, math.prod(shape)))
    for first in range(0, len(pairs), at_once):
        part = pairs[first : first + at_once]
        events, place = np.unique(comparisons.pairs[part], return_inverse=True)
        place = place.reshape(-1, 2)
        p_y = _through(csr_array(p[events]), steps)
        yield Pairs(part, p_y[place[:, 0]], p_y[place[:, 1]], shape, tuple(unknown))


def _contractions(channels: Sequence[FloatArray], combos: IntArray, unknown: Sequence[int]) -> list[csr_array]:
    """Matrices that replace, one attribute after the other, x^j by y^j: from the values of the attributes still to come
    to outputs times the values of those that come after.
    """
    steps = []
    _, inputs = np.unique(combos[:, unknown], axis=0, return_inverse=True)
    first = coo_array((np.ones(len(combos)), (np.arange(len(combos)), inputs.reshape(-1))))
    steps.append(csr_array(first))
    values = np.unique(combos[:, unknown], axis=0)
    for j in unknown:
        rest, after = np.unique(values[:, 1:], axis=0, return_inverse=True)
        after = after.reshape(-1)
        rows = channels[j][values[:, 0]]  # values × b_j
        value, y = np.nonzero(rows)
        shape = (len(values), rows.shape[1] * len(rest))
        steps.append(csr_array(coo_array((rows[value, y], (value, y * len(rest) + after[value])), shape=shape)))
        values = rest
    return steps


def _through(p: csr_array, steps: Sequence[csr_array]) -> FloatArray:
    events = p.shape[0]
    table = np.asarray(csr_array(p @ steps[0]).toarray())
    for step in steps[1:]:
        # (events · outputs so far) × values to come, times values to come × (outputs · values after)
        table = np.asarray(table.reshape(-1, step.shape[0]) @ step)
    return table.reshape(events, -1)
