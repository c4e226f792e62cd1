r"""From words to drawn codes: tables that follow a channel of integers exactly.

A sealed channel gives input :math:`x` the output :math:`y` with probability :math:`n_{xy} / 2^{64}`, and its integers
satisfy :math:`\sum_y n_{xy} = 2^{64}`. A row draws one uniform 64-bit word. Exactly :math:`n_{xy}` of the
:math:`2^{64}` words lead from :math:`x` to :math:`y`, so the published row has the probability that was certified, not
one that is close to it.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, IntArray, WordArray, freeze
from privacyfunnel.errors import DistributionError, ParameterError, SizeError
from privacyfunnel.mechanisms.sampling import WORD_BITS, RandomWords

CodeArray = NDArray[np.int32]

_CHUNK = 1 << 16  # small enough for the cache, large enough that numpy's calls cost little
_MOST_BUCKETS = 1 << 28  # 4 GiB of tables
_SHARED_BUCKETS = 1 << 22  # 64 MiB: up to here inputs share the bits of the widest row, and are drawn together


class Sampler(ABC):
    """Draws an output for every input, chunk by chunk."""

    __slots__ = ()

    def draw(self, codes: NDArray[np.integer[Any]], random_words: WordArray) -> CodeArray:
        """The output code of every input code, chosen by its word below 2^bits."""
        _check_length(codes, random_words)
        return self._draw(codes, lambda start, n: random_words[start : start + n])

    @abstractmethod
    def _draw(self, codes: NDArray[np.integer[Any]], words_of: Callable[[int, int], WordArray]) -> CodeArray:
        """The same with words that are made when their chunk comes."""


@dataclass(frozen=True, slots=True, eq=False)
class AliasTables(Sampler):
    r"""One alias table per input, exact in integers.

    The :math:`2^b` words are dealt into :math:`2^k` buckets of :math:`2^{b-k}` by their low :math:`k` bits. A bucket
    holds at most two outputs: words below its threshold give the first, the others the second. Words of one bucket
    agree in their low bits, so comparing the whole word with :math:`t \cdot 2^k` compares the remaining bits with
    :math:`t`. All inputs share :math:`k`, the bits that the widest row needs.
    """

    bits: int
    bucket_bits: int
    thresholds: WordArray  # inputs × buckets, already shifted by bucket_bits
    outputs: CodeArray  # inputs × buckets × 2: below the threshold, and from it on

    @classmethod
    def from_rows(cls, rows: Sequence[Iterable[tuple[int, int]]], bits: int = WORD_BITS) -> "AliasTables":
        """The tables of a channel whose row x is a list of (output, weight) with weights that sum to 2^bits.

        >>> coin = AliasTables.from_rows([[(0, 3), (1, 1)], [(1, 4)]], bits=2)
        >>> coin.draw(np.zeros(4, dtype=np.int32), np.arange(4, dtype=np.uint64)).tolist()
        [1, 0, 0, 0]

        Raises
        ------
        DistributionError
            If a weight is negative or a row does not sum to 2^bits exactly.
        SizeError
            If the tables would not fit in memory: they grow with the number of inputs times the widest row.
        """
        return cls._build(_row_supports(rows, bits), bits)

    @classmethod
    def _build(cls, supports: list[list[tuple[int, int]]], bits: int) -> "AliasTables":
        bucket_bits = max(map(_bucket_bits, supports))
        if len(supports) << bucket_bits > _MOST_BUCKETS:
            raise SizeError(
                f"alias tables hold at most {_MOST_BUCKETS} buckets; {len(supports)} inputs with up to "
                f"{1 << bucket_bits} outputs each need more. Merge rare values or outputs first."
            )
        if bucket_bits > bits:
            raise SizeError(f"words of {bits} bits cannot choose among {1 << bucket_bits} outputs; use longer words.")
        thresholds, outputs = _fill_buckets(supports, bits, bucket_bits)
        return cls(bits, bucket_bits, freeze(thresholds), freeze(outputs))

    @property
    def inputs(self) -> int:
        return len(self.thresholds)

    def _draw(self, codes: NDArray[np.integer[Any]], words_of: Callable[[int, int], WordArray]) -> CodeArray:
        """Chunk by chunk, in memory that the next chunk uses again."""
        _check_dtype(codes)
        drawn = np.empty(len(codes), dtype=np.int32)
        scratch = _Scratch.allocate(min(len(codes), _CHUNK))
        for start in range(0, len(codes), _CHUNK):
            chunk = codes[start : start + _CHUNK]
            n = len(chunk)
            _check_range(chunk, self.inputs, codes)  # chunk by chunk, while it is in the cache
            self._draw_chunk(chunk, words_of(start, n), scratch.first(n), drawn[start : start + n])
        return drawn

    def _draw_chunk(
        self, codes: NDArray[np.integer[Any]], random_words: WordArray, scratch: "_Scratch", drawn: CodeArray
    ) -> None:
        index, other, above = scratch.index, scratch.other, scratch.above
        # index = code · buckets + bucket
        np.left_shift(codes, self.bucket_bits, out=index, dtype=np.int64, casting="unsafe")
        np.bitwise_and(random_words.view(np.int64), (1 << self.bucket_bits) - 1, out=other)
        np.bitwise_or(index, other, out=index)
        # Indices are in range by construction; "wrap" spares numpy a buffered copy, it never wraps.
        thresholds = other.view(np.uint64)
        np.take(self.thresholds.reshape(-1), index, out=thresholds, mode="wrap")
        np.greater_equal(random_words, thresholds, out=above)
        # index = 2 · index + above; the booleans are widened first, which is faster than a mixed sum
        np.left_shift(index, 1, out=index)
        other[:] = above
        np.bitwise_or(index, other, out=index)
        np.take(self.outputs.reshape(-1), index, out=drawn, mode="wrap")


@dataclass(frozen=True, slots=True, eq=False)
class AliasTablesByWidth(Sampler):
    """The same where few rows are much wider than all others: inputs share tables with those that need as many bits.

    A protocol for thousands of values has such rows; with the bits of the widest for each its tables would be a hundred
    times as large as what they say.
    """

    groups: tuple[AliasTables, ...]
    group: IntArray  # of every input
    place: IntArray  # of every input, among those of its group

    @classmethod
    def from_rows(
        cls, rows: Sequence[Iterable[tuple[int, int]]], bits: int = WORD_BITS
    ) -> "AliasTables | AliasTablesByWidth":
        """The tables of such a channel; those of `AliasTables` while they are small."""
        supports = _row_supports(rows, bits)
        widths = np.array([_bucket_bits(support) for support in supports])
        if len(supports) << int(widths.max()) <= _SHARED_BUCKETS:
            return AliasTables._build(supports, bits)
        _, group = np.unique(widths, return_inverse=True)
        members = [np.flatnonzero(group == number) for number in range(int(group.max()) + 1)]
        place = np.empty(len(supports), dtype=np.int64)
        for inputs in members:
            place[inputs] = np.arange(len(inputs))
        tables = (AliasTables._build([supports[x] for x in inputs], bits) for inputs in members)
        return cls(tuple(tables), group, place)

    @property
    def bits(self) -> int:
        return self.groups[0].bits

    def _draw(self, codes: NDArray[np.integer[Any]], words_of: Callable[[int, int], WordArray]) -> CodeArray:
        _check_dtype(codes)
        drawn = np.empty(len(codes), dtype=np.int32)
        for start in range(0, len(codes), _CHUNK):
            chunk = codes[start : start + _CHUNK]
            _check_range(chunk, len(self.group), codes)
            words, group = words_of(start, len(chunk)), self.group[chunk]
            for number, tables in enumerate(self.groups):
                some = np.flatnonzero(group == number)
                drawn[start + some] = tables.draw(self.place[chunk[some]], words[some])
        return drawn


def sample(
    tables: AliasTables | AliasTablesByWidth,
    codes: NDArray[np.integer[Any]],
    random_words: RandomWords,
    *,
    draw: int = 0,
) -> CodeArray:
    """The output codes of rows whose input codes are `codes`, each by its word in draw number `draw`."""
    if tables.bits != WORD_BITS:
        raise ParameterError(f"the stream has words of {WORD_BITS} bits; these tables need {tables.bits}.")
    _check_length(codes, random_words)
    return tables._draw(codes, lambda start, n: random_words.part(start, start + n).word(draw))


@dataclass(frozen=True, slots=True, eq=False)
class _Scratch:
    """Memory of one chunk, used again by the next."""

    index: IntArray
    other: IntArray
    above: BoolArray

    @classmethod
    def allocate(cls, size: int) -> "_Scratch":
        return cls(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.bool_))

    def first(self, n: int) -> "_Scratch":
        return _Scratch(self.index[:n], self.other[:n], self.above[:n])


def _check_dtype(codes: NDArray[np.integer[Any]]) -> None:
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise ParameterError(f"codes must be one column of integers; found {codes.ndim} dimensions of {codes.dtype}.")


def _check_length(codes: NDArray[np.integer[Any]], random_words: WordArray | RandomWords) -> None:
    """A word that serves two rows, or none, would be no draw."""
    if len(random_words) != len(codes):
        raise ParameterError(f"every code needs one word; there are {len(codes)} codes and {len(random_words)} words.")


def _check_range(chunk: NDArray[np.integer[Any]], inputs: int, codes: NDArray[np.integer[Any]]) -> None:
    """Every code of the chunk names an input; if not, say how many of all codes do not."""
    if chunk.min() < 0 or chunk.max() >= inputs:
        strangers = np.count_nonzero((codes < 0) | (codes >= inputs))
        raise ParameterError(f"codes must lie between 0 and {inputs - 1}; {strangers} of {len(codes)} do not.")


def _row_supports(rows: Sequence[Iterable[tuple[int, int]]], bits: int) -> list[list[tuple[int, int]]]:
    if not len(rows):
        raise DistributionError("a channel must have at least one input; it has none.")
    return [_row_support(x, row, bits) for x, row in enumerate(rows)]


def _row_support(x: int, row: Iterable[tuple[int, int]], bits: int) -> list[tuple[int, int]]:
    """The outputs of row x with a positive weight, in Python's integers: numpy's would wrap at 2^64."""
    support = []
    total = 0
    for output, number in row:
        weight = operator.index(number)
        if weight < 0:
            raise DistributionError(f"weights must be at least 0; row {x} of the channel has a negative one.")
        if not 0 <= output < 1 << 31:
            raise ParameterError(f"output codes must lie between 0 and 2^31 − 1; row {x} has {output}.")
        total += weight
        if weight:
            support.append((output, weight))
    if total != 1 << bits:
        raise DistributionError(
            f"each row of the channel must sum to 2^{bits}; row {x} is off by {total - (1 << bits)}."
        )
    return support


def _bucket_bits(support: list[tuple[int, int]]) -> int:
    """The bits that choose among so many outputs; one bucket of 2^64 words would not fit a 64-bit capacity."""
    return max(1, (len(support) - 1).bit_length())


def _fill_buckets(supports: list[list[tuple[int, int]]], bits: int, bucket_bits: int) -> tuple[WordArray, CodeArray]:
    """Deal the weights of every row into buckets of equal capacity, at most two outputs to a bucket.

    Outputs lighter than a bucket stand first, then the heavy ones; the hand is the current heavy output, with what is
    left of it. If that is less than a bucket, it gets a bucket of its own, filled up by the next heavy output, which
    becomes the hand. Otherwise the hand fills up the bucket of the next light output. What is left always makes whole
    buckets, so this never runs dry. Every step closes one bucket of every row at once.
    """
    inputs, buckets = len(supports), 1 << bucket_bits
    capacity = 1 << (bits - bucket_bits)
    weights = np.zeros((inputs, buckets), dtype=np.uint64)
    labels = np.zeros((inputs, buckets), dtype=np.int32)
    lights = np.zeros(inputs, dtype=np.int64)
    for x, support in enumerate(supports):
        if len(support) == 1:  # 2^64 itself would not fit a word: the same output in every bucket
            labels[x], weights[x] = support[0][0], capacity
            continue
        small = [entry for entry in support if entry[1] < capacity]
        large = [entry for entry in support if entry[1] >= capacity]
        lights[x] = buckets - len(large)  # with empty ones between
        for start, entries in ((0, small), (lights[x], large)):
            if entries:
                labels[x, start : start + len(entries)], weights[x, start : start + len(entries)] = zip(
                    *entries, strict=True
                )

    thresholds = np.zeros((inputs, buckets), dtype=np.uint64)
    outputs = np.empty((inputs, buckets, 2), dtype=np.int32)
    full = np.uint64(capacity)
    rows = np.arange(inputs)
    light, hand = np.zeros(inputs, dtype=np.int64), lights.copy()
    left = weights[rows, hand]
    for bucket in range(buckets):
        short = left < full  # the hand cannot fill a bucket: it closes one
        serves = ~short & (light < lights)  # the hand fills up the next light output's bucket
        # If neither holds, only heavy outputs of exactly one bucket are left: such a bucket needs no threshold.
        following = np.minimum(hand + 1, buckets - 1)
        own = np.where(serves, light, hand)
        other = np.where(short, following, hand)
        inside = np.where(serves, weights[rows, own], left)
        thresholds[:, bucket] = np.where(short | serves, inside, 0)
        outputs[:, bucket, 0] = labels[rows, own]
        outputs[:, bucket, 1] = labels[rows, other]
        given = np.where(short | serves, full - inside, 0)
        left = np.where(serves, left, weights[rows, following]) - given
        light += serves
        hand = np.where(serves, hand, following)
    return thresholds << np.uint64(bucket_bits), outputs
