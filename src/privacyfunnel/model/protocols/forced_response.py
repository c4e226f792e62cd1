r"""Forced response: the record itself with chance τ, else a record drawn from a fixed distribution, whatever it was.

.. math:: q(y \mid x) = \tau [x = y] + r_y, \qquad \textstyle\sum_y r_y = 1 - \tau.

Every event E sees :math:`P(y|E) = \tau P(X = y|E) + r_y`, so all that a promise compares is a table of events and
values, however many values there are. The same holds of any of the published columns: what they show is the forced
response of their own values, with the same τ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, dense, entropy_terms
from privacyfunnel.errors import DistributionError
from privacyfunnel.model.comparisons import Comparisons, Leak, pair_chunks
from privacyfunnel.model.credal.clopper_pearson import SCALE
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Labels

ROUNDING = 1e-9  # by how much the chances of a row may miss 1


@dataclass(frozen=True, slots=True, eq=False)
class ForcedResponse:
    """The chance of the truth, and r over the records that may be published."""

    truth: float
    noise: FloatArray
    record: IntArray  # which one each input is
    labels: tuple[Labels, ...]  # of each published column
    combos: IntArray  # outputs × columns: the labels of every record
    sees_secret: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (0 <= self.truth <= 1 and (self.noise >= 0).all()):
            raise DistributionError("The chances of a forced response must not be negative; some are.")
        if abs(self.truth + self.noise.sum() - 1) > ROUNDING:
            raise DistributionError("The chances of truth and noise must sum to 1; they do not.")

    def output_chances(self, p: FloatArray, mass: FloatArray | float = 1.0) -> FloatArray:
        """P(y | E) for every row of P(input | E), or of P(input and E | condition) with the mass of E."""
        held = np.zeros((len(p), len(self.noise)))
        np.add.at(held.T, self.record, p.T)
        return self.truth * held + mass * self.noise

    @property
    def channel(self) -> FloatArray:
        """q written out: inputs × records."""
        channel = np.tile(self.noise, (len(self.record), 1))
        channel[np.arange(len(self.record)), self.record] += self.truth
        return channel

    def worst(self, comparisons: Comparisons) -> Leak:
        """The output and pair of events with the largest log-ratio."""
        if comparisons.inputs != len(self.record):
            raise DistributionError(
                f"A protocol must have a row per input; it has {len(self.record)}, the table {comparisons.inputs}."
            )
        largest, mass = Leak(0.0), comparisons.masses[comparisons.pairs][:, :, None]
        for first, events, others in pair_chunks(comparisons):
            of = mass[first : first + events.shape[0]]
            chances = self.output_chances(dense(events), of[:, 0]), self.output_chances(dense(others), of[:, 1])
            sizes = comparisons.leak_sizes(*chances, first)
            row, y = map(int, np.unravel_index(int(sizes.argmax()), sizes.shape))
            if sizes[row, y] > largest.epsilon or largest.output is None:
                largest = comparisons.leak(float(sizes[row, y]), first + row, y)
        return largest

    def worst_credal_leak(self, sets: CredalSets) -> Leak:
        """The same over all members of sets of priors."""
        lowest, highest = cell_bounds(sets)
        low, high = (self.output_chances(bound / SCALE) for bound in (lowest, highest))
        e, f = sets.pairs.T
        ones = np.ones((len(e), len(self.noise)))
        one = np.divide(low[f], high[e], out=ones.copy(), where=high[e] > 0)
        other = np.divide(low[e], high[f], out=ones.copy(), where=high[f] > 0)
        sizes = np.log(sets.ratios(one, other))
        if not sizes.size:
            return Leak(0.0)
        pair, y = map(int, np.unravel_index(int(sizes.argmax()), sizes.shape))
        return sets.leak(float(sizes[pair, y]), pair, y)

    def describe(self, leak: Leak, joint: Joint) -> str:
        """The leak in words, the output by its labels."""
        if leak.output is None:
            return leak.describe(joint)
        record = self.combos[leak.output].tolist()
        return leak.describe(joint, " & ".join(labels[code] for labels, code in zip(self.labels, record, strict=True)))

    def mutual_information(self, joint: Joint) -> float:
        """I(X;Y) = H(Y) − H(Y|X) in nats; given x, all outputs but its own have the chances of the noise."""
        r, own = self.noise, self.noise[self.record]
        h_y = float(entropy_terms(self.output_chances(joint.p_x[None])[0]).sum())
        given = entropy_terms(r).sum() - entropy_terms(own) + entropy_terms(self.truth + own)
        return max(0.0, h_y - float(joint.p_x @ given))

    def mix_constant(self, share: float) -> ForcedResponse:
        """The same with less truth, by that share of it, and more noise of the same kind."""
        if self.truth >= 1:  # noise of no kind: any will do
            noise = np.full(len(self.noise), share / len(self.noise))
            return ForcedResponse(1 - share, noise, self.record, self.labels, self.combos)
        less = self.truth * (1 - share)
        return ForcedResponse(less, self.noise * (1 - less) / self.noise.sum(), self.record, self.labels, self.combos)


def cell_bounds(sets: CredalSets) -> tuple[IntArray, IntArray]:
    """The least and the largest P(z) among the members of every set, over 2⁴⁰, (k, inputs) each."""
    low, high = sets.low, sets.high
    least = np.maximum(low, SCALE - (high.sum(axis=1, keepdims=True) - high))
    return least, np.minimum(high, SCALE - (low.sum(axis=1, keepdims=True) - low))
