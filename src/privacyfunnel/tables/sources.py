"""Whatever rows come from: a file by its path, a table that was opened, or a frame in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privacyfunnel.tables.dialect import AS_FOUND, Dialect
from privacyfunnel.tables.files import open_table
from privacyfunnel.tables.table import Table


def as_table(source: Any, dialect: Dialect = AS_FOUND) -> Table:
    """The table that a source is; `dialect` says how a file is written."""
    if isinstance(source, str | Path):
        return open_table(source, dialect)
    if isinstance(source, Table):
        return source
    from privacyfunnel.tables.frames import FrameTable

    return FrameTable.of(source)
