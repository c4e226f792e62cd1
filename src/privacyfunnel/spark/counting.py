"""Counts that the cluster makes: of combinations for a design, of ids, and of rows that a protocol does not know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ColumnError
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.tables.identity import MOST_BYTES
from privacyfunnel.tables.known import KnownCoder, encode_with
from privacyfunnel.tables.names import checked_columns, unlike
from privacyfunnel.tables.picking import picked
from privacyfunnel.tables.prepared import prepared_for
from privacyfunnel.tables.sources import as_table
from privacyfunnel.tables.variables import Strangers


def quoted(name: str) -> str:
    """The name as Spark reads it: it takes a dot for a field of a structure."""
    return "`{}`".format(name.replace("`", "``"))


def counted(df: Any, columns: Sequence[str], counts: str) -> pl.DataFrame:
    """How many rows hold each combination of these columns, in the column `counts`."""
    checked_columns(columns, df.columns, "counted")
    found = df.groupBy(*(df[quoted(name)] for name in columns)).count().toArrow()
    return pl.DataFrame({name: found.column(i) for i, name in enumerate([*columns, counts])})


def inputs_of(rows: pl.DataFrame, sealed: SealedProtocol) -> IntArray:
    """The input of the law that each row is; −1 where it is none."""
    mine = picked(rows, [at.name for at in sealed.domain.attributes])
    return np.concatenate([chunk.published for chunk in encode_with(as_table(mine), sealed.domain.published).chunks()])


def met(df: Any, sealed: SealedProtocol) -> tuple[int, Strangers]:
    """How many rows there are, and which of them hold what the protocol does not know."""
    codings = sealed.domain.published.codings
    columns = [coding.column for coding in codings]
    counts = unlike("rows", columns)
    table = counted(df, columns, counts)
    if not len(table):
        return 0, Strangers()
    rows, strange = table[counts].to_numpy(), inputs_of(table, sealed) < 0
    if not strange.any():
        return int(rows.sum()), Strangers()
    read = pl.concat(prepared_for(as_table(table), codings).batches(columns))
    unseen = {at.column: int(rows[KnownCoder(at).codes(read[at.column]) == 0].sum()) for at in codings}
    where = {column: number for column, number in unseen.items() if number}
    return int(rows.sum()), Strangers(int(rows[strange].sum()), where)


def check_ids(df: Any, row_id: str) -> None:
    """Refuse ids that are missing, too long, or not all different, and say how many."""
    text = f"cast({quoted(row_id)} as string)"
    rows, there, different, long = df.selectExpr(
        "count(*)",
        f"count(nullif({text}, ''))",
        f"count(distinct {text})",
        f"count_if(octet_length({text}) > {MOST_BYTES})",
    ).first()
    if there < rows:
        raise ColumnError(
            f"a row id must be there in every row; '{row_id}' is missing in {rows - there:,} of {rows:,} rows. Fill it "
            "in, or name another column."
        )
    if long:
        raise ColumnError(
            f"a row id has at most {MOST_BYTES} bytes; {long:,} of '{row_id}' have more. Name another column."
        )
    if different < rows:
        raise ColumnError(
            f"a row id must tell every row from all others; {rows - different:,} of {rows:,} rows have an id of "
            f"'{row_id}' that another row has. Name a column in which every value is different."
        )
