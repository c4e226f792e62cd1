"""Design, apply and sanitise for Spark data frames, classic or over Spark Connect.

With ids the result is a lazy frame that is the same on every evaluation. Executors get keys derived for this protocol
and id column, inside the function that Spark sends them and nowhere else.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privacyfunnel.atomic_files import OWNER
from privacyfunnel.errors import ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.protocol_file import PROTOCOL
from privacyfunnel.mechanisms.sampling import RowKey
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.promises import Promise
from privacyfunnel.names import unique_label
from privacyfunnel.release.apply import Applied, load_verified
from privacyfunnel.release.design import DesignResult, design_from_counts
from privacyfunnel.release.design import design as designed_frame
from privacyfunnel.release.ledger.ledger_file import named_ledger
from privacyfunnel.release.ledger.repeats import LedgerReport, ProtocolText, make_entry, record_noise, remember
from privacyfunnel.release.release_files import NOTICE, codebook, codebook_name
from privacyfunnel.spark.counting import count_combinations, count_for_ledger
from privacyfunnel.spark.frame_draw import FrameDraw, refuse_persons
from privacyfunnel.spark.output_folder import PARQUET, HiddenFolder, OutputFiles, atomic_folder
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.keywords import combine
from privacyfunnel.tables.coding.contingency import Contingency
from privacyfunnel.tables.coding.encoding import contingency_from_counts
from privacyfunnel.tables.readers.eager_frames import FrameTable
from privacyfunnel.tables.readers.formats import AUTO_DETECT, Dialect


@dataclass(frozen=True, slots=True)
class ClusterCounts:
    """A data frame as a source of counts, made by the cluster when it is opened."""

    df: Any
    columns: tuple[str, ...]
    name: str = ""  # by which Spark reads it
    query: str = ""
    file: Path | None = None
    folder: Path = Path()
    suffix: str = ".csv"

    @property
    def counts(self) -> str:
        """The column that says how many rows a combination stands for."""
        return unique_label("rows", self.columns)

    @property
    def identity(self) -> str:
        """The file, as one machine names it; or the name or query in Spark; a frame without a name is like no other."""
        here = Path(self.name.removeprefix("file://"))
        if not self.name:
            return secrets.token_hex(8)
        return str(here.resolve()) if here.exists() else self.name

    def open(self, dialect: Dialect) -> FrameTable:
        return FrameTable.from_native(count_combinations(self.df, self.columns, self.counts))

    def contingency(self, spec: ReleaseSpec) -> Contingency:
        """n(s, x) as the spec reads it."""
        return contingency_from_counts(
            self.open(AUTO_DETECT),
            self.counts,
            secret=spec.secret,
            publish=spec.publish,
            bins=spec.bin_rules,
            merges=spec.merges,
        )


def apply_to_folder(
    sealed: SealedProtocol, df: Any, spec: ReleaseSpec, files: OutputFiles, *, name: str = "", protocol: Path | str = ""
) -> Applied:
    """Draw the rows of a data frame, which has a name, into a folder that appears complete or not at all."""
    with ExitStack() as later, atomic_folder(df.sparkSession, files) as folder:
        draw, text = FrameDraw.of(sealed, df, spec), ProtocolText(protocol, sealed.to_text())
        remembered = later.enter_context(_record(draw, ClusterCounts(df, (), name), text, folder, files))
        return replace(write_draw(draw, folder, files), remembered=remembered)


def sanitise_to_folder(
    df: Any, spec: ReleaseSpec, files: OutputFiles, *, name: str = ""
) -> tuple[DesignResult, Applied]:
    """Design a protocol, then draw; the folder also holds the protocol and its codebook."""
    source, book = ClusterCounts(df, (*spec.secret, *spec.publish), name), named_ledger(spec)
    with ExitStack() as later, atomic_folder(df.sparkSession, files) as folder:
        protocol, counted = folder.final_name(f"/{OWNER}/{PROTOCOL}"), source.contingency(spec)
        if book is not None:
            record_noise(book, counted, spec, source, protocol, later.enter_context(book.open_session()))
        found = design_from_counts(counted, spec)
        draw, text = FrameDraw.of(found.sealed, df, spec), ProtocolText(protocol, found.sealed.to_text())
        remembered = later.enter_context(_record(draw, source, text, folder, files))
        done = replace(write_draw(draw, folder, files), remembered=remembered)
        folder.describe(PROTOCOL, text.text)
        codes = codebook(found.sealed, found.joint)
        if codes is not None:
            folder.describe(codebook_name(".csv"), codes.write_csv())
    return found, done


@contextmanager
def _record(
    draw: FrameDraw, source: ClusterCounts, protocol: ProtocolText, folder: HiddenFolder, files: OutputFiles
) -> Iterator[LedgerReport | None]:
    """Make the release inside; remember it in the ledger that is named, if one is, and refuse a repeat."""
    book, spec = named_ledger(draw.spec), draw.spec
    if book is None:
        yield None
        return
    with book.open_session() as salt:
        made = (protocol, salt, source, folder.final_name(files.subpath))
        counted, order = count_for_ledger(draw.df, draw.sealed, spec), None if spec.keep_order else b""
        mine = make_entry(draw.sealed, counted, spec, *made, rows=draw.rows, order=order)
        with remember(book, mine, spec) as found:
            yield found


def write_draw(draw: FrameDraw, folder: HiddenFolder, files: OutputFiles) -> Applied:
    """Draw the rows into a hidden folder, and describe them."""
    rows = draw.draw_without_ids(folder.path("drawn")) if draw.spec.row_id is None else draw.draw_by_ids()
    folder.write(rows)
    applied = _describe_draw(draw, files.table)
    if applied.notice:
        folder.describe(f"_{NOTICE}", f"{applied.notice}\n", public=True)
    return applied


def _describe_draw(draw: FrameDraw, table: Any) -> Applied:
    """What was done, as on one machine."""
    used = {*draw.columns, *draw.sealed.domain.secret_columns, *draw.spec.keep}
    return Applied(
        table=table,
        sealed=draw.sealed,
        rows=draw.rows,
        spec=draw.spec,
        strangers=draw.strangers,
        unchanged=float("nan"),  # nobody looked at both
        dropped=tuple(name for name in draw.df.columns if name not in used),
        measured=draw.measured,
        unmeasured=draw.unmeasured,
    )


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
) -> Applied:
    """The rows of a data frame drawn from a protocol, in a random order unless the spec keeps it.

    `row_id` names the column that identifies rows; then `Applied.table` is a data frame. Without one they are drawn
    once, into the folder `into` (parquet, or csv with a header), and it is the name of that. Ids, and rows that the
    protocol does not know, are counted before anything is drawn. The spec and its shorthand are those of
    :func:`privacyfunnel.apply`.
    """
    spec = combine(spec, row_id=row_id, key_file=key_file, keep=keep, unknown=unknown)
    sealed, signer = load_verified(protocol, spec)
    if into is not None:
        files, path = (
            OutputFiles(into, file_format, force),
            "" if isinstance(protocol, SealedProtocol) else Path(protocol),
        )
        return replace(apply_to_folder(sealed, df, spec, files, protocol=path), signer=signer)
    if spec.row_id is None:
        raise ParameterError(
            "Rows without ids are drawn once, into files: Spark would draw a frame of them again whenever it is read. "
            f"Name a folder for them, {hint('into', 'out')}, or a column that identifies rows, {hint('row_id', 'id')}."
        )
    draw = FrameDraw.of(sealed, df, spec)
    return replace(_describe_draw(draw, draw.draw_by_ids()), signer=signer)


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
) -> Applied:
    """Design a protocol for a data frame and draw its rows from it: :func:`design`, then :func:`apply`."""
    spec = combine(spec, secret=secret, publish=publish, epsilon=epsilon, promise=promise, prior=prior, row_id=row_id)
    return apply(design(df, spec), df, spec, into=into, file_format=file_format, force=force)
