"""Mechanism: the integers that are drawn, and their exact leakage.

A protocol in floats becomes a mechanism when its probabilities are rounded to multiples of 2⁻⁶⁴. From there on nothing
is rounded: the check of the promise and the draw of every record follow the same integers.

A mechanism answers in codes and labels. Callers that seal, draw, write, read, audit or estimate never ask which kind it
is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, NoReturn, Self
from typing import Protocol as Shape

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, Matrix, sparse
from privacyfunnel.errors import SizeError
from privacyfunnel.mechanisms.exact_arithmetic import ExactLeak
from privacyfunnel.mechanisms.sampling import RandomWords
from privacyfunnel.model.comparisons import Comparisons, Leak
from privacyfunnel.model.credal.credal_sets import Comparable, CredalSets
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Labels, Protocol
from privacyfunnel.model.protocols.sparse_protocol import Measurable, SparseProtocol


@dataclass(frozen=True, slots=True, eq=False)
class PooledCounts:
    r"""By how much counts of what is shown exceed :math:`\sum_z n_z q(y|z)`, and how far that may vary.

    The covariance of two things of which a row shows one is :math:`-\sum_z n_z q(y|z) q(y'|z)`, the products of columns
    of `root`; where rows show each by a coin of its own there is none.
    """

    excess: FloatArray
    variance: FloatArray
    root: Matrix | None = None

    @classmethod
    def from_counts(cls, apart: FloatArray, chances: Matrix, drawn: IntArray) -> PooledCounts:
        """Of rows that were drawn so many times with these chances, of which each shows one."""
        rooted = sparse.csr_array(chances).multiply(np.sqrt(drawn)[:, None])
        squares = np.asarray(rooted.power(2).sum(axis=0)).reshape(-1)
        return cls(apart, np.asarray(chances.T @ drawn).reshape(-1) - squares, sparse.csr_array(rooted))


class DrawTally(Shape):
    """Counts while the rows of a sanitised table come in, beside those of the original."""

    def add(self, inputs: IntArray, drawn: NDArray[Any]) -> None:
        """Count some rows: each one's input, and what it was drawn as (−1 where the mechanism has no such output)."""

    @property
    def impossible(self) -> int:
        """How many rows show what their input never becomes."""

    @property
    def rows(self) -> Iterable[tuple[IntArray, FloatArray]]:
        """Tables of counts with the chances they should follow, a row per independent draw."""

    @property
    def pool_counts(self) -> Iterable[PooledCounts]:
        """What is shown over all inputs together, for each part of a record that is drawn by itself.

        Parts that are published one after the other come in that order: given the earlier ones, the rows of a later
        one are independent draws.
        """

    @property
    def size(self) -> int:
        """How many counts it holds."""

    def empty(self) -> Self:
        """Another count of the same, in which nothing was counted yet."""


class ChannelTally:
    """How often each input became each output, for channels that are drawn from side by side.

    Input z has value `values[z, j]` in channel j, whose output is the j-th drawn code.
    """

    def __init__(self, channels: Sequence[FloatArray], values: IntArray) -> None:
        self._channels, self._values = tuple(channels), values
        self._counts = [np.zeros(channel.shape, dtype=np.int64) for channel in channels]
        self._impossible = 0

    def add(self, inputs: IntArray, drawn: NDArray[Any]) -> None:
        """Count some rows."""
        drawn = drawn[:, : len(self._channels)]
        known = (drawn >= 0).all(axis=1)
        self._impossible += int((~known).sum())
        for j, counts in enumerate(self._counts):
            width = self._channels[j].shape[1]
            at = self._values[inputs[known], j] * width + drawn[known, j]
            cells, rows = np.unique(at, return_counts=True)
            counts.reshape(-1)[cells] += rows

    @property
    def impossible(self) -> int:
        """How many rows show what their values never become."""
        return self._impossible + sum(int(counts[channel == 0].sum()) for counts, channel in self.rows)

    @property
    def rows(self) -> list[tuple[IntArray, FloatArray]]:
        """Counts and chances, channel by channel."""
        return list(zip(self._counts, self._channels, strict=True))

    @property
    def pool_counts(self) -> Iterator[PooledCounts]:
        """By output, channel by channel."""
        for counts, channel in self.rows:
            drawn = counts.sum(axis=1)
            yield PooledCounts.from_counts(counts.sum(axis=0) - drawn @ channel, channel, drawn)

    @property
    def size(self) -> int:
        """All cells of all channels."""
        return sum(counts.size for counts in self._counts)

    def empty(self) -> ChannelTally:
        """Nothing counted yet."""
        return ChannelTally(self._channels, self._values)


LARGEST_TABLE = 1 << 26  # chances that are written out as one table of floats: half a gigabyte
BITS = 64  # of a uniform word, and of the integers that it is compared with
UNIT = 2**BITS  # what the integers of a row sum to


class DescribableProtocol(Comparable, Shape):
    """A protocol that can say in words where it leaks."""

    def describe(self, leak: Leak, joint: Joint) -> str: ...


class OutputPart(NamedTuple):
    """Attributes that have outputs together, and what each output is called in them."""

    attributes: tuple[int, ...]
    names: tuple[Labels, ...]


class Mechanism(ABC):
    """Integers that are drawn, a row of chances per input; the inputs are the values, or pairs of secret and value.

    What needs a list of inputs or outputs is refused, or None, in a mechanism that has none.
    """

    kind: ClassVar[str]
    check_method: ClassVar[str]  # how `worst` computes, in words
    no_table_reason: ClassVar[str] = ""  # why it is not `listed`, in words
    lists_inputs: ClassVar[bool] = True  # whether inputs are numbers of a list; else records, as codes of their labels
    measures_parts: ClassVar[bool] = False  # whether `worst` takes events that are parts of their conditions
    sees_secret: bool

    def describe_check(self) -> str:
        """How its promise is checked, in words."""
        return self.check_method

    @property
    @abstractmethod
    def inputs(self) -> int:
        """How many inputs it has."""

    @property
    @abstractmethod
    def columns(self) -> tuple[Labels, ...]:
        """The labels of each published column, all different."""

    @property
    def anything_else(self) -> int | None:
        """The input code of a record whose value is none of the inputs, whatever its secret; None where none is drawn.

        `draw` takes that code as it takes the others, and `inputs` does not count it.
        """
        return None

    def list_anything_else(self) -> Mechanism:
        """The mechanism with the row for anything else as its last input, where it has one."""
        return self

    # -- in floats ---------------------------------------------------------------------------------------------

    @property
    def protocol(self) -> DescribableProtocol:
        """The same mechanism in floats."""
        self._refuse()

    @property
    def table_protocol(self) -> Protocol | None:
        """q(y | input) as one table in floats, where the mechanism is one, its outputs in a list."""
        return None

    def numerators(self, most: int) -> NDArray[Any] | None:
        """The integers of that table, outputs × inputs, where there are at most so many."""
        return None

    # -- the promise -------------------------------------------------------------------------------------------

    def worst(self, comparisons: Comparisons) -> ExactLeak:
        """The largest ratio that the promise compares, exactly."""
        self._refuse()

    def worst_credal_leak(self, sets: CredalSets) -> ExactLeak:
        """The same over all members of sets of priors, or a fraction that no ratio exceeds."""
        self._refuse()

    def restrict_inputs(self, inputs: IntArray) -> Self:
        """The mechanism on some of its inputs alone. Those that never occur make no output more telling."""
        return self

    def measurable_protocol(self, most: int) -> Measurable | None:
        """What can be measured against everyone who knows some columns: None if more than `most` chances make it up."""
        return None

    def explicit_protocol(self, most: int) -> SparseProtocol | None:
        """q(y | input) with every whole output in a list: None where they are not listed, or take more than `most`."""
        return None

    # -- drawing -----------------------------------------------------------------------------------------------

    @abstractmethod
    def draw(self, codes: NDArray[Any], random_words: RandomWords) -> NDArray[Any]:
        """What rows with these input codes become, chosen by their words and nothing else: a row of codes each."""

    def tally(self) -> DrawTally:
        """An empty count of what inputs became, to be compared with the chances."""
        self._refuse()

    # -- written and read --------------------------------------------------------------------------------------

    def label_codes(self, drawn: NDArray[Any]) -> NDArray[Any]:
        """n × columns: which label of each published column drawn rows show."""
        return drawn

    def find_outputs(self, shown: NDArray[Any]) -> NDArray[Any]:
        """The drawn rows that show these labels: the inverse of `shown`. −1 where the mechanism never shows them."""
        return shown

    def unchanged_outputs(self, labels: Sequence[Labels], combos: IntArray) -> NDArray[Any]:
        """The drawn row that shows each value just as it is, −1 where none does.

        Value x has label `labels[j][combos[x, j]]` in column j.
        """
        codes = np.empty(combos.shape, dtype=np.int64)
        for j, (mine, published) in enumerate(zip(labels, self.columns, strict=True)):
            place = {label: code for code, label in enumerate(published)}
            codes[:, j] = np.array([place.get(label, -1) for label in mine], dtype=np.int64)[combos[:, j]]
        return self.find_outputs(codes)

    def count_unchanged(self, own: NDArray[Any], values: IntArray, drawn: NDArray[Any]) -> int:
        """How many drawn rows show just the value they had; `own` is what the mechanism said of all values."""
        return int((own[values] == drawn[:, : own.shape[1]]).all(axis=1).sum())

    @abstractmethod
    def unchanged_probability(self, own: NDArray[Any], joint: Joint) -> float:
        """The chance that a row shows just the value it had."""

    # -- outcomes ----------------------------------------------------------------------------------------------

    @property
    def parts(self) -> tuple[OutputPart, ...]:
        """The attributes that have outputs of their own, in order; none where outputs are not listed.

        What is drawn has a code per part in its first columns, and they are all of it.
        """
        return tuple(OutputPart((j,), tuple((label,) for label in labels)) for j, labels in enumerate(self.columns))

    def value_joint(self, joint: Joint) -> tuple[tuple[IntArray, Matrix], ...]:
        """For each part its values, V × attributes as codes of labels, and p(x, y) of these and its outputs."""
        self._refuse()

    def output_shares(self, joint: Joint) -> tuple[tuple[IntArray, FloatArray, FloatArray], ...]:
        """For each part its values, the share p(x) of each, and the share p(y) of each of its outputs."""
        return tuple(
            (values, np.asarray(p_xy.sum(axis=1)).ravel(), np.asarray(p_xy.sum(axis=0)).ravel())
            for values, p_xy in self.value_joint(joint)
        )

    def likely_probability(self, likely: Sequence[IntArray], joint: Joint) -> float:
        """The chance that a row's own value is the one stated for its outputs, outputs × attributes for each part."""
        self._refuse()

    # -- estimation --------------------------------------------------------------------------------------------

    def required_attributes(self, wanted: Sequence[int], attributes: int) -> tuple[int, ...]:
        """Which of the attributes must be looked at together to tell about those wanted."""
        return tuple(range(attributes))

    def restrict_attributes(self, attributes: Sequence[int]) -> tuple[Mechanism, IntArray]:
        """The law of a covering set of attributes alone; and for each of its inputs one of this law's that is it."""
        return self, np.arange(self.inputs)

    @property
    def expansion_size(self) -> int:
        """How many outputs `observation` has to multiply out; 0 where the mechanism lists its own."""
        return 0

    @property
    def observation_size(self) -> int:
        """How many chances `observation` writes out."""
        return self.inputs * self.expansion_size

    def observation(self) -> FloatArray:
        """How outputs depend on the input: P(y | input)."""
        self._refuse()

    def observation_codes(self, drawn: NDArray[Any]) -> NDArray[Any]:
        """What drawn rows are in `observation`: n × 1 numbers of outputs; −1 where nothing."""
        return drawn[:, :1]

    # -- the protocol file -------------------------------------------------------------------------------------

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The mechanism as it stands in the protocol file."""

    @classmethod
    @abstractmethod
    def from_json(cls, content: Mapping[str, Any], sees_secret: bool, combos: IntArray) -> Self:
        """The mechanism that a protocol file states, over the combinations of its domain."""

    def _refuse(self) -> NoReturn:
        raise SizeError(f"This is measured where outputs can be listed; {self.no_table_reason}.")


def check_table_size(inputs: int, outputs: int) -> None:
    """Refuse to write out more chances than fit in memory, before any is."""
    if inputs * outputs > LARGEST_TABLE:
        raise SizeError(
            f"A table of chances has at most {LARGEST_TABLE:,} entries; {inputs:,} inputs × {outputs:,} outputs are "
            "more. Publish fewer columns or merge rare values."
        )
