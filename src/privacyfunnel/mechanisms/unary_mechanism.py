"""Mechanism of unary encoding: sets of values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.mechanisms.alias_tables import draw_sets
from privacyfunnel.mechanisms.credal_checks import unary_credal_leak
from privacyfunnel.mechanisms.draw_tally import UnaryEncodingTally
from privacyfunnel.mechanisms.exact_arithmetic import NO_LEAK, ExactLeak, exact_leak, larger_leak
from privacyfunnel.mechanisms.mechanism import (
    BITS,
    UNIT,
    Mechanism,
    Model,
    ObservationModels,
    OutputPart,
    check_table_size,
)
from privacyfunnel.mechanisms.sampling import RandomWords
from privacyfunnel.model.comparisons import Comparisons
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Labels
from privacyfunnel.model.protocols.unary_encoding import UnaryEncoding
from privacyfunnel.names import join_labels


@dataclass(frozen=True, eq=False)
class UnaryEncodingMechanism(Mechanism):
    r"""Unary encoding: the record's own value is in the set with chance 1/2, every other one with chance t / 2⁶⁴.

    Given event E the chance of a set y is proportional to :math:`t + (2^{64} - 2t) P(X ∈ y | E)`.
    """

    values: tuple[str, ...]
    t: int
    kind: ClassVar[str] = "unary-encoding"
    check_method: ClassVar[str] = "in exact arithmetic"
    no_table_reason: ClassVar[str] = "unary encoding publishes sets"
    sees_secret = False

    def __post_init__(self) -> None:
        if not 0 <= self.t <= UNIT // 2:
            raise ProtocolFileError(f"The chance of a foreign value must lie between 0 and 2^{BITS - 1}; it does not.")

    @classmethod
    def from_protocol(cls, protocol: UnaryEncoding, sliver: float) -> UnaryEncodingMechanism:
        """The chance of a foreign value rounded up to a multiple of 2⁻⁶⁴, and raised by the factor 1 + sliver."""
        t = math.ceil(Fraction(protocol.foreign) * UNIT * (1 + Fraction(sliver)))
        return cls(join_labels(protocol.outputs), min(t, UNIT // 2))

    @property
    def inputs(self) -> int:
        """How many values there are."""
        return len(self.values)

    @property
    def columns(self) -> tuple[Labels, ...]:
        """A 0/1 column per value."""
        return tuple(("0", "1") for _ in self.values)

    @property
    def members(self) -> Labels:
        return self.values

    @property
    def protocol(self) -> UnaryEncoding:
        alpha = math.log((UNIT - self.t) / self.t) if self.t else math.inf
        return UnaryEncoding(len(self.values), alpha, tuple((label,) for label in self.values))

    def worst(self, comparisons: Comparisons) -> ExactLeak:
        totals = comparisons.totals.astype(object)
        masses = np.zeros((len(totals), len(self.values)), dtype=object)
        np.add.at(masses, (comparisons.event, comparisons.input), comparisons.weight.astype(object))
        worst = NO_LEAK
        for pair, (e, f) in enumerate(comparisons.pairs):
            scales = (1.0, 1.0) if comparisons.scales is None else comparisons.scales[pair].tolist()
            for one, other, scale in ((e, f, scales[0]), (f, e, scales[1])):
                if math.isinf(scale):
                    continue
                ratio, members = self._largest(
                    masses[one] * totals[other], masses[other] * totals[one], totals[e] * totals[f]
                )
                worst = larger_leak(worst, exact_leak(comparisons, ratio, pair, members, scale))
        return worst

    def worst_credal_leak(self, sets: CredalSets) -> ExactLeak:
        return unary_credal_leak(sets, self.t, UNIT - 2 * self.t)

    def _largest(self, up: NDArray[Any], down: NDArray[Any], unit: int) -> tuple[Fraction | None, tuple[int, ...]]:
        """The largest (t·unit + k·up(y)) / (t·unit + k·down(y)) over all sets y, k = 2⁶⁴ − 2t.

        At ratio r the best set is {x : up(x) > r·down(x)}; its own ratio is the next r. This grows to the largest in a
        few steps, without sorting and without rounding.
        """
        k, base = UNIT - 2 * self.t, self.t * unit
        if base == 0 and ((up > 0) & (down == 0)).any():
            return None, tuple(np.flatnonzero((up > 0) & (down == 0)).tolist())
        ratio, members = Fraction(1), np.zeros(len(up), dtype=bool)
        while True:
            better = up * ratio.denominator > down * ratio.numerator
            top, bottom = base + k * int(up[better].sum()), base + k * int(down[better].sum())
            if bottom == 0 or Fraction(top, bottom) <= ratio:
                return ratio, tuple(np.flatnonzero(members).tolist())
            ratio, members = Fraction(top, bottom), better

    def draw(self, codes: NDArray[Any], random_words: RandomWords) -> NDArray[Any]:
        return draw_sets(codes, len(self.values), self.t, random_words)

    def tally(self) -> UnaryEncodingTally:
        check_table_size(len(self.values), len(self.values))
        return UnaryEncodingTally(len(self.values), self.t / UNIT)

    def restrict_inputs(self, inputs: IntArray) -> UnaryEncodingMechanism:
        return UnaryEncodingMechanism(tuple(self.values[x] for x in inputs), self.t)

    def measurable_protocol(self, most: int) -> None:
        """Sets are too many to go through."""

    def unchanged_outputs(self, labels: Sequence[Labels], combos: IntArray) -> NDArray[Any]:
        """The value that must be alone in the set: all sets as rows would be too many."""
        return np.arange(len(self.values))[:, None]

    def count_unchanged(self, own: NDArray[Any], values: IntArray, drawn: NDArray[Any]) -> int:
        alone = drawn.sum(axis=1) == 1
        return int(np.count_nonzero(drawn[alone, own[values[alone], 0]]))

    def unchanged_probability(self, own: NDArray[Any], joint: Joint) -> float:
        return float(0.5 * (1 - self.t / UNIT) ** (joint.a - 1))

    @property
    def parts(self) -> tuple[OutputPart, ...]:
        """Sets are too many to have codes."""
        return ()

    def value_joint(self, joint: Joint) -> tuple[tuple[IntArray, FloatArray], ...]:
        return ()

    def likely_probability(self, likely: Sequence[IntArray], joint: Joint) -> float:
        return 0.0

    @property
    def observation_size(self) -> int:
        return len(self.values) ** 2

    def observation(self, shapes: ObservationModels[Model]) -> Model:
        check_table_size(len(self.values), len(self.values))
        return shapes.sets(len(self.values), self.t / UNIT)

    def observation_codes(self, drawn: NDArray[Any]) -> NDArray[Any]:
        return drawn

    def to_json(self) -> dict[str, Any]:
        return {"values": list(self.values), "bits": BITS, "foreign": str(self.t)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], sees_secret: bool, combos: IntArray) -> UnaryEncodingMechanism:
        if sees_secret:
            raise ProtocolFileError("Unary encoding never sees the secret; this file says that it does. Make it again.")
        return cls(tuple(content["values"]), int(content["foreign"]))
