"""The law of unary encoding: sets of values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.laws.exact import NO_LEAK, ExactLeak, exact_leak, worse
from privacyfunnel.laws.law import BITS, UNIT, check_bits
from privacyfunnel.laws.sampling import Words, draw_sets
from privacyfunnel.model.comparisons import Comparisons
from privacyfunnel.model.protocol import Labels
from privacyfunnel.model.unary_encoding import UnaryEncoding
from privacyfunnel.tables.names import joined_labels


@dataclass(frozen=True, eq=False)
class SetsLaw:
    r"""Unary encoding: the record's own value is in the set with chance 1/2, every other one with chance t / 2⁶⁴.

    Given event E the chance of a set y is proportional to :math:`t + (2^{64} - 2t) P(X ∈ y | E)`.
    """

    values: tuple[str, ...]
    t: int
    kind: ClassVar[str] = "unary-encoding"
    checked: ClassVar[str] = "in exact arithmetic"
    sees_secret: ClassVar[bool] = False
    listed: ClassVar[None] = None  # outputs are too many to list

    def __post_init__(self) -> None:
        if not 0 <= self.t <= UNIT // 2:
            raise ProtocolFileError(f"The chance of a foreign value must lie between 0 and 2^{BITS - 1}; it does not.")

    @classmethod
    def of(cls, protocol: UnaryEncoding, sliver: float) -> SetsLaw:
        """The chance of a foreign value rounded up to a multiple of 2⁻⁶⁴, and raised by the factor 1 + sliver."""
        t = math.ceil(Fraction(protocol.foreign) * UNIT * (1 + Fraction(sliver)))
        return cls(joined_labels(protocol.outputs), min(t, UNIT // 2))

    @property
    def inputs(self) -> int:
        """How many values there are."""
        return len(self.values)

    @property
    def columns(self) -> tuple[Labels, ...]:
        """A 0/1 column per value."""
        return tuple(("0", "1") for _ in self.values)

    @property
    def protocol(self) -> UnaryEncoding:
        """The law as a protocol of floats."""
        alpha = math.log((UNIT - self.t) / self.t) if self.t else math.inf
        return UnaryEncoding(len(self.values), alpha, tuple((label,) for label in self.values))

    def worst(self, comparisons: Comparisons) -> ExactLeak:
        totals = comparisons.totals.astype(object)
        masses = np.zeros((len(totals), len(self.values)), dtype=object)
        np.add.at(masses, (comparisons.event, comparisons.input), comparisons.weight.astype(object))
        worst = NO_LEAK
        for pair, (e, f) in enumerate(comparisons.pairs):
            for one, other in ((e, f), (f, e)):
                ratio, members = self._largest(
                    masses[one] * totals[other], masses[other] * totals[one], totals[e] * totals[f]
                )
                worst = worse(worst, exact_leak(comparisons, ratio, pair, members))
        return worst

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

    def draw(self, codes: NDArray[Any], stream: Words, first_row: int) -> NDArray[Any]:
        return draw_sets(codes, len(self.values), self.t, stream, first_row=first_row)

    def to_json(self) -> dict[str, Any]:
        return {"values": list(self.values), "bits": BITS, "foreign": str(self.t)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], sees_secret: bool, combos: IntArray) -> SetsLaw:
        """The law that a protocol file states."""
        if sees_secret:
            raise ProtocolFileError("Unary encoding never sees the secret; this file says that it does. Make it again.")
        check_bits(content)
        return cls(tuple(map(str, content["values"])), int(content["foreign"]))
