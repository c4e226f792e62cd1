"""Lazy frames: rows that another engine holds (polars, DuckDB, Dask, Ibis), and answers of the same kind.

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
from privacyfunnel.tables.readers.eager_frames import FrameTable
from privacyfunnel.tables.readers.formats import DEFAULT_TEXT_FORMAT, PLAIN_NUMBERS, NumberFormat, TextFormat
from privacyfunnel.tables.readers.persons import PersonTable, reduce_to_persons
from privacyfunnel.tables.readers.table_interface import Table


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
    table, asked = frame_table(native), parse_bins(bins)
    secret = [secret] if isinstance(secret, str) else secret
    publish = [publish] if isinstance(publish, str) else publish
    found = count_in_engine(table, secret, publish, asked, merges)
    return found or encode(table, secret=secret, publish=publish, bins=asked, merges=merges).contingency


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
