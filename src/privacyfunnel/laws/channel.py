"""The law of one channel for the whole record: a table of integers, a row per input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.laws.exact import ExactLeak, worst_ratio
from privacyfunnel.laws.law import BITS, UNIT, check_bits
from privacyfunnel.laws.sampling import AliasTables, Words, sample
from privacyfunnel.model.comparisons import Comparisons
from privacyfunnel.model.protocol import Labels, Protocol

LIMB = 22  # bits: three limbs hold 65 bits, and a limb times masses below 2⁴⁰ sums up within an int64
SMALL_MASS = 2**40


@dataclass(frozen=True, eq=False)
class ChannelLaw:
    """q(y | z) = N(z, y) / 2⁶⁴, each row of N summing to 2⁶⁴ exactly. Rows are kept sparse."""

    indptr: IntArray
    output: IntArray
    numerator: NDArray[Any]  # Python integers: a certain output has 2⁶⁴ itself
    outputs: tuple[Labels, ...]
    sees_secret: bool
    kind: ClassVar[str] = "channel"
    checked: ClassVar[str] = "in exact arithmetic"

    def __post_init__(self) -> None:
        rows = len(self.indptr) - 1
        sums = np.zeros(rows, dtype=object)
        np.add.at(sums, self._row_of_entry, self.numerator)
        if (self.numerator <= 0).any() or (sums != UNIT).any():
            raise ProtocolFileError(
                f"Every row of a channel must be positive integers that sum to 2^{BITS}; "
                f"{int((sums != UNIT).sum())} of {rows} do not. The file was damaged or altered: make it again."
            )
        if len(self.output) and not (self.output.min() >= 0 and self.output.max() < len(self.outputs)):
            raise ProtocolFileError(
                "Every entry of a channel must belong to an output; one does not. Make the file again."
            )
        cells = self._row_of_entry * len(self.outputs) + self.output
        if len(np.unique(cells)) < len(cells):
            raise ProtocolFileError(
                "A row of a channel must name an output once; some name one twice. Make the file again."
            )

    @classmethod
    def of(cls, protocol: Protocol) -> ChannelLaw:
        """The protocol's probabilities rounded down to multiples of 2⁻⁶⁴, the rest given to each row's largest."""
        rows, output = np.nonzero(protocol.channel)
        # A float times 2⁶⁴ is exact, and so is its integer part.
        scaled = np.floor(np.ldexp(protocol.channel[rows, output], BITS))
        numerator = np.array([int(x) for x in scaled], dtype=object)
        inputs = protocol.channel.shape[0]
        sums = np.zeros(inputs, dtype=object)
        np.add.at(sums, rows, numerator)
        largest = np.zeros(inputs, dtype=np.int64)
        entry = np.full(protocol.channel.shape, -1, dtype=np.int64)
        entry[rows, output] = np.arange(len(rows))
        largest = entry[np.arange(inputs), protocol.channel.argmax(axis=1)]
        numerator[largest] += UNIT - sums
        kept = numerator > 0
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=inputs))])
        return cls(indptr, output[kept], numerator[kept], protocol.outputs, protocol.sees_secret)

    @property
    def _row_of_entry(self) -> IntArray:
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    @property
    def inputs(self) -> int:
        """How many rows the channel has."""
        return len(self.indptr) - 1

    @property
    def columns(self) -> tuple[Labels, ...]:
        """Each column's label of every output."""
        return tuple(zip(*self.outputs, strict=True))

    @property
    def channel(self) -> FloatArray:
        """The channel as floats, each the nearest to its fraction."""
        dense = np.zeros((self.inputs, len(self.outputs)))
        dense[self._row_of_entry, self.output] = [int(n) / UNIT for n in self.numerator]
        return dense

    @property
    def protocol(self) -> Protocol:
        """The law as a protocol of floats."""
        return Protocol(self.channel, self.outputs, self.sees_secret)

    @property
    def listed(self) -> Protocol:
        """The same: its outputs are a list."""
        return self.protocol

    def worst(self, comparisons: Comparisons) -> ExactLeak:
        totals = comparisons.totals
        return worst_ratio(comparisons, self._masses(comparisons, totals), totals.astype(object))

    def _masses(self, comparisons: Comparisons, totals: NDArray[Any]) -> NDArray[Any]:
        """Σ_z weight(E, z) N(z, y), a row per event and a column per output, as Python integers."""
        shape = (len(totals), len(self.outputs))
        if comparisons.weight.dtype == object or int(totals.max()) >= SMALL_MASS:
            return self._masses_of_any_size(comparisons, shape)
        cells = (comparisons.event, comparisons.input)
        weights = coo_array((comparisons.weight, cells), shape=(shape[0], self.inputs)).tocsr()
        masses = np.zeros(shape, dtype=object)
        for limb in range(3):
            part = (self.numerator >> (LIMB * limb)) & (2**LIMB - 1)
            limbs = csr_array((part.astype(np.int64), self.output, self.indptr), shape=(self.inputs, shape[1]))
            masses += csr_array(weights @ limbs).toarray().astype(object) << (LIMB * limb)
        return masses

    def _masses_of_any_size(self, comparisons: Comparisons, shape: tuple[int, int]) -> NDArray[Any]:
        masses = np.zeros(shape, dtype=object)
        for event, z, weight in zip(comparisons.event, comparisons.input, comparisons.weight, strict=True):
            entries = slice(self.indptr[z], self.indptr[z + 1])
            masses[event, self.output[entries]] += self.numerator[entries] * int(weight)
        return masses

    @cached_property
    def tables(self) -> AliasTables:
        """The alias tables that draw from these integers."""
        entries = list(zip(self.output.tolist(), self.numerator.tolist(), strict=True))
        return AliasTables.of([entries[i:j] for i, j in zip(self.indptr[:-1], self.indptr[1:], strict=True)])

    def draw(self, codes: NDArray[Any], stream: Words, first_row: int) -> NDArray[Any]:
        drawn = sample(self.tables, codes, stream, first_row=first_row)
        return np.broadcast_to(drawn[:, None], (len(drawn), len(self.columns)))

    def to_json(self) -> dict[str, Any]:
        rows = [
            [[int(y), str(n)] for y, n in zip(self.output[i:j], self.numerator[i:j], strict=True)]
            for i, j in zip(self.indptr[:-1], self.indptr[1:], strict=True)
        ]
        return {"outputs": [list(labels) for labels in self.outputs], "bits": BITS, "rows": rows}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], sees_secret: bool, combos: IntArray) -> ChannelLaw:
        """The law that a protocol file states."""
        check_bits(content)
        rows = content["rows"]
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        numerator = np.array([int(n) for row in rows for _, n in row], dtype=object)
        output = np.array([int(y) for row in rows for y, _ in row], dtype=np.int64)
        return cls(indptr, output, numerator, tuple(tuple(map(str, o)) for o in content["outputs"]), sees_secret)
