"""A first look at every column of a table: numbers binned for the look, each column counted with the secret."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from privacyfunnel.arrays import frozen
from privacyfunnel.errors import ColumnError
from privacyfunnel.tables.bins import Bins
from privacyfunnel.tables.columns import MOST_NUMBERS, as_numbers, as_plain_number, as_text
from privacyfunnel.tables.encoding import Contingency, column_coders, counted_variable
from privacyfunnel.tables.files import Table
from privacyfunnel.tables.names import checked_columns
from privacyfunnel.tables.tally import Tally

LOOK_QUANTILES = 8  # bins of a number that is only looked at


def look(
    table: Table, *, secret: Sequence[str], columns: Sequence[str], bins: Sequence[Bins] = ()
) -> dict[str, Contingency | ColumnError]:
    """n(s, x) for each column x on its own, or why it cannot be counted.

    Columns of many numbers for which no bins are given are cut into eight quantiles. The table is read three times: to
    see which columns are numbers, for their quantiles, and to count.
    """
    secret = checked_columns(secret, table.columns, "secret")
    columns = checked_columns(columns, table.columns, "published")
    given = {binned.column for binned in bins}
    numeric = many_numbers(table, [column for column in (*secret, *columns) if column not in given])
    bins = [*bins, *(Bins(column, quantiles=LOOK_QUANTILES) for column in numeric)]
    coders = {coder.column: coder for coder in column_coders(table, (*secret, *columns), bins)}
    tallies = {column: Tally(len(secret) + 1) for column in columns}
    found: dict[str, Contingency | ColumnError] = {}
    for batch in table.batches(list(coders)):
        secrets = [coders[column].codes(batch[column]) for column in secret]
        for column in list(tallies):
            try:
                codes = [*secrets, coders[column].codes(batch[column])]
            except ColumnError as error:
                found[column] = error
                del tallies[column]
                continue
            tallies[column].add(codes, [coders[name].size for name in (*secret, column)], batch.height)
    keepers = [coders[column] for column in secret]
    for column, tally in tallies.items():
        cells, counts = tally.cells()
        hidden, _, s = counted_variable(keepers, cells[:, :-1], counts, None)
        shown, _, x = counted_variable([coders[column]], cells[:, -1:], counts, None)
        weights = np.zeros((len(hidden.combos), len(shown.combos)), dtype=np.int64)
        np.add.at(weights, (s, x), counts)
        found[column] = Contingency(frozen(weights), hidden, shown)
    return {column: found[column] for column in columns}


def many_numbers(table: Table, columns: Sequence[str]) -> list[str]:
    """Those columns that hold nothing but numbers and gaps, and more different ones than could be categories."""
    seen: dict[str, set[str]] = {column: set() for column in columns}
    for batch in table.batches(columns) if columns else ():
        for column in list(seen):
            entries = batch[column]
            if not _number_like(entries) or as_numbers(entries)[1]:
                del seen[column]
            elif len(seen[column]) <= MOST_NUMBERS:
                labels = as_text(entries).drop_nulls().unique().to_list()
                seen[column].update(label for label in labels if label)
    return [
        column
        for column, labels in seen.items()
        if len(labels) > MOST_NUMBERS and all(as_plain_number(label) is not None for label in labels)
    ]


def _number_like(entries: pl.Series) -> bool:
    return entries.dtype in {pl.String, pl.Null} or entries.dtype.is_numeric()
