"""Apply: rows drawn from a sealed protocol.

What a row becomes depends on its input, on the words of its own address and on nothing else, so a table may be cut
anywhere and its parts may be drawn in any order, here or elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray
from privacyfunnel.laws.sampling import Stream
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.release.write import Published
from privacyfunnel.tables.encoding import Encoding


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Rows of a table, next to each other, and what they became."""

    codes: NDArray[Any]  # a row each, as the law draws it
    kept: pl.DataFrame | None  # their columns that pass through, if any
    secret: IntArray  # their secrets: the owner's own
    unchanged: int  # how many of them show exactly the values they had
    end: int  # the number of the row after the last one


def drawn_rows(
    sealed: SealedProtocol,
    encoding: Encoding,
    stream: Stream,
    way: Published,
    keep: Sequence[str] = (),
    drawn: NDArray[Any] | None = None,
) -> Iterator[Drawn]:
    """The rows in the order of the table, drawn, with the columns to `keep`.

    `drawn` are the codes of all rows where this stream has drawn them already.
    """
    law, values = sealed.law, len(encoding.contingency.published.combos)
    step = way.rows_at_once
    for chunk in encoding.chunks(keep):
        inputs = chunk.secret * values + chunk.published if law.sees_secret else chunk.published
        for start in range(0, len(inputs), step):
            piece = slice(start, start + step)
            first = chunk.start + start
            mine = inputs[piece]
            codes = law.draw(mine, stream.rows(first, len(mine))) if drawn is None else drawn[first : first + len(mine)]
            kept = None if chunk.kept is None else chunk.kept[piece]
            unchanged = way.unchanged(chunk.published[piece], codes)
            yield Drawn(codes, kept, chunk.secret[piece], unchanged, first + len(mine))


def shown(way: Published, codes: NDArray[Any], kept: pl.DataFrame | None) -> pl.DataFrame:
    """Drawn rows as they are published: the published columns as `way` writes them, then those that are kept."""
    columns = way.columns(codes)
    if kept is not None:
        columns += kept.get_columns()
    return pl.DataFrame({column.name: column for column in columns})
