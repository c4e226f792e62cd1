"""What drivers of databases share: addresses, quoted names, errors, and Arrow batches as frames.

Messages and files name the server and the database, never the user or the password. A database's own error text is
passed on only where it is about names and grammar of the query; other texts may quote rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from privacyfunnel.errors import ColumnError, ParameterError, TableError, make_retryable

if TYPE_CHECKING:
    import polars as pl

_SCHEME = re.compile(r"postgres(?:ql)?:/", re.IGNORECASE)
# Special characters of a user, password, host or name must be percent-encoded, or the end of a password is unknown.
_PART = r"[^@/?#\s]*"
_ADDRESS = re.compile(
    rf"postgres(?:ql)?://(?:{_PART}@)?(?P<hosts>[^@/?#:\s]*(?::\d+)?(?:,[^@/?#:\s]*(?::\d+)?)*|\[[0-9a-fA-F:.]+\](?::\d+)?)"
    rf"(?:/(?P<name>{_PART}))?(?:\?(?P<more>(?:[a-z_]+=[^@#\s&]*)(?:&[a-z_]+=[^@#\s&]*)*))?",
    re.IGNORECASE,
)
_CREDENTIALS = re.compile(r"(postgres(?:ql)?:/+)\S*@|(password=)[^&\s'\"]*", re.IGNORECASE)


def is_server_address(where: str) -> bool:
    """Whether this looks like the address of a server."""
    return _SCHEME.match(where) is not None


def public_address(where: str) -> str:
    """The server and the database of an address, without credentials.

    >>> public_address("postgresql://ann:secret@db.example:5432/people?sslmode=require")
    'postgresql://db.example:5432/people'
    >>> public_address("postgresql:///people?host=/run/postgresql&user=ann&password=secret")
    'postgresql:///people?host=/run/postgresql'
    """
    found = _ADDRESS.fullmatch(where)
    if found is None:
        raise ParameterError(
            "The address of a database must be postgresql://user@host:port/name; this one is not. In a user, password "
            "or name write @ as %40, / as %2F, : as %3A, ? as %3F and # as %23."
        )
    more = [f"{key}={value}" for key, value in parse_qsl(found["more"] or "") if key in {"host", "port", "dbname"}]
    return f"postgresql://{found['hosts']}/{found['name'] or ''}{'?' if more else ''}{'&'.join(more)}"


def redact_credentials(text: str) -> str:
    """The text without the credentials of any address in it.

    >>> redact_credentials("there is no file 'postgresql:/ann:secret@db/people'")
    "there is no file 'postgresql:/…@db/people'"
    """
    return _CREDENTIALS.sub(lambda found: f"{found[1]}…@" if found[1] else f"{found[2]}…", text)


def quote_identifier(name: str) -> str:
    """The name as an SQL identifier.

    >>> print(quote_identifier('the "age"'))
    "the ""age\"""
    """
    return '"{}"'.format(name.replace('"', '""'))


def refuse_duplicates(names: Sequence[str]) -> None:
    """Refuse a query in which two columns have one name."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ColumnError(
            f"columns of a query must have different names; '{twice[0]}' is there twice. Write … as another name."
        )


def missing_package_error(where: str, library: str, extra: str) -> TableError:
    """A driver package is not installed."""
    return TableError(
        f"{where} needs the package {library}, which is not installed. Install it with pip install "
        f"'privacyfunnel[{extra}]', or save the rows as CSV or Parquet."
    )


def connection_error(where: str) -> TableError:
    """The server refused or did not answer."""
    return make_retryable(
        TableError(
            f"cannot connect to the database {where}: it refused or did not answer in time. Check that it runs, its "
            "name, user and password; these may be in PGUSER and PGPASSWORD, or in ~/.pgpass."
        )
    )


def query_error(where: str, message: str) -> TableError:
    """The database does not accept the query."""
    return TableError(f"{where} does not accept the query: {' '.join(message.split())}. Correct the query.")


def not_one_select_error(where: str, statements: int) -> TableError:
    """The query is not one SELECT."""
    found = "it is another statement" if statements == 1 else f"it has {statements} statements"
    return TableError(f"the query on {where} must be one SELECT; {found}. Write one SELECT.")


def read_error(where: str) -> TableError:
    """The answer broke off."""
    return make_retryable(
        TableError(
            f"the database {where} broke off before the last row: the query ran out of time, was ended, failed on a "
            "row, or the connection was lost. Try the query there, and run again."
        )
    )


def read_frames(reader: Any, where: str) -> Iterator[pl.DataFrame]:
    """The frames of a reader of Arrow batches; an error if it breaks off."""
    import polars as pl

    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except Exception:  # its text may quote rows
            raise read_error(where) from None
        yield pl.DataFrame(dict(zip(batch.schema.names, batch.columns, strict=True)))
