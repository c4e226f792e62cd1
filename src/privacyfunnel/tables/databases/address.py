"""Addresses of databases, and how they are spoken of: never with who asks, nor with how they prove it."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from privacyfunnel.errors import ParameterError

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
