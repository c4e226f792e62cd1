"""Design, apply and sanitise for Spark data frames, classic or over Spark Connect.

With ids the result is a lazy frame that is the same on every evaluation. Executors get keys derived for this protocol
and id column, inside the function that Spark sends them and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privacyfunnel.errors import ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.sampling import RowKey
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.promises import Promise
from privacyfunnel.names import unique_label
from privacyfunnel.release.apply import load_verified
from privacyfunnel.release.design import design as designed_frame
from privacyfunnel.spark.counting import count_combinations
from privacyfunnel.spark.folders import apply_to_folder
from privacyfunnel.spark.frame_draw import FrameDraw, refuse_persons
from privacyfunnel.spark.output_folder import PARQUET, OutputFiles
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.keywords import accept_older_keywords, combine


@dataclass(frozen=True, slots=True, eq=False)
class Sanitised:
    """Sanitised rows, as a frame or the name of their folder; and their protocol."""

    table: Any
    sealed: SealedProtocol


@accept_older_keywords
def design(
    df: Any,
    spec: ReleaseSpec | None = None,
    *,
    secret: str | Sequence[str] = (),
    publish: str | Sequence[str] = (),
    epsilon: float | None = None,
    promise: Promise | str | None = None,
    prior: str | None = None,
) -> SealedProtocol:
    """The sealed protocol for a data frame, from counts that the cluster makes; nothing is drawn.

    The spec and its shorthand are those of :func:`privacyfunnel.design`. Edges of bins must be given.
    """
    spec = combine(
        spec, secret=secret, publish=publish, epsilon=epsilon, promise=promise, prior=prior
    ).require_columns()
    refuse_persons(spec)
    columns = [*spec.secret, *spec.publish]
    counts = unique_label("rows", columns)
    return designed_frame(count_combinations(df, columns, counts), replace(spec, counts=counts))


@accept_older_keywords
def apply(
    protocol: SealedProtocol | str | Path,
    df: Any,
    spec: ReleaseSpec | None = None,
    *,
    row_id: str | None = None,
    key_file: RowKey | str | Path | None = None,
    keep: str | Sequence[str] = (),
    unknown: str | None = None,
    into: str | None = None,
    file_format: str = PARQUET,
    force: bool = False,
) -> Any:
    """The rows of a data frame drawn from a protocol, in a random order unless the spec keeps it.

    `row_id` names the column that identifies rows; then they come back as a data frame. Without one they are drawn
    once, into the folder `into` (parquet, or csv with a header), and its name comes back. Ids, and rows that the
    protocol does not know, are counted before anything is drawn. The spec and its shorthand are those of
    :func:`privacyfunnel.apply`.
    """
    spec = combine(spec, row_id=row_id, key_file=key_file, keep=keep, unknown=unknown)
    sealed, _ = load_verified(protocol, spec)
    if into is not None:
        return apply_to_folder(sealed, df, spec, OutputFiles(into, file_format, force)).table
    if spec.row_id is None:
        raise ParameterError(
            "Rows without ids are drawn once, into files: Spark would draw a frame of them again whenever it is read. "
            f"Name a folder for them, {hint('into', 'out')}, or a column that identifies rows, {hint('row_id', 'id')}."
        )
    return FrameDraw.of(sealed, df, spec).draw_by_ids()


@accept_older_keywords
def sanitise(
    df: Any,
    spec: ReleaseSpec | None = None,
    *,
    secret: str | Sequence[str] = (),
    publish: str | Sequence[str] = (),
    epsilon: float | None = None,
    promise: Promise | str | None = None,
    prior: str | None = None,
    row_id: str | None = None,
    into: str | None = None,
    file_format: str = PARQUET,
    force: bool = False,
) -> Sanitised:
    """Design a protocol for a data frame and draw its rows from it: :func:`design`, then :func:`apply`."""
    spec = combine(spec, secret=secret, publish=publish, epsilon=epsilon, promise=promise, prior=prior, row_id=row_id)
    sealed = design(df, spec)
    return Sanitised(apply(sealed, df, spec, into=into, file_format=file_format, force=force), sealed)
