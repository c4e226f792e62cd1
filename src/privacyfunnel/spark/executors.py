"""The function that executors run: rows of one task in, published rows out.

Small batches are drawn together, because each batch has a fixed cost.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from privacyfunnel.arrays import IntArray
from privacyfunnel.mechanisms.sampling import IdentityWords, KeyStream, RandomWords
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.release.output_layout import output_layout
from privacyfunnel.release.row_sampler import draw_codes, find_unknown
from privacyfunnel.spark.counting import input_codes
from privacyfunnel.spec.fields import DROP
from privacyfunnel.tables.coding.row_hashes import id_blocks

ROWS_TOGETHER = 1 << 17
TAG_BITS = 40  # of a row's number within its partition, where rows keep their order


class AddressedRows(NamedTuple):
    """Addresses of rows, from which their random words come."""

    random_words: Callable[[IntArray], RandomWords]  # by their inputs
    beside: tuple[IntArray, ...]  # what goes with each row, beside its published columns


class TaskAddresses(Protocol):
    """The source of random words for the rows of a task."""

    def address_rows(self, rows: pl.DataFrame, first: int) -> AddressedRows:
        """These rows, the first of which is number `first` of its task."""


@dataclass(frozen=True, slots=True)
class ById:
    """The same random words for the same id and value in every task; and a tag for the random order, if any."""

    row_id: str
    _random_words: IdentityWords = field(repr=False)
    _order: IdentityWords | None = field(repr=False)

    def begin(self) -> TaskAddresses:
        return self

    def address_rows(self, rows: pl.DataFrame, first: int) -> AddressedRows:
        ids, nothing = id_blocks(rows[self.row_id]), np.zeros(len(rows), dtype=np.int64)
        tags = () if self._order is None else (self._order.rows(*ids, nothing).word().view(np.int64),)
        return AddressedRows(partial(self._random_words.rows, *ids), tags)


@dataclass(frozen=True, slots=True)
class ByAttempt:
    """Random words of its own for every attempt at a task; each row carries a tag, its task and its attempt."""

    keep_order: bool

    def begin(self) -> TaskAddresses:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None  # this is one
        order = None if self.keep_order else KeyStream.generate()
        return Attempt(task.partitionId(), secrets.randbits(63), KeyStream.generate(), order)


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """One attempt at one task. Its keys come from the operating system and never leave the process."""

    partition: int
    mark: int
    _stream: KeyStream = field(repr=False)
    _order: KeyStream | None = field(repr=False)

    def address_rows(self, rows: pl.DataFrame, first: int) -> AddressedRows:
        n = len(rows)
        place = (self.partition << TAG_BITS) + np.arange(first, first + n, dtype=np.int64)
        tag = place if self._order is None else self._order.words(first, n).view(np.int64)
        beside = tag, np.full(n, self.partition, dtype=np.int64), np.full(n, self.mark, dtype=np.int64)
        return AddressedRows(lambda inputs: self._stream.rows(first, len(inputs)), beside)


@dataclass(frozen=True, slots=True)
class DrawJob:
    """All that an executor needs to draw rows."""

    protocol: Any = field(repr=False)  # the text of a protocol is the `value` of this
    addresses: ById | ByAttempt
    read: tuple[str, ...]  # the columns that come, in this order
    keep: tuple[str, ...]
    unknown: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches of a task as they are published: the published columns, those kept, and what goes beside."""
        import pyarrow as pa

        sealed, addresses, first = _load_protocol(self.protocol.value), self.addresses.begin(), 0
        way = output_layout(sealed)
        for batch in _merge_batches(batches, min(ROWS_TOGETHER, way.rows_at_once)):
            given = dict(zip(self.read, batch.columns, strict=True))
            rows = pl.DataFrame(given)
            inputs, at = input_codes(rows, sealed), addresses.address_rows(rows, first)
            codes = draw_codes(sealed, inputs, self.unknown, at.random_words)
            columns = [column.cast(pl.String).to_arrow().cast(pa.string()) for column in way.columns(codes)]
            columns += [given[name] for name in self.keep]
            columns += [pa.array(numbers) for numbers in at.beside]
            out = pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])
            yield out.filter(pa.array(~find_unknown(inputs))) if self.unknown == DROP else out
            first += len(rows)


@lru_cache(maxsize=4)
def _load_protocol(text: str) -> SealedProtocol:
    """A protocol, read once by a process that draws many tasks."""
    return SealedProtocol.from_text(text, "the protocol of this job")


def _merge_batches(batches: Iterator[Any], most: int) -> Iterator[Any]:
    """The same rows in fewer batches, of about so many rows."""
    import pyarrow as pa

    waiting: list[Any] = []
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= most:
            yield pa.concat_batches(waiting)
            waiting = []
    if waiting:
        yield pa.concat_batches(waiting)
