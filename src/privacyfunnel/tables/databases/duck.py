"""DuckDB files, read as Arrow batches.

A query is one SELECT on a database that is open read-only and has no access to other files, extensions or the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from privacyfunnel.errors import TableError
from privacyfunnel.tables.databases.drivers import (
    missing_package_error,
    not_one_select_error,
    query_error,
    quote_identifier,
    read_error,
    read_frames,
)

BATCH_ROWS = 1 << 17
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

    @contextmanager
    def _execute(self, query: str) -> Iterator[Any]:
        duckdb = _duckdb(self.path)
        try:
            connection = duckdb.connect(self.path, read_only=True, config=CONFIG)
        except duckdb.Error:
            raise TableError(
                f"'{self.path}' must be a DuckDB database that nobody writes to; it is damaged, of another version, or "
                "open elsewhere. Close it there."
            ) from None
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
