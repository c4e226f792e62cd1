"""PostgreSQL, read through its binary copies as Arrow batches (ADBC)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from privacyfunnel.errors import TableError
from privacyfunnel.tables.databases.address import spoken
from privacyfunnel.tables.databases.arrow import frames
from privacyfunnel.tables.databases.failing import broken_off, not_installed, not_reached, not_understood
from privacyfunnel.tables.databases.names import quoted, refuse_twice

PATIENCE = 10  # seconds until a server must have let us in
# It is to write nothing, to give its rows in the same order whenever it is asked, and dates as everybody writes them.
SETTINGS = (
    "set transaction read only",
    "set synchronize_seqscans = off",
    "set max_parallel_workers_per_gather = 0",
    "set datestyle = iso",
)
# What comes as it is; all else comes as the text that the server writes for it.
PLAIN = ("smallint", "integer", "bigint", "real", "double precision", "boolean", "date", "timestamp without time zone")
NAMES_AND_GRAMMAR = "42"  # the class of errors that speak of nothing else
_ERROR = re.compile(r"ERROR:\s+(.+)")


@dataclass(frozen=True, slots=True)
class Postgres:
    """A server."""

    where: str = field(repr=False)

    def columns(self, query: str) -> Mapping[str, str]:
        with self._answer(f"select * from ({query}\n) as given limit 0") as reader:
            names = list(reader.schema.names)
        refuse_twice(names)
        kinds = ", ".join(f"pg_typeof(given.{quoted(name)})::text as k{i}" for i, name in enumerate(names))
        with self._answer(
            f"select {kinds} from (select 1) as one left join (select * from ({query}\n) as q limit 0) as given on true"
        ) as reader:
            row = pl.concat(frames(reader, spoken(self.where)))
        return {
            name: quoted(name) if row[f"k{i}"][0] in PLAIN else f"{quoted(name)}::text as {quoted(name)}"
            for i, name in enumerate(names)
        }

    def batches(self, query: str) -> Iterator[pl.DataFrame]:
        with self._answer(query) as reader:
            yield from frames(reader, spoken(self.where))

    @contextmanager
    def _answer(self, query: str) -> Iterator[Any]:
        """What reads the rows that are answered, while the connection stands."""
        try:
            from adbc_driver_postgresql import dbapi
        except ModuleNotFoundError:
            raise not_installed("a PostgreSQL database", "adbc-driver-postgresql", "postgres") from None
        try:
            connection = dbapi.connect(_patient(self.where))
        except Exception:
            raise not_reached(spoken(self.where)) from None
        cursor = connection.cursor()
        try:
            for setting in SETTINGS:
                cursor.execute(setting)
            cursor.execute(query)
            yield cursor.fetch_record_batch()
        except dbapi.Error as error:
            raise self._refused(error) from None
        finally:
            for handle in (cursor, connection):
                with suppress(Exception):  # a connection that was lost
                    handle.close()

    def _refused(self, error: Any) -> TableError:
        found = _ERROR.search(str(error))
        if found and (error.sqlstate or "").startswith(NAMES_AND_GRAMMAR):
            return not_understood(spoken(self.where), found[1])
        return broken_off(spoken(self.where))


def _patient(where: str) -> str:
    """The address, with how long to wait for an answer where it does not say so."""
    if "connect_timeout=" in where:
        return where
    return f"{where}{'&' if '?' in where else '?'}connect_timeout={PATIENCE}"
