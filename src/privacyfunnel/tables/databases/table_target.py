"""A table of a database that rows are written to: all of them in one transaction, or none.

Beside a table T stands T_notice, a table of one line: that T was written here, and what does not hold of its rows. A
table without it is somebody else's, and is never replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from privacyfunnel.errors import OutputError, ParameterError, make_retryable
from privacyfunnel.hints import hint
from privacyfunnel.tables.databases.drivers import quote_identifier
from privacyfunnel.tables.databases.query import NAMES_AND_GRAMMAR, Query

NOTICE_TABLE = "_notice"
NAMES_OR_RIGHTS = ("CatalogException", "BinderException", "ParserException", "PermissionException")  # of DuckDB
DRAWN_HERE = "Rows drawn by privacyfunnel."


@dataclass(frozen=True, slots=True)
class TableTarget:
    """A table by the address of its database and its name, which a schema may precede.

    >>> print(TableTarget.parse("postgresql://ann:secret@db.example/registry#public.people"))
    postgresql://db.example/registry#public.people
    """

    where: str = field(repr=False)  # it may hold a password
    names: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> TableTarget:
        """The table that a text names: `postgresql://host/database#table`, or `people.duckdb#table`."""
        where, _, name = text.rpartition("#")
        names = tuple(name.split("."))
        if not where or not all(names) or len(names) > 2:
            raise ParameterError(
                f"{hint('into_table')} must be a database and a table in it, postgresql://host/database#table or "
                "people.duckdb#table; it is not. Write both, with # between."
            )
        return cls(where, names)

    def __str__(self) -> str:
        return f"{self._source}#{'.'.join(self.names)}"

    @property
    def _source(self) -> Query:
        return Query(self.where, "select 1")

    def _quote(self, suffix: str = "") -> str:
        return ".".join(map(quote_identifier, (*self.names[:-1], self.names[-1] + suffix)))

    def check(self, *, force: bool) -> None:
        """Refuse a table that is there, unless it was written here and is to be replaced."""
        if self._exists() and not (force and self._exists(NOTICE_TABLE)):
            mend = "This program did not write it. N" if force else f"Use {hint('force')}, or n"
            raise OutputError(f"the table {self} exists already and was left as it is. {mend}ame another.")

    def _exists(self, suffix: str = "") -> bool:
        with self._connect() as connection:
            try:
                _execute(connection, f"select * from {self._quote(suffix)} limit 0")
            except Exception as error:
                if _about_names(error):
                    return False
                raise self._refuse(error) from None
        return True

    @contextmanager
    def write(self, *, force: bool) -> Iterator[Callable[[Iterable[pl.DataFrame], str], None]]:
        """A function that writes rows and a notice; others see them when the body is done."""
        with ExitStack() as stack:
            opened: list[Any] = []

            def load(batches: Iterable[pl.DataFrame], notice: str) -> None:
                connection = stack.enter_context(self._connect())
                opened.append(connection)
                try:
                    for suffix in (NOTICE_TABLE, "") if force else ():
                        _execute(connection, f"drop table if exists {self._quote(suffix)}")
                    self._insert(
                        connection, NOTICE_TABLE, [pl.DataFrame({"notice": [f"{DRAWN_HERE} {notice}".strip()]})]
                    )
                    self._insert(connection, "", batches)
                except Exception as error:
                    raise self._refuse(error) from None

            yield load
            try:
                for connection in opened:
                    connection.commit()
            except Exception:
                raise OutputError(
                    f"the files of this release were published and are in the ledger, but {self} took no row: its "
                    "last step failed. Load the sanitised table there."
                ) from None

    @contextmanager
    def _connect(self) -> Iterator[Any]:
        connection = self._source.database().connect()
        try:
            yield connection
        finally:
            with suppress(Exception):  # a connection that was lost
                connection.close()

    def _insert(self, connection: Any, suffix: str, batches: Iterable[pl.DataFrame]) -> None:
        database, names = self._source.database(), (*self.names[:-1], self.names[-1] + suffix)
        for number, batch in enumerate(batches):
            database.insert(connection, names, batch, first=number == 0)

    def _refuse(self, error: Exception) -> OutputError:
        if isinstance(error, OutputError):
            return error
        why = _about_names(error)
        reason = f": {why}. Correct that" if why else ". Try to write there by hand"
        return make_retryable(OutputError(f"{self} took no row, and nothing was published{reason}, and run again."))


def _execute(connection: Any, statement: str) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement)


def _about_names(error: Exception) -> str:
    """What a database says of names or rights, which quotes no row; nothing where it may speak of rows."""
    text, kind, state = str(error), type(error).__name__, str(getattr(error, "sqlstate", ""))
    about_names = kind in NAMES_OR_RIGHTS or state.startswith("42") or text.startswith(NAMES_AND_GRAMMAR)
    if not about_names and "Failed to create table" not in text:
        return ""
    return (text.partition("ERROR:")[2] or text).strip().partition("\n")[0]
