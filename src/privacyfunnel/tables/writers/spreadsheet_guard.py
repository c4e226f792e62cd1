"""Cells that a spreadsheet would take for a formula, and how they are written so that it does not.

A cell of text that begins with one of = + - @, a tab or a carriage return, and is no number, gets an apostrophe in
front. Whoever knows the labels of a column reads them back with or without it: a column in which that could be two
labels is not written.
"""

from collections.abc import Sequence

import polars as pl

from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.tables.readers.column_selection import drop_name
from privacyfunnel.tables.readers.formats import DELIMITED

FORMULA = ("=", "+", "-", "@", "\t", "\r")
GUARD = "'"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def refuse_unsafe(suffix: str, names: Sequence[str], labels: Sequence[Sequence[str]]) -> None:
    """Refuse a table that could not be written safely, or whose labels could not be told apart afterwards."""
    if suffix not in DELIMITED:
        raise ParameterError(
            f"{hint('excel_safe')} needs a text format; the table is written as {suffix}. Use "
            f"{hint('format', 'csv')}, or leave out {hint('excel_safe')}."
        )
    for name in names:
        if name.startswith(FORMULA):
            raise ColumnError(
                f"the name of a column must not begin with = + - @ to be safe in a spreadsheet; that of '{name}' does. "
                "Rename it first."
            )
    for column in labels:
        twice = sum(f"{GUARD}{label}" in column for label in column if label.startswith(FORMULA))
        if twice:
            raise ColumnError(
                f"labels must differ in more than an apostrophe in front to be safe in a spreadsheet; {twice} do not. "
                f"Rename them first, or leave out {hint('excel_safe')}."
            )


def guard_formulas(batch: pl.DataFrame) -> pl.DataFrame:
    """The rows as they are safe in a spreadsheet.

    >>> guard_formulas(pl.DataFrame({"a": ["=1+1", "-1", "-x", "b", None], "b": [-1, 2, 3, 4, 5]}))["a"].to_list()
    ["'=1+1", '-1', "'-x", 'b', None]
    """
    return pl.DataFrame(
        {column.name: _guard_column(column) if column.dtype == pl.String else column for column in batch.get_columns()}
    )


def strip_guards(text: pl.Series, labels: Sequence[str]) -> pl.Series:
    """The labels that cells show, whether or not they were made safe."""
    guards = {f"{GUARD}{label}": label for label in labels if label.startswith(FORMULA)}
    meant = {cell: label for cell, label in guards.items() if cell not in labels}
    return text.replace(meant) if meant else text


def _guard_column(column: pl.Series) -> pl.Series:
    cell = pl.col("cell")
    formula = cell.str.head(1).is_in(FORMULA) & ~cell.str.contains(_NUMBER)
    cells = drop_name(column).alias("cell").to_frame()
    return cells.select(cell=pl.when(formula).then(pl.lit(GUARD) + cell).otherwise(cell))["cell"].alias(column.name)
