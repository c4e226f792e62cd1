"""Persons in several rows: one row for each, so that one draw is all that is published about anybody.

Rows that are drawn apart tell more together than each alone: m rows of one person with one value show that value as it
is when m grows, whatever ε (Theorem 53). So a person is one row: where all of theirs are alike, or as their first or
last row says.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl
from polars import selectors

from privacyfunnel.errors import ColumnError, ParameterError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.names import unique_label, validate_columns
from privacyfunnel.tables.coding.row_hashes import id_texts
from privacyfunnel.tables.readers.column_selection import drop_name, require_columns, select_columns
from privacyfunnel.tables.readers.formats import TextFormat
from privacyfunnel.tables.readers.table_interface import Table, TableWrapper

WHICH = ("first", "last")
BATCH_ROWS = 1 << 17
MOST_SAMPLED = 1 << 16  # values whose rows are counted
MOST_ROWS_EACH = 50  # on average: what has more is a group of people, a school say
_PERSON = re.compile(
    r"(?:.*[_. ])?(?:id|pid|person|patient|subject|respondent|individual|pupil|client)(?:[_. ]?id)?", re.I
)
_WEIGHT = re.compile(
    r"fnlwgt|[ph]?weights|wgt|pweight|perwt|hhwt|(?:survey|sampling|sample|design|person)[_. ]?weights?", re.IGNORECASE
)


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
        said = whose if self.which is None else f"{whose}, their {self.which}"
        return replace(self.table.text_format, detection_notes=(*self.table.text_format.detection_notes, said))

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        asked = list(dict.fromkeys([self.person, *columns]))
        parts = [part.unique(maintain_order=True) if self.which is None else part for part in self.table.batches(asked)]
        rows = pl.concat(parts)
        key = unique_label("person", asked)
        rows = rows.with_columns(id_texts(rows[self.person]).replace("", None).alias(key))
        missing = rows[key].null_count()
        if missing:
            raise TableError(
                f"every row must say whose it is; {missing:,} have no {self.person}. Correct or remove them."
            )
        if self.which is None:
            compared = [key, *(name for name in columns if name != self.person)]
            rows = rows.unique(selectors.by_name(compared), maintain_order=True)
            several = rows.height - rows[key].n_unique()
            if several:
                raise ColumnError(
                    f"all rows of one {self.person} must be alike in {', '.join(columns[:5])}; they differ for some. "
                    f"Take one row of each with {hint('person_row', 'first')} or {hint('person_row', 'last')}, or "
                    "leave out what changes."
                )
        else:
            rows = rows.unique(key, keep="first" if self.which == "first" else "last", maintain_order=True)
        yield from require_columns(select_columns(rows, columns), columns, self.name).iter_slices(BATCH_ROWS)


def reduce_to_persons(table: Table, person: str | None, which: str | None) -> Table:
    """The table by persons, where a column tells them apart."""
    if person is None:
        if which is not None:
            raise ParameterError(
                f"{hint('person_row')} needs {hint('person')}, the column that identifies persons. Name that column."
            )
        return table
    return PersonTable.from_table(table, person, which)


def person_warnings(table: Table, used: Sequence[str]) -> tuple[str, ...]:
    """Sentences about columns that look as if persons had several rows, or rows had survey weights."""
    said = []
    for column in [name for name in table.columns if _PERSON.fullmatch(name) and name not in used]:
        sample = _ValueSample()
        for batch in table.batches([column]):
            sample.add(batch[column])
        if 1.0 < sample.rows_each <= MOST_ROWS_EACH:
            said.append(
                f"'{column}' repeats: {sample.rows:,} rows of {sample.distinct}. If it identifies persons, several "
                f"rows about one of them can leak more than ε; {hint('person', column)} publishes one row of each."
            )
    said += [
        f"If '{column}' is a survey weight: promise and estimates count every row once."
        for column in table.columns
        if _WEIGHT.fullmatch(column) and column not in used
    ]
    return tuple(said)


class _ValueSample:
    """How often the values of a column repeat, in bounded memory.

    All rows of a random share of the values are counted: those whose keyed hash begins with so many zeros that few
    values are left.
    """

    def __init__(self) -> None:
        self._seed, self._zeros, self.rows = secrets.randbits(63), 0, 0
        self._counts = pl.DataFrame(schema={"hash": pl.UInt64, "rows": pl.UInt64})

    def add(self, entries: pl.Series) -> None:
        """Count more rows; missing values do not count."""
        held = drop_name(entries.drop_nulls())
        held = held.filter(held != "") if held.dtype == pl.String else held
        self.rows += len(held)
        more = pl.DataFrame({"hash": held.hash(self._seed)}).filter(self._is_sampled)
        more = more.group_by("hash").agg(pl.len().cast(pl.UInt64).alias("rows"))
        self._counts = pl.concat([self._counts, more]).group_by("hash").agg(pl.col("rows").sum())
        while self._counts.height > MOST_SAMPLED:
            self._zeros += 1
            self._counts = self._counts.filter(self._is_sampled)

    @property
    def _is_sampled(self) -> pl.Expr:
        return pl.col("hash") < (1 << (64 - self._zeros)) if self._zeros else pl.lit(True)

    @property
    def rows_each(self) -> float:
        """Rows of a value, on average; 0 without values."""
        return float(self._counts["rows"].sum()) / self._counts.height if self._counts.height else 0.0

    @property
    def distinct(self) -> str:
        """The number of values, or about that where a share was counted."""
        return f"{'about ' if self._zeros else ''}{self._counts.height << self._zeros:,}"
