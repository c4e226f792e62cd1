"""Parquet and Arrow IPC: columns with types, turned to text later."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from privacyfunnel.errors import TableError
from privacyfunnel.tables.readers.column_selection import require_columns, select_expression
from privacyfunnel.tables.readers.formats import DEFAULT_TEXT_FORMAT, PLAIN_NUMBERS, NumberFormat, TextFormat

BATCH_ROWS = 1 << 17  # some ten megabytes of a few columns
SLICE_ROWS = {"Parquet": 1 << 20, "Arrow": 1 << 23}  # record batches may be long, and a slice reads whole ones


@dataclass(frozen=True, slots=True)
class ColumnarTable:
    """A Parquet or Arrow IPC file whose footer has been read."""

    path: Path
    kind: str
    columns: tuple[str, ...]
    numbers: NumberFormat = PLAIN_NUMBERS  # how its columns of text write them
    text_format: TextFormat = DEFAULT_TEXT_FORMAT

    @property
    def name(self) -> str:
        return f"'{self.path}'"

    @classmethod
    def open(cls, path: Path, kind: str, numbers: NumberFormat = PLAIN_NUMBERS) -> "ColumnarTable":
        table = cls(path, kind, (), numbers)
        try:
            return cls(path, kind, tuple(table._scan().collect_schema().names()), numbers)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise table._damage_error() from error

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        rows = 0
        try:
            for batch in self._parts(columns):
                rows += batch.height
                yield require_columns(batch, columns, self.name)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._damage_error() from error
        if rows == 0:
            raise TableError(f"{self.name} must have rows; it has none.")

    def _parts(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        # As one stream, polars would read a Parquet file ahead without bound, and keep all of an Arrow file mapped.
        step = SLICE_ROWS[self.kind]
        for start in range(0, self._scan().select(pl.len()).collect().item(), step):
            yield from (
                self._scan()
                .select(select_expression(columns))
                .slice(start, step)
                .collect_batches(chunk_size=BATCH_ROWS)
            )

    def _scan(self) -> pl.LazyFrame:
        if self.kind == "Parquet":
            return pl.scan_parquet(self.path, glob=False)
        return pl.scan_ipc(self.path, glob=False)

    def _damage_error(self) -> TableError:
        return TableError(
            f"{self.name} must be a whole {self.kind} file; it is damaged or something else. Get a fresh copy."
        )
