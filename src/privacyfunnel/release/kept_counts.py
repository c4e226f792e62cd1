"""Counts of secret, published value and kept columns together: what kept columns are judged by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ParameterError, ProtocolFileError, SizeError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.model.each_secret import APART
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.kept_promise import KeptCounts
from privacyfunnel.model.published.table_model import PublishedModel, SecretModels
from privacyfunnel.tables.coding.bins import Bins, Grouping
from privacyfunnel.tables.coding.coders import Coding
from privacyfunnel.tables.coding.contingency import Contingency, Variable
from privacyfunnel.tables.coding.grouping_rules import parse_grouping
from privacyfunnel.tables.coding.merges import Merge, MergeOthers
from privacyfunnel.tables.readers.column_selection import select_columns

if TYPE_CHECKING:
    from privacyfunnel.tables.coding.encoding import Encoding


MOST_CELLS = 1 << 22  # combinations of secret, published and kept values that are counted
SECRET, VALUE, ROWS = "secret", "value", "rows"


def count_kept(encoding: Encoding, columns: Sequence[str]) -> KeptCounts | None:
    """n(s, x, k) of a table that was counted, read once more; None where no column is kept."""
    return count_records(encoding, columns) if columns else None


def count_records(encoding: Encoding, columns: Sequence[str], counts: str | None = None) -> KeptCounts:
    """The same, of all records alike where no column is kept; those whose value is not known have −1 there.

    Where a row stands for several, the column `counts` says for how many.

    Raises
    ------
    SizeError
        If there are too many combinations, as there are of an id.
    """
    read = [*columns, *([] if counts is None else [counts])]
    parts = (
        _frame(
            chunk.secret,
            chunk.published,
            select_columns(chunk.kept, list(columns)) if chunk.kept is not None else pl.DataFrame(),
            None if counts is None or chunk.kept is None else chunk.kept[counts],
        )
        for chunk in encoding.chunks(read)
    )
    return count_cells(parts, columns)


def count_rows(secret: IntArray, value: IntArray, kept: pl.DataFrame) -> KeptCounts:
    """The same of rows whose secrets and values are these numbers."""
    return count_cells(iter([_frame(secret, value, kept)]), kept.columns)


def count_cells(parts: Iterator[pl.DataFrame], columns: Sequence[str]) -> KeptCounts:
    """The same from frames of secret, value, number of rows and kept columns; sorted, as groups come in any order."""
    found = pl.DataFrame()
    for part in parts:
        both = pl.concat([found, part]) if len(found) else part
        found = both.group_by(pl.all().exclude(ROWS)).agg(pl.col(ROWS).sum())
        if len(found) > MOST_CELLS:
            raise too_many_error(columns)
    kept = [name for name in found.columns if name not in (SECRET, VALUE, ROWS)]
    if len(found):
        found = found.sort(SECRET, VALUE, *kept)
    k, codes = np.zeros(len(found), dtype=np.int64), None
    if kept:
        numbered = found.select(kept).unique().sort(kept)
        k = _number(found.select(kept), numbered)
        alone = [numbered.select(name) for name in kept]
        codes = np.column_stack([_number(column, column.unique().sort(column.columns)) for column in alone])
    cells = np.column_stack([found[SECRET].to_numpy(), found[VALUE].to_numpy(), k]).astype(np.int64)
    return KeptCounts(tuple(columns), cells, found[ROWS].to_numpy().astype(np.int64), codes)


def too_many_error(columns: Sequence[str]) -> SizeError:
    """Kept columns whose values are too many to be judged."""
    return SizeError(
        f"Kept columns are judged together with what is published, for at most {MOST_CELLS:,} combinations of their "
        f"values; {', '.join(columns)} make more. An id or a free text leaks without bound: leave it out, make it "
        f"coarser, or keep it unjudged ({hint('accept_kept')})."
    )


def _number(rows: pl.DataFrame, among: pl.DataFrame) -> IntArray:
    """For every row the number of its equal among others; missing entries are equal."""
    numbered = among.with_row_index("number")
    found = rows.join(numbered, on=rows.columns, how="left", nulls_equal=True, maintain_order="left")["number"]
    return found.to_numpy().astype(np.int64)


def _frame(secret: IntArray, value: IntArray, kept: pl.DataFrame, rows: pl.Series | None = None) -> pl.DataFrame:
    """The rows counted by secret, value and kept columns, whose names are numbers."""
    named = {f"k{j}": _groupable(column) for j, column in enumerate(kept.get_columns())}
    number = np.ones(len(secret), dtype=np.int64) if rows is None else rows.cast(pl.Int64)
    frame = pl.DataFrame({SECRET: secret, VALUE: value, ROWS: number, **named})
    return frame.group_by(pl.all().exclude(ROWS)).agg(pl.col(ROWS).sum())


def _groupable(entries: pl.Series) -> pl.Series:
    """Entries that can be grouped: lists, structures and objects as their text."""
    if entries.dtype.is_nested() or entries.dtype == pl.Object:
        return pl.Series(entries.name, [str(entry) for entry in entries.to_list()], dtype=pl.String)
    return entries


def published_variable(domain: Domain) -> Variable:
    """The published columns with their labels: entries of any table become codes of these."""
    groupings = _groupings(domain)
    codings = []
    for at in domain.attributes:
        missing, rest = domain.missing.get(at.name), domain.rest.get(at.name)
        codings.append(
            Coding(
                at.name,
                at.labels,
                missing=None if missing is None else at.labels.index(missing),
                edges=tuple(domain.bins.get(at.name, ())),
                rest=None if rest is None else at.labels.index(rest),
                how=groupings.get(at.name),
            )
        )
    return Variable(tuple(codings), domain.combos)


def column_bins(domain: Domain) -> tuple[Bins, ...]:
    """The bins of each published column; those without edges or a rule keep every value as it is."""
    groupings = _groupings(domain)
    return tuple(
        Bins(at.name, edges=tuple(domain.bins.get(at.name, ())), how=groupings.get(at.name)) for at in domain.attributes
    )


def rest_merges(domain: Domain) -> tuple[Merge, ...]:
    """The merges by which every value that a column does not list becomes its label for the rest."""
    return tuple(
        MergeOthers(at.name, frozenset(at.labels), domain.rest[at.name])
        for at in domain.attributes
        if at.name in domain.rest
    )


def _groupings(domain: Domain) -> dict[str, Grouping]:
    try:
        return {column: parse_grouping(rule) for column, rule in domain.groupings.items()}
    except ParameterError as error:
        raise ProtocolFileError(f"{error} The file was altered or written by another program: make it again.") from None


def group_table(table: Contingency, model: PublishedModel) -> tuple[Joint, IntArray]:
    """A table's own counts by the groups of a model that list secrets, and which of its values occur in them."""
    shown = Joint.from_contingency(replace(table, weights=np.ones_like(table.weights)))
    model = model.base
    if isinstance(model, SecretModels):
        rows: dict[str, IntArray] = {}
        name = APART.join(model.parts)
        for j, (column, part) in enumerate(model.parts.items()):
            one = table.select_secret(j)
            mine = part.group_counts(one.secret_labels, one.weights)
            rows |= {f"{column} = {label}": row for label, row in mine.items()}
    else:
        rows, name = model.group_counts(table.secret_labels, table.weights), shown.secret_name
    weights = np.array(list(rows.values()))
    x = np.flatnonzero(weights.sum(axis=0))
    return Joint(weights[:, x], tuple(rows), shown.attributes, table.combos[x], name), x
