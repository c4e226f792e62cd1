"""Arrow batches, as databases give them, as frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from privacyfunnel.tables.databases.failures import read_error


def read_frames(reader: Any, where: str) -> Iterator[pl.DataFrame]:
    """What a reader of Arrow batches answers, batch by batch, unless it breaks off."""
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except Exception:  # its text may quote rows
            raise read_error(where) from None
        yield pl.DataFrame(dict(zip(batch.schema.names, batch.columns, strict=True)))
