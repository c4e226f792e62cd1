"""Kept columns pass through as they are: what they say of which row is which, and of the secret.

A random order hides who stood where. A kept column may undo that: a number that rises from row to row gives back the
order of the table, an id finds the row of whoever is known by it. So the question that is asked of the order of the
table is asked of the order that each kept column gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from privacyfunnel.arrays import IntArray
from privacyfunnel.model.row_order_leak import NeighbourGuesses, OrderLeak

MOST_ROWS = 1 << 20  # rows of a kept column that are looked at; every k-th where there are more
APART = 0.5  # different values per row: above it, fewer than two rows share a value on average


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """What a kept column gives away beside its own content."""

    column: str
    tells_rows_apart: bool
    sorted: bool  # it never falls, or never rises, from one row of the table to the next
    tells: OrderLeak  # what the order that it gives says about the secret

    @property
    def order_statement(self) -> str:
        """What it says of which row is which, in words that may be published; nothing where it says nothing."""
        parts = []
        if self.tells_rows_apart:
            parts.append("tells rows apart, so the random order of the rows hides nothing from whoever knows it")
        if self.sorted:
            parts.append("is sorted as the table is, so it gives back the order of the rows")
        return f"{self.column} {', and '.join(parts)}" if parts else ""

    @property
    def secret_statement(self) -> str:
        """What the order that it gives says about the secret, for the owner; nothing where it says nothing."""
        return f"ordered by {self.column}, {self.tells}" if self.tells.is_leak else ""


class KeptColumnAnalysis:
    """Kept columns beside the secret, gathered while a table of about `rows` rows is drawn."""

    def __init__(self, columns: Sequence[str], values: int, rows: int) -> None:
        self._columns, self._values = tuple(columns), values
        self._step, self._next = max(1, -(-rows // MOST_ROWS)), 0
        self._kept: list[pl.DataFrame] = []
        self._secrets: list[IntArray] = []

    def add(self, kept: pl.DataFrame | None, secrets: IntArray) -> None:
        """Look at some rows, which follow on those before."""
        if kept is not None:
            self._kept.append(kept[self._next :: self._step])
            self._secrets.append(secrets[self._next :: self._step])
            self._next = (self._next - len(secrets)) % self._step

    def kept_columns(self) -> tuple[KeptColumn, ...]:
        """Every kept column that was looked at."""
        if not self._kept:
            return ()
        rows, secrets = pl.concat(self._kept), np.concatenate(self._secrets)
        return tuple(analyse_kept_column(name, rows[name], secrets, self._values) for name in self._columns)


def analyse_kept_column(name: str, entries: pl.Series, secrets: IntArray, values: int) -> KeptColumn:
    """What a column gives away whose rows have these secrets, as codes below `values`."""
    order = _sort_ranks(entries.alias(""))
    # Rows with the same entry come in any order but that of the table, which is not published.
    mixed = np.random.default_rng(0).permutation(len(order))
    neighbours = NeighbourGuesses(values)
    neighbours.add(secrets[mixed][np.argsort(order[mixed], kind="stable")])
    distinct = len(np.unique(order))
    steps = np.diff(order)
    runs = distinct > 1 and (bool((steps >= 0).all()) or bool((steps <= 0).all()))
    return KeptColumn(name, distinct > APART * len(order), runs, neighbours.best_guess())


def _sort_ranks(entries: pl.Series) -> IntArray:
    """A number per entry that sorts as the entries do; those that have no order, as their text."""
    if entries.dtype == pl.String:
        numbers = entries.cast(pl.Float64, strict=False)
        entries = numbers if numbers.null_count() == entries.null_count() else entries
    elif entries.dtype.is_nested() or entries.dtype in {pl.Binary, pl.Object}:
        entries = pl.Series([str(entry) for entry in entries.to_list()], dtype=pl.String)
    found: IntArray = entries.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
    return found


def kept_column_statements(
    keep: Sequence[str], columns: Sequence[KeptColumn], secret: str, *, order: bool, judged: bool
) -> list[str]:
    """What kept columns and a kept order leave unprotected, a sentence each; `judged` where ε is about both."""
    found = []
    if keep:
        covers = (
            f"ε is about them and what is published together, as far as {secret} goes"
            if judged
            else (f"the promise does not cover them: what is published may leak more about {secret} together with them")
        )
        found.append(f"Kept as they are: {', '.join(keep)}; {covers}.")
    found += [f"The kept column {column.order_statement}." for column in columns if column.order_statement]
    if order:
        found.append(
            "The rows are in the order of the table. Whoever knows that order, or whose row is which, may learn "
            f"{secret} from it; the promise does not cover them."
        )
    return found
