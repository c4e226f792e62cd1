"""A table as its values are meant: numbers as programs write them, and coarser labels where they were asked for.

Coders, quantiles and files see a prepared table only, so that there is one way from what stands in a table to a code,
today, at an audit and next year.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from privacyfunnel.errors import ColumnError
from privacyfunnel.hints import hint
from privacyfunnel.tables.coding.bins import Bins, GroupedEntries, Grouping
from privacyfunnel.tables.coding.coders import Coding
from privacyfunnel.tables.readers.formats import MISSING_TEXTS, NumberFormat, Table, TableWrapper

SHOWN_ROWS = 5  # rows that must hold a text before a message quotes it: fewer point at people
SHOWN_LENGTH = 40  # characters of it
MOST_TEXTS = 1000  # different ones that are counted


@dataclass(frozen=True, slots=True, eq=False)
class NormalisedTable(TableWrapper):
    """A table of which some columns are read by a rule: a grouping, or None for numbers."""

    rules: Mapping[str, Grouping | None]
    strict: bool  # whether a column must hold nothing else; else what is no such thing stays as it is

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """The rows in order. Raises when all were read if there were strangers in a column that allows none."""
        mine = [column for column in columns if column in self.rules]
        seen = {column: _UnexpectedEntries() for column in mine}
        rows = 0
        for batch in self.table.batches(columns):
            found = {column: self._read(column, batch[column]) for column in mine}
            for column, (_, strange) in found.items():
                if strange is not None:
                    seen[column].add(batch[column].filter(strange))
            rows += batch.height
            yield batch.with_columns(labels for labels, _ in found.values()) if found else batch
        for column, strangers in seen.items():
            if self.strict and strangers.rows:
                raise strangers.make_error(column, rows, self.rules[column], self.table.numbers)

    def _read(self, column: str, entries: pl.Series) -> GroupedEntries:
        rule = self.rules[column]
        return self.table.numbers.normalise(entries) if rule is None else rule.labels(entries, self.table.numbers)


def normalise_bins(table: Table, bins: Iterable[Bins], *, strict: bool = True) -> Table:
    """The table with columns that are binned or grouped read as they are meant."""
    return _apply_rules({at.column: at.how for at in bins if at.how is not None or at.cuts}, table, strict=strict)


def normalise_codings(table: Table, codings: Iterable[Coding]) -> Table:
    """The table with columns whose values are known read as they were read when they became known."""
    return _apply_rules({at.column: at.how for at in codings if at.how is not None or at.edges}, table, strict=False)


def _apply_rules(rules: Mapping[str, Grouping | None], table: Table, *, strict: bool) -> Table:
    return NormalisedTable(table, rules, strict) if rules else table


_DATE = re.compile(r"\d{4}-\d\d?-\d\d?.*|\d\d?[./]\d\d?[./]\d{2,4}.*")


class _UnexpectedEntries:
    """Entries that are not what their column must hold."""

    def __init__(self) -> None:
        self.rows = 0
        self._texts: Counter[str] = Counter()

    def add(self, entries: pl.Series) -> None:
        self.rows += len(entries)
        counts = entries.alias("text").cast(pl.String).value_counts(sort=True).head(MOST_TEXTS)
        self._texts.update(dict(counts.iter_rows()))

    def make_error(self, column: str, rows: int, rule: Grouping | None, numbers: NumberFormat) -> ColumnError:
        must = "hold numbers to be binned" if rule is None else rule.requirement
        text, held = self._texts.most_common(1)[0]
        if rule is None and _DATE.fullmatch(text.strip()):  # which is never shown: it may be somebody's birthday
            year = hint("bins", f"{column}=year")
            return ColumnError(f"column '{column}' must {must}; it holds dates. Dates are grouped by parts: {year}.")
        shown = text if held >= max(SHOWN_ROWS, self.rows / 10) else ""
        such = f", most often '{shown[:SHOWN_LENGTH]}'" if shown else ", each of them in few rows"
        if rule is not None and self.rows == rows and text.lstrip("-").replace(".", "", 1).isdecimal():
            edges = hint("bins", f"{column}=0,10,20")
            return ColumnError(f"column '{column}' must {must}; no row does. Numbers are cut at edges: {edges}.")
        return ColumnError(
            f"column '{column}' must {must}; {self.rows:,} of {rows:,} rows hold something else{such}. "
            f"{self._hint(shown, rule, numbers)}"
        )

    def _hint(self, text: str, rule: Grouping | None, numbers: NumberFormat) -> str:
        missing = f"{hint('na', text or 'TEXT')} reads it as missing, like {', '.join(MISSING_TEXTS[:4])}"
        if rule is not None:
            return f"Correct those entries; {getattr(rule, 'hint', missing)}."
        other = "." if numbers.decimal == "," else ","
        swapped = NumberFormat(other, numbers.missing).normalise(pl.Series([text], dtype=pl.String))[1] is None
        if text and swapped:
            return f"The decimal mark was detected as '{numbers.decimal}'; if it is not, set {hint('decimal', other)}."
        return f"{missing}; or leave the column unbinned."
