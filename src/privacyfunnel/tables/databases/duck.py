"""DuckDB files, read as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from privacyfunnel.errors import TableError
from privacyfunnel.tables.databases.arrow import frames
from privacyfunnel.tables.databases.failing import broken_off, not_installed, not_understood
from privacyfunnel.tables.databases.names import quoted

BATCH_ROWS = 1 << 17
# What comes as it is; all else comes as the text that the database writes for it.
PLAIN = ("BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP", "FLOAT", "DOUBLE", "DECIMAL")
WHOLE = tuple(f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"))


@dataclass(frozen=True, slots=True)
class Duck:
    """A file."""

    path: Path

    def columns(self, query: str) -> Mapping[str, str]:
        with self._asked(f"describe select * from ({query}\n) as given") as answer:
            found = answer.fetchall()
        return {
            name: quoted(name)
            if kind.partition("(")[0] in (*PLAIN, *WHOLE)
            else f"{quoted(name)}::varchar as {quoted(name)}"
            for name, kind, *_ in found
        }

    def batches(self, query: str) -> Iterator[pl.DataFrame]:
        with self._asked(query) as answer:
            yield from frames(answer.to_arrow_reader(BATCH_ROWS), f"'{self.path}'")

    @contextmanager
    def _asked(self, query: str) -> Iterator[Any]:
        try:
            import duckdb
        except ModuleNotFoundError:
            raise not_installed(f"'{self.path}'", "duckdb", "duckdb") from None
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
            raise not_understood(f"'{self.path}'", str(error).partition("\n")[0]) from None
        except duckdb.Error:
            raise broken_off(f"'{self.path}'") from None
        finally:
            connection.close()
