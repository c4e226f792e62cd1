"""PostgreSQL, read as Arrow batches (ADBC).

A query runs in a read-only transaction, which refuses writes by statements and by functions of the server. Functions
that reach beyond it (another connection, files of the server) are looked up in the query's plan, with its views, and
refused. A plan does not show what functions call inside: use a role that may not write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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

USE_COPY = "adbc.postgresql.use_copy"
CONNECT_TIMEOUT = 10  # seconds
# Write nothing, give rows in the same order every time, and dates in ISO format.
SETTINGS = (
    "set transaction read only",
    "set synchronize_seqscans = off",
    "set max_parallel_workers_per_gather = 0",
    "set datestyle = iso",
)
# Types that are read as they are; all others are read as the text that the server writes for them.
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
NAMES_AND_GRAMMAR = "42"  # the class of errors about nothing else
# Functions that a read-only transaction does not hold back: volatile ones of C and untrusted languages, those that
# name dblink in their body, and those of the server that write files or signal processes.
OUTSIDE = """
select distinct p.proname::text as name from pg_proc p join pg_language l on l.oid = p.prolang
where p.proname = any (array[{names}]::name[])
and (p.prosrc ~* 'dblink' or p.proname ~ '^(lo_export|lo_import|pg_file_)'
or (p.provolatile = 'v' and not l.lanpltrusted and l.lanname <> 'internal')) order by 1
"""
_ERROR = re.compile(r"ERROR:\s+(.+)")
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_CALL = re.compile(r"([\w$]+)\"?\s*\(")


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

    def connect(self) -> Any:
        try:
            from adbc_driver_postgresql import dbapi
        except ModuleNotFoundError:
            raise missing_package_error("a PostgreSQL database", "adbc-driver-postgresql", "postgres") from None
        try:
            return dbapi.connect(_add_timeout(self.where))
        except Exception:
            raise connection_error(public_address(self.where)) from None

    def insert(self, connection: Any, names: Sequence[str], batch: pl.DataFrame, *, first: bool) -> None:
        schema = {"db_schema_name": names[0]} if len(names) > 1 else {}
        with connection.cursor() as cursor:
            cursor.adbc_ingest(names[-1], batch.to_arrow(), "create" if first else "append", **schema)

    @contextmanager
    def _execute(self, query: str) -> Iterator[Any]:
        """The reader of the query's rows, while the connection is open."""
        connection = self.connect()
        cursor, failures = connection.cursor(), connection.Error
        try:
            for setting in SETTINGS:
                cursor.execute(setting)
            self._refuse_outside_functions(cursor, query)
            cursor.execute(query)
            yield cursor.fetch_record_batch()
        except failures as error:
            raise self._execution_error(error) from None
        finally:
            for handle in (cursor, connection):
                with suppress(Exception):  # a connection that was lost
                    handle.close()

    def _refuse_outside_functions(self, cursor: Any, query: str) -> None:
        """Refuse a query whose plan calls a function that reaches beyond the read-only transaction."""
        cursor.adbc_statement.set_options(**{USE_COPY: "false"})  # a plan cannot be copied
        cursor.execute(f"explain (verbose, costs off) {query}")
        plan = _LITERAL.sub("''", "\n".join(line for (line,) in cursor.fetchall()))
        names = ", ".join(f"'{name}'" for name in sorted(set(_CALL.findall(plan))))
        cursor.execute(OUTSIDE.format(names=names))
        outside = [name for (name,) in cursor.fetchall()]
        cursor.adbc_statement.set_options(**{USE_COPY: "true"})
        if outside:
            raise TableError(
                f"a query on {public_address(self.where)} must not call functions that can write beyond its read-only "
                f"transaction; it or a view calls '{outside[0]}'. Leave that function out."
            )

    def _execution_error(self, error: Any) -> TableError:
        found = _ERROR.search(str(error))
        if found and (error.sqlstate or "").startswith(NAMES_AND_GRAMMAR):
            return query_error(public_address(self.where), found[1])
        return read_error(public_address(self.where))


def _add_timeout(where: str) -> str:
    """The address with a timeout, unless it has one."""
    if "connect_timeout=" in where:
        return where
    return f"{where}{'&' if '?' in where else '?'}connect_timeout={CONNECT_TIMEOUT}"
