"""Small tables for tests, and how codes lead back to labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from privacyfunnel.tables.coding.encoding import Encoding
from privacyfunnel.tables.readers.eager_frames import FrameTable


def frame(**columns: Sequence[Any]) -> FrameTable:
    return FrameTable.from_native(
        pl.DataFrame({name: list(entries) for name, entries in columns.items()}, strict=False)
    )


def decoded(code: Encoding) -> list[tuple[str, str]]:
    """(secret label, published label) of each row, by way of its codes."""
    secrets, values = code.contingency.secret_labels, code.contingency.published.labels
    return [
        (secrets[s], values[x]) for chunk in code.chunks() for s, x in zip(chunk.secret, chunk.published, strict=True)
    ]


def consistent(code: Encoding) -> None:
    """The counts are those of the codes."""
    found = np.zeros_like(code.contingency.weights)
    for chunk in code.chunks():
        np.add.at(found, (chunk.secret, chunk.published), 1)
    assert np.array_equal(found, code.contingency.weights)
    assert found.sum() == code.rows
