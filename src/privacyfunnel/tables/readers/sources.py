"""Where rows come from: files, queries on databases, tables that were opened, and frames in memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from privacyfunnel.tables.readers.dialect import AUTO_DETECT, Dialect
from privacyfunnel.tables.readers.table_files import open_table, table_suffix
from privacyfunnel.tables.readers.table_interface import Table
from privacyfunnel.tables.readers.table_parts import has_parts, part_paths


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
    from privacyfunnel.tables.readers.lazy_frames import frame_table

    return frame_table(source)
