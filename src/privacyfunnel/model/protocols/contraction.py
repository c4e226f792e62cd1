r"""P(y | E) of a product of protocols, one per attribute, by contracting one attribute at a time:

.. math:: P(y \mid E) = \sum_x P(x \mid E) \prod_j Q^j(y^j \mid x^j).

Where an attacker knows attributes J, everybody who is compared shares :math:`x^J`, so :math:`Q^j(y^j|x^j)` for j in J
is the same factor on both sides of every ratio: it cancels, and only the other attributes' outputs are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, sparse
from privacyfunnel.errors import DistributionError
from privacyfunnel.model.comparisons import Comparisons, leak_sizes

WORKED_ON = 1 << 18  # entries of P(y | E) that are worked on at a time
FEWEST_PAIRS = 64  # pairs that go together at least, so that an F they share is computed once
MOST_JOINT_VALUES = 90  # values of the last attributes that are contracted in one go
FILLED = 0.2  # of all combinations of the attributes to come: from here on a plain table is faster


@dataclass(frozen=True, slots=True, eq=False)
class PairLikelihoods:
    """Some pairs of events and some outputs of the attributes that nobody knew: P(y|E) and P(y|F)."""

    pairs: IntArray  # their numbers in the comparisons
    one: FloatArray  # pairs × outputs
    other: FloatArray
    first: int  # the number of the first of these outputs
    shape: tuple[int, ...]  # how many outputs each unknown attribute has
    unknown: tuple[int, ...]
    scales: FloatArray | None = None  # of these pairs

    def output(self, column: int, factors: int) -> tuple[int, ...]:
        """The output of that column, one number per attribute; known attributes show their first one."""
        found = [0] * factors
        for j, y in zip(self.unknown, np.unravel_index(self.first + column, self.shape), strict=True):
            found[j] = int(y)
        return tuple(found)

    def sizes(self) -> FloatArray:
        """The leaks, |ln P(y|E) / P(y|F)| where scales are 1."""
        return leak_sizes(self.one, self.other, self.scales)

    def largest(self) -> tuple[float, int, int]:
        """The largest of these sizes, with its pair and output, at the price of one division per entry."""
        if self.scales is not None:
            sizes = self.sizes()
            row, column = map(int, np.unravel_index(int(sizes.argmax()), sizes.shape))
            return float(sizes[row, column]), row, column
        strange = (self.one == 0) != (self.other == 0)
        if strange.any():
            pair, y = np.argwhere(strange)[0]
            return math.inf, int(pair), int(y)
        ratio = np.divide(self.one, self.other, out=np.ones_like(self.one), where=self.other > 0)
        ends = [(abs(math.log(ratio.flat[i])), int(i)) for i in (ratio.argmax(), ratio.argmin())]
        size, at = max(ends)
        pair, y = np.unravel_index(at, ratio.shape)
        return size, int(pair), int(y)


def contract_channels(
    channels: Sequence[FloatArray], combos: IntArray, comparisons: Comparisons, wanted: BoolArray | None = None
) -> Iterator[PairLikelihoods]:
    """P(y|E) for the pairs that are `wanted` (default all), in parts that fit in memory."""
    every = np.arange(len(comparisons.pairs)) if wanted is None else np.flatnonzero(wanted)
    if len(every):
        p, known = sparse.csr_array(comparisons.distributions), comparisons.known
        for part in _contract(channels, combos, p, comparisons.pairs, every, known):
            yield part if comparisons.scales is None else replace(part, scales=comparisons.scales[part.pairs])


def output_chances(channels: Sequence[FloatArray], combos: IntArray, p_x: FloatArray) -> Iterator[FloatArray]:
    """p(y) for everybody, some outputs at a time."""
    everybody, pairs = sparse.csr_array(p_x[None, :]), np.zeros((1, 2), dtype=np.int64)
    for part in _contract(channels, combos, everybody, pairs, np.arange(1), ()):
        yield part.one[0]


def _contract(
    channels: Sequence[FloatArray],
    combos: IntArray,
    p: sparse.csr_array,
    compared: IntArray,
    pairs: IntArray,
    known: tuple[int, ...],
) -> Iterator[PairLikelihoods]:
    """P(y|E) and P(y|F) for some `pairs` of events that are `compared`, with P(x|E) in the rows of p."""
    if not np.isfinite(p.data).all():
        raise DistributionError("Every event that a promise compares must be able to happen; one is not.")
    # Large attributes first, while the table is still sparse.
    unknown = sorted((j for j in range(len(channels)) if j not in known), key=lambda j: -len(channels[j]))
    shape = tuple(channels[j].shape[1] for j in unknown)
    route = _ContractionPlan(channels, combos, unknown)
    pairs = pairs[np.argsort(compared[pairs, 1], kind="stable")]  # those who share F together
    inner = math.prod(shape[1:])
    at_once = max(FEWEST_PAIRS, WORKED_ON // (2 * inner * shape[0]))
    for begin in range(0, len(pairs), at_once):
        part = pairs[begin : begin + at_once]
        events, place = np.unique(compared[part], return_inverse=True)
        place = place.reshape(-1, 2)
        start = np.asarray(sparse.csr_array(p[events] @ route.input_map).toarray())
        width = max(1, WORKED_ON // (len(events) * inner))
        for y in range(0, shape[0], width):
            p_y = route.contract(start, y, min(y + width, shape[0]))
            yield PairLikelihoods(part, p_y[place[:, 0]], p_y[place[:, 1]], y * inner, shape, tuple(unknown))


class _ContractionPlan:
    """From values to outputs, one attribute after the other.

    While few combinations of the attributes still to come occur, a step is a sparse matrix from those to outputs times
    the combinations after it; once many do, the table is filled up and steps are plain matrix products.
    """

    def __init__(self, channels: Sequence[FloatArray], combos: IntArray, unknown: Sequence[int]) -> None:
        values, inputs = np.unique(combos[:, unknown], axis=0, return_inverse=True)
        every = np.arange(len(combos))
        self.input_map = sparse.csr_array(sparse.coo_array((np.ones(len(combos)), (every, inputs.reshape(-1)))))
        self.sparse: list[tuple[sparse.csr_array, int]] = []  # with how many combinations come after
        left = list(unknown)
        while left:
            rest, after = np.unique(values[:, 1:], axis=0, return_inverse=True)
            rows = channels[left[0]][values[:, 0]]
            value, y = np.nonzero(rows)
            entries = (rows[value, y], (value, y * len(rest) + after.reshape(-1)[value]))
            shape = (len(values), rows.shape[1] * len(rest))
            self.sparse.append((sparse.csr_array(sparse.coo_array(entries, shape=shape)), len(rest)))
            values, left = rest, left[1:]
            if left and FILLED * math.prod(len(channels[j]) for j in left) <= len(values):
                break
        sizes = [len(channels[j]) for j in left]
        self.grid = np.ravel_multi_index(tuple(values.T), sizes) if left else None
        # The last few attributes go together: one product with a matrix of some size beats many with tiny ones.
        self.last: FloatArray = np.ones((1, 1))
        while left and len(self.last) * sizes[-1] <= MOST_JOINT_VALUES:
            self.last = np.asarray(np.kron(channels[left.pop()], self.last), dtype=np.float64)
            sizes.pop()
        self.sizes = [*sizes, len(self.last)]
        self.dense = [np.ascontiguousarray(channels[j].T) for j in left]

    def contract(self, table: FloatArray, first: int, last: int) -> FloatArray:
        """The outputs whose first attribute's number lies in this range, a row per event."""
        events = len(table)
        for k, (step, rest) in enumerate(self.sparse):
            part = step if k else step[:, first * rest : last * rest]
            table = np.asarray(table.reshape(-1, step.shape[0]) @ part).reshape(-1, rest)
        if self.grid is not None:
            filled = np.zeros((len(table), math.prod(self.sizes)))
            filled[:, self.grid] = table
            table = filled
        for k, channel in enumerate(self.dense):
            table = np.matmul(channel, table.reshape(-1, self.sizes[k], math.prod(self.sizes[k + 1 :])))
        return np.asarray(table.reshape(-1, len(self.last)) @ self.last).reshape(events, -1)
