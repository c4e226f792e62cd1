"""Results of an estimate: tables of shares with intervals, and notes on what could not be estimated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from privacyfunnel.errors import ColumnError
from privacyfunnel.names import unique_label
from privacyfunnel.notebook_html import MOST_ROWS, facts_html, table_html

NUMBERS = ("share", "standard_error", "lower", "upper", "count", "rows")


@dataclass(frozen=True, slots=True)
class Cell:
    """A share of the rows of a group, between `lower` and `upper` at the level asked for.

    Where the protocol does not identify the share there is no number for it: `share` and `standard_error` are `None`,
    and `lower` and `upper` are the smallest and largest share that fit what was published.
    """

    labels: tuple[str, ...]  # one per column of the table
    share: float | None
    standard_error: float | None
    lower: float
    upper: float

    @property
    def identified(self) -> bool:
        """Whether enough rows would tell the share exactly."""
        return self.share is not None


@dataclass(frozen=True, slots=True)
class ShareTable:
    """How the rows of a group divide over the values of one original column, or the combinations of several."""

    columns: tuple[str, ...]
    group: tuple[tuple[str, str], ...]  # kept columns and their labels; empty for the whole table
    rows: int
    cells: tuple[Cell, ...]
    sums: tuple[tuple[tuple[tuple[str, ...], ...], Cell], ...]  # cells that are identified only together, and their sum
    notes: tuple[str, ...]
    method: str | None = None  # by which it was estimated: ml, projection or inversion; None where it was not

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    def cell(self, *labels: str) -> Cell:
        """The cell of these labels."""
        return next(cell for cell in self.cells if cell.labels == labels)


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of original columns from a sanitised table."""

    tables: tuple[ShareTable, ...]
    level: float
    target: str  # table or population
    notes: tuple[str, ...]  # what holds for all tables

    @property
    def methods(self) -> tuple[str, ...]:
        """By which tables were estimated, each once."""
        return tuple(dict.fromkeys(table.method for table in self.tables if table.method is not None))

    @property
    def method(self) -> str:
        """The same as one word, or as several with commas."""
        return ", ".join(self.methods)

    def __iter__(self) -> Iterator[ShareTable]:
        return iter(self.tables)

    def __repr__(self) -> str:
        lines = [f"Estimates by {self.method}, {100 * self.level:g} % intervals"]
        for table in self.tables:
            lines.append(f"  {' & '.join(table.columns)}, {table.rows:,} rows{_format_group(table)}")
            lines += [f"    {' & '.join(cell.labels)}: {_format_cell(cell)}" for cell in table.cells[:MOST_ROWS]]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = []
        for table in self.tables:
            told = [("rows", f"{table.rows:,}"), *(("note", note) for note in table.notes)]
            rows = [[*cell.labels, _format_cell(cell)] for cell in table.cells]
            bars = [cell.upper if cell.share is None else cell.share for cell in table.cells]
            parts.append(facts_html(f"Shares of {' & '.join(table.columns)}{_format_group(table)}", told))
            parts.append(table_html([*table.columns, f"share, {100 * self.level:g} %"], rows, bars))
        return "".join(parts)

    def __getitem__(self, columns: str | tuple[str, ...]) -> ShareTable:
        """The table of a column, or of several, in all rows."""
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        for table in self.tables:
            if table.columns == names:
                return table
        known = ", ".join(" & ".join(table.columns) for table in self.tables)
        raise ColumnError(
            f"There is no table of {' & '.join(names)}; there are those of {known}. Ask for it by columns=."
        )

    def table(self, *columns: str, group: tuple[str, ...] = ()) -> ShareTable:
        """The table of these columns in the group with these labels."""
        return next(
            table
            for table in self.tables
            if table.columns == columns and tuple(label for _, label in table.group) == group
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "method": self.method,
            "level": self.level,
            "target": self.target,
            "notes": list(self.notes),
            "tables": [
                {
                    "columns": list(table.columns),
                    "group": dict(table.group),
                    "rows": table.rows,
                    "method": table.method,
                    "cells": [_cell_to_dict(cell) for cell in table.cells],
                    "sums": [
                        {**_cell_to_dict(cell), "labels": [list(labels) for labels in members]}
                        for members, cell in table.sums
                    ],
                    "notes": list(table.notes),
                }
                for table in self.tables
            ],
        }

    def to_tidy(self) -> pl.DataFrame:
        """One line per value: column, value, share, from, to; shares are those of the rows of its group.

        Values of several columns stand together, joined by ` & `; those of a group in a column of their own.
        """
        lines = [
            {
                **dict(table.group),
                "column": " & ".join(table.columns),
                "value": " & ".join(cell.labels),
                "share": cell.share,
                "from": cell.lower,
                "to": cell.upper,
            }
            for table in self.tables
            for cell in table.cells
        ]
        groups = list(dict.fromkeys(name for table in self.tables for name, _ in table.group))
        text = dict.fromkeys([*groups, "column", "value"], pl.String)
        return pl.DataFrame(lines, schema={**text, **dict.fromkeys(("share", "from", "to"), pl.Float64)})

    def to_pandas(self) -> Any:
        """`to_frame` for pandas."""
        import pandas as pd

        frame = self.to_frame()
        return pd.DataFrame({name: frame[name].to_list() for name in frame.columns})

    def to_frame(self) -> pl.DataFrame:
        """One line per cell: kept columns, original columns, share, standard error, interval, estimated count, rows."""
        columns = list(
            dict.fromkeys(
                name for table in self.tables for name in (*(name for name, _ in table.group), *table.columns)
            )
        )
        text: dict[str, list[str | None]] = {name: [] for name in columns}
        numbers = []
        for table in self.tables:
            for cell in table.cells:
                labels = {**dict(table.group), **dict(zip(table.columns, cell.labels, strict=True))}
                for name in columns:
                    text[name].append(labels.get(name))
                count = None if cell.share is None else cell.share * table.rows
                numbers.append((cell.share, cell.standard_error, cell.lower, cell.upper, count, table.rows))
        kinds = {unique_label(name, columns): pl.Int64 if name == "rows" else pl.Float64 for name in NUMBERS}
        told = pl.DataFrame(numbers, schema=kinds, orient="row")
        return pl.DataFrame(text, schema=dict.fromkeys(columns, pl.String)).hstack(told)


def _cell_to_dict(cell: Cell) -> dict[str, Any]:
    return {
        "labels": list(cell.labels),
        "share": cell.share,
        "standard_error": cell.standard_error,
        "lower": cell.lower,
        "upper": cell.upper,
        "identified": cell.identified,
    }


def _format_group(table: ShareTable) -> str:
    return "".join(f", {column} = {label}" for column, label in table.group)


def _format_cell(cell: Cell) -> str:
    ends = f"{100 * cell.lower:.2f} to {100 * cell.upper:.2f} %"
    return f"not told, {ends}" if cell.share is None else f"{100 * cell.share:.2f} % ({ends})"
