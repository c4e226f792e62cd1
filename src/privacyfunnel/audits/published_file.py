"""The published file: it holds the values of its rows as this program writes them, and nothing else.

Quotes around some cells, line ends, apostrophes, the metadata of Parquet and the sizes of its row groups can each carry
a whole secret that no test of values sees. So the file is written anew from its values and compared byte by byte. Kept
columns are compared with those of the original table: row by row where the order is known, else as a multiset of rows.
"""

from __future__ import annotations

import filecmp
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import GuaranteeError
from privacyfunnel.release.output_layout import OutputLayout
from privacyfunnel.tables.readers.column_selection import categories_to_text
from privacyfunnel.tables.readers.formats import ARROW, DEFAULT_TEXT_FORMAT, DELIMITED, Dialect, TextFormat
from privacyfunnel.tables.readers.table_files import open_table, table_suffix
from privacyfunnel.tables.writers.table_writer import write_batches

if TYPE_CHECKING:
    from privacyfunnel.tables.readers.formats import Table

ONE_BATCH = 1 << 17  # rows up to which compressed bytes do not depend on how the rows were batched


@dataclass(frozen=True, slots=True)
class FileAudit:
    """How the published file was compared with its values written anew; it agrees."""

    compared: str
    kept_by_row: bool | None  # whether kept columns were compared row by row; None where none was kept


@dataclass(frozen=True, slots=True)
class _Writing:
    """One way in which this program writes a table."""

    suffix: str
    text_format: TextFormat = DEFAULT_TEXT_FORMAT
    excel_safe: bool = False

    def write(self, path: Path, batches: Iterator[pl.DataFrame]) -> None:
        first = next(batches)
        every = chain([first[:0], first], batches)  # a release writes its header first
        write_batches(path, self.suffix, every, excel_safe=self.excel_safe, text_format=self.text_format)


def audit_file(
    path: Path, published: Table, layout: OutputLayout, original: Table, order: IntArray | None
) -> FileAudit:
    """Compare a published file with its values; `order` has the number in the original of each published row, if known.

    Raises
    ------
    GuaranteeError
        If the file holds anything but its values, or a kept column is not that of the original table.
    """
    kept = [name for name in published.columns if name not in layout.names]
    missing = [name for name in kept if name not in original.columns]
    if missing:
        raise GuaranteeError(
            f"every kept column must be one of the original table; '{missing[0]}' is not. Remove it from "
            f"{published.name}: nothing is known about it."
        )
    suffix = None if path.is_dir() else table_suffix(path)
    if suffix is None:
        writing, compared = _Writing(".parquet"), "not compared: sanitise writes no file of this kind"
    else:
        writing, compared = _compare_bytes(path, suffix, published, layout, original)
    if not kept:
        return FileAudit(compared, None)
    if not _kept_agree(kept, published, original, writing, order):
        raise GuaranteeError(
            f"the kept columns of {published.name} ({', '.join(kept)}) must be those of the original table; they "
            "differ. They were altered or replaced: do not publish it, and sanitise again."
        )
    return FileAudit(compared, order is not None)


def _compare_bytes(
    path: Path, suffix: str, published: Table, layout: OutputLayout, original: Table
) -> tuple[_Writing, str]:
    """The way of writing that gives these bytes, and how they were compared."""
    writings = [_Writing(suffix)]
    if suffix in DELIMITED:
        formats = dict.fromkeys([published.text_format, original.text_format, DEFAULT_TEXT_FORMAT])
        writings = [_Writing(suffix, one, safe) for one in formats for safe in (False, True)]
    rows = sum(batch.height for batch in published.batches([published.columns[0]]))
    with tempfile.TemporaryDirectory(prefix="privacyfunnel-") as folder:
        anew = Path(folder) / f"anew{suffix}"
        for writing in writings:
            writing.write(anew, _rewrite(published, layout))
            if filecmp.cmp(anew, path, shallow=False):
                return writing, "byte by byte"
            if rows > ONE_BATCH and suffix.endswith((".gz", ".zst")) and _lines(anew).equals(_lines(path)):
                return writing, "after decompression, as its rows were written in several batches"
    if rows > ONE_BATCH and suffix in ARROW:
        return writings[0], "not compared: Arrow files of so many rows depend on their batches"
    raise GuaranteeError(
        f"{published.name} must hold its values as sanitise writes them and nothing else; its bytes differ from those. "
        "Quotes, line ends, apostrophes, metadata or row groups can carry the secret: publish the file that sanitise "
        "wrote."
    )


def _rewrite(published: Table, layout: OutputLayout) -> Iterator[pl.DataFrame]:
    """The rows made anew: published columns from the outputs they show, the others from their values."""
    for batch in published.batches(list(published.columns)):
        for piece in batch.iter_slices(layout.rows_at_once):
            made = {column.name: column for column in layout.columns(layout.recover_codes(piece))}
            yield pl.DataFrame([made.get(name, piece[name]) for name in piece.columns])


def _lines(path: Path) -> pl.DataFrame:
    """The lines of a compressed file, each as it is, with what stands before its line end."""
    return pl.read_csv(path, has_header=False, separator="\0", quote_char=None, infer_schema=False)


def _kept_agree(
    kept: Sequence[str], published: Table, original: Table, writing: _Writing, order: IntArray | None
) -> bool:
    """Whether kept columns are the original's, after those were written and read as the published ones were."""
    with tempfile.TemporaryDirectory(prefix="privacyfunnel-") as folder:
        path = Path(folder) / f"kept{writing.suffix}"
        writing.write(path, map(categories_to_text, original.batches(list(kept))))
        read = Dialect(encoding=writing.text_format.encoding) if writing.suffix in DELIMITED else Dialect()
        theirs = pl.concat(list(open_table(path, read).batches(list(kept))))
    ours = pl.concat(list(published.batches(list(kept))))
    if len(ours) != len(theirs):
        return False
    if order is not None:
        return ours.equals(theirs[order])
    mine, other = (np.sort(frame.hash_rows().to_numpy()) for frame in (ours, theirs))
    return bool((mine == other).all())
