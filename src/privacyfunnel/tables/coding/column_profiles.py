"""A glance at a table before anything is decided: of each column its kind, its gaps, its values and how numbers lie."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from privacyfunnel.arrays import IntArray
from privacyfunnel.tables.coding.coders import as_numbers, as_text
from privacyfunnel.tables.readers.table_files import Table

MOST_COUNTED = 20_000  # different values of a column that are told apart; more are said to be more
SHOWN = 4  # of the commonest values
BARS = 48  # of the picture of a column of numbers
FEW = 2  # rows: a value of fewer is that of one person, and is not shown as an example
NUMBERS, DATES, TEXT = "numbers", "dates", "text"
_DATED = r"^\s*\d{4}-\d{2}-\d{2}"  # as dates are written in files


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many rows hold a number in each of equally wide bars from `low` to `high`."""

    low: float
    high: float
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """One column. The owner's own: it has values and counts."""

    column: str
    kind: str
    missing: int
    distinct: int  # different values; at least so many where they are `more`
    more: bool
    common: tuple[tuple[str, int], ...]  # the commonest values and their rows; none that one row has
    rare: int = 0  # values that fewer than ten rows hold, where all were counted
    bars: Histogram | None = None  # of numbers


RARE = 10  # rows


def profile_columns(table: Table) -> tuple[int, tuple[ColumnProfile, ...]]:
    """The number of rows, and every column at a glance; read twice where there are numbers."""
    columns = list(table.columns)
    counts: dict[str, pl.DataFrame | None] = {}
    missing, strangers = dict.fromkeys(columns, 0), dict.fromkeys(columns, 0)
    ends: dict[str, tuple[float, float]] = {}
    dated = dict.fromkeys(columns, True)
    rows = 0
    for batch in table.batches(columns):
        rows += batch.height
        for column in columns:
            text = as_text(batch[column])
            gaps = int((text.is_null() | (text.fill_null("").str.strip_chars() == "")).sum())
            missing[column] += gaps
            if not strangers[column]:
                plain, strange = table.numbers.normalise(batch[column])
                strangers[column] += 0 if strange is None else int(strange.sum())
                numbers, _ = as_numbers(plain)
                finite = numbers.filter(numbers.is_finite().fill_null(False)).to_numpy()
                if finite.size:
                    low, high = ends.get(column, (np.inf, -np.inf))
                    ends[column] = float(finite.min(initial=low)), float(finite.max(initial=high))
            if dated[column]:
                dated[column] = int(text.str.contains(_DATED).fill_null(False).sum()) == batch.height - gaps
            counts[column] = _count_values(counts.get(column), text, begun=column in counts)
    found = []
    for column in columns:
        kind = TEXT
        if not strangers[column] and column in ends:
            kind = NUMBERS
        elif dated[column] and missing[column] < rows:
            kind = DATES
        found.append(_make_profile(column, kind, missing[column], counts[column]))
    return rows, _add_histograms(table, found, ends)


def _count_values(so_far: pl.DataFrame | None, text: pl.Series, *, begun: bool) -> pl.DataFrame | None:
    """Values and their rows; None once they are too many."""
    if begun and so_far is None:
        return None
    mine = pl.DataFrame({"value": text}).drop_nulls().group_by("value").agg(pl.len().cast(pl.Int64).alias("rows"))
    if so_far is not None:
        mine = pl.concat([so_far, mine]).group_by("value").agg(pl.col("rows").sum())
    return mine if mine.height <= MOST_COUNTED else None


def _make_profile(column: str, kind: str, missing: int, counts: pl.DataFrame | None) -> ColumnProfile:
    if counts is None:
        return ColumnProfile(column, kind, missing, MOST_COUNTED, True, ())
    counts = counts.filter(pl.col("value").str.strip_chars() != "")
    top = counts.filter(pl.col("rows") >= FEW).sort(["rows", "value"], descending=[True, False]).head(SHOWN)
    rare = int((counts["rows"] < RARE).sum())
    return ColumnProfile(column, kind, missing, counts.height, False, tuple(top.iter_rows()), rare)


def _add_histograms(
    table: Table, found: list[ColumnProfile], ends: dict[str, tuple[float, float]]
) -> tuple[ColumnProfile, ...]:
    numeric = [at.column for at in found if at.kind == NUMBERS]
    if not numeric:
        return tuple(found)
    held: dict[str, IntArray] = {column: np.zeros(BARS, dtype=np.int64) for column in numeric}
    for batch in table.batches(numeric):
        for column in numeric:
            numbers = as_numbers(table.numbers.normalise(batch[column])[0])[0].drop_nulls().to_numpy()
            held[column] += np.histogram(numbers[np.isfinite(numbers)], bins=BARS, range=ends[column])[0]
    return tuple(
        replace(at, bars=Histogram(*ends[at.column], tuple(held[at.column].tolist()))) if at.column in held else at
        for at in found
    )
