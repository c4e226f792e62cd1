"""Batches of rows to a file, in a stream.

Columns that leave, made anew from their values.

A column in memory is more than its values. Text of polars and of Arrow is views into bytes that stay in the order of
the table they were read from, however the rows are shuffled; categories are listed in the order in which they were met;
what was set to missing may still lie under its mark. An Arrow file holds all of that. Parquet holds values that are not
missing, in the order of the rows, and lists of those that occur, in that order as well: a column that was written as
Parquet and read again says what its values say, and no more.

Cells that a spreadsheet would take for a formula or a day, and how they are written so that it does not.

A cell of text that begins with one of = + - @, a tab or a carriage return, and is no number, gets an apostrophe in
front; so does one like 10-12, 3/5 or MARCH1, which Excel turns into a day for good. Whoever knows the labels of a
column reads them back with or without it: a column in which that could be two labels is not written.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import polars as pl
from polars.io.plugins import register_io_source

from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.tables.readers.column_selection import categories_to_text, drop_name
from privacyfunnel.tables.readers.formats import ARROW, DEFAULT_TEXT_FORMAT, DELIMITED, PARQUET, TextFormat

if TYPE_CHECKING:
    import narwhals as nw


FORMULA = ("=", "+", "-", "@", "\t", "\r")
GUARD = "'"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_MONTH = "(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-zA-Z]{0,6}"
_DAY = rf"^ *(?:[0-9]{{1,2}} *[-/] *[0-9]{{1,4}}|[0-9]{{1,4}} *[-/ ]? *{_MONTH}|{_MONTH} *[-/ ]? *[0-9]{{1,4}}) *$"


def is_like_a_day(text: str) -> bool:
    """Whether a spreadsheet takes a text for a day, or a month, that it was not written as.

    >>> [is_like_a_day(text) for text in ("10-12", "3/5", "Mar 1", "SEPT2", "2020-01-05", "10 to 12", "3-2-1", "Marx")]
    [True, True, True, True, False, False, False, False]
    """
    return re.search(_DAY, text) is not None


def refuse_unsafe(suffix: str, names: Sequence[str], labels: Sequence[Sequence[str]]) -> None:
    """Refuse a table that could not be written safely, or whose labels could not be told apart afterwards."""
    if suffix not in DELIMITED:
        raise ParameterError(
            f"{hint('excel_safe')} needs a text format; the table is written as {suffix}. Use "
            f"{hint('format', 'csv')}, or leave out {hint('excel_safe')}."
        )
    for name in names:
        if name.startswith(FORMULA):
            raise ColumnError(
                f"the name of a column must not begin with = + - @ to be safe in a spreadsheet; that of '{name}' does. "
                "Rename it first."
            )
    for column in labels:
        twice = sum(
            f"{GUARD}{label}" in column for label in column if label.startswith(FORMULA) or is_like_a_day(label)
        )
        if twice:
            raise ColumnError(
                f"labels must differ in more than an apostrophe in front to be safe in a spreadsheet; {twice} do not. "
                f"Rename them first, or leave out {hint('excel_safe')}."
            )


def guard_formulas(batch: pl.DataFrame) -> pl.DataFrame:
    """The rows as they are safe in a spreadsheet.

    >>> guard_formulas(pl.DataFrame({"a": ["=1+1", "-1", "7-8", "b", None], "b": [-1, 2, 3, 4, 5]}))["a"].to_list()
    ["'=1+1", '-1', "'7-8", 'b', None]
    """
    return pl.DataFrame(
        {column.name: _guard_column(column) if column.dtype == pl.String else column for column in batch.get_columns()}
    )


def strip_guards(text: pl.Series, labels: Sequence[str]) -> pl.Series:
    """The labels that cells show, whether or not they were made safe."""
    guards = {f"{GUARD}{label}": label for label in labels if label.startswith(FORMULA) or is_like_a_day(label)}
    labels_of = {cell: label for cell, label in guards.items() if cell not in labels}
    return text.replace(labels_of) if labels_of else text


def _guard_column(column: pl.Series) -> pl.Series:
    cell = pl.col("cell")
    formula = cell.str.contains(_DAY) | (cell.str.head(1).is_in(FORMULA) & ~cell.str.contains(_NUMBER))
    cells = drop_name(column).alias("cell").to_frame()
    return cells.select(cell=pl.when(formula).then(pl.lit(GUARD) + cell).otherwise(cell))["cell"].alias(column.name)


def rebuild(rows: pl.DataFrame) -> pl.DataFrame:
    """The same rows in fresh buffers, categories as text.

    >>> rebuild(pl.DataFrame({"a": ["x", None]}))["a"].to_list()
    ['x', None]
    """
    return pl.DataFrame({column.name: _rebuild_column(column) for column in categories_to_text(rows).get_columns()})


def rebuild_frame(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """The same for a frame of any library, which keeps its types but for categories."""
    import narwhals as nw

    frame = frame.with_columns(
        frame[name].cast(nw.String()) for name in frame.columns if frame[name].dtype in (nw.Categorical, nw.Enum)
    )
    native, backend = frame.to_native(), frame.implementation
    if backend.is_polars():
        native = rebuild(native)
    elif backend.is_pyarrow():
        for place, name in enumerate(frame.columns):
            native = native.set_column(place, name, _rebuild_arrow(native.column(place), name))
    elif backend.is_pandas_like():
        native = native.copy(deep=False)
        for name in frame.columns:
            native[name] = _rebuild_extension(native[name], name)
    return nw.from_native(native, eager_only=True)


def _rebuild_column(column: pl.Series) -> pl.Series:
    kind = column.dtype
    of_numbers = kind.is_numeric() or kind.is_temporal() or kind == pl.Boolean
    if kind == pl.Object or (of_numbers and not column.null_count()):
        return column  # a number or a reference per row, in their order, is all that it holds
    file = io.BytesIO()
    try:
        column.alias("").to_frame().write_parquet(file, compression="uncompressed", statistics=False)
        file.seek(0)
        return pl.read_parquet(file).to_series().alias(column.name).cast(kind)
    except pl.exceptions.PolarsError as error:
        raise _refusal(column.name, kind) from error


def _rebuild_arrow(column: Any, name: str) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    sink, schema = pa.BufferOutputStream(), pa.schema([("", column.type)])
    try:
        parquet.write_table(
            pa.table([column], schema=schema), sink, compression="none", write_statistics=False, store_schema=False
        )
        return parquet.ParquetFile(pa.BufferReader(sink.getvalue())).read().cast(schema).column(0)
    except pa.ArrowException as error:
        raise _refusal(name, column.type) from error


def _rebuild_extension(column: Any, name: str) -> Any:
    """A column of pandas: what numpy holds is a value or a reference per row; Arrow or a mask may be behind others."""
    if not (hasattr(column.array, "__arrow_array__") and hasattr(column.dtype, "__from_arrow__")):
        return column
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        return type(column)(column.to_list(), dtype=column.dtype, index=column.index)
    return column.dtype.__from_arrow__(_rebuild_arrow(pa.table({"": column.array}).column(0), name))


def _refusal(name: str, kind: object) -> ColumnError:
    return ColumnError(
        f"column '{name}' must hold what can be made anew from its values to be kept; it holds {kind}. Make it text, "
        "numbers, dates or lists of these, or leave it out."
    )


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
