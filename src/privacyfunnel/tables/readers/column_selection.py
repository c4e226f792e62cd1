"""Columns picked by their very names. Given a text such as `*` or `^o.*$`, polars picks all columns that match it."""

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
