"""Rows and what belongs to them, written whole or not at all, and remembered in the owner's ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from typing import Protocol as Shape

from privacyfunnel.release.files import Output
from privacyfunnel.release.ledger import Ledger
from privacyfunnel.release.outgoing import Outgoing
from privacyfunnel.release.repeats import ProtocolText, Remembered, entry_of, judged, overtaken, refusal
from privacyfunnel.tables.spreadsheets import refuse_unsafe
from privacyfunnel.tables.whole import Parts, folder, nameless_file

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import polars as pl

    from privacyfunnel.tables.bins import Bins
    from privacyfunnel.tables.dialect import Written
    from privacyfunnel.tables.files import Table
    from privacyfunnel.tables.merging import Merge
    from privacyfunnel.tables.sources import Source

T = TypeVar("T")
LOOK = 0.2  # seconds between looks for a signal


class Place(Shape):
    """Where the table of a release goes."""

    @property
    def into(self) -> Path:
        """The folder."""

    @property
    def table(self) -> Path:
        """The table in it."""

    @property
    def suffix(self) -> str:
        """The table's format, or that of its parts."""

    def files(self, outgoing: Outgoing) -> Sequence[Output]:
        """The files that it is written to, one after another."""

    def together(self) -> AbstractContextManager[Parts]:
        """Files that appear together."""


def publish(
    outgoing: Outgoing,
    place: Place,
    source: Source,
    protocol: ProtocolText,
    ledger: tuple[Ledger, bytes],
    finish: Callable[[Parts, Path, Remembered], T],
    *,
    again: bool = False,
    trial: bool = False,
    excel_safe: bool = False,
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
) -> T:
    """Draw the rows into their place; `finish` writes what belongs to them before all of it appears.

    A second release of the same rows about the same secret is refused unless it is to be made `again`.
    """
    from privacyfunnel.tables.writing import write_batches

    book, salt = ledger
    if excel_safe:
        refuse_unsafe(place.suffix, [*outgoing.way.names, *outgoing.sending.keep], outgoing.way.texts)
    mine = entry_of(outgoing, protocol, salt, source, place.table, trial=trial)
    remembered = judged(book.path, mine, book.others(mine), outgoing, bins, merges)
    if remembered.repeats and not again:
        raise refusal(remembered)
    with (
        folder(place.into),
        book.remembered(mine, known=remembered.repeats, refuse=overtaken) as replaced,
        place.together() as parts,
    ):
        outputs = [(parts.begin(output.name), output) for output in place.files(outgoing)]
        first = outputs[0][0]
        rows = Rows(ahead(outgoing.batches(partial(nameless_file, first))))
        like = written_like(outgoing.met.encoding.table, excel_safe=excel_safe)
        for path, output in outputs:
            write_batches(path, output.suffix, rows.taken(output.rows), excel_safe=excel_safe, written=like)
        return finish(parts, first, remembered.replacing(replaced))


def ahead(batches: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same batches, each of which is drawn while the one before it is written.

    Where that ends early nobody waits for the batch that is being drawn: the first one may take seconds.
    """
    thread = ThreadPoolExecutor(1)
    try:
        coming = thread.submit(next, batches, None)
        while (batch := _drawn(coming)) is not None:
            coming = thread.submit(next, batches, None)
            yield batch
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


def _drawn(coming: Future[T]) -> T:
    """What comes; a signal that another thread receives does not wake this one, so it looks again and again."""
    while not coming.done():
        wait([coming], LOOK)
    return coming.result()


class Rows:
    """A stream of rows, from which so many are taken at a time."""

    def __init__(self, batches: Iterator[pl.DataFrame]) -> None:
        self._batches, self._waiting = batches, next(batches)

    def taken(self, rows: int | None) -> Iterator[pl.DataFrame]:
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


def written_like(table: Table, *, excel_safe: bool) -> Written:
    """As the table is written; with a byte order mark, without which Excel takes UTF-8 for something else, if it is to
    be opened there."""
    return replace(table.written, mark=table.written.mark or excel_safe)
