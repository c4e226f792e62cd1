"""The first looks: at a table as it stands, and at one of its columns in bins."""

from __future__ import annotations

from dataclasses import dataclass

from privacyfunnel.studio.choices import Source
from privacyfunnel.studio.tasks.saying import Say
from privacyfunnel.tables.bins import parse_bin
from privacyfunnel.tables.delimited import DelimitedTable
from privacyfunnel.tables.encoding import column_coders
from privacyfunnel.tables.files import open_table
from privacyfunnel.tables.glance import Glance, glance
from privacyfunnel.tables.tally import Tally
from privacyfunnel.tables.variables import counted_variable


@dataclass(frozen=True, slots=True)
class Looked:
    """A table at a glance, and how it was read."""

    rows: int
    columns: tuple[Glance, ...]
    delimiter: str | None  # of a text file
    encoding: str | None


@dataclass(frozen=True, slots=True)
class Cut:
    """A column in bins: where they end, what they are called, and how many rows each has."""

    edges: tuple[float, ...]
    labels: tuple[str, ...]
    rows: tuple[int, ...]


def look(say: Say, source: Source, delimiter: str | None, encoding: str | None) -> Looked:
    """Every column at a glance."""
    table = open_table(source.path, delimiter=delimiter, encoding=encoding)
    rows, columns = glance(table)
    if isinstance(table, DelimitedTable):
        return Looked(rows, columns, table.delimiter, table.encoding)
    return Looked(rows, columns, None, None)


def edges(say: Say, source: Source, delimiter: str | None, encoding: str | None, column: str, how: str) -> Cut:
    """The column in the bins that `how` asks for."""
    table = open_table(source.path, delimiter=delimiter, encoding=encoding)
    (coder,) = column_coders(table, [column], [parse_bin(f"{column}={how}")])
    tally = Tally(1)
    for batch in table.batches([column]):
        tally.add([coder.codes(batch[column])], [coder.size], batch.height)
    cells, counts = tally.cells()
    variable, _, position = counted_variable([coder], cells, counts, None)
    held = [0] * len(variable.combos)
    for place, rows in zip(position.tolist(), counts.tolist(), strict=True):
        held[place] += rows
    (coding,) = variable.codings
    labels = tuple(coding.labels[code] for code in variable.combos[:, 0].tolist())
    return Cut(coding.edges, labels, tuple(held))
