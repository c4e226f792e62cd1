"""DuckDB files, read as Arrow batches."""

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
    query_error,
    quote_identifier,
    read_error,
    read_frames,
)

BATCH_ROWS = 1 << 17
# What comes as it is; all else comes as the text that the database writes for it.
PLAIN_TYPES = ("BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP", "FLOAT", "DOUBLE", "DECIMAL")
INTEGER_TYPES = tuple(f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"))


@dataclass(frozen=True, slots=True)
class DuckDB:
    """A file."""

    path: Path

    def columns(self, query: str) -> Mapping[str, str]:
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
        try:
            import duckdb
        except ModuleNotFoundError:
            raise missing_package_error(f"'{self.path}'", "duckdb", "duckdb") from None
        try:
            # One thread: what many give of a join or a group comes in another order every time.
            connection = duckdb.connect(self.path, read_only=True, config={"threads": 1})
        except duckdb.Error:
            raise TableError(
                f"'{self.path}' must be a DuckDB database that nobody writes to; it is damaged, of another version, or "
                "open elsewhere. Close it there."
            ) from None
        try:
            yield connection.sql(query)
        except (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException) as error:
            raise query_error(f"'{self.path}'", str(error).partition("\n")[0]) from None
        except duckdb.Error:
            raise read_error(f"'{self.path}'") from None
        finally:
            connection.close()
