r"""Mechanism of one channel for the whole record: a table of integers, a row per input.

The largest ratio over all members of sets of priors, exactly.

For an output with integers N(z) and a pair (E, F) of sets with share π the worst members are greedy: sort N, begin at
the lower ends and hand out the rest. All of it is in integers, so that the ratios

.. math:: \frac{h_E}{\pi h_E + (1 - \pi) l_F}, \qquad \frac{\pi l_E + (1 - \pi) h_F}{l_E}

are fractions. Floats only choose which few of them are worth computing: members are exact in floats and all terms of
the sums are positive, so floats are off by a factor that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import (
    HARDLY,
    SMALL,
    FloatArray,
    IntArray,
    Matrix,
    dense,
    freeze,
    matrix,
    nonzero_entries,
    sparse,
)
from privacyfunnel.errors import DistributionError, ProtocolFileError, SizeError
from privacyfunnel.mechanisms.alias_tables import AliasTables, AliasTablesByWidth, sample
from privacyfunnel.mechanisms.exact_arithmetic import (
    NO_LEAK,
    WORKED_ON,
    ExactLeak,
    exact_leak,
    larger_leak,
    round_rows,
    worst_ratio,
)
from privacyfunnel.mechanisms.mechanism import (
    BITS,
    LARGEST_TABLE,
    UNIT,
    ChannelTally,
    Mechanism,
    OutputPart,
    check_table_size,
)
from privacyfunnel.mechanisms.sampling import RandomWords
from privacyfunnel.model.comparisons import Comparisons
from privacyfunnel.model.credal.clopper_pearson import SCALE
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Labels, Protocol
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol

LIMB = 22  # bits: three limbs hold 65 bits, and a limb times masses below 2⁴⁰ sums up within an int64
SMALL_MASS = 2**40  # masses below this can be summed limb by limb


@dataclass(frozen=True, eq=False)
class ChannelMechanism(Mechanism):
    """q(y | z) = N(z, y) / 2⁶⁴, each row of N summing to 2⁶⁴ exactly. Rows are kept sparse."""

    indptr: IntArray
    output: IntArray
    numerator: NDArray[Any]  # Python integers: a certain output has 2⁶⁴ itself
    outputs: tuple[Labels, ...]  # what each output is called in each published column
    sees_secret: bool
    elsewhere: bool = False  # whether the last row is for records whose value is none of the inputs
    kind: ClassVar[str] = "channel"
    check_method: ClassVar[str] = "in exact arithmetic"
    measures_parts: ClassVar[bool] = True

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
        cells = np.sort(self._row_of_entry * len(self.outputs) + self.output)
        if (cells[1:] == cells[:-1]).any():
            raise ProtocolFileError(
                "A row of a channel must name an output once; some name one twice. Make the file again."
            )

    @classmethod
    def from_protocol(cls, protocol: Protocol | SparseProtocol) -> ChannelMechanism:
        """The protocol's probabilities rounded down to multiples of 2⁻⁶⁴, the rest given to each row's largest."""
        every = protocol.all_rows if isinstance(protocol, Protocol) else protocol.channel
        row, output, numerator = round_rows(every, BITS)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=every.shape[0]))])
        elsewhere = isinstance(protocol, Protocol) and protocol.elsewhere is not None
        return cls(indptr, output, numerator, protocol.outputs, protocol.sees_secret, elsewhere)

    @property
    def _row_of_entry(self) -> IntArray:
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    @property
    def inputs(self) -> int:
        """How many rows the channel has, but for that of anything else."""
        return len(self.indptr) - 1 - self.elsewhere

    @property
    def anything_else(self) -> int | None:
        return self.inputs if self.elsewhere else None

    def list_anything_else(self) -> ChannelMechanism:
        return replace(self, elsewhere=False)

    @property
    def columns(self) -> tuple[Labels, ...]:
        return self._column_codes[0]

    @cached_property
    def _column_codes(self) -> tuple[tuple[Labels, ...], NDArray[Any]]:
        """The labels of each column, each once; and which of them every output has, outputs × columns."""
        columns = tuple(tuple(dict.fromkeys(labels)) for labels in zip(*self.outputs, strict=True))
        places = [{label: code for code, label in enumerate(labels)} for labels in columns]
        codes = [[place[label] for place, label in zip(places, labels, strict=True)] for labels in self.outputs]
        kind = np.min_scalar_type(max(map(len, columns), default=1) - 1)  # rows are many, and memory is slow
        return columns, np.array(codes, dtype=kind).reshape(len(self.outputs), len(columns))

    @property
    def channel(self) -> FloatArray:
        """The channel as floats, each the nearest to its fraction."""
        return self._all_rows[: self.inputs]

    @property
    def _all_rows(self) -> FloatArray:
        """The same with the row for anything else, where there is one."""
        rows = len(self.indptr) - 1
        check_table_size(rows, len(self.outputs))
        dense = np.zeros((rows, len(self.outputs)))
        dense[self._row_of_entry, self.output] = self._chances
        return dense

    @cached_property
    def _chances(self) -> FloatArray:
        """The chance of every entry."""
        return freeze(np.array([n / UNIT for n in self.numerator.tolist()]))

    @property
    def protocol(self) -> Protocol | SparseProtocol:
        """The same mechanism in floats; sparse where a table of all chances would be large, and hardly filled."""
        if self._entry_count > SMALL and len(self.output) < HARDLY * self._entry_count and self._is_value_channel:
            return SparseProtocol(self._sparse, self.outputs)
        return self.table

    @property
    def table_protocol(self) -> Protocol | None:
        return None if self._entry_count > LARGEST_TABLE and self._is_value_channel else self.table

    @cached_property
    def table(self) -> Protocol:
        """The same mechanism as a table of all chances in floats; refused where that would not fit in memory."""
        every, listed = self._all_rows, self.inputs
        return Protocol(
            every[:listed], self.outputs, self.sees_secret, elsewhere=every[listed] if self.elsewhere else None
        )

    @property
    def _entry_count(self) -> int:
        """How many chances a table of all has."""
        return (len(self.indptr) - 1) * len(self.outputs)

    @property
    def _is_value_channel(self) -> bool:
        """Whether rows are those of the values, and nothing else."""
        return not self.sees_secret and not self.elsewhere

    @property
    def _sparse(self) -> sparse.csr_array:
        listed = int(self.indptr[self.inputs])
        shape, cells = (self.inputs, len(self.outputs)), (self._row_of_entry[:listed], self.output[:listed])
        return sparse.csr_array(sparse.coo_array((self._chances[:listed], cells), shape=shape))

    def worst(self, comparisons: Comparisons) -> ExactLeak:
        totals, worst = comparisons.totals, NO_LEAK
        some = max(1, WORKED_ON // len(totals))
        for first in range(0, len(self.outputs), some):
            masses = self._masses(comparisons, totals, first, min(first + some, len(self.outputs)))
            worst = larger_leak(worst, worst_ratio(comparisons, masses, totals.astype(object), first))
        return worst

    def worst_credal_leak(self, sets: CredalSets) -> ExactLeak:
        every = self._all_rows if sets.inputs > self.inputs else self.channel
        if len(every) != sets.inputs:
            raise DistributionError(
                f"A protocol must have a row per input; it has {len(every)}, the people may have {sets.inputs}."
            )
        return exact_credal_leak(sets, every, lambda output: self.column(output)[: sets.inputs])

    def numerators(self, most: int) -> NDArray[Any] | None:
        if self.inputs * len(self.outputs) > most:
            return None
        return np.array([self.column(y) for y in range(len(self.outputs))], dtype=object)

    def column(self, output: int) -> list[int]:
        """N(z, y) of one output for every input, and for anything else where that has a row."""
        column = [0] * (len(self.indptr) - 1)
        entries = np.flatnonzero(self.output == output)
        for row, number in zip(self._row_of_entry[entries].tolist(), self.numerator[entries], strict=True):
            column[row] = int(number)
        return column

    def _masses(self, comparisons: Comparisons, totals: NDArray[Any], first: int, end: int) -> NDArray[Any]:
        """Σ_z weight(E, z) N(z, y), a row per event and a column per output y = first, …, end − 1, as Python's
        integers."""
        shape = (len(totals), end - first)
        listed = np.arange(len(self.output)) < self.indptr[self.inputs]
        mine = np.flatnonzero((self.output >= first) & (self.output < end) & listed)
        row, output, numerator = self._row_of_entry[mine], self.output[mine] - first, self.numerator[mine]
        if comparisons.weight.dtype == object or int(totals.max()) >= SMALL_MASS:
            return _masses_of_any_size(comparisons, shape, row, output, numerator)
        cells = (comparisons.event, comparisons.input)
        weights = matrix(comparisons.weight, *cells, (shape[0], self.inputs))
        masses = np.zeros(shape, dtype=object)
        for limb in range(3):
            part = (numerator >> (LIMB * limb)) & (2**LIMB - 1)
            limbs = matrix(part.astype(np.int64), row, output, (self.inputs, shape[1]))
            masses += dense(weights @ limbs).astype(object) << (LIMB * limb)
        return masses

    @cached_property
    def tables(self) -> AliasTables | AliasTablesByWidth:
        """The alias tables that draw from these integers."""
        entries = list(zip(self.output.tolist(), self.numerator.tolist(), strict=True))
        return AliasTablesByWidth.from_rows(
            [entries[i:j] for i, j in zip(self.indptr[:-1], self.indptr[1:], strict=True)]
        )

    def draw(self, codes: NDArray[Any], random_words: RandomWords) -> NDArray[Any]:
        drawn = sample(self.tables, codes, random_words)
        return np.broadcast_to(drawn[:, None], (len(drawn), len(self.columns)))

    def tally(self) -> ChannelTally:
        return ChannelTally([self.channel], np.arange(self.inputs)[:, None])

    def restrict_inputs(self, inputs: IntArray) -> ChannelMechanism:
        inputs = np.append(inputs, self.inputs) if self.elsewhere else inputs
        sizes = np.diff(self.indptr)[inputs]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.repeat(self.indptr[inputs] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return replace(self, indptr=indptr, output=self.output[entries], numerator=self.numerator[entries])

    def measurable_protocol(self, most: int) -> SparseProtocol | None:
        return None if self.indptr[self.inputs] > most else SparseProtocol(self._sparse, self.outputs)

    def explicit_protocol(self, most: int) -> SparseProtocol | None:
        return self.measurable_protocol(most)

    def label_codes(self, drawn: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self._column_codes[1][drawn[:, 0]])

    def find_outputs(self, shown: NDArray[Any]) -> NDArray[Any]:
        # Column by column rows and outputs are sorted into the groups that agree so far: never more than there are
        # outputs, so that no number overflows.
        columns, codes = self._column_codes
        group, mine, known = np.zeros(len(codes), np.int64), np.zeros(len(shown), np.int64), (shown >= 0).all(axis=1)
        for j, labels in enumerate(columns):
            keys, group = np.unique(group * len(labels) + codes[:, j], return_inverse=True)
            wanted = mine * len(labels) + shown[:, j]
            mine = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            known &= keys[mine] == wanted
        output, which = np.unique(group, return_index=True)
        if len(output) < len(codes):
            raise ProtocolFileError("Outputs must have different labels to be told apart in a table; some have not.")
        return np.where(known, which[mine], -1)[:, None]

    def unchanged_probability(self, own: NDArray[Any], joint: Joint) -> float:
        p_xy = self.protocol.joint_with_values(joint)
        can = np.flatnonzero(own[:, 0] >= 0)
        return float(p_xy[can, own[can, 0]].sum())

    @property
    def parts(self) -> tuple[OutputPart, ...]:
        return (OutputPart(tuple(range(len(self.columns))), self.outputs),)

    def value_joint(self, joint: Joint) -> tuple[tuple[IntArray, Matrix], ...]:
        return ((joint.combos, self.protocol.joint_with_values(joint)),)

    def likely_probability(self, likely: Sequence[IntArray], joint: Joint) -> float:
        ((values, p_xy),) = self.value_joint(joint)
        x, y, chance = nonzero_entries(p_xy)
        return float(chance[(values[x] == likely[0][y]).all(axis=1)].sum())

    @property
    def observation_size(self) -> int:
        return self.inputs * len(self.outputs)

    def observation(self) -> FloatArray:
        return self.channel

    def to_json(self) -> dict[str, Any]:
        # Pairs: millions of lists would be looked through for cycles again and again.
        entries = list(zip(self.output.tolist(), map(str, self.numerator.tolist()), strict=True))
        rows = [entries[i:j] for i, j in pairwise(self.indptr.tolist())]
        beyond = {"anything_else": rows.pop()} if self.elsewhere else {}
        return {"outputs": [list(labels) for labels in self.outputs], "bits": BITS, "rows": rows, **beyond}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], sees_secret: bool, combos: IntArray) -> ChannelMechanism:
        beyond = content.get("anything_else")
        rows = [*content["rows"], *([] if beyond is None else [beyond])]
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        numerator = np.array([int(n) for row in rows for _, n in row], dtype=object)
        output = np.array([y for row in rows for y, _ in row], dtype=np.int64)
        law = cls(indptr, output, numerator, tuple(map(tuple, content["outputs"])), sees_secret, beyond is not None)
        columns = combos.shape[1]
        if any(len(labels) != columns for labels in law.outputs):
            raise ProtocolFileError(f"every output must have a label for each of {columns} columns; one has not.")
        return law


def _masses_of_any_size(
    comparisons: Comparisons, shape: tuple[int, int], row: IntArray, output: IntArray, numerator: NDArray[Any]
) -> NDArray[Any]:
    """The same for weights that do not fit limbs; entries come row by row."""
    starts = np.searchsorted(row, np.arange(comparisons.inputs + 1))
    masses = np.zeros(shape, dtype=object)
    for event, z, weight in zip(comparisons.event, comparisons.input, comparisons.weight, strict=True):
        entries = slice(starts[z], starts[z + 1])
        masses[event, output[entries]] += numerator[entries] * int(weight)
    return masses


NEAR = 1e-10  # log-ratios closer than this to the largest are compared again as fractions
ROUNDING = 2.0**-53  # of one operation on floats

Column = Callable[[int], Sequence[int]]  # N(z) of an output, by its number
Name = Callable[[int], Any]  # what the output of that number is called


def exact_credal_leak(
    sets: CredalSets, channel: FloatArray, column: Column, name: Name = int, factors: int = 1
) -> ExactLeak:
    """The largest ratio over outputs, pairs and members; `channel` are the floats of N, products of so many each."""
    if (sets.inputs + 4 * factors + 8) * 8 * ROUNDING > NEAR / 4:
        raise SizeError(f"For a population a law is sealed for fewer inputs than {sets.inputs:,}.")
    sizes = np.log(sets.ratios(*sets.inverse_ratios(channel)))
    top = sizes.max(initial=0.0)
    pairs, outputs = np.nonzero(sizes >= top - NEAR) if np.isfinite(top) else np.nonzero(np.isinf(sizes))
    if np.isinf(top):
        pairs, outputs = pairs[:1], outputs[:1]
    worst, members = NO_LEAK, {y: _extreme_masses(sets, column(y)) for y in np.unique(outputs).tolist()}
    for pair, y in zip(pairs.tolist(), outputs.tolist(), strict=True):
        worst = larger_leak(worst, exact_leak(sets, _pair_ratio(sets, pair, *members[y]), pair, name(y)))
    return worst


def _extreme_masses(sets: CredalSets, numbers: Sequence[int]) -> tuple[list[int], list[int]]:
    """h_E and l_E of every set, over 2⁴⁰ times what the integers are over."""
    order = np.array(sorted(range(len(numbers)), key=numbers.__getitem__), dtype=np.int64)
    exact = np.array(numbers, dtype=object)
    highest, lowest = (
        sets.greedy_members(order[::-1]).astype(object) @ exact,
        sets.greedy_members(order).astype(object) @ exact,
    )
    return [int(h) for h in highest], [int(low) for low in lowest]


def _pair_ratio(sets: CredalSets, pair: int, highest: list[int], lowest: list[int]) -> Fraction | None:
    (e, f), pi = sets.pairs[pair].tolist(), int(sets.share[pair])
    up = (highest[e] * SCALE, pi * highest[e] + (SCALE - pi) * lowest[f])
    down = (pi * lowest[e] + (SCALE - pi) * highest[f], lowest[e] * SCALE)
    return largest_fraction([up, down])


def largest_fraction(quotients: Sequence[tuple[int, int]]) -> Fraction | None:
    """The largest of these quotients of integers, and 1; None where one is infinite. 0 over 0 says nothing."""
    if any(above > 0 and below == 0 for above, below in quotients):
        return None
    return reduce(max, (Fraction(above, below) for above, below in quotients if below), Fraction(1))
