"""PostgreSQL, read through its binary copies as Arrow batches (ADBC)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from privacyfunnel.errors import TableError
from privacyfunnel.tables.databases.drivers import (
    connection_error,
    missing_package_error,
    public_address,
    query_error,
    quote_identifier,
    read_error,
    read_frames,
    refuse_duplicates,
)

CONNECT_TIMEOUT = 10  # seconds until a server must have let us in
# It is to write nothing, to give its rows in the same order whenever it is asked, and dates as everybody writes them.
SETTINGS = (
    "set transaction read only",
    "set synchronize_seqscans = off",
    "set max_parallel_workers_per_gather = 0",
    "set datestyle = iso",
)
# What comes as it is; all else comes as the text that the server writes for it.
PLAIN_TYPES = (
    "smallint",
    "integer",
    "bigint",
    "real",
    "double precision",
    "boolean",
    "date",
    "timestamp without time zone",
)
NAMES_AND_GRAMMAR = "42"  # the class of errors that speak of nothing else
_ERROR = re.compile(r"ERROR:\s+(.+)")


@dataclass(frozen=True, slots=True)
class Postgres:
    """A server."""

    where: str = field(repr=False)

    def columns(self, query: str) -> Mapping[str, str]:
        with self._execute(f"select * from ({query}\n) as given limit 0") as reader:
            names = list(reader.schema.names)
        refuse_duplicates(names)
        kinds = ", ".join(f"pg_typeof(given.{quote_identifier(name)})::text as k{i}" for i, name in enumerate(names))
        with self._execute(
            f"select {kinds} from (select 1) as one left join (select * from ({query}\n) as q limit 0) as given on true"
        ) as reader:
            row = pl.concat(read_frames(reader, public_address(self.where)))
        return {
            name: quote_identifier(name)
            if row[f"k{i}"][0] in PLAIN_TYPES
            else f"{quote_identifier(name)}::text as {quote_identifier(name)}"
            for i, name in enumerate(names)
        }

    def batches(self, query: str) -> Iterator[pl.DataFrame]:
        with self._execute(query) as reader:
            yield from read_frames(reader, public_address(self.where))

    @contextmanager
    def _execute(self, query: str) -> Iterator[Any]:
        """What reads the rows that are answered, while the connection stands."""
        try:
            from adbc_driver_postgresql import dbapi
        except ModuleNotFoundError:
            raise missing_package_error("a PostgreSQL database", "adbc-driver-postgresql", "postgres") from None
        try:
            connection = dbapi.connect(_add_timeout(self.where))
        except Exception:
            raise connection_error(public_address(self.where)) from None
        cursor = connection.cursor()
        try:
            for setting in SETTINGS:
                cursor.execute(setting)
            cursor.execute(query)
            yield cursor.fetch_record_batch()
        except dbapi.Error as error:
            raise self._execution_error(error) from None
        finally:
            for handle in (cursor, connection):
                with suppress(Exception):  # a connection that was lost
                    handle.close()

    def _execution_error(self, error: Any) -> TableError:
        found = _ERROR.search(str(error))
        if found and (error.sqlstate or "").startswith(NAMES_AND_GRAMMAR):
            return query_error(public_address(self.where), found[1])
        return read_error(public_address(self.where))


def _add_timeout(where: str) -> str:
    """The address, with how long to wait for an answer where it does not say so."""
    if "connect_timeout=" in where:
        return where
    return f"{where}{'&' if '?' in where else '?'}connect_timeout={CONNECT_TIMEOUT}"
