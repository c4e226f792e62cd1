"""Design, apply and sanitise for data frames of Spark, classic or over Spark Connect.

With ids the rows come back as a frame: lazy, and the same every time. The keys that executors get then are those of
this protocol and column of ids alone. They are in the function that Spark sends to its executors, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privacyfunnel.errors import ParameterError
from privacyfunnel.mechanisms.sampling import RowKey
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.names import unique_label
from privacyfunnel.release.design import design as designed_frame
from privacyfunnel.release.sending import ERROR, Sending, column_tuple
from privacyfunnel.spark.counting import count_combinations
from privacyfunnel.spark.folders import apply_to_folder
from privacyfunnel.spark.frame_draw import FrameDraw
from privacyfunnel.spark.output_folder import PARQUET, OutputFiles


@dataclass(frozen=True, slots=True, eq=False)
class Sanitised:
    """Sanitised rows, as a data frame that is the same every time or as the folder they are in; and their protocol."""

    table: Any
    sealed: SealedProtocol


def design(df: Any, *, secret: str | Sequence[str], publish: str | Sequence[str], **asked: Any) -> SealedProtocol:
    """The sealed protocol for a data frame, from counts that the cluster makes; nothing is drawn.

    What may be asked is what :func:`privacyfunnel.design` takes. Edges of bins are given, not found.
    """
    columns = [*column_tuple(secret), *column_tuple(publish)]
    counts = unique_label("rows", columns)
    return designed_frame(
        count_combinations(df, columns, counts), secret=secret, publish=publish, counts=counts, **asked
    )


def apply(
    protocol: SealedProtocol | str | Path,
    df: Any,
    *,
    row_id: str | None = None,
    key: RowKey | str | Path | None = None,
    into: str | None = None,
    file_format: str = PARQUET,
    force: bool = False,
    keep: str | Sequence[str] = (),
    unknown: str = ERROR,
    keep_order: bool = False,
    sets: str = "column",
) -> Any:
    """The rows of a data frame drawn from a protocol, in a random order unless it is to be kept.

    `row_id` names the column that tells rows apart; then they come back as a data frame. Without one they are drawn
    once, into the folder `into` (parquet, or csv with a header), and what comes back is its name. Ids, and rows that
    the protocol does not know, are counted before anything is drawn. `key`, `keep`, `unknown` and `sets` are as for
    :func:`privacyfunnel.apply`.
    """
    sealed = protocol if isinstance(protocol, SealedProtocol) else SealedProtocol.load(protocol)
    mine = key if key is None or isinstance(key, RowKey) else RowKey.load(key)
    sending = Sending(column_tuple(keep), sets, keep_order, None, row_id, mine, unknown)
    if into is not None:
        return apply_to_folder(sealed, df, sending, OutputFiles(into, file_format, force)).table
    if row_id is None:
        raise ParameterError(
            "Rows without ids are drawn once, into files: Spark would draw a frame of them again whenever it is asked "
            "for. Name a folder for them (into), or a column that tells rows apart (row_id)."
        )
    return FrameDraw.of(sealed, df, sending).draw_by_ids()


def sanitise(
    df: Any,
    *,
    secret: str | Sequence[str],
    publish: str | Sequence[str],
    row_id: str | None = None,
    key: RowKey | str | Path | None = None,
    into: str | None = None,
    file_format: str = PARQUET,
    force: bool = False,
    keep: str | Sequence[str] = (),
    keep_order: bool = False,
    **asked: Any,
) -> Sanitised:
    """Design a protocol for a data frame and draw its rows from it: :func:`design`, then :func:`apply`."""
    sealed = design(df, secret=secret, publish=publish, **asked)
    table = apply(
        sealed,
        df,
        row_id=row_id,
        key=key,
        into=into,
        file_format=file_format,
        force=force,
        keep=keep,
        keep_order=keep_order,
    )
    return Sanitised(table, sealed)
