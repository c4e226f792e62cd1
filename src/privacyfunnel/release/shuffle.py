r"""The order in which rows are published: a uniformly random permutation, whatever the size of the table.

Row i has the words :math:`w_{i}` of a key stream of its own; rows are published in the order of their words. Words are
independent and uniform (as far as AES-256 is), so every order is equally likely but for ties; tied rows are ordered by
further words that stand at the places they share, and so on until none is tied. Given which rows tie, every order among
them is equally likely again: the permutation is exactly uniform, docs/theory.md.

Nothing of this depends on how much is held in memory. A table that does not fit is scattered into buckets by the first
bits of its words, in a file without a name that only its owner can read, and each bucket is ordered by itself.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray, WordArray
from privacyfunnel.mechanisms.sampling import WORD_BITS, KeyStream

MOST_HELD = 1 << 28  # bytes of rows, with their words and places, that are ordered in memory at once
ROW_OVERHEAD = 16  # bytes that its word and its place take
MOST_BITS = 12  # of a word that tell its bucket
KEY = "word"  # the column of words in a bucket; all others have numbers for names

Scratch = Callable[[], AbstractContextManager[BinaryIO]]  # a file without a name, for rows that wait for their turn


@dataclass(frozen=True, slots=True, eq=False)
class RowOrder:
    """The order that a key gives the rows of a table: a uniformly random one for whoever does not have the key."""

    _stream: KeyStream

    @classmethod
    def from_key(cls, key: bytes) -> RowOrder:
        """The order of a key of 32 bytes, such as :meth:`KeyStream.order_key` gives."""
        return cls(KeyStream(key))

    def random_words(self, first_row: int, n: int) -> WordArray:
        """The words by which these rows are ordered."""
        return self._stream.words(first_row, n)

    def permutation(self, n: int) -> IntArray:
        """The number in the table of each of n published rows.

        >>> sorted(RowOrder.from_key(bytes(32)).permutation(5).tolist())
        [0, 1, 2, 3, 4]
        """
        return self.sort_by_words(self.random_words(0, n))

    def sort_by_words(self, words: WordArray, first_place: int = 0, draw: int = 1) -> IntArray:
        """Rows by their words; those that tie, by the words of draw number `draw` at the places that they share."""
        # The leading bits of a word with the row's number in the others: sorting numbers is quicker than their places.
        bits = np.uint64(max(1, (len(words) - 1).bit_length()))
        number = (np.uint64(1) << bits) - np.uint64(1)
        numbered = words & ~number
        numbered |= np.arange(len(words), dtype=np.uint64)
        numbered = pl.Series(numbered).sort(multithreaded=False).to_numpy(writable=True)  # a quarter of numpy's time
        order: IntArray = (numbered & number).view(np.int64)
        numbered >>= bits
        for alike in _runs(numbered):
            rows = order[alike]  # in the order of their numbers
            rows = rows[np.argsort(words[rows], kind="stable")]
            for tied in _runs(words[rows]):
                place = first_place + alike.start + tied.start
                fresh = self._stream.words(place, tied.stop - tied.start, draw=draw)
                rows[tied] = rows[tied][self.sort_by_words(fresh, place, draw + 1)]
            order[alike] = rows
        return order


def shuffle_rows(
    pieces: Iterable[pl.DataFrame], rows: int, order: RowOrder, at_once: int, scratch: Scratch | None = None
) -> Iterator[pl.DataFrame]:
    """The rows of all pieces in that order, at most `at_once` together; `rows` says about how many there are.

    Columns must not be called as `KEY` is. Without a `scratch` file everything is held in memory.
    """
    held: list[pl.DataFrame] = []
    size, coming = 0, iter(pieces)
    for piece in coming:
        held.append(piece)
        size += _size(piece)
        if scratch is not None and size > MOST_HELD:
            break
    else:
        yield from _order_rows(held, order.random_words(0, sum(piece.height for piece in held)), order, 0, at_once)
        return
    share = sum(piece.height for piece in held) / max(rows, 1)
    bits = min(MOST_BITS, max(1, int(np.ceil(np.log2(2 * size / share / MOST_HELD)))))
    with scratch() as file:
        buckets = _Buckets(file, order, bits)
        for piece in coming:
            if size > MOST_HELD // 2:
                buckets.add(held)
                held, size = [], 0
            held.append(piece)
            size += _size(piece)
        buckets.add(held)
        place = 0
        for frames in buckets:
            words: WordArray = np.concatenate([frame[KEY].to_numpy() for frame in frames])
            yield from _order_rows([frame.drop(KEY) for frame in frames], words, order, place, at_once)
            place += len(words)


class _Buckets:
    """Rows in a file, in blocks that came together, each cut by the first bits of their words."""

    def __init__(self, file: BinaryIO, order: RowOrder, bits: int) -> None:
        self._file, self._order, self._bits = file, order, bits
        self._rows, self._end = 0, 0
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(1 << bits)]  # where each begins, how long it is

    def add(self, held: list[pl.DataFrame]) -> None:
        block = pl.concat(held)
        words = self._order.random_words(self._rows, block.height)
        self._rows += block.height
        kind = np.min_scalar_type(len(self._pieces) - 1)  # the fewer bytes, the quicker they are sorted
        bucket = (words >> np.uint64(WORD_BITS - self._bits)).astype(kind)
        by_bucket = np.argsort(bucket, kind="stable")  # within a bucket rows stay in order, as ties must
        block = block.with_columns(pl.Series(KEY, words))[by_bucket]
        stops = np.cumsum(np.bincount(bucket, minlength=len(self._pieces))).tolist()
        for pieces, start, stop in zip(self._pieces, [0, *stops], stops, strict=False):
            if stop > start:
                written = io.BytesIO()
                block[start:stop].write_ipc_stream(written)
                self._file.write(written.getbuffer())
                pieces.append((self._end, written.tell()))
                self._end += written.tell()

    def __iter__(self) -> Iterator[list[pl.DataFrame]]:
        for pieces in self._pieces:
            frames = []
            for begin, length in pieces:
                self._file.seek(begin)
                frames.append(pl.read_ipc_stream(io.BytesIO(self._file.read(length))))
            if frames:
                yield frames


@dataclass(frozen=True, slots=True)
class Packing:
    """Drawn rows and kept columns as one frame with numbered columns, and back, in as few bytes as hold them."""

    parts: tuple[int, ...]  # how many outputs each part of the law has
    kept: tuple[str, ...] = ()

    def pack(self, drawn: NDArray[Any], kept: pl.DataFrame | None) -> pl.DataFrame:
        """One frame of both."""
        series = [pl.Series(drawn[:, i].astype(np.min_scalar_type(n - 1))) for i, n in enumerate(self.parts)]
        series += [] if kept is None else [kept.get_column(name) for name in self.kept]
        return pl.DataFrame({f"{i}": column for i, column in enumerate(series)})

    def unpack(self, rows: pl.DataFrame) -> tuple[NDArray[Any], pl.DataFrame | None]:
        """What was packed."""
        series = rows.get_columns()
        split = len(series) - len(self.kept)
        drawn = np.stack([column.to_numpy() for column in series[:split]]).T
        kept = dict(zip(self.kept, series[split:], strict=True))
        return drawn, pl.DataFrame(kept) if kept else None


def _runs(ranked: WordArray) -> Iterator[slice]:
    """Where the same number stands more than once."""
    tied = np.flatnonzero(ranked[1:] == ranked[:-1])
    for run in np.split(tied, np.flatnonzero(np.diff(tied) > 1) + 1) if len(tied) else ():
        yield slice(int(run[0]), int(run[-1]) + 2)


def _order_rows(
    frames: list[pl.DataFrame], words: WordArray, order: RowOrder, first_place: int, at_once: int
) -> Iterator[pl.DataFrame]:
    whole, numbers = pl.concat(frames, rechunk=True), order.sort_by_words(words, first_place)
    for start in range(0, len(numbers), at_once):
        yield whole[numbers[start : start + at_once]]


def _size(piece: pl.DataFrame) -> int:
    return int(piece.estimated_size()) + ROW_OVERHEAD * piece.height
