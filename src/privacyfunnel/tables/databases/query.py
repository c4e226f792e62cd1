"""A query on a database as a table: the columns that are needed of the rows that it gives, in batches.

Every reading asks anew, so nothing is held open while a protocol is made. The database is asked to answer in one and
the same order, and not to write; what it answers otherwise the second time is noticed as a changed file would be.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from privacyfunnel.errors import ParameterError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.tables.databases.drivers import is_server_address, public_address
from privacyfunnel.tables.readers.formats import DEFAULT_TEXT_FORMAT, Dialect, NumberFormat, TextFormat
from privacyfunnel.tables.readers.table_interface import Table

if TYPE_CHECKING:
    import polars as pl


FILES = (".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db")  # how the names of databases end


class Database(Protocol):
    """One kind of database. Each method asks by itself."""

    def columns(self, query: str) -> Mapping[str, str]:
        """What the columns are called that the query gives, and how a query asks for each."""

    def batches(self, query: str) -> Iterator[pl.DataFrame]:
        """The rows that the query gives, in order."""


@dataclass(frozen=True, slots=True)
class Query:
    """Rows that a database gives: where it is (an address or a file), and what it is asked (a `select`)."""

    where: str = field(repr=False)  # it may hold a password
    text: str = field(repr=False)

    def __post_init__(self) -> None:
        if not self.asked:
            raise ParameterError(f"A query must not be empty. Write {hint('query', 'select … from …')}.")
        _ = str(self)  # which refuses an address that is none

    def __str__(self) -> str:
        return public_address(self.where) if is_server_address(self.where) else self.where

    @property
    def query(self) -> str:
        """What is asked."""
        return self.text

    @property
    def asked(self) -> str:
        """The query without what ends it."""
        return self.text.strip(" \r\n\t;")

    @property
    def file(self) -> Path | None:
        """The file that the database is, which must not be overwritten; None where it is on a server."""
        return None if is_server_address(self.where) else Path(self.where)

    @property
    def folder(self) -> Path:
        """Where the owner's ledger lies: beside the file, or in the current folder."""
        return Path() if self.file is None else self.file.parent

    @property
    def identity(self) -> str:
        """What tells these rows from those of other queries and databases; it quotes no value."""
        place = str(self) if self.file is None else str(self.file.resolve())
        return f"{place} query {hashlib.sha256(self.asked.encode()).hexdigest()[:32]}"

    @property
    def suffix(self) -> str:
        """The format in which the rows are published unless another is named."""
        return ".csv"

    def open(self, dialect: Dialect) -> Table:
        """Ask what the columns are called."""
        from privacyfunnel.tables.readers.persons import reduce_to_persons

        database = self._database()
        columns = database.columns(self.asked)
        found = QueryTable(f"the query on {self}", columns, database, self.asked, dialect.numbers)
        return reduce_to_persons(found, dialect.person, dialect.person_row)

    def _database(self) -> Database:
        if is_server_address(self.where):
            from privacyfunnel.tables.databases.postgres import Postgres

            return Postgres(self.where)
        path = Path(self.where)
        try:
            with path.open("rb") as file:
                start = file.read(16)
        except OSError:
            raise TableError(f"there must be a database '{path}'; it cannot be read. Check the path.") from None
        if start.startswith(b"SQLite format 3\0"):
            from privacyfunnel.tables.databases.sqlite import Sqlite

            return Sqlite(path)
        if start[8:12] == b"DUCK":
            from privacyfunnel.tables.databases.duck import DuckDB

            return DuckDB(path)
        raise TableError(
            f"'{path}' must be a DuckDB or SQLite database to be asked a query; it is neither. For a file of rows "
            f"leave out {hint('query')}."
        )


@dataclass(frozen=True, slots=True, eq=False)
class QueryTable:
    """What a query gives."""

    name: str
    _expressions: Mapping[str, str]  # each column, and how it is asked for
    _database: Database
    _query: str
    numbers: NumberFormat
    text_format: TextFormat = DEFAULT_TEXT_FORMAT

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._expressions)

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        from privacyfunnel.tables.readers.column_selection import require_columns

        rows = 0
        names = ", ".join(self._expressions[name] for name in columns)
        for batch in self._database.batches(f"select {names} from ({self._query}\n) as given"):
            rows += batch.height
            if batch.height:
                yield require_columns(batch, columns, self.name)
        if not rows:
            raise TableError(f"{self.name} must have rows; it has none.")
