"""Persons in several rows: one row for each, so that one draw is all that is published about anybody.

Rows that are drawn apart tell more together than each alone: m rows of one person with one value show that value as it
is when m grows, whatever ε (Theorem 53). So a person is one row: where all of theirs are alike, or as their first or
last row says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl
from polars import selectors

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ColumnError, ParameterError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.names import unique_label, validate_columns
from privacyfunnel.tables.coding.row_hashes import id_texts
from privacyfunnel.tables.readers.column_selection import require_columns, select_columns
from privacyfunnel.tables.readers.formats import Table, TableWrapper, TextFormat

WHICH = ("first", "last")
BATCH_ROWS = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class PersonTable(TableWrapper):
    """A table of which each person is one row, in the order in which they come first; it is held in memory."""

    person: str
    which: str | None  # of a person's rows; None where all must be alike

    @classmethod
    def from_table(cls, table: Table, person: str, which: str | None) -> PersonTable:
        """The table by persons, who are told apart by a column."""
        validate_columns([person], table.columns, "person")
        if which not in {None, *WHICH}:
            raise ParameterError(f"a person's row is their {' or '.join(WHICH)}; not '{which}'. Name one of them.")
        return cls(table, person, which)

    @property
    def text_format(self) -> TextFormat:
        whose = f"one row for each {self.person}"
        note = whose if self.which is None else f"{whose}, their {self.which}"
        return replace(self.table.text_format, detection_notes=(*self.table.text_format.detection_notes, note))

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        needed = list(dict.fromkeys([self.person, *columns]))
        parts = [
            part.unique(maintain_order=True) if self.which is None else part for part in self.table.batches(needed)
        ]
        rows = self._one_row_each(pl.concat(parts), columns)
        yield from require_columns(select_columns(rows, columns), columns, self.name).iter_slices(BATCH_ROWS)

    def places(self, columns: Sequence[str]) -> IntArray:
        """The numbers of the rows that count, where all rows of a person must be alike in these columns."""
        needed = list(dict.fromkeys([self.person, *columns]))
        number = unique_label("row", needed)
        rows = pl.concat(list(self.table.batches(needed))).with_row_index(number)
        return self._one_row_each(rows, columns)[number].cast(pl.Int64).to_numpy()

    def _one_row_each(self, rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
        key = unique_label("person", rows.columns)
        rows = rows.with_columns(id_texts(rows[self.person]).replace("", None).alias(key))
        missing = rows[key].null_count()
        if missing:
            raise TableError(
                f"every row must say whose it is; {missing:,} have no {self.person}. Correct or remove them."
            )
        if self.which is not None:
            return rows.unique(key, keep="first" if self.which == "first" else "last", maintain_order=True)
        compared = [key, *(name for name in columns if name != self.person)]
        rows = rows.unique(selectors.by_name(compared), keep="first", maintain_order=True)
        if rows.height > rows[key].n_unique():
            raise ColumnError(
                f"all rows of one {self.person} must be alike in {', '.join(columns[:5])}; they differ for some. "
                f"Take one row of each with {hint('person_row', 'first')} or {hint('person_row', 'last')}, or "
                "leave out what changes."
            )
        return rows


def reduce_to_persons(table: Table, person: str | None, which: str | None) -> Table:
    """The table by persons, where a column tells them apart."""
    if person is None:
        if which is not None:
            raise ParameterError(
                f"{hint('person_row')} needs {hint('person')}, the column that identifies persons. Name that column."
            )
        return table
    return PersonTable.from_table(table, person, which)
