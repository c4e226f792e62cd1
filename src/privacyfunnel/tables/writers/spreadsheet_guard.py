"""Cells that a spreadsheet would take for a formula or a day, and how they are written so that it does not.

A cell of text that begins with one of = + - @, a tab or a carriage return, and is no number, gets an apostrophe in
front; so does one like 10-12, 3/5 or MARCH1, which Excel turns into a day for good. Whoever knows the labels of a
column reads them back with or without it: a column in which that could be two labels is not written.
"""

import re
from collections.abc import Sequence

import polars as pl

from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.tables.readers.column_selection import drop_name
from privacyfunnel.tables.readers.formats import DELIMITED

FORMULA = ("=", "+", "-", "@", "\t", "\r")
GUARD = "'"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_MONTH = "(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-zA-Z]{0,6}"
_DAY = rf"^ *(?:[0-9]{{1,2}} *[-/] *[0-9]{{1,4}}|[0-9]{{1,4}} *[-/ ]? *{_MONTH}|{_MONTH} *[-/ ]? *[0-9]{{1,4}}) *$"


def is_like_a_day(text: str) -> bool:
    """Whether a spreadsheet takes a text for a day, or a month, that it was not written as.

    >>> [is_like_a_day(text) for text in ("10-12", "3/5", "Mar 1", "SEPT2", "2020-01-05", "10 to 12", "3-2-1", "Marx")]
    [True, True, True, True, False, False, False, False]
    """
    return re.search(_DAY, text) is not None


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
        twice = sum(
            f"{GUARD}{label}" in column for label in column if label.startswith(FORMULA) or is_like_a_day(label)
        )
        if twice:
            raise ColumnError(
                f"labels must differ in more than an apostrophe in front to be safe in a spreadsheet; {twice} do not. "
                f"Rename them first, or leave out {hint('excel_safe')}."
            )


def guard_formulas(batch: pl.DataFrame) -> pl.DataFrame:
    """The rows as they are safe in a spreadsheet.

    >>> guard_formulas(pl.DataFrame({"a": ["=1+1", "-1", "7-8", "b", None], "b": [-1, 2, 3, 4, 5]}))["a"].to_list()
    ["'=1+1", '-1', "'7-8", 'b', None]
    """
    return pl.DataFrame(
        {column.name: _guard_column(column) if column.dtype == pl.String else column for column in batch.get_columns()}
    )


def strip_guards(text: pl.Series, labels: Sequence[str]) -> pl.Series:
    """The labels that cells show, whether or not they were made safe."""
    guards = {f"{GUARD}{label}": label for label in labels if label.startswith(FORMULA) or is_like_a_day(label)}
    meant = {cell: label for cell, label in guards.items() if cell not in labels}
    return text.replace(meant) if meant else text


def _guard_column(column: pl.Series) -> pl.Series:
    cell = pl.col("cell")
    formula = cell.str.contains(_DAY) | (cell.str.head(1).is_in(FORMULA) & ~cell.str.contains(_NUMBER))
    cells = drop_name(column).alias("cell").to_frame()
    return cells.select(cell=pl.when(formula).then(pl.lit(GUARD) + cell).otherwise(cell))["cell"].alias(column.name)
