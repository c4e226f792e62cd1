"""Counts made by the cluster: combinations for a design, ids, and rows with values that a protocol lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from privacyfunnel.arrays import IntArray
from privacyfunnel.atomic_files import OWNERS_FOLDER
from privacyfunnel.errors import ColumnError
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.names import unique_label, validate_columns
from privacyfunnel.release.bound_table import BoundTable, TableLeak, find_unknown
from privacyfunnel.release.kept_counts import MOST_CELLS, count_records, published_variable, too_many_error
from privacyfunnel.spark.output_folder import is_classic
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.coding.coders import Coding
from privacyfunnel.tables.coding.contingency import Contingency, UnknownRows
from privacyfunnel.tables.coding.known_domain import KnownCoder, encode_published
from privacyfunnel.tables.coding.normalisation import normalise_codings
from privacyfunnel.tables.coding.row_hashes import (
    MOST_BYTES,
    count_inexact_ids,
    id_texts,
    inexact_ids_error,
    repeated_ids_error,
)
from privacyfunnel.tables.readers.column_selection import select_columns
from privacyfunnel.tables.readers.table_files import open_source


def quote_name(name: str) -> str:
    """The name quoted for Spark, which reads a dot as a field of a structure."""
    return "`{}`".format(name.replace("`", "``"))


def count_combinations(df: Any, columns: Sequence[str], counts: str) -> pl.DataFrame:
    """How many rows hold each combination of these columns, in the column `counts`."""
    validate_columns(columns, df.columns, "counted")
    restrict_block_folders(df.sparkSession)
    found = df.groupBy(*(df[quote_name(name)] for name in columns)).count().toArrow()
    return pl.DataFrame({name: found.column(i) for i, name in enumerate([*columns, counts])})


def input_codes(rows: pl.DataFrame, sealed: SealedProtocol) -> IntArray:
    """The input of each row, a number or a record of codes; −1 if the mechanism lacks it."""
    mine = select_columns(rows, [at.name for at in sealed.domain.attributes])
    if not sealed.mechanism.lists_inputs:
        return _label_codes(mine, published_variable(sealed.domain).codings)
    found = BoundTable(sealed, encode_published(open_source(mine), published_variable(sealed.domain)), False)
    return np.concatenate([found.inputs(chunk) for chunk in found.chunks()])


def _label_codes(rows: pl.DataFrame, codings: Sequence[Coding]) -> IntArray:
    """Rows as records of codes; −1 for a value that is not known."""
    read = pl.concat(normalise_codings(open_source(rows), codings).batches([at.column for at in codings]))
    return np.stack([KnownCoder(at).codes(read[at.column]).astype(np.int64) - 1 for at in codings]).T


def count_unknown_rows(df: Any, sealed: SealedProtocol) -> tuple[int, UnknownRows]:
    """The number of rows, and those with values that the protocol lacks."""
    codings = published_variable(sealed.domain).codings
    columns = [coding.column for coding in codings]
    counts = unique_label("rows", columns)
    table = count_combinations(df, columns, counts)
    if not len(table):
        return 0, UnknownRows()
    rows, strange = table[counts].to_numpy(), find_unknown(input_codes(table, sealed))
    if not strange.any():
        return int(rows.sum()), UnknownRows()
    lost = _label_codes(table, codings) < 0
    unseen = {at.column: int(rows[lost[:, j]].sum()) for j, at in enumerate(codings)}
    where = {column: number for column, number in unseen.items() if number}
    return int(rows.sum()), UnknownRows(int(rows[strange].sum()), where)


def measure_rows(df: Any, sealed: SealedProtocol, spec: ReleaseSpec) -> tuple[TableLeak | None, str]:
    """The leakage of what is published of these rows, and why it was not measured where they carry the secret."""
    secret = sealed.domain.secret_columns
    if not {*secret} <= {*df.columns}:
        return None, ""
    columns = [*secret, *(at.name for at in sealed.domain.attributes), *spec.judged_columns]
    different = df.select(*(df[quote_name(name)] for name in columns)).distinct().limit(MOST_CELLS + 1).count()
    if different > MOST_CELLS and spec.judged_columns:
        raise too_many_error(spec.judged_columns)
    if different > MOST_CELLS:
        return None, f"more than {MOST_CELLS:,} combinations of secret, published and kept values are not counted"
    bound, counts = _bind_counts(df, columns, sealed, spec)
    allowed = None if spec.secret else spec.allowed_epsilon
    return bound.measure_leak(spec.judged_columns, spec.unknown, allowed, counts), bound.unmeasured


def _bind_counts(df: Any, columns: Sequence[str], sealed: SealedProtocol, spec: ReleaseSpec) -> tuple[BoundTable, str]:
    """The combinations of these columns read as the protocol reads them, and the column of how many rows each has."""
    counts = unique_label("rows", columns)
    bins, merges = spec.of_secret if spec.secret else (spec.bin_rules, spec.merges)
    table, keep = open_source(count_combinations(df, columns, counts)), (*spec.judged_columns, counts)
    return BoundTable.bind(table, sealed, bins=bins, merges=merges, keep=keep), counts


def count_for_ledger(df: Any, sealed: SealedProtocol, spec: ReleaseSpec) -> Contingency:
    """The rows by secret, where they carry it, and published values, as one machine counts them."""
    columns = (*sealed.domain.secret_columns, *(at.name for at in sealed.domain.attributes))
    plain = replace(spec, keep=())
    bound, counts = _bind_counts(df, [name for name in columns if name in df.columns], sealed, plain)
    found, listed = bound.encoding.contingency, count_records(bound.encoding, (), counts)
    (s, x, _), weights = listed.cells[listed.cells[:, 1] >= 0].T, np.zeros_like(found.weights)
    np.add.at(weights, (s, x), listed.weights[listed.cells[:, 1] >= 0])
    return replace(found, weights=weights)


def restrict_block_folders(session: Any) -> None:
    """Let nobody else enter the folders on this machine in which Spark keeps blocks: counts of secrets are among them.

    Those of executors elsewhere are in the hands of whoever runs the cluster.
    """
    if not is_classic(session):
        return
    for place in session._jvm.org.apache.spark.util.Utils.getConfiguredLocalDirs(session._jsc.sc().conf()):
        for folder in Path(place).glob("blockmgr-*"):
            with suppress(OSError):  # somebody else's, or a file system without modes
                folder.chmod(OWNERS_FOLDER)


def check_ids(df: Any, row_id: str) -> None:
    """Refuse ids that are missing, too long, inexact or repeated, by the canonical text that rows are drawn by."""
    restrict_block_folders(df.sparkSession)
    texts = df.selectExpr(quote_name(row_id)).mapInArrow(_id_facts, "id string, bytes long, inexact long")
    rows, there, different, long, inexact = texts.selectExpr(
        "count(*)",
        "count(nullif(id, ''))",
        "count(distinct id)",
        f"count_if(bytes > {MOST_BYTES})",
        "coalesce(sum(inexact), 0)",
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
    if inexact:
        raise inexact_ids_error(row_id, inexact, rows)
    if different < rows:
        raise repeated_ids_error(row_id, rows - different, rows)


def _id_facts(batches: Iterator[Any]) -> Iterator[Any]:
    """For each id its canonical text, how long it is, and whether it is a float that is not exact."""
    import pyarrow as pa

    for batch in batches:
        entries = pl.Series(batch.column(0))
        text = id_texts(entries)
        inexact = np.zeros(len(entries), dtype=np.int64)
        inexact[:1] = count_inexact_ids(entries)
        facts = [text.to_arrow().cast(pa.string()), text.str.len_bytes().cast(pl.Int64).to_arrow(), pa.array(inexact)]
        yield pa.RecordBatch.from_arrays(facts, names=["id", "bytes", "inexact"])
