"""Bin edges from the data: quantiles of a stream in bounded memory, and multiples of a width."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import polars as pl

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import ColumnError
from privacyfunnel.tables.coding.bins import Bins, round_down
from privacyfunnel.tables.coding.coders import as_numbers
from privacyfunnel.tables.readers.formats import Table

MOST_POINTS = 1 << 20  # numbers that are sorted in memory


class QuantileSummary:
    """Values v₁ < v₂ < … with weights: how many of the n numbers seen so far each value stands for.

    Up to 2²⁰ distinct numbers are counted exactly. When there are more, neighbours are merged into the largest of them,
    in groups of weight below n / 2¹⁷; a number that occurs n / 2¹⁸ times or more is never merged. So a merge moves the
    rank of any number by less than n / 2¹⁷, and one happens at most once per 2¹⁹ new numbers: for 10⁸ numbers, all
    different, a rank is off by less than 0.1 %.
    """

    def __init__(self) -> None:
        self._points = pl.DataFrame(schema={"value": pl.Float64, "weight": pl.Int64})
        self._waiting: list[pl.DataFrame] = []

    def add(self, numbers: pl.Series) -> None:
        """Take in numbers. Nulls and infinities, which no edge can separate, are left out."""
        values = numbers.filter(numbers.is_finite()).rename("value").to_frame()
        self._waiting.append(values.group_by("value").agg(pl.len().cast(pl.Int64).alias("weight")))
        if sum(frame.height for frame in self._waiting) >= MOST_POINTS // 2:
            self._merge_waiting()

    def edges(self, quantiles: int) -> tuple[float, ...]:
        """The cuts as they may be published, each rounded down to a multiple of a coarse step.

        Of a cut q with the cut p before it (of the first cut: the number that half a bin lies up to, or the smallest
        one), the step is the coarsest of 1, 2, 2.5 and 5 × 10^k up to (q − p) / 2. So an edge lies in (p, q], edges
        stay apart, each cuts off some numbers, and a number that occurs often stays above its edge. An edge depends on
        the data through its step, and through which multiple of it q comes after; on nothing else (Theorem 36).
        """
        cuts = self.cuts(quantiles)
        if not cuts:
            return ()
        values, upto = self._cumulative_ranks()
        half = float(values[np.searchsorted(upto, upto[-1] / (2 * quantiles), side="right")])
        lowest = float(values[0])
        first = half if half < cuts[0] else lowest
        if first == cuts[0]:  # nothing lies below: the cut is the smallest number, and cuts off nothing
            return (math.copysign(round_down(abs(lowest), abs(lowest)), lowest) if lowest else 0.0,)
        return tuple(_round_edge(before, cut) for before, cut in pairwise((first, *cuts)))

    def cuts(self, quantiles: int) -> tuple[float, ...]:
        """Numbers of the data that cut it into bins of equal weight, as nearly as repeated numbers allow.

        Cut i is the smallest number with more than i·n / quantiles numbers up to it. Equal cuts count once, and a
        cut at the smallest number would cut off nothing. Without numbers there are no cuts.
        """
        values, upto = self._cumulative_ranks()
        if not len(values):
            return ()
        ranks = upto[-1] * np.arange(1, quantiles) / quantiles
        positions = np.searchsorted(upto, ranks, side="right")
        return tuple(np.unique(values[positions[positions > 0]]).tolist()) or (float(values[0]),)

    def _cumulative_ranks(self) -> tuple[FloatArray, IntArray]:
        """The values in order, and how many numbers lie up to each."""
        self._merge_waiting()
        return self._points["value"].to_numpy(), self._points["weight"].cum_sum().to_numpy()

    def _merge_waiting(self) -> None:
        points = pl.concat([self._points, *self._waiting]).group_by("value").agg(pl.col("weight").sum()).sort("value")
        self._waiting = []
        if points.height > MOST_POINTS:
            share = max(1, int(points["weight"].sum()) * 4 // MOST_POINTS)
            heavy = pl.col("weight") >= share
            part = pl.col("weight").cum_sum() // share
            # A group ends where a new share begins, and before and after a number that is heavy by itself.
            begins = (part != part.shift(fill_value=-1)) | heavy | heavy.shift(fill_value=False)
            groups = points.group_by(begins.cum_sum().alias("group"), maintain_order=True)
            points = groups.agg(pl.col("value").max(), pl.col("weight").sum()).select("value", "weight")
        self._points = points


def _round_edge(before: float, cut: float) -> float:
    edge = round_down(cut, min(cut - before, sys.float_info.max))
    return edge if edge > before else cut  # floats next to each other have no rounder one between them


def find_edges(table: Table, bins: Iterable[Bins]) -> dict[str, tuple[float, ...]]:
    """The edges of each column that is cut; those that depend on the data cost a reading of the columns concerned."""
    rules = {at.column: at for at in bins}
    edges = {column: at.edges for column, at in rules.items() if at.edges}
    edges |= _quantile_edges(table, {name: at.quantiles for name, at in rules.items() if at.quantiles is not None})
    wide = {column: at for column, at in rules.items() if at.width is not None}
    return edges | {column: wide[column].multiples(*ends) for column, ends in number_ranges(table, list(wide)).items()}


def number_ranges(table: Table, columns: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The smallest and the largest number of each column."""
    found = dict.fromkeys(columns, (math.inf, -math.inf))
    for batch in table.batches(columns) if columns else ():
        for column, (low, high) in found.items():
            numbers = as_numbers(batch[column])[0]
            finite = numbers.filter(numbers.is_finite()).to_numpy()
            found[column] = float(finite.min(initial=low)), float(finite.max(initial=high))
    for column, (low, high) in found.items():
        if low > high:
            raise _no_numbers_error(column)
    return found


def _quantile_edges(table: Table, quantiles: dict[str, int]) -> dict[str, tuple[float, ...]]:
    if not quantiles:
        return {}
    summaries = {column: QuantileSummary() for column in quantiles}
    for batch in table.batches(list(quantiles)):
        for column, summary in summaries.items():
            summary.add(as_numbers(batch[column])[0])
    found = {column: summary.edges(quantiles[column]) for column, summary in summaries.items()}
    for column, edges in found.items():
        if not edges:
            raise _no_numbers_error(column)
    return found


def _no_numbers_error(column: str) -> ColumnError:
    return ColumnError(f"column '{column}' must hold numbers to be binned; every row is missing. Leave it out.")
