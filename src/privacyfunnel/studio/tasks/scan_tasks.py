"""Tasks that read the table: an overview, one column in bins, and the leakage of every column."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privacyfunnel.audits.column_groups import measure_column_group
from privacyfunnel.audits.scan import ColumnScan, Scan, scan
from privacyfunnel.errors import InputError
from privacyfunnel.formatting import format_factor, format_percent
from privacyfunnel.model.comparisons import LARGEST
from privacyfunnel.names import format_names
from privacyfunnel.studio.choices import PUBLISH, SECRET, Choices, TableFile
from privacyfunnel.studio.task_pool import ProgressReporter
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
    workbook: bool = False  # whether it may have several sheets


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
    return TableOverview(rows, columns, found, source.path.suffix.lower() == ".xlsx")


def edges(say: ProgressReporter, source: TableFile, dialect: Dialect, column: str, how: str) -> ColumnBins:
    """The column in the bins that `how` asks for."""
    table = open_table(source.path, dialect)
    counts = encode(table, secret=(), publish=(column,), bins=[parse_bin(f"{column}={how}")]).contingency
    (coding,) = counts.published.codings
    labels = tuple(coding.labels[code] for code in counts.combos[:, 0].tolist())
    return ColumnBins(coding.edges, labels, tuple(counts.weights.sum(axis=0).tolist()))


@dataclass(frozen=True, slots=True)
class ColumnLeak:
    """What one column gives away, in numbers and in words."""

    column: str
    chosen: bool  # whether it is to be published
    values: int
    epsilon: float | None  # LIP; None where it was not measured
    share: float  # of what there is to know about the secret, on average
    decided: float | None  # of rows whose value tells the secret
    keeps: bool  # the promise, as it is
    keeps_in_bins: bool
    words: str


@dataclass(frozen=True, slots=True)
class TableLeaks:
    """The whole table, the most telling column first."""

    rows: int
    secret: str
    secrets: int
    columns: tuple[ColumnLeak, ...]
    together: str  # the chosen ones, in words
    notes: tuple[str, ...]


def today(say: ProgressReporter, choices: Choices) -> TableLeaks:
    """Scan the table as the command line does."""
    choices.check_roles()
    source = choices.table
    found = scan(
        source.path,
        secret=choices.columns(SECRET),
        bins=choices.cuts,
        dialect=choices.dialect,
        promise=choices.promise,
        merges=choices.merges,
    )
    chosen = set(choices.columns(PUBLISH))
    leaks = tuple(_column_leak(at, found, choices, at.column in chosen) for at in found.looks)
    return TableLeaks(
        rows=found.rows,
        secret=" & ".join(found.secret),
        secrets=found.secrets,
        columns=tuple(sorted(leaks, key=lambda each: not each.chosen)),
        together=_describe_combination(choices),
        notes=_notes(found),
    )


def _column_leak(look: ColumnScan, found: Scan, choices: Choices, chosen: bool) -> ColumnLeak:
    promise = choices.promise
    secret = " & ".join(found.secret)
    return ColumnLeak(
        column=look.column,
        chosen=chosen,
        values=look.values,
        epsilon=None if look.note else look.lip,
        share=(look.information or 0.0) / found.secret_entropy if found.secret_entropy else 0.0,
        decided=look.decided,
        keeps=found.safe(look, promise),
        keeps_in_bins=found.safe_in_bins(look, promise),
        words=_describe_column(look, secret),
    )


def _describe_column(look: ColumnScan, secret: str) -> str:
    if look.tells_rows_apart:
        return "Identifies rows: somebody who knows a person's value finds that person's row."
    if look.note:
        return f"Not measured: {look.note}."
    if math.isinf(look.lip):
        text = f"No bound: nobody with “{look.value}” has “{look.secret}”."
    else:
        text = f"Factor {format_factor(look.lip)}: “{look.value}” changes the probability of “{look.secret}” most."
    if look.decided:
        text += f" It gives {secret} of {format_percent(look.decided)} of people away."
    return text


def _describe_combination(choices: Choices) -> str:
    """What the chosen columns give away in one row."""
    chosen = choices.columns(PUBLISH)
    if len(chosen) < 2:
        return ""
    table = open_table(choices.table.path, choices.dialect)
    try:
        found = measure_column_group(
            table,
            secret=choices.columns(SECRET),
            columns=chosen,
            promise=choices.promise,
            bins=choices.cuts,
            merges=choices.merges,
        )
    except InputError as error:  # of columns that are too many to be counted together
        return f"Not measured together: {error}"
    text = (
        f"In one row the chosen columns make {found.combinations:,} combinations, which "
        f"{_describe_movement(found.epsilon)}."
    )
    if found.decided:
        text += (
            f" The combination of {format_percent(found.decided)} of people occurs with one secret only, and "
            "gives it away."
        )
    return text + (
        f" {format_percent(found.alone)} of people are the only ones with their combination." if found.alone else ""
    )


def _describe_movement(epsilon: float | None) -> str:
    if epsilon is None:
        return "were not measured: there are too many"
    if epsilon > LARGEST:
        return "change a belief without bound: nobody with some of them has a certain secret, or everybody has"
    return f"change a belief by a factor of at most {format_factor(epsilon)}"


def _notes(found: Scan) -> tuple[str, ...]:
    notes = []
    if found.order is not None:
        notes.append(f"Row order of the table: {found.order}. Rows are published in random order.")
    if found.secret_in_bins:
        notes.append(f"{format_names(found.secret_in_bins)} has many numbers and was binned for this scan.")
    if found.rare is not None:
        notes.append(
            f"{found.rare.secrets.rare} of {found.secrets} values of the secret are rare. Every value that never "
            "occurs with one of them leaks without bound."
        )
    return tuple(notes)
