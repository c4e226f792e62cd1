"""Mechanism of a forced response: the record itself with chance T / 2⁶⁴, else one drawn from fixed integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, sparse
from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.mechanisms.alias_tables import AliasTables, sample
from privacyfunnel.mechanisms.credal_checks import forced_credal_leak
from privacyfunnel.mechanisms.draw_tally import ChannelTally
from privacyfunnel.mechanisms.exact_arithmetic import ExactLeak, worst_ratio
from privacyfunnel.mechanisms.mechanism import BITS, UNIT, Mechanism, Model, ObservationModels, check_table_size
from privacyfunnel.mechanisms.sampling import RandomWords
from privacyfunnel.model.comparisons import Comparisons
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Labels
from privacyfunnel.model.protocols.forced_response import ForcedResponse
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol

GROUPS = 61  # of other records, in which an audit counts them
ROUNDED = 1e-15  # a chance that is rounding alone


@dataclass(frozen=True, eq=False)
class ForcedResponseMechanism(Mechanism):
    """q(y | z) = (T [y = z] + R(y)) / 2⁶⁴ with T + Σ R = 2⁶⁴."""

    truth: int
    noise: NDArray[Any]  # Python's integers, one for each record that may be published
    record: IntArray  # which one each input is
    labels: tuple[Labels, ...]  # of each published column
    combos: IntArray  # records × columns
    kind: ClassVar[str] = "forced-response"
    check_method: ClassVar[str] = "in exact arithmetic"
    measures_parts: ClassVar[bool] = True
    no_table_reason: ClassVar[str] = "a forced response has one row for all"
    sees_secret = False

    def __post_init__(self) -> None:
        if self.truth < 0 or (self.noise < 0).any() or self.truth + int(self.noise.sum()) != UNIT:
            raise ProtocolFileError(
                f"Truth and noise must be integers of at least 0 that sum to 2^{BITS}; they are not. The file was "
                "damaged or altered: make it again."
            )
        if len(self.noise) != len(self.combos) or self.combos.shape[1] != len(self.labels):
            raise ProtocolFileError("There must be noise for every record and labels for every column; there are not.")
        if any(len(set(labels)) < len(labels) for labels in self.labels):
            raise ProtocolFileError("The labels of a published column must differ; some repeat.")

    @classmethod
    def from_protocol(cls, protocol: ForcedResponse) -> ForcedResponseMechanism:
        """The truth rounded down to a multiple of 2⁻⁶⁴, the noise rounded down too, the rest given to its largest."""
        truth = min(int(np.floor(np.ldexp(protocol.truth, BITS))), UNIT)
        whole = protocol.noise.sum()
        share = protocol.noise / whole if whole > 0 else np.full(len(protocol.noise), 1 / len(protocol.noise))
        noise = np.array([int(x * (UNIT - truth)) for x in share.tolist()], dtype=object)
        noise[int(share.argmax())] += UNIT - truth - int(noise.sum())
        return cls(truth, noise, protocol.record, protocol.labels, protocol.combos)

    @property
    def inputs(self) -> int:
        """How many records it takes."""
        return len(self.record)

    @property
    def columns(self) -> tuple[Labels, ...]:
        return self.labels

    @property
    def _shares(self) -> tuple[float, FloatArray]:
        return self.truth / UNIT, np.array([int(n) / UNIT for n in self.noise])

    @property
    def protocol(self) -> ForcedResponse:
        truth, noise = self._shares
        return ForcedResponse(truth, noise, self.record, self.labels, self.combos)

    def worst(self, comparisons: Comparisons) -> ExactLeak:
        if comparisons.inputs != len(self.record):
            raise ProtocolFileError(
                f"A law must have a row per input; it has {len(self.record)}, the table {comparisons.inputs}."
            )
        masses = comparisons.event_totals.astype(object)[:, None] * self.noise[None, :]
        np.add.at(
            masses, (comparisons.event, self.record[comparisons.input]), comparisons.weight.astype(object) * self.truth
        )
        return worst_ratio(comparisons, masses, comparisons.totals.astype(object))

    def worst_credal_leak(self, sets: CredalSets) -> ExactLeak:
        return forced_credal_leak(sets, self.truth, self.noise, self.record)

    @cached_property
    def _tables(self) -> AliasTables:
        """One row for all: the number after the last record stands for the record itself."""
        return AliasTables.from_rows([[*enumerate(self.noise.tolist()), (len(self.noise), self.truth)]])

    def draw(self, codes: NDArray[Any], random_words: RandomWords) -> NDArray[Any]:
        drawn = sample(self._tables, np.zeros(len(codes), dtype=np.int32), random_words)
        return np.asarray(self.combos[np.where(drawn == len(self.noise), self.record[codes], drawn)])

    def tally(self) -> ForcedResponseTally:
        return ForcedResponseTally(self)

    @property
    def _noise_by_column(self) -> list[FloatArray]:
        _, noise = self._shares
        return [
            np.bincount(self.combos[:, j], noise, minlength=len(labels)).astype(np.float64)
            for j, labels in enumerate(self.labels)
        ]

    def group_channel(self, groups: int) -> FloatArray:
        """For every input the chance of its own record, and of the others by the rest of their number over `groups`."""
        truth, noise = self._shares
        group = np.arange(len(noise)) % groups
        channel = np.zeros((len(self.record), 1 + groups))
        channel[:, 1:] = np.bincount(group, noise, minlength=groups)
        channel[np.arange(len(self.record)), 1 + group[self.record]] -= noise[self.record]
        channel[:, 0] = truth + noise[self.record]
        return np.where(channel > ROUNDED, channel, 0.0)

    def group_outputs(self, inputs: IntArray, drawn: NDArray[Any], groups: int) -> IntArray:
        """Which of the outputs of `in_groups` rows show; −1 where their inputs never become that."""
        shown = self._record_numbers(drawn)
        forced = np.where((self.noise > 0)[shown], 1 + shown % groups, -1)
        return np.where(shown < 0, -1, np.where(shown == self.record[inputs], 0, forced))

    def restrict_inputs(self, inputs: IntArray) -> ForcedResponseMechanism:
        return replace(self, record=self.record[inputs])

    def measurable_protocol(self, most: int) -> SparseProtocol | None:
        if self.observation_size > most:
            return None
        names = tuple(
            tuple(labels[code] for labels, code in zip(self.labels, row, strict=True)) for row in self.combos.tolist()
        )
        return SparseProtocol(sparse.csr_array(self._channel), names)

    def explicit_protocol(self, most: int) -> SparseProtocol | None:
        return self.measurable_protocol(most)

    @property
    def _channel(self) -> FloatArray:
        check_table_size(len(self.record), len(self.noise))
        return self.protocol.channel

    def find_outputs(self, shown: NDArray[Any]) -> NDArray[Any]:
        return np.where((self._record_numbers(shown) >= 0)[:, None], shown, -1)

    def _record_numbers(self, shown: NDArray[Any]) -> IntArray:
        """The number of the record that each row of labels is; −1 where it is none."""
        # Column by column both are sorted into the groups that agree so far, so that no number grows large.
        group, mine = np.zeros(len(self.combos), np.int64), np.zeros(len(shown), np.int64)
        known = (shown >= 0).all(axis=1)
        for j, labels in enumerate(self.labels):
            keys, group = np.unique(group * len(labels) + self.combos[:, j], return_inverse=True)
            wanted = mine * len(labels) + shown[:, j]
            mine = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            known &= keys[mine] == wanted
        _, which = np.unique(group, return_index=True)
        return np.where(known, which[mine], -1)

    def unchanged_probability(self, own: NDArray[Any], joint: Joint) -> float:
        truth, noise = self._shares
        return float(joint.p_x @ (truth + noise[self.record]))

    def value_joint(self, joint: Joint) -> tuple[tuple[IntArray, FloatArray], ...]:
        for labels in self.labels:
            check_table_size(len(labels), len(labels))
        truth, found = self.truth / UNIT, zip(self.output_shares(joint), self._noise_by_column, strict=True)
        return tuple((values, truth * np.diag(p) + p[:, None] * noise) for (values, p, _), noise in found)

    def output_shares(self, joint: Joint) -> tuple[tuple[IntArray, FloatArray, FloatArray], ...]:
        """The same without a table of all pairs, which are too many where values are tens of thousands."""
        truth, found = self.truth / UNIT, []
        for j, noise in enumerate(self._noise_by_column):
            p: FloatArray = np.bincount(self.combos[self.record, j], joint.p_x, len(noise)).astype(np.float64)
            found.append((np.arange(len(noise))[:, None], p, truth * p + p.sum() * noise))
        return tuple(found)

    def likely_probability(self, likely: Sequence[IntArray], joint: Joint) -> float:
        truth, noise = self._shares
        stated = np.stack([mine[self.combos[:, j], 0] for j, mine in enumerate(likely)], axis=1)
        record = self._record_numbers(stated)
        share = np.bincount(self.record, joint.p_x, minlength=len(noise))
        right = np.where(record >= 0, share[np.maximum(record, 0)], 0.0)
        return float(noise @ right + truth * share[record == np.arange(len(record))].sum())

    def required_attributes(self, wanted: Sequence[int], attributes: int) -> tuple[int, ...]:
        return tuple(sorted(wanted))

    def restrict_attributes(self, attributes: Sequence[int]) -> tuple[ForcedResponseMechanism, IntArray]:
        """The columns of a forced response are the forced response of these columns."""
        combos, of = np.unique(self.combos[:, attributes], axis=0, return_inverse=True)
        noise = np.zeros(len(combos), dtype=object)
        np.add.at(noise, of.reshape(-1), self.noise)
        _, first = np.unique(of.reshape(-1)[self.record], return_index=True)
        record = of.reshape(-1)[self.record[first]]
        return ForcedResponseMechanism(
            self.truth, noise, record, tuple(self.labels[j] for j in attributes), combos
        ), first

    @property
    def expansion_size(self) -> int:
        return len(self.noise)

    @property
    def has_formula(self) -> bool:
        return np.array_equal(self.record, np.arange(len(self.noise)))

    def observation(self, shapes: ObservationModels[Model]) -> Model:
        return shapes.forced(*self._shares) if self.has_formula else shapes.channel(self._channel)

    def observation_codes(self, drawn: NDArray[Any]) -> NDArray[Any]:
        return self._record_numbers(drawn)[:, None]

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": [list(labels) for labels in self.labels],
            "bits": BITS,
            "truth": str(self.truth),
            "noise": [str(n) for n in self.noise],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], sees_secret: bool, combos: IntArray) -> ForcedResponseMechanism:
        if sees_secret:
            raise ProtocolFileError("A forced response never sees the secret; this file says that it does.")
        columns = tuple(map(tuple, content["columns"]))
        sizes = np.array([len(labels) for labels in columns])
        if combos.shape[1] != len(columns) or (combos >= sizes).any():
            raise ProtocolFileError("every record must have labels of its columns; some have not. Make it again.")
        noise = np.array([int(n) for n in content["noise"]], dtype=object)
        return cls(int(content["truth"]), noise, np.arange(len(combos)), columns, combos)


class ForcedResponseTally(ChannelTally):
    """How often each record was published as it is, or as another; those in a few groups, to be counted at all.

    Columns are not drawn by themselves, so that tests of each would not be independent; records are.
    """

    def __init__(self, mechanism: ForcedResponseMechanism) -> None:
        self._mechanism, self._groups = mechanism, min(GROUPS, len(mechanism.noise))
        super().__init__([mechanism.group_channel(self._groups)], np.arange(mechanism.inputs)[:, None])

    def add(self, inputs: IntArray, drawn: NDArray[Any]) -> None:
        """Count some rows."""
        super().add(inputs, self._mechanism.group_outputs(inputs, drawn, self._groups)[:, None])

    def empty(self) -> ForcedResponseTally:
        """Nothing counted yet."""
        return ForcedResponseTally(self._mechanism)
