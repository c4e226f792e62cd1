"""Tables in memory: any frame narwhals reads (pandas, polars, pyarrow, …), and results in the same kind of frame.

Lazy frames: rows that another engine holds (polars, DuckDB, Dask, Ibis), and answers of the same kind.

What only counts is counted by that engine, which hands over a row per combination. What is drawn needs rows: the
columns that are used are asked for once, so that nothing changes between counting and drawing. The answer is a lazy
frame of rows that were drawn already: whoever evaluates it twice sees the same rows twice, never two draws.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import polars as pl

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ParameterError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.names import unique_label, validate_columns
from privacyfunnel.tables.coding.bin_syntax import parse_bins
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.contingency import Contingency
from privacyfunnel.tables.coding.encoding import contingency_from_counts, encode
from privacyfunnel.tables.coding.merges import Merge
from privacyfunnel.tables.readers.column_selection import require_columns
from privacyfunnel.tables.readers.formats import (
    DEFAULT_TEXT_FORMAT,
    PLAIN_NUMBERS,
    POLARS,
    NumberFormat,
    Table,
    TextFormat,
)
from privacyfunnel.tables.readers.persons import PersonTable, reduce_to_persons
from privacyfunnel.tables.writers.table_writer import rebuild_frame

BATCH_ROWS = 1 << 20  # a frame is in memory already
SECRET = "secret"  # what a secret without a name is called


@dataclass(frozen=True, slots=True, eq=False)
class FrameTable:
    """The rows of a frame in memory."""

    frame: nw.DataFrame[Any]
    numbers: NumberFormat = PLAIN_NUMBERS  # how its text writes them
    text_format: TextFormat = DEFAULT_TEXT_FORMAT

    @property
    def name(self) -> str:
        return "the frame"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.frame.columns)

    @classmethod
    def from_native(cls, native: Any) -> "FrameTable":
        """The table that a frame of any library is."""
        try:
            frame = nw.from_native(native, eager_only=True)
        except TypeError:
            raise TableError(
                "a table must be a frame in memory that narwhals reads, such as pandas, polars or pyarrow; "
                f"it is a {type(native).__name__}. If it is lazy, collect it first."
            ) from None
        except ValueError:  # pandas allows two columns of one name, narwhals does not
            raise TableError("a frame must name every column once; a name occurs twice. Rename one of them.") from None
        return cls(frame)

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        if len(self.frame) == 0:
            raise TableError("the frame must have rows; it has none.")
        rows = pl.DataFrame({column: _as_polars(self.frame[column]) for column in columns})
        yield from require_columns(rows, columns, self.name).iter_slices(BATCH_ROWS)

    @property
    def side_data(self) -> tuple[str, ...]:
        """What the frame carries beside its columns, in words: an index that is no row number, attrs, metadata."""
        found = []
        names = self.index_names
        if names is not None:
            called = " & ".join(f"'{name}'" for name in names if name)
            found.append(f"the index {called}".rstrip())
        if self.frame.implementation.is_pandas_like() and getattr(self.frame.to_native(), "attrs", None):
            found.append("the frame's attrs")
        if self.frame.implementation.is_pyarrow():
            schema = self.frame.to_native().schema
            if schema.metadata or any(field.metadata for field in schema):
                found.append("the schema's metadata")
        return tuple(found)

    @property
    def index_names(self) -> tuple[str, ...] | None:
        """The names of the index, "" where a level has none; None where there is none but the numbers of the rows."""
        index = nw.maybe_get_index(self.frame)
        if index is None:
            return None
        names = tuple("" if name is None else str(name) for name in index.names)
        numbers = type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
        return None if numbers and not any(names) else names

    def _cast_like_column(self, labels: pl.Series) -> pl.Series:
        """Labels as the numbers or truth values that the column holds, if every one of them is one."""
        if labels.name not in self.columns or labels.dtype != pl.String or labels.null_count():
            return labels
        kind = self.frame[labels.name].dtype
        if kind == nw.Boolean and labels.is_in(["true", "false"]).all():
            return labels == "true"
        if kind.is_integer() or kind.is_float():
            numbers = labels.cast(pl.Int64 if kind.is_integer() else pl.Float64, strict=False)
            return numbers if (numbers.cast(pl.String) == labels).fill_null(False).all() else labels
        return labels

    def _is_category(self, name: str) -> bool:
        return name in self.columns and self.frame[name].dtype in (nw.Categorical, nw.Enum)

    def make_frame(
        self,
        columns: Sequence[pl.Series],
        keep: Sequence[str] = (),
        *,
        order: IntArray | None = None,
        keep_index: bool = False,
    ) -> Any:
        """A native frame of the same kind: `columns`, then the columns `keep` of this frame as they are, or as text
        where they are categories, in buffers of their own.

        Row i is next to what this frame keeps in row `order[i]`, or in row i.
        Nothing else of this frame is in it, and its index only if it is to be `indexed` alike: an index may hold the
        secret, or names.
        """
        index = nw.maybe_get_index(self.frame) if keep_index else None
        backend, fresh = self.frame.implementation, [self._cast_like_column(column) for column in columns]
        frame: nw.DataFrame[Any]
        if backend.is_polars():  # as objects of Python's a long codebook fills more memory than all else together …
            frame = nw.from_native(pl.DataFrame(fresh), eager_only=True)
        else:  # … and elsewhere a column at a time
            series = {column.name: nw.new_series(column.name, column.to_list(), backend=backend) for column in fresh}
            frame = nw.from_dict(series, backend=backend)
        categories = [column.name for column in fresh if self._is_category(column.name)]
        frame = frame.with_columns(frame[name].cast(nw.Categorical()) for name in categories)
        if keep:
            kept = nw.maybe_reset_index(self.frame[list(keep)])
            frame = nw.concat([frame, rebuild_frame(kept if order is None else kept[order])], how="horizontal")
        native = frame.to_native()
        if index is not None:
            native.index = index
        return native


def add_column(native: Any, entries: Any) -> tuple[Any, str]:
    """A frame with one more column, a series or a list of as many entries; and what that column is called there.

    Entry i belongs to row i, whatever an index of either says: rows that were shuffled, filtered or cut keep the labels
    that they had, and a column that is joined by these would give people the entries of others.
    """
    frame = FrameTable.from_native(native).frame
    called = str(getattr(entries, "name", None) or SECRET)
    try:
        series = nw.from_native(entries, series_only=True)
        listed = series.to_list()
    except TypeError:
        listed = list(entries)
    if len(listed) != len(frame):
        raise TableError(f"there must be a secret for each of {len(frame):,} rows; there are {len(listed):,}.")
    name = unique_label(called, frame.columns)
    backend = frame.implementation
    more = nw.new_series(name, [None if entry is None else str(entry) for entry in listed], backend=backend)
    return nw.maybe_reset_index(frame).with_columns(more).to_native(), name


def convert_frame(native: Any, kind: str, like: Any) -> Any:
    """A frame as one of pandas, with the index of another of its rows where that is of pandas too, or of polars."""
    frame = nw.from_native(native, eager_only=True)
    if kind == POLARS:
        return pl.DataFrame([_as_polars(column) for column in frame.iter_columns()])
    import pandas as pd

    index = like.index if isinstance(like, pd.DataFrame) else None
    if frame.implementation.is_pandas():
        return frame.to_native().set_axis(index, axis=0) if index is not None else frame.to_native()
    return pd.DataFrame({name: frame[name].to_list() for name in frame.columns}, index=index)


def _as_polars(series: "nw.Series[Any]") -> pl.Series:
    if series.dtype == nw.Object:  # anything may be in there; what is not missing has a text
        missing = series.is_null().to_list()
        entries = zip(series.to_list(), missing, strict=True)
        return pl.Series(series.name, [None if gone else str(entry) for entry, gone in entries], dtype=pl.String)
    try:
        return series.to_polars()
    except ImportError:  # pandas goes through pyarrow, which need not be there
        return pl.Series(series.name, series.to_list(), strict=False)


@dataclass(frozen=True, slots=True, eq=False)
class LazyTable:
    """The rows of a lazy frame."""

    frame: nw.LazyFrame[Any]
    columns: tuple[str, ...]
    numbers: NumberFormat = PLAIN_NUMBERS  # how its text writes them
    text_format: TextFormat = DEFAULT_TEXT_FORMAT
    side_data: tuple[str, ...] = ()  # lazy frames carry nothing beside their columns
    index_names: tuple[str, ...] | None = None
    _cache: list[FrameTable] = field(default_factory=list)  # the columns that were asked for last

    @property
    def name(self) -> str:
        return "the frame"

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        if not self._cache or not {*columns} <= {*self._cache[0].columns}:
            self._cache[:] = [FrameTable.from_native(self._collect(self.frame.select(list(columns))))]
        yield from self._cache[0].batches(columns)

    def head(self, rows: int) -> FrameTable:
        """The first rows, in memory."""
        return FrameTable.from_native(self._collect(self.frame.head(rows)))

    def count(self, columns: Sequence[str], counts: str) -> FrameTable:
        """A row per combination of these columns, and how many rows hold it, counted where the rows are."""
        columns = list(validate_columns(columns, self.columns, "counted"))
        cells = self.frame.select(columns).group_by(columns).agg(nw.len().alias(counts))
        return FrameTable.from_native(self._collect(cells, rows=False))

    def make_frame(
        self,
        columns: Sequence[pl.Series],
        keep: Sequence[str] = (),
        *,
        order: IntArray | None = None,
        keep_index: bool = False,
    ) -> Any:
        """A lazy frame of the same kind: `columns`, then the columns `keep` as `FrameTable.like` gives them."""
        drawn = (self._cache[0] if self._cache else FrameTable.from_native(pl.DataFrame())).make_frame(
            columns, keep, order=order
        )
        return nw.from_native(drawn, eager_only=True).lazy(self.frame.implementation).to_native()

    def _collect(self, frame: nw.LazyFrame[Any], *, rows: bool = True) -> pl.DataFrame:
        if rows and self.frame.implementation.is_spark_like():
            raise TableError(
                "the rows of a Spark frame must stay on their cluster; this would bring them here. Use sanitise and "
                "apply of privacyfunnel.spark."
            )
        found: pl.DataFrame = frame.collect("polars").to_native()
        return found


def frame_table(native: Any) -> FrameTable | LazyTable:
    """The table that a frame of any library is, in memory or lazy."""
    try:
        frame = nw.from_native(native)
    except (TypeError, ValueError):
        return FrameTable.from_native(native)  # which says what is wrong
    if not isinstance(frame, nw.LazyFrame):
        return FrameTable.from_native(native)
    return LazyTable(frame, tuple(frame.collect_schema().names()))


def count_in_engine(
    table: Table, secret: Sequence[str], publish: Sequence[str], bins: Sequence[Bins], merges: Sequence[Merge]
) -> Contingency | None:
    """n(s, x) of a lazy frame, counted where its rows are; None of other tables, and where bins are found from rows."""
    if not isinstance(table, LazyTable) or any(binned.quantiles is not None for binned in bins):
        return None
    counts = unique_label("rows", [*secret, *publish])
    cells = table.count([*secret, *publish], counts)
    return contingency_from_counts(cells, counts, secret=secret, publish=publish, bins=bins, merges=merges)


def contingency_from_frame(
    native: Any,
    *,
    secret: str | Sequence[str],
    publish: str | Sequence[str],
    bins: Sequence[Bins | str] | Mapping[str, Any] = (),
    merges: Sequence[Merge] = (),
) -> Contingency:
    """n(s, x) of a frame of any library; one column may be named by itself, and bins as on the command line."""
    table, rules = frame_table(native), parse_bins(bins)
    secret = [secret] if isinstance(secret, str) else secret
    publish = [publish] if isinstance(publish, str) else publish
    found = count_in_engine(table, secret, publish, rules, merges)
    return found or encode(table, secret=secret, publish=publish, bins=rules, merges=merges).contingency


def frame_by_persons(
    table: FrameTable | LazyTable, person: str | None, which: str | None, columns: Sequence[str]
) -> FrameTable | LazyTable:
    """A frame of which each person is one row, where a column tells them apart; `columns` are those that are used."""
    if reduce_to_persons(table, person, which) is table or person is None:
        return table
    if not isinstance(table, FrameTable):
        raise ParameterError(f"{hint('person')} needs a frame in memory; this one is lazy. Collect it first.")
    used = [name for name in dict.fromkeys(columns) if name in table.columns]
    frame = table.frame[PersonTable.from_table(table, person, which).places(used)]
    return replace(table, frame=nw.maybe_reset_index(frame) if table.index_names is None else frame)
