"""Table files, read and written by the end of their name.

    .csv  .csv.gz  .csv.zst    text with a delimiter, every field read as text: `01` stays `01`
    .tsv  .tsv.gz  .tsv.zst    the same with tabs
    .parquet         Parquet
    .arrow .feather .ipc    Arrow IPC
    .xlsx  .dta .sav .sas7bdat  .jsonl    read whole, with the package that each needs; written as CSV

A table is read in batches of rows, in the order of the file, as often as needed, so its size is not bounded by memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from privacyfunnel.errors import OutputError, TableError
from privacyfunnel.tables.readers.dialect import AUTO_DETECT, Dialect
from privacyfunnel.tables.readers.suffixes import DELIMITED, FOREIGN, FORMAT_HINTS, PARQUET, SUFFIXES
from privacyfunnel.tables.readers.table_interface import Table
from privacyfunnel.tables.readers.table_parts import PartsTable, has_parts, part_paths
from privacyfunnel.tables.writers.atomic_files import atomic_file, check_target

if TYPE_CHECKING:
    import polars as pl


__all__ = ["Table", "check_output", "check_suffix", "match_suffix", "open_table", "table_suffix", "write_table"]


def open_table(path: str | Path, dialect: Dialect = AUTO_DETECT) -> Table:
    """The table in the file at `path`, its header read and checked.

    What the `dialect` leaves out is found from the file itself: delimiter and decimal mark from the first lines, and
    the encoding from a byte order mark, or from whether all of it is UTF-8. A folder, or a pattern such as
    `part-*.csv`, is one table in parts.
    """
    from privacyfunnel.tables.readers.persons import reduce_to_persons

    return reduce_to_persons(_open(Path(path), dialect), dialect.person, dialect.person_row)


def _open(path: Path, dialect: Dialect) -> Table:
    if has_parts(path):
        return PartsTable.from_parts(path, ((part.name, _open(part, dialect)) for part in part_paths(path)))
    suffix = table_suffix(path)
    loaded = match_suffix(path, FOREIGN)
    if suffix is None and loaded is None:
        otherwise = "Save or export the table in one of these formats."
        raise TableError(
            f"the name of a table must end in one of {', '.join((*SUFFIXES, *FOREIGN))}; '{path.name}' does not. "
            f"{FORMAT_HINTS.get(path.suffix.lower(), otherwise)}"
        )
    _check_readable(path)
    if loaded is not None:
        from privacyfunnel.tables.readers.foreign_files import ForeignTable

        return ForeignTable.open(path, loaded, dialect)
    if suffix in DELIMITED:
        from privacyfunnel.tables.readers.delimited import DelimitedTable

        meant = dialect.delimiter or DELIMITED[suffix]
        return DelimitedTable.open(path, replace(dialect, delimiter=meant))
    from privacyfunnel.tables.readers.columnar import ColumnarTable

    return ColumnarTable.open(path, "Parquet" if suffix in PARQUET else "Arrow", dialect.numbers)


def write_table(path: str | Path, batches: Iterable[pl.DataFrame], *, force: bool = False) -> int:
    """Write `batches` one after another to `path`, whole or not at all; the number of rows written.

    The first batch gives the columns; there must be one. Whatever `batches` raises comes through, and then nothing is
    left behind.
    """
    from privacyfunnel.tables.writers.table_writer import write_batches

    path = Path(path)
    suffix = check_output(path, force=force)
    with atomic_file(path, force=force) as beside:
        return write_batches(beside, suffix, batches)


def check_output(path: Path, *, force: bool) -> str:
    """The suffix of a table that could be written to `path` now, or an :class:`OutputError`."""
    suffix = check_suffix(path)
    check_target(path, force=force)
    return suffix


def check_suffix(path: Path) -> str:
    """The suffix of a table that is to be written to `path`, or an :class:`OutputError`."""
    suffix = table_suffix(path)
    if suffix is None:
        raise OutputError(f"the name of a table must end in one of {', '.join(SUFFIXES)}; '{path.name}' does not.")
    return suffix


def table_suffix(path: Path) -> str | None:
    """The end of the name that tells a format in which tables are written too, if any.

    >>> table_suffix(Path("people.2024.CSV.gz"))
    '.csv.gz'
    """
    return match_suffix(path, SUFFIXES)


def match_suffix(path: Path, suffixes: Sequence[str]) -> str | None:
    """The one of these that the name ends in, if any."""
    name = path.name.lower()
    return next((suffix for suffix in suffixes if name.endswith(suffix)), None)


def _check_readable(path: Path) -> None:
    if path.is_dir():
        raise TableError(f"'{path}' must be a file; it is a directory. Name a file inside it.")
    if not path.exists():
        raise TableError(f"there is no file '{path}'. Check the path.")
    if not path.is_file():
        raise TableError(f"'{path}' must be a regular file, because it is read twice; save it to disk first.")
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise TableError(f"'{path}' cannot be read: {reason}. Check its permissions.") from error
    if path.stat().st_size == 0:
        raise TableError(f"'{path}' is empty; a table must have a header and rows.")
