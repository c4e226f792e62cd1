"""Rows and what belongs to them, written whole or not at all, and remembered in the owner's ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from privacyfunnel.atomic_files import begin_file, ensure_folder, scratch_file
from privacyfunnel.release.ledger.ledger_file import Ledger
from privacyfunnel.release.ledger.repeats import LedgerReport, ProtocolText, make_entry, remember
from privacyfunnel.release.release_files import Destination
from privacyfunnel.release.row_sampler import RowSampler
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.writers.table_writer import refuse_unsafe

if TYPE_CHECKING:
    import polars as pl

    from privacyfunnel.tables.coding.bins import Bins
    from privacyfunnel.tables.coding.merges import Merge
    from privacyfunnel.tables.readers.formats import Table, TextFormat
    from privacyfunnel.tables.readers.table_files import TableSource

T = TypeVar("T")
SPOOL = ".rows.parquet"  # rows on their way into a database
LOOK = 0.2  # seconds between looks for a signal


def publish(
    outgoing: RowSampler,
    place: Destination,
    source: TableSource,
    protocol: ProtocolText,
    ledger: tuple[Ledger, bytes],
    finish: Callable[[Path, LedgerReport], T],
    *,
    spec: ReleaseSpec,
    trial: bool = False,
    of_secret: tuple[Sequence[Bins], Sequence[Merge]] | None = None,
) -> T:
    """Draw the rows into their place; `finish` writes what belongs to them beside them before all of it appears.

    A second release of the same rows about the same secret is refused unless the spec says `again`. `of_secret` are
    the bins and merges of the secret where the spec does not name it.
    """
    from privacyfunnel.tables.writers.table_writer import write_batches

    book, salt = ledger
    excel_safe = spec.excel_safe
    if excel_safe:
        refuse_unsafe(place.suffix, [*outgoing.layout.names, *spec.keep], outgoing.layout.texts)
    counted, made = outgoing.bound_table.encoding.contingency, (protocol, salt, source, place.table)
    numbers: dict[str, Any] = {"rows": outgoing.rows, "order": outgoing.order_key}
    mine = make_entry(outgoing.sealed, counted, outgoing.spec, *made, **numbers, trial=trial)
    with (
        remember(book, mine, spec, outgoing, of_secret or spec.of_secret) as remembered,
        ensure_folder(place.path.absolute().parent),
        nullcontext() if place.target is None else place.target.write(force=place.force) as load,
        place.stage() as staged,
    ):
        outputs = [(begin_file(staged / output.name), output) for output in place.output_files(outgoing)]
        drawn, spool = outgoing.batches(partial(scratch_file, outputs[0][0])), staged / SPOOL
        if load is not None:  # a database that is read from must not be written to meanwhile
            write_batches(begin_file(spool), spool.suffix, prefetch(drawn))
            drawn = _read_spool(spool)
        rows = RowStream(prefetch(drawn))
        like = output_text_format(outgoing.bound_table.encoding.table, excel_safe=excel_safe)
        for path, output in outputs:
            write_batches(path, output.suffix, rows.take(output.rows), excel_safe=excel_safe, text_format=like)
        found = finish(staged, remembered)
        if load is not None:
            notice = staged / place.notice
            load(_read_spool(spool), notice.read_text(encoding="utf-8") if notice.exists() else "")
            spool.unlink()
    return found


def _read_spool(path: Path) -> Iterator[pl.DataFrame]:
    """The rows that were drawn, with their types."""
    from privacyfunnel.tables.readers.table_files import open_table

    table = open_table(path)
    return table.batches(table.columns)


def prefetch(batches: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same batches, each of which is drawn while the one before it is written.

    Where that ends early nobody waits for the batch that is being drawn: the first one may take seconds.
    """
    thread = ThreadPoolExecutor(1)
    try:
        coming = thread.submit(next, batches, None)
        while (batch := _await_batch(coming)) is not None:
            coming = thread.submit(next, batches, None)
            yield batch
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


def _await_batch(coming: Future[T]) -> T:
    """What comes; a signal that another thread receives does not wake this one, so it looks again and again."""
    while not coming.done():
        wait([coming], LOOK)
    return coming.result()


class RowStream:
    """A stream of rows, from which so many are taken at a time."""

    def __init__(self, batches: Iterator[pl.DataFrame]) -> None:
        self._batches, self._waiting = batches, next(batches)

    def take(self, rows: int | None) -> Iterator[pl.DataFrame]:
        """The next so many rows, or all that are left; at least their header."""
        yield self._waiting[:0]
        left = rows
        while left is None or left > 0:
            piece = self._waiting[:left]
            self._waiting = self._waiting[len(piece) :]
            if len(piece):
                yield piece
            left = None if left is None else left - len(piece)
            if not len(self._waiting):
                following = next(self._batches, None)
                if following is None:
                    return
                self._waiting = following


def output_text_format(table: Table, *, excel_safe: bool) -> TextFormat:
    """As the table is written; with a byte order mark, without which Excel takes UTF-8 for something else, if it is to
    be opened there."""
    return replace(table.text_format, byte_order_mark=table.text_format.byte_order_mark or excel_safe)
