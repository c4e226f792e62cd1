"""SQLite files. Their columns may hold anything in any row, so every entry is read as text, as those of CSV are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from privacyfunnel.errors import ColumnError
from privacyfunnel.tables.databases.drivers import query_error, quote_identifier, read_error

BATCH_ROWS = 1 << 16
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
            while rows := answer.fetchmany(BATCH_ROWS):
                columns = zip(names, zip(*rows, strict=True), strict=True)
                yield pl.DataFrame({name: _text_series(name, entries) for name, entries in columns})

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
