"""What a table is to everybody who reads one: rows under named columns, as often as needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from privacyfunnel.tables.readers.formats import NumberFormat, TextFormat

if TYPE_CHECKING:
    import polars as pl


@runtime_checkable
class Table(Protocol):
    """Rows under named columns."""

    @property
    def name(self) -> str:
        """How messages speak of the table."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names in the header."""

    @property
    def numbers(self) -> NumberFormat:
        """How its text writes numbers."""

    @property
    def text_format(self) -> TextFormat:
        """How a table of text made from it is to be written."""

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """The rows in order, `columns` only, some hundred thousand at a time; every call starts at the first row."""


@dataclass(frozen=True, slots=True, eq=False)
class TableWrapper:
    """A table that is another one, read in some way of its own; what it does not say itself is as it is there."""

    table: Table

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def columns(self) -> tuple[str, ...]:
        return self.table.columns

    @property
    def numbers(self) -> NumberFormat:
        return self.table.numbers

    @property
    def text_format(self) -> TextFormat:
        return self.table.text_format
