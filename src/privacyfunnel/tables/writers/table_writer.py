"""Batches of rows to a file, in a stream."""

import codecs
import gzip
import io
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, cast

import polars as pl
from polars.io.plugins import register_io_source

from privacyfunnel.errors import ColumnError
from privacyfunnel.hints import hint
from privacyfunnel.tables.readers.column_selection import categories_to_text
from privacyfunnel.tables.readers.formats import ARROW, DEFAULT_TEXT_FORMAT, DELIMITED, PARQUET, TextFormat
from privacyfunnel.tables.writers.column_buffers import rebuild
from privacyfunnel.tables.writers.spreadsheet_guard import guard_formulas

ARROW_SCHEMA = "ARROW:schema"  # under which Parquet keeps the types that columns had
ROW_GROUP = 1 << 20  # rows of a group in Parquet: as its readers like them


def write_batches(
    path: Path,
    suffix: str,
    batches: Iterable[pl.DataFrame],
    *,
    excel_safe: bool = False,
    text_format: TextFormat = DEFAULT_TEXT_FORMAT,
) -> int:
    """Write `batches` in the format of `suffix`; the number of rows written. Failures of the disk are an `OSError`.

    In a delimited file no cell of text is a formula if it is to be `excel_safe`; it is `written` as said.
    Categories are written as the text that they are.
    """
    source = _BatchSource(batches)
    try:
        # An open file rather than its name, which polars may open late: after a failure, when it was removed already.
        if suffix in PARQUET:
            with path.open("wb") as file:
                schema = source.schema_of_text
                source.lazy().sink_parquet(file, row_group_size=ROW_GROUP, metadata={ARROW_SCHEMA: schema})
        elif suffix in ARROW:
            with path.open("wb") as file:
                source.rebuild().sink_ipc(file, compression="zstd")
        else:
            source.refuse_unwritable()
            with _open_output(path, zipped=suffix.endswith(".gz")) as file:
                _write_text(file, _guard_batches(source()) if excel_safe else source(), suffix, text_format)
    except (pl.exceptions.PolarsError, OSError) as error:
        # polars may hand on a failure of the disk as a text that ends in `(os error 28)`.
        failed = re.search(r"\(os error (\d+)\)", str(error))
        if failed is None:
            raise
        raise OSError(int(failed[1]), os.strerror(int(failed[1]))) from error
    return source.rows


def _guard_batches(batches: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    return (guard_formulas(categories_to_text(batch)) for batch in batches)


def _write_text(file: IO[bytes], batches: Iterable[pl.DataFrame], suffix: str, text_format: TextFormat) -> None:
    """Rows as text. One column has no delimiter: what might be taken for one stands in quotes, as a comma does."""
    encoder = codecs.getincrementalencoder(text_format.encoding)()
    packed = suffix.endswith(".zst")  # which is UTF-8, and its batches are packed one by one
    utf_8 = packed or text_format.encoding == "utf-8"
    for number, batch in enumerate(batches):
        delimiter = DELIMITED[suffix] or (text_format.delimiter if batch.width > 1 else ",")
        sink = io.BytesIO() if packed or not utf_8 else file
        batch.write_csv(
            sink,
            include_header=number == 0,
            include_bom=utf_8 and text_format.byte_order_mark and number == 0,
            separator=delimiter,
            decimal_comma=text_format.decimal == "," != delimiter,
            compression="zstd" if packed else "uncompressed",
        )
        if isinstance(sink, io.BytesIO):
            held = sink.getvalue()
            file.write(held if utf_8 else encoder.encode(held.decode("utf-8")))


@contextmanager
def _open_output(path: Path, *, zipped: bool) -> Iterator[IO[bytes]]:
    with path.open("wb") as raw:
        if not zipped:
            yield raw
            return
        # Neither the hidden name nor the hour belongs into the result.
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as file:
            yield cast(IO[bytes], file)


class _BatchSource:
    """Frames that polars can pull from one after another, and how many rows were pulled."""

    def __init__(self, batches: Iterable[pl.DataFrame]) -> None:
        iterator = iter(batches)
        first = next(iterator)
        self.rows = 0
        self._schema = first.schema
        self._batches = chain([first], iterator)

    def rebuild(self) -> pl.LazyFrame:
        """The frames in buffers of their own: what is written buffer by buffer holds their values and no more."""
        schema = categories_to_text(pl.DataFrame(schema=self._schema)).schema
        return register_io_source(lambda *_: map(rebuild, self()), schema=schema, is_pure=False)

    def lazy(self) -> pl.LazyFrame:
        return register_io_source(lambda *_: self(), schema=self._schema, is_pure=False)

    @property
    def schema_of_text(self) -> str:
        """What Parquet says of columns whose categories are text.

        Categories need not be looked up row by row to be written, and only those that occur are; who reads them is
        told of text all the same, as by any other table.
        """
        empty = io.BytesIO()
        categories_to_text(pl.DataFrame(schema=self._schema)).write_parquet(empty)
        empty.seek(0)
        return pl.read_parquet_metadata(empty)[ARROW_SCHEMA]

    def refuse_unwritable(self) -> None:
        """Refuse what has no text in a delimited file."""
        for column, kind in self._schema.items():
            if kind.is_nested() or isinstance(kind, pl.Binary | pl.Duration | pl.Object):
                raise ColumnError(
                    f"column '{column}' must hold text, numbers, dates or truth values to be written as text; it holds "
                    f"{kind}. Use {hint('format', 'parquet')}, or leave the column out."
                )

    def __call__(self) -> Iterator[pl.DataFrame]:
        for batch in self._batches:
            self.rows += batch.height
            yield batch
