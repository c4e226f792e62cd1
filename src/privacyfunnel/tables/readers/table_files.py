"""Table files: opened by the suffix of their name, alone or in parts, and written.

    .csv  .csv.gz  .csv.zst    text with a delimiter, every field read as text: `01` stays `01`
    .tsv  .tsv.gz  .tsv.zst    the same with tabs
    .parquet         Parquet
    .arrow .feather .ipc    Arrow IPC
    .xlsx  .dta .sav .sas7bdat  .jsonl    read whole, with the package that each needs; written as CSV

A table is read in batches of rows, in the order of the file, as often as needed, so its size is not bounded by memory.
A folder, or a pattern such as `part-*.csv`, is one table in parts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from privacyfunnel.atomic_files import PUBLIC, atomic_file, check_target
from privacyfunnel.errors import OutputError, TableError
from privacyfunnel.tables.readers.formats import (
    AUTO_DETECT,
    DELIMITED,
    FOREIGN,
    FORMAT_HINTS,
    PARQUET,
    SUFFIXES,
    TABLES,
    Dialect,
    NumberFormat,
    Table,
    TextFormat,
)

if TYPE_CHECKING:
    import polars as pl

    from privacyfunnel.tables.readers.formats import Table


PATTERN = frozenset("*?[")
NOT_ROWS = ("_", ".")  # what the names of files begin with that hold no rows, such as Spark's _SUCCESS


def has_parts(path: Path) -> bool:
    """Whether a path means several files."""
    return path.is_dir() or (not path.exists() and bool(PATTERN & set(path.name)))


def part_paths(path: Path) -> tuple[Path, ...]:
    """The files that are meant, in the order of their names."""
    found = sorted(path.iterdir() if path.is_dir() else path.parent.glob(path.name))
    files = tuple(part for part in found if part.is_file() and not part.name.startswith(NOT_ROWS))
    if not files:
        raise TableError(f"'{path}' must mean at least one file with rows; it means none. Check the path.")
    return files


@dataclass(frozen=True, eq=False)
class PartsTable:
    """Several tables under one header, as one."""

    path: Path
    parts: tuple[Table, ...]
    names: tuple[str, ...]  # of their files
    sizes: list[int] = field(default_factory=list)  # how many rows each has, once all were read

    @classmethod
    def from_parts(cls, path: Path, parts: Iterable[tuple[str, Table]]) -> PartsTable:
        names, tables = zip(*parts, strict=True)
        for name, table in zip(names, tables, strict=True):
            if table.columns != tables[0].columns:
                raise TableError(
                    f"the parts of '{path}' must have one header; that of '{name}' is another than that of "
                    f"'{names[0]}'. Correct it, or name only parts that go together."
                )
        return cls(path, tables, names)

    @property
    def name(self) -> str:
        return f"'{self.path}'"

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files of the parts."""
        folder = self.path if self.path.is_dir() else self.path.parent
        return tuple(folder / name for name in self.names)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.parts[0].columns

    @property
    def numbers(self) -> NumberFormat:
        return self.parts[0].numbers

    @property
    def text_format(self) -> TextFormat:
        return self.parts[0].text_format

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """The rows of the first part, then those of the next. An empty part is refused by its own name."""
        sizes = []
        kinds: dict[str, pl.DataType] = {}
        for part, name in zip(self.parts, self.names, strict=True):
            rows = 0
            for batch in part.batches(columns):
                for column, kind in batch.schema.items():
                    if kinds.setdefault(column, kind) != kind:
                        raise TableError(
                            f"the parts of '{self.path}' must have columns of one type; '{column}' of '{name}' has "
                            "another than before. Write the parts alike."
                        )
                rows += batch.height
                yield batch
            sizes.append(rows)
        if not self.sizes:
            self.sizes.extend(sizes)


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

        delimiter = dialect.delimiter or DELIMITED[suffix]
        return DelimitedTable.open(path, replace(dialect, delimiter=delimiter))
    from privacyfunnel.tables.readers.foreign_files import ColumnarTable

    return ColumnarTable.open(path, "Parquet" if suffix in PARQUET else "Arrow", dialect.numbers)


def write_table(
    path: str | Path, batches: Iterable[pl.DataFrame], *, force: bool = False, owner_only: bool = False
) -> int:
    """Write `batches` one after another to `path`, whole or not at all; the number of rows written.

    The first batch gives the columns; there must be one. Whatever `batches` raises comes through, and then nothing is
    left behind.
    """
    from privacyfunnel.tables.writers.table_writer import write_batches

    path = Path(path)
    suffix = check_output(path, force=force)
    with atomic_file(path, force=force, owner_only=owner_only) as beside:
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


@runtime_checkable
class TableSource(Protocol):
    """Where a table comes from; as text, what may be said of it in public."""

    @property
    def query(self) -> str:
        """What is asked, where it is a database: the owner's own, for it may quote values."""

    @property
    def file(self) -> Path | None:
        """The file it is in, which must not be overwritten, if any."""

    @property
    def folder(self) -> Path:
        """Where the owner's ledger lies unless another place is named."""

    @property
    def identity(self) -> str:
        """What tells it from other tables, though rows may come and go."""

    @property
    def suffix(self) -> str:
        """The format in which it is published unless another is named."""

    def open(self, dialect: Dialect) -> Table:
        """The table, its header read and checked."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def query(self) -> str:
        return ""

    @property
    def file(self) -> Path | None:
        return self.path if self.path.exists() else None  # a pattern is no file

    @property
    def folder(self) -> Path:
        return self.path.parent

    @property
    def identity(self) -> str:
        return str(self.path.resolve())

    @property
    def suffix(self) -> str:
        first = part_paths(self.path)[0] if has_parts(self.path) else self.path
        return table_suffix(first) or ".csv"

    def open(self, dialect: Dialect) -> Table:
        return open_table(self.path, dialect)


def resolve_source(given: str | Path | TableSource) -> TableSource:
    """A source as it is, or the file at a path."""
    return given if isinstance(given, TableSource) else FileSource(Path(given))


def open_source(source: Any, dialect: Dialect = AUTO_DETECT) -> Table:
    """The table that a source is, or a table that was opened, or a frame; `dialect` says how a file is written."""
    if isinstance(source, str | Path | TableSource):
        return resolve_source(source).open(dialect)
    if isinstance(source, Table):
        return source
    from privacyfunnel.tables.readers.eager_frames import frame_table

    return frame_table(source)


def find_table(path: str | Path) -> Path:
    """The sanitised table that is meant: the file itself, or that of a release by its folder, or by an older name."""
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    names = TABLES if path.is_dir() else (path.name,) if path.name in TABLES and not path.exists() else ()
    for each in (folder, folder / PUBLIC, folder.parent / PUBLIC):
        for name in names:
            if (each / name).exists():
                return each / name
    return path
