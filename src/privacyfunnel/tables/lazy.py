"""Lazy frames: rows that another engine holds (polars, DuckDB, Dask, Ibis), and answers of the same kind.

What only counts is counted by that engine, which hands over a row per combination. What is drawn needs rows: the
columns that are used are asked for once, so that nothing changes between counting and drawing. The answer is a lazy
frame of rows that were drawn already: whoever evaluates it twice sees the same rows twice, never two draws.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import polars as pl

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import TableError
from privacyfunnel.tables.asking import bins_of
from privacyfunnel.tables.bins import Bins
from privacyfunnel.tables.counts import contingency_of_counts
from privacyfunnel.tables.dialect import COMMON, Written
from privacyfunnel.tables.encoding import encode
from privacyfunnel.tables.frames import FrameTable
from privacyfunnel.tables.merging import Merge
from privacyfunnel.tables.names import checked_columns, unlike
from privacyfunnel.tables.numbers import PLAIN, Numbers
from privacyfunnel.tables.table import Table
from privacyfunnel.tables.variables import Contingency


@dataclass(frozen=True, slots=True, eq=False)
class LazyTable:
    """The rows of a lazy frame."""

    frame: nw.LazyFrame[Any]
    columns: tuple[str, ...]
    numbers: Numbers = PLAIN  # how its text writes them
    written: Written = COMMON
    beside: tuple[str, ...] = ()  # lazy frames carry nothing beside their columns
    index_names: tuple[str, ...] | None = None
    _held: list[FrameTable] = field(default_factory=list)  # the columns that were asked for last

    @property
    def name(self) -> str:
        return "the frame"

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        if not self._held or not {*columns} <= {*self._held[0].columns}:
            self._held[:] = [FrameTable.of(self._asked(self.frame.select(list(columns))))]
        yield from self._held[0].batches(columns)

    def counted(self, columns: Sequence[str], counts: str) -> FrameTable:
        """A row per combination of these columns, and how many rows hold it, counted where the rows are."""
        columns = list(checked_columns(columns, self.columns, "counted"))
        cells = self.frame.select(columns).group_by(columns).agg(nw.len().alias(counts))
        return FrameTable.of(self._asked(cells, rows=False))

    def like(
        self,
        columns: Sequence[pl.Series],
        keep: Sequence[str] = (),
        *,
        order: IntArray | None = None,
        indexed: bool = False,
    ) -> Any:
        """A lazy frame of the same kind: `columns`, then the columns `keep` as `FrameTable.like` gives them."""
        drawn = (self._held[0] if self._held else FrameTable.of(pl.DataFrame())).like(columns, keep, order=order)
        return nw.from_native(drawn, eager_only=True).lazy(self.frame.implementation).to_native()

    def _asked(self, frame: nw.LazyFrame[Any], *, rows: bool = True) -> pl.DataFrame:
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
        return FrameTable.of(native)  # which says what is wrong
    if not isinstance(frame, nw.LazyFrame):
        return FrameTable.of(native)
    return LazyTable(frame, tuple(frame.collect_schema().names()))


def counted_by_engine(
    table: Table, secret: Sequence[str], publish: Sequence[str], bins: Sequence[Bins], merges: Sequence[Merge]
) -> Contingency | None:
    """n(s, x) of a lazy frame, counted where its rows are; None of other tables, and where bins are found from rows."""
    if not isinstance(table, LazyTable) or any(binned.quantiles is not None for binned in bins):
        return None
    counts = unlike("rows", [*secret, *publish])
    cells = table.counted([*secret, *publish], counts)
    return contingency_of_counts(cells, counts, secret=secret, publish=publish, bins=bins, merges=merges)


def contingency_of_frame(
    native: Any,
    *,
    secret: str | Sequence[str],
    publish: str | Sequence[str],
    bins: Sequence[Bins | str] | Mapping[str, Any] = (),
    merges: Sequence[Merge] = (),
) -> Contingency:
    """n(s, x) of a frame of any library; one column may be named by itself, and bins as on the command line."""
    table, asked = frame_table(native), bins_of(bins)
    secret = [secret] if isinstance(secret, str) else secret
    publish = [publish] if isinstance(publish, str) else publish
    found = counted_by_engine(table, secret, publish, asked, merges)
    return found or encode(table, secret=secret, publish=publish, bins=asked, merges=merges).contingency
