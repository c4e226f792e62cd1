"""What the table gives away today: the scan, as a page shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privacyfunnel.audits.column_groups import measure_column_group
from privacyfunnel.audits.scan import ColumnScan, Scan, scan
from privacyfunnel.errors import InputError
from privacyfunnel.model.belief_bounds import LARGEST
from privacyfunnel.names import format_names
from privacyfunnel.studio.choices import PUBLISH, SECRET, Choices
from privacyfunnel.studio.tasks.progress_messages import ProgressReporter
from privacyfunnel.tables.readers.table_files import open_table


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
    told = tuple(_column_leak(at, found, choices, at.column in chosen) for at in found.looks)
    return TableLeaks(
        rows=found.rows,
        secret=" & ".join(found.secret),
        secrets=found.secrets,
        columns=tuple(sorted(told, key=lambda each: not each.chosen)),
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
        return "Tells rows apart: who knows a person's value finds that person's row."
    if look.note:
        return f"Not measured: {look.note}."
    if math.isinf(look.lip):
        said = f"“{look.value}” rules out “{look.secret}” altogether."
    else:
        said = f"“{look.value}” moves a belief in “{look.secret}” most, by a factor of {math.exp(look.lip):.2f}."
    if look.decided:
        said += f" For {_format_share(look.decided)} of people it gives {secret} away."
    return said


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
        return f"The chosen columns were not judged together: {error}"
    said = (
        f"In one row the chosen columns make {found.combinations:,} combinations, which "
        f"{_describe_movement(found.epsilon)}."
    )
    if found.decided:
        said += (
            f" The combination of {_format_share(found.decided)} of people occurs with one secret only, and "
            "gives it away."
        )
    return said + (f" {_format_share(found.alone)} of people are alone with theirs." if found.alone else "")


def _describe_movement(epsilon: float | None) -> str:
    if epsilon is None:
        return "are too many to be measured"
    if epsilon > LARGEST:
        return "move a belief without limit: some rule a secret out, or in"
    return f"move a belief by a factor of up to {math.exp(epsilon):.3g}"


def _notes(found: Scan) -> tuple[str, ...]:
    said = []
    if found.order is not None:
        said.append(f"The order of the rows: {found.order}. Rows are published in a random order.")
    if found.secret_in_bins:
        said.append(f"{format_names(found.secret_in_bins)} is many numbers and was cut into bins for this look.")
    if found.rare is not None:
        said.append(
            f"{found.rare.secrets.rare} of {found.secrets} values of the secret are held by few rows; every value that "
            "does not occur with one of them leaks without bound."
        )
    return tuple(said)


def _format_share(part: float) -> str:
    return "fewer than 0.1 %" if 0 < part < 0.001 else f"{100 * part:.1f} %"
