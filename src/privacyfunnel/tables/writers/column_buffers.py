"""Columns that leave, made anew from their values.

A column in memory is more than its values. Text of polars and of Arrow is views into bytes that stay in the order of
the table they were read from, however the rows are shuffled; categories are listed in the order in which they were met;
what was set to missing may still lie under its mark. An Arrow file holds all of that. Parquet holds values that are not
missing, in the order of the rows, and lists of those that occur, in that order as well: a column that was written as
Parquet and read again says what its values say, and no more.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import polars as pl

from privacyfunnel.errors import ColumnError
from privacyfunnel.tables.readers.column_selection import categories_to_text

if TYPE_CHECKING:
    import narwhals as nw


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
