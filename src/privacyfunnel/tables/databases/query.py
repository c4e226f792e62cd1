"""A query on a database as a table: the columns that are needed of the rows that it gives, in batches.

Every reading asks anew, so nothing is held open while a protocol is made. The database is asked to answer in one and
the same order, and not to write; what it answers otherwise the second time is noticed as a changed file would be.

DuckDB files, read as Arrow batches.

A query is one SELECT on a database that is open read-only and has no access to other files, extensions or the network.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from privacyfunnel.errors import ColumnError, ParameterError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.tables.databases.drivers import (
    is_server_address,
    missing_package_error,
    not_one_select_error,
    public_address,
    query_error,
    quote_identifier,
    read_error,
    read_frames,
)
from privacyfunnel.tables.readers.formats import DEFAULT_TEXT_FORMAT, Dialect, NumberFormat, Table, TextFormat

if TYPE_CHECKING:
    import polars as pl


SQLITE_ROWS = 1 << 16
NAMES_AND_GRAMMAR = ("no such ", "near ", "incomplete input", "ambiguous ", "unrecognized token")


@dataclass(frozen=True, slots=True)
class Sqlite:
    """A file."""

    path: Path

    def columns(self, query: str) -> Mapping[str, str]:
        with self._execute(f"select * from ({query}\n) as given limit 0") as answer:
            return {name: quote_identifier(name) for name, *_ in answer.description}

    def batches(self, query: str) -> Iterator[pl.DataFrame]:
        with self._execute(query) as answer:
            names = [name for name, *_ in answer.description]
            while rows := answer.fetchmany(SQLITE_ROWS):
                columns = zip(names, zip(*rows, strict=True), strict=True)
                yield pl.DataFrame({name: _text_series(name, entries) for name, entries in columns})

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=rw", uri=True, isolation_level=None)
        connection.execute("begin immediate")
        return connection

    def insert(self, connection: sqlite3.Connection, names: Sequence[str], batch: pl.DataFrame, *, first: bool) -> None:
        name, columns = ".".join(map(quote_identifier, names)), ", ".join(map(quote_identifier, batch.columns))
        if first:
            connection.execute(f"create table {name} ({columns})")
        rows = batch.with_columns((pl.selectors.temporal() | pl.selectors.decimal()).cast(pl.String)).rows()
        connection.executemany(f"insert into {name} values ({', '.join('?' * batch.width)})", rows)

    @contextmanager
    def _execute(self, query: str) -> Iterator[sqlite3.Cursor]:
        connection = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            yield connection.execute(query)
        except sqlite3.Error as error:
            words = str(error)
            if words.startswith(NAMES_AND_GRAMMAR):
                raise query_error(f"'{self.path}'", words) from None
            raise read_error(f"'{self.path}'") from None  # its text may quote rows
        finally:
            connection.close()


def _text_series(column: str, entries: Sequence[str | float | bytes | None]) -> pl.Series:
    if any(isinstance(entry, bytes) for entry in entries):
        raise ColumnError(f"column '{column}' must hold text or numbers; it holds bytes. Leave it out of the query.")
    texts = [entry if entry is None or isinstance(entry, str) else repr(entry) for entry in entries]
    return pl.Series(texts, dtype=pl.String)


BATCH_ROWS = 1 << 17
ROWS = "rows_of_this_batch"  # what they are called in a statement
CONFIG = {
    "threads": 1,  # several give the rows of a join or a group in another order every time
    "enable_external_access": False,  # a query or a view of the database must neither read nor write other files
    "lock_configuration": True,
}
# Types that are read as they are; all others are read as the text that the database writes for them.
PLAIN_TYPES = ("BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP", "FLOAT", "DOUBLE", "DECIMAL")
INTEGER_TYPES = tuple(f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"))


@dataclass(frozen=True, slots=True)
class DuckDB:
    """A file."""

    path: Path

    def columns(self, query: str) -> Mapping[str, str]:
        self._refuse_other_statements(query)
        with self._execute(f"describe select * from ({query}\n) as given") as answer:
            found = answer.fetchall()
        return {
            name: quote_identifier(name)
            if kind.partition("(")[0] in (*PLAIN_TYPES, *INTEGER_TYPES)
            else f"{quote_identifier(name)}::varchar as {quote_identifier(name)}"
            for name, kind, *_ in found
        }

    def batches(self, query: str) -> Iterator[pl.DataFrame]:
        with self._execute(query) as answer:
            yield from read_frames(answer.to_arrow_reader(BATCH_ROWS), f"'{self.path}'")

    def connect(self) -> Any:
        return self._open(read_only=False).begin()

    def insert(self, connection: Any, names: Sequence[str], batch: pl.DataFrame, *, first: bool) -> None:
        name = ".".join(map(quote_identifier, names))
        connection.register(ROWS, batch.to_arrow())
        connection.execute(f"{f'create table {name} as' if first else f'insert into {name}'} select * from {ROWS}")
        connection.unregister(ROWS)

    def _open(self, *, read_only: bool) -> Any:
        duckdb = _duckdb(self.path)
        try:
            return duckdb.connect(self.path, read_only=read_only, config=CONFIG)
        except duckdb.Error:
            raise TableError(
                f"'{self.path}' must be a DuckDB database that nobody writes to; it is damaged, of another version, or "
                "open elsewhere. Close it there."
            ) from None

    @contextmanager
    def _execute(self, query: str) -> Iterator[Any]:
        duckdb, connection = _duckdb(self.path), self._open(read_only=True)
        try:
            (statement,) = connection.extract_statements(query)
            yield connection.sql(statement.query)
        except (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException) as error:
            raise query_error(f"'{self.path}'", str(error).partition("\n")[0]) from None
        except duckdb.PermissionException:
            raise TableError(
                f"a query on '{self.path}' must read this database only; it or a view reads or writes other files. "
                "Leave those out, or copy them into the database."
            ) from None
        except duckdb.Error:
            raise read_error(f"'{self.path}'") from None
        finally:
            connection.close()

    def _refuse_other_statements(self, query: str) -> None:
        """Refuse a text that is not one SELECT by itself: within brackets it might close them."""
        duckdb = _duckdb(self.path)
        try:
            kinds = [statement.type for statement in duckdb.extract_statements(query)]
        except duckdb.Error as error:
            raise query_error(f"'{self.path}'", str(error).partition("\n")[0]) from None
        if kinds != [duckdb.StatementType.SELECT]:
            raise not_one_select_error(f"'{self.path}'", len(kinds))


def _duckdb(path: Path) -> Any:
    try:
        import duckdb
    except ModuleNotFoundError:
        raise missing_package_error(f"'{path}'", "duckdb", "duckdb") from None
    return duckdb


FILES = (".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db")  # how the names of databases end


class Database(Protocol):
    """One kind of database. Each method asks by itself."""

    def columns(self, query: str) -> Mapping[str, str]:
        """What the columns are called that the query gives, and how a query asks for each."""

    def batches(self, query: str) -> Iterator[pl.DataFrame]:
        """The rows that the query gives, in order."""

    def connect(self) -> Any:
        """A connection with a transaction that may write; it ends without a trace unless it is committed."""

    def insert(self, connection: Any, names: Sequence[str], batch: pl.DataFrame, *, first: bool) -> None:
        """Add rows to the table of this name, which a schema may precede; the first ones make it."""


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

        database = self.database()
        columns = database.columns(self.asked)
        found = QueryTable(f"the query on {self}", columns, database, self.asked, dialect.numbers)
        return reduce_to_persons(found, dialect.person, dialect.person_row)

    def database(self) -> Database:
        """What is asked, by the address or by how the file begins."""
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
            return Sqlite(path)
        if start[8:12] == b"DUCK":
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
