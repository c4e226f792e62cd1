"""Addresses of databases, and how they are spoken of: never with who asks, nor with how they prove it.

Names of columns in a query.

What is said when a database does not do what it is asked: a sentence, and nothing of what it answered.

Its own words are passed on only where they are about names and grammar of the query: others may quote rows.

Arrow batches, as databases give them, as frames.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from privacyfunnel.errors import ColumnError, ParameterError, TableError

if TYPE_CHECKING:
    import polars as pl

_SCHEME = re.compile(r"postgres(?:ql)?:/", re.IGNORECASE)
# Within user, password, hosts and name these stand as %40 and the like; else nobody can tell where a password ends.
_PART = r"[^@/?#\s]*"
_ADDRESS = re.compile(
    rf"postgres(?:ql)?://(?:{_PART}@)?(?P<hosts>[^@/?#:\s]*(?::\d+)?(?:,[^@/?#:\s]*(?::\d+)?)*|\[[0-9a-fA-F:.]+\](?::\d+)?)"
    rf"(?:/(?P<name>{_PART}))?(?:\?(?P<more>(?:[a-z_]+=[^@#\s&]*)(?:&[a-z_]+=[^@#\s&]*)*))?",
    re.IGNORECASE,
)
_CREDENTIALS = re.compile(r"(postgres(?:ql)?:/+)\S*@|(password=)[^&\s'\"]*", re.IGNORECASE)


def is_server_address(where: str) -> bool:
    """Whether this is the address of a server, or was meant to be."""
    return _SCHEME.match(where) is not None


def public_address(where: str) -> str:
    """The server and the database of an address, which may be said and written down.

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
    """The text without what proves who asks, wherever an address stands in it.

    >>> redact_credentials("there is no file 'postgresql:/ann:secret@db/people'")
    "there is no file 'postgresql:/…@db/people'"
    """
    return _CREDENTIALS.sub(lambda found: f"{found[1]}…@" if found[1] else f"{found[2]}…", text)


def quote_identifier(name: str) -> str:
    """The name as SQL understands it, whatever characters it has.

    >>> print(quote_identifier('the "age"'))
    "the ""age\"""
    """
    return '"{}"'.format(name.replace('"', '""'))


def refuse_duplicates(names: Sequence[str]) -> None:
    """Refuse a query two of whose columns have one name."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ColumnError(
            f"columns of a query must have different names; '{twice[0]}' is there twice. Write … as another name."
        )


def missing_package_error(where: str, library: str, extra: str) -> TableError:
    """The package is missing that reads this kind of database."""
    return TableError(
        f"{where} needs the package {library}, which is not installed. Install it with pip install "
        f"'privacyfunnel[{extra}]', or save the rows as CSV or Parquet."
    )


def connection_error(where: str) -> TableError:
    """Nobody answers, or not to us."""
    return TableError(
        f"the database {where} must let us in; it refused or did not answer in time. Check that it runs, its name, and "
        "who asks: user and password may stand in PGUSER and PGPASSWORD, or in ~/.pgpass."
    )


def query_error(where: str, message: str) -> TableError:
    """The query is none there."""
    said = " ".join(message.split())
    return TableError(f"the query must be one that {where} can answer; it says: {said}. Mend the query.")


def read_error(where: str) -> TableError:
    """It stopped while it answered."""
    return TableError(
        f"the database {where} must give all rows; it broke off: the query ran out of time, was ended, failed on a "
        "row, or the connection was lost. Try the query there, and run again."
    )


def read_frames(reader: Any, where: str) -> Iterator[pl.DataFrame]:
    """What a reader of Arrow batches answers, batch by batch, unless it breaks off."""
    import polars as pl

    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except Exception:  # its text may quote rows
            raise read_error(where) from None
        yield pl.DataFrame(dict(zip(batch.schema.names, batch.columns, strict=True)))
