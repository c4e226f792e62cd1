"""The first looks: at a table as it stands, and at one of its columns in bins."""

from __future__ import annotations

from dataclasses import dataclass

from privacyfunnel.studio.choices import TableFile
from privacyfunnel.studio.tasks.progress_messages import ProgressReporter
from privacyfunnel.tables.coding.bin_syntax import parse_bin
from privacyfunnel.tables.coding.encoding import encode
from privacyfunnel.tables.coding.exploration import ColumnProfile, profile_columns
from privacyfunnel.tables.readers.delimited import DelimitedTable
from privacyfunnel.tables.readers.formats import Dialect
from privacyfunnel.tables.readers.table_files import open_table


@dataclass(frozen=True, slots=True)
class TableOverview:
    """A table at a glance, and how it was read."""

    rows: int
    columns: tuple[ColumnProfile, ...]
    found: Dialect | None  # of a text file


@dataclass(frozen=True, slots=True)
class ColumnBins:
    """A column in bins: where they end, what they are called, and how many rows each has."""

    edges: tuple[float, ...]
    labels: tuple[str, ...]
    rows: tuple[int, ...]


def look(say: ProgressReporter, source: TableFile, dialect: Dialect) -> TableOverview:
    """Every column at a glance."""
    table = open_table(source.path, dialect)
    rows, columns = profile_columns(table)
    found = None
    if isinstance(table, DelimitedTable):
        found = Dialect(table.delimiter, table.encoding, table.numbers.decimal)
    return TableOverview(rows, columns, found)


def edges(say: ProgressReporter, source: TableFile, dialect: Dialect, column: str, how: str) -> ColumnBins:
    """The column in the bins that `how` asks for."""
    table = open_table(source.path, dialect)
    counts = encode(table, secret=(), publish=(column,), bins=[parse_bin(f"{column}={how}")]).contingency
    (coding,) = counts.published.codings
    labels = tuple(coding.labels[code] for code in counts.combos[:, 0].tolist())
    return ColumnBins(coding.edges, labels, tuple(counts.weights.sum(axis=0).tolist()))
