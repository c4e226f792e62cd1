"""Columns picked by their very names. Given a text such as `*` or `^o.*$`, polars picks all columns that match it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import polars as pl
from polars import selectors
from polars.datatypes import DataTypeClass

from privacyfunnel.errors import TableError

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)
Kind = pl.DataType | DataTypeClass


def select_expression(columns: Sequence[str]) -> pl.Expr:
    """What picks exactly these columns, in this order, in a polars expression.

    >>> pl.DataFrame({"*": [1], "a": [2]}).select(select_expression(["*"])).columns
    ['*']
    """
    return selectors.by_name(list(columns)).as_expr()


def select_columns(rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """These columns of a frame, in this order."""
    return pl.DataFrame({column: rows.get_column(column) for column in columns})  # a list would rename a column ""


def categories_to_text(rows: Frame) -> Frame:
    """The same columns, those of categories, or of lists of them and such, as text.

    Their list of categories may name people that no row is about.
    """
    kinds = rows.collect_schema()
    plain = {name: _categories_to_text(kind) for name, kind in kinds.items()}
    return rows.with_columns(selectors.by_name(name).cast(plain[name]) for name in kinds if kinds[name] != plain[name])


def _categories_to_text(kind: Kind) -> Kind:
    if kind.base_type() in (pl.Categorical, pl.Enum):
        return pl.String()
    if isinstance(kind, pl.List):
        return pl.List(_categories_to_text(kind.inner))
    if isinstance(kind, pl.Array):
        return pl.Array(_categories_to_text(kind.inner), kind.size)
    if isinstance(kind, pl.Struct):
        return pl.Struct({field.name: _categories_to_text(field.dtype) for field in kind.fields})
    return kind


def drop_name(entries: pl.Series) -> pl.Series:
    """The entries without the column's name: polars looks a series up by it, as a pattern, in many a method."""
    return entries.alias("")


def require_columns(batch: pl.DataFrame, columns: Sequence[str], table: str) -> pl.DataFrame:
    """`batch`, if it has the columns that were asked for and no other: what was not asked for must not get out."""
    if batch.columns != list(columns):
        raise TableError(
            f"{table} must give the {len(columns)} columns that it is asked for; it gave others. Rename columns whose "
            "names look like patterns."
        )
    return batch


HEADER_ROWS = 20  # in which the names of columns are looked for
FEWEST_NAMES = 3  # columns below titles: fewer may be a title with a comma in it


def find_header_row(rows: Sequence[Sequence[str]], given: int | None = None) -> int:
    """How many rows stand above the names of the columns: titles, each of one cell, and blank rows.

    Names are texts, all different, above rows of the same width. Where that is not plain, the first row holds them.

    >>> find_header_row([["Register 2026", "", ""], ["", "", ""], ["a", "b", "c"], ["1", "2", "3"], ["4", "5", "6"]])
    2
    >>> find_header_row([["name"], ["Ann", "Bob", "7"], ["Cy", "Di", "8"]])
    0
    >>> find_header_row([["x"], ["a ", " b ", " c"], ["a ", " b ", " d"], ["a ", " b ", " d"]])
    0
    """
    if given is not None:
        return given - 1
    for i, row in enumerate(rows):
        filled = [cell.strip() for cell in row if cell.strip()]
        below = rows[i + 1 : i + 3]
        if len(filled) <= 1:
            continue
        named = len(filled) == len(row) == len({*filled}) and not any(map(_is_no_name, row))
        same = len(below) == 2 and all(len(each) == len(row) for each in below)
        return i if i and named and same and len(row) >= FEWEST_NAMES else 0
    return 0


def _is_no_name(text: str) -> bool:
    """Whether the text has a digit in front, as a number or a date, or a blank, as a part of the label `a | b`."""
    return text[:1].isdigit() or text[:1] in "+- "
