"""Edges that come from the data: quantiles, and multiples of a width as far as there are numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from privacyfunnel.errors import ColumnError
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.coders import as_numbers
from privacyfunnel.tables.coding.quantiles import QuantileSummary
from privacyfunnel.tables.readers.table_files import Table


def find_edges(table: Table, bins: Iterable[Bins]) -> dict[str, tuple[float, ...]]:
    """The edges of each column that is cut; those that depend on the data cost a reading of the columns concerned."""
    asked = {at.column: at for at in bins}
    edges = {column: at.edges for column, at in asked.items() if at.edges}
    edges |= _quantile_edges(table, {name: at.quantiles for name, at in asked.items() if at.quantiles is not None})
    wide = {column: at for column, at in asked.items() if at.width is not None}
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
