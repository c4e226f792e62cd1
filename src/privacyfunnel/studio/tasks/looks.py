"""The first looks: at a table as it stands, and at one of its columns in bins."""

from __future__ import annotations

from dataclasses import dataclass

from privacyfunnel.studio.choices import Source
from privacyfunnel.studio.tasks.saying import Say
from privacyfunnel.tables.asking import parse_bin
from privacyfunnel.tables.delimited import DelimitedTable
from privacyfunnel.tables.dialect import Dialect
from privacyfunnel.tables.encoding import encode
from privacyfunnel.tables.files import open_table
from privacyfunnel.tables.glance import Glance, glance


@dataclass(frozen=True, slots=True)
class Looked:
    """A table at a glance, and how it was read."""

    rows: int
    columns: tuple[Glance, ...]
    found: Dialect | None  # of a text file


@dataclass(frozen=True, slots=True)
class Cut:
    """A column in bins: where they end, what they are called, and how many rows each has."""

    edges: tuple[float, ...]
    labels: tuple[str, ...]
    rows: tuple[int, ...]


def look(say: Say, source: Source, dialect: Dialect) -> Looked:
    """Every column at a glance."""
    table = open_table(source.path, dialect)
    rows, columns = glance(table)
    found = None
    if isinstance(table, DelimitedTable):
        found = Dialect(table.delimiter, table.encoding, table.numbers.decimal)
    return Looked(rows, columns, found)


def edges(say: Say, source: Source, dialect: Dialect, column: str, how: str) -> Cut:
    """The column in the bins that `how` asks for."""
    table = open_table(source.path, dialect)
    counts = encode(table, secret=(), publish=(column,), bins=[parse_bin(f"{column}={how}")]).contingency
    (coding,) = counts.published.codings
    labels = tuple(coding.labels[code] for code in counts.combos[:, 0].tolist())
    return Cut(coding.edges, labels, tuple(counts.weights.sum(axis=0).tolist()))
