"""The draw of one data frame: checks on the driver, and the job for the executors.

The function that executors run: rows of one task in, published rows out.

Small batches are drawn together, because each batch has a fixed cost.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ParameterError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.sampling import IdentityWords, KeyStream, RandomWords, RowKey
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.names import validate_columns
from privacyfunnel.release.apply import refuse_drift, unknown_rows_error
from privacyfunnel.release.bound_table import TableLeak, find_unknown
from privacyfunnel.release.output_layout import output_layout
from privacyfunnel.release.row_sampler import draw_codes
from privacyfunnel.spark.counting import check_ids, count_unknown_rows, input_codes, measure_rows, quote_name
from privacyfunnel.spark.output_folder import draw_once, is_classic, shuffle_rows
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.fields import DROP, ERROR
from privacyfunnel.tables.coding.contingency import UnknownRows
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


@dataclass(frozen=True, slots=True, eq=False)
class FrameDraw:
    """A data frame checked against a protocol, and how its rows are published."""

    sealed: SealedProtocol
    df: Any
    spec: ReleaseSpec
    there: int  # how many rows there are
    strangers: UnknownRows  # those that hold what the protocol does not know
    columns: tuple[str, ...]  # that are published
    measured: TableLeak | None  # ε on these rows, where they carry the secret
    unmeasured: str  # why not, where they do

    @classmethod
    def of(cls, sealed: SealedProtocol, df: Any, spec: ReleaseSpec) -> FrameDraw:
        """Count the frame, and refuse wrong columns, ids or values."""
        refuse_persons(spec)
        if sealed.sees_secret:
            raise ParameterError(
                "This protocol looks at the secret; on Spark rows are drawn without it. Design another."
            )
        columns, row_id = tuple(at.name for at in sealed.domain.attributes), spec.row_id
        validate_columns(columns, df.columns, "published")
        validate_columns(spec.read_columns, df.columns, "named")
        spec.refuse_used((*columns, *sealed.domain.secret_columns))
        output_layout(sealed).refuse_taken(spec.keep)
        if row_id is not None:
            check_ids(df, row_id)
        rows, strangers = count_unknown_rows(df, sealed)
        if strangers.rows and spec.unknown == ERROR:
            raise unknown_rows_error(strangers, rows)
        if rows == strangers.rows:
            raise TableError(
                f"the frame must hold rows that the protocol knows; it knows none of {rows:,}. Name the table that the "
                "protocol was made for, or one like it."
            )
        measured, why_not = measure_rows(df, sealed, spec)
        refuse_drift(measured, sealed, spec, why_not)
        return cls(sealed, df, spec, rows, strangers, columns, measured, why_not)

    @property
    def rows(self) -> int:
        """How many rows are published."""
        return self.there - (self.strangers.rows if self.spec.unknown == DROP else 0)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that go out."""
        return (*output_layout(self.sealed).names, *self.spec.keep)

    def draw_by_ids(self) -> Any:
        """The rows as a frame that is the same every time."""
        sealed, row_id = self.sealed, self.spec.row_id
        assert row_id is not None
        words = (self.spec.row_key or RowKey.generate()).derive_words(sealed.digest, row_id)
        order = None if self.spec.keep_order else RowKey.generate().derive_words(sealed.digest, row_id)
        drawn = self._map_rows(ById(row_id, words, order), beside=int(order is not None))
        return (drawn if order is None else shuffle_rows(drawn)).toDF(*self.names)

    def draw_without_ids(self, hidden: str) -> Any:
        """The rows of one draw that was written to a hidden place, as a frame."""
        drawn = self._map_rows(ByAttempt(self.spec.keep_order), beside=3)
        return draw_once(drawn, hidden, self.rows, keep_order=self.spec.keep_order).toDF(*self.names)

    def _map_rows(self, addresses: ById | ByAttempt, beside: int) -> Any:
        """The published columns, those kept and those beside, by number: mapInArrow stumbles over a dot in a name."""
        from pyspark.sql.types import LongType, StringType, StructField, StructType

        read = tuple(dict.fromkeys((*self.columns, *self.spec.read_columns)))
        protocol, spec = _broadcast(self.df, self.sealed.to_text()), self.spec
        job = DrawJob(protocol, addresses, read, spec.keep, spec.unknown)
        shown = [StringType()] * (len(self.names) - len(spec.keep))
        kinds = [*shown, *(self.df.schema[name].dataType for name in spec.keep), *[LongType()] * beside]
        schema = StructType([StructField(f"c{i}", kind) for i, kind in enumerate(kinds)])
        plain = self.df.select(*(self.df[quote_name(name)].alias(f"c{i}") for i, name in enumerate(read)))
        return plain.mapInArrow(job, schema)


def _broadcast(df: Any, text: str) -> Any:
    """A text on its way to executors, apart from the keys.

    Spark writes a function of more than a megabyte to a file on the driver's disk, so a large law and the keys must not
    be in one. Over Spark Connect there is no broadcast, nor such a file.
    """
    session = df.sparkSession
    return session.sparkContext.broadcast(text) if is_classic(session) else SimpleNamespace(value=text)


def refuse_persons(spec: ReleaseSpec) -> None:
    """Refuse what would be ignored: on Spark every row is drawn."""
    if spec.person is not None:
        raise ParameterError(
            f"{hint('person')} is not available on Spark, where every row is drawn. Take one row of each "
            f"{spec.person} first, with dropDuplicates, and leave it out."
        )
