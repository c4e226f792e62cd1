"""Spark: a protocol designed from counts that a cluster made, and rows drawn where they lie.

What a row becomes depends on its own value, on its id and on a key, and on nothing else. So a task that is retried, or
run twice because it is slow, draws the same rows again; how the frame is cut into partitions does not matter. That is
why rows need ids here: by position a second attempt would be a second draw.

    df ──groupBy().count()──▶ design (driver) ──▶ SealedProtocol ──mapInArrow──▶ rows ──orderBy(keyed tag)──▶ frame

The keys that the executors get are those of this protocol and column of ids alone, and they are part of the plan of
the frame that is handed out: they are nowhere else, and go with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.laws.identified import IdentityWords, RowKey
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.release.apply import unknown_rows
from privacyfunnel.release.design import design as designed_frame
from privacyfunnel.release.order import names
from privacyfunnel.release.outgoing import codes_of
from privacyfunnel.release.sending import DROP, ERROR, Sending
from privacyfunnel.release.write import published
from privacyfunnel.tables.identity import id_blocks
from privacyfunnel.tables.known import KnownCoder, encode_with
from privacyfunnel.tables.names import checked_columns, unlike
from privacyfunnel.tables.picking import picked
from privacyfunnel.tables.prepared import prepared_for
from privacyfunnel.tables.sources import as_table
from privacyfunnel.tables.variables import Strangers

__all__ = ["Sanitised", "apply", "design", "sanitise"]


@dataclass(frozen=True, slots=True, eq=False)
class Sanitised:
    """A data frame of sanitised rows, drawn when it is asked for and the same every time; and their protocol."""

    table: Any
    sealed: SealedProtocol


def design(df: Any, *, secret: str | Sequence[str], publish: str | Sequence[str], **asked: Any) -> SealedProtocol:
    """The sealed protocol for a data frame, from counts that the cluster makes; nothing is drawn.

    What may be asked is what :func:`privacyfunnel.design` takes. Edges of bins are given, not found.
    """
    columns = [*names(secret), *names(publish)]
    counts = unlike("rows", columns)
    return designed_frame(_counted(df, columns, counts), secret=secret, publish=publish, counts=counts, **asked)


def apply(
    protocol: SealedProtocol | str | Path,
    df: Any,
    *,
    row_id: str,
    key: RowKey | str | Path | None = None,
    keep: str | Sequence[str] = (),
    unknown: str = ERROR,
    keep_order: bool = False,
) -> Any:
    """The rows of a data frame drawn from a protocol, as a data frame, in a random order unless it is to be kept.

    `row_id` names the column that tells rows apart: it is counted now, and so are rows that the protocol does not know.
    `key`, `keep` and `unknown` are as for :func:`privacyfunnel.apply`.
    """
    sealed = protocol if isinstance(protocol, SealedProtocol) else SealedProtocol.load(protocol)
    if sealed.sees_secret:
        raise ParameterError("This protocol looks at the secret; on Spark rows are drawn without it. Design another.")
    mine = key if key is None or isinstance(key, RowKey) else RowKey.load(key)
    sending = Sending(keep=names(keep), row_id=row_id, key=mine, unknown=unknown, keep_order=keep_order)
    columns = [at.name for at in sealed.domain.attributes]
    read = list(dict.fromkeys((*columns, row_id, *sending.keep)))
    checked_columns(read, df.columns, "named")
    if row_id in columns or {*sending.keep} & {*columns}:
        raise ColumnError("a published column cannot be the row id, nor be kept as it is. Name another column.")
    _check_ids(df, row_id)
    _check_known(df, sealed, unknown)
    keys = mine or RowKey.fresh()
    order = None if keep_order else RowKey.fresh().for_protocol(sealed.digest, row_id)
    way = published(sealed, sending.sets)
    tag = unlike("order", [*way.names, *sending.keep])
    words = keys.for_protocol(sealed.digest, row_id)
    job = _Job(sealed.to_text(), words, order, tuple(read), row_id, sending.keep, unknown, way.names, tag)
    # Spark's mapInArrow stumbles over a dot in a name.
    plain = df.select(*(_column(name).alias(f"c{i}") for i, name in enumerate(read)))
    drawn = plain.mapInArrow(partial(_drawn, job), _schema(df, job))
    return drawn if order is None else drawn.orderBy(_column(tag)).drop(tag)


def sanitise(
    df: Any,
    *,
    secret: str | Sequence[str],
    publish: str | Sequence[str],
    row_id: str,
    key: RowKey | str | Path | None = None,
    keep: str | Sequence[str] = (),
    keep_order: bool = False,
    **asked: Any,
) -> Sanitised:
    """Design a protocol for a data frame and draw its rows from it: :func:`design`, then :func:`apply`."""
    sealed = design(df, secret=secret, publish=publish, **asked)
    return Sanitised(apply(sealed, df, row_id=row_id, key=key, keep=keep, keep_order=keep_order), sealed)


@dataclass(frozen=True, slots=True)
class _Job:
    """All that an executor needs to draw its rows."""

    protocol: str = field(repr=False)
    words: IdentityWords = field(repr=False)
    order: IdentityWords | None = field(repr=False)
    read: tuple[str, ...]  # the columns that come, in this order
    row_id: str
    keep: tuple[str, ...]
    unknown: str
    names: tuple[str, ...]
    tag: str


def _drawn(job: _Job, batches: Iterator[Any]) -> Iterator[Any]:
    """Batches of rows as they are published: run by executors."""
    import pyarrow as pa

    sealed = _sealed(job.protocol)
    way = published(sealed, "column")
    for batch in batches:
        if not batch.num_rows:
            continue
        given = dict(zip(job.read, batch.columns, strict=True))
        read = pl.DataFrame(given)
        ids, inputs = id_blocks(read[job.row_id]), _inputs(read, sealed)
        codes = codes_of(sealed, inputs, job.unknown, partial(job.words.rows, *ids))
        columns = [column.cast(pl.String).to_arrow().cast(pa.string()) for column in way.columns(codes)]
        columns += [given[name] for name in job.keep]
        if job.order is not None:
            tags = job.order.rows(*ids, np.zeros(len(inputs), dtype=np.int64)).word()
            columns.append(pa.array(tags.view(np.int64)))
        shown = (*job.names, *job.keep, *([] if job.order is None else [job.tag]))
        rows = pa.RecordBatch.from_arrays(columns, names=list(shown))
        yield rows.filter(pa.array(inputs >= 0)) if job.unknown == DROP else rows


@lru_cache(maxsize=4)
def _sealed(text: str) -> SealedProtocol:
    """A protocol, read once by a process that draws many batches."""
    return SealedProtocol.from_text(text, "the protocol of this job")


def _inputs(batch: pl.DataFrame, sealed: SealedProtocol) -> IntArray:
    """The input that each row is; −1 where it is none."""
    columns = [at.name for at in sealed.domain.attributes]
    rows = picked(batch, columns)
    return np.concatenate([chunk.published for chunk in encode_with(as_table(rows), sealed.domain.published).chunks()])


def _counted(df: Any, columns: Sequence[str], counts: str) -> pl.DataFrame:
    """How many rows hold each combination of these columns, counted by the cluster."""
    checked_columns(columns, df.columns, "counted")
    found = df.groupBy(*map(_column, columns)).count().toArrow()
    return pl.DataFrame({name: found.column(i) for i, name in enumerate([*columns, counts])})


def _check_ids(df: Any, row_id: str) -> None:
    """Refuse ids that are missing, or not all different, and say how many."""
    from pyspark.sql import functions

    ids = _column(row_id)
    rows, there, different = df.agg(functions.count("*"), functions.count(ids), functions.countDistinct(ids)).first()
    if there < rows:
        raise ColumnError(
            f"a row id must be there in every row; '{row_id}' is missing in {rows - there:,} of {rows:,} rows. Fill it "
            "in, or name another column."
        )
    if different < rows:
        raise ColumnError(
            f"a row id must tell every row from all others; {rows - different:,} of {rows:,} rows have an id of "
            f"'{row_id}' that another row has. Name a column in which every value is different."
        )


def _check_known(df: Any, sealed: SealedProtocol, unknown: str) -> None:
    """Refuse rows that hold what the protocol does not know, where that is an error."""
    if unknown != ERROR:
        return
    codings = sealed.domain.published.codings
    columns = [coding.column for coding in codings]
    counts = unlike("rows", columns)
    table = _counted(df, columns, counts)
    rows = table[counts].to_numpy()
    strange = _inputs(table, sealed) < 0
    if strange.any():
        read = pl.concat(prepared_for(as_table(table), codings).batches(columns))
        unseen = {at.column: int(rows[KnownCoder(at).codes(read[at.column]) == 0].sum()) for at in codings}
        where = {column: number for column, number in unseen.items() if number}
        raise unknown_rows(Strangers(int(rows[strange].sum()), where), int(rows.sum()))


def _schema(df: Any, job: _Job) -> Any:
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    texts = [StructField(name, StringType()) for name in job.names]
    order = [] if job.order is None else [StructField(job.tag, LongType())]
    return StructType([*texts, *(df.schema[name] for name in job.keep), *order])


def _column(name: str) -> Any:
    """The column of exactly this name: Spark takes a dot for a field of a structure."""
    from pyspark.sql import functions

    return functions.col("`{}`".format(name.replace("`", "``")))
