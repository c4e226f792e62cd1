"""Counts n(s, x): cells counted in batches, and variables of one or several columns read as one."""

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray, freeze
from privacyfunnel.names import join_labels
from privacyfunnel.tables.coding.coders import UNKNOWN, Coder, Codes, Coding
from privacyfunnel.tables.coding.merges import Merge

DENSE_CELLS = 1 << 20  # counts in a plain table: 8 MB
MOST_KEYS = 1 << 63  # cells up to which each has a number


class CellCounter:
    """How often each row of codes (a cell) occurs in batches that come one after another."""

    def __init__(self, width: int) -> None:
        self._names = [f"{i}" for i in range(width)]
        self._cells = pl.DataFrame(schema={**dict.fromkeys(self._names, pl.Int64), "count": pl.Int64})
        self._waiting: list[pl.DataFrame] = []
        self._dense = np.zeros(0, dtype=np.int64)  # counts of cells whose codes are below …
        self._sizes: tuple[int, ...] = ()  # … these

    def add_counts(self, codes: Sequence[NDArray[Any]], counts: IntArray) -> None:
        """Add cells that were counted elsewhere: one array of codes per column, and how many rows each cell has."""
        frame = pl.DataFrame(dict(zip(self._names, codes, strict=True)) | {"count": counts}).cast(pl.Int64)
        self._waiting.append(frame.filter(pl.col("count") > 0))

    def add(self, codes: Sequence[Codes], sizes: Sequence[int], rows: int) -> None:
        """Count a batch: one array of `rows` codes per column, column j's codes below `sizes[j]`."""
        cells = math.prod(sizes)
        if cells <= DENSE_CELLS:
            if self._sizes != tuple(sizes) or not len(self._dense):
                self._flush_dense()
                self._sizes, self._dense = tuple(sizes), np.zeros(cells, dtype=np.int64)
            self._dense += np.bincount(pack_codes(codes, sizes, rows), minlength=cells)
        elif cells < MOST_KEYS:  # one number a row is counted in a quarter of the time
            counted = pl.DataFrame({"key": pack_codes(codes, sizes, rows)}).group_by("key").agg(pl.len())
            columns = np.unravel_index(counted["key"].to_numpy().astype(np.int64), tuple(sizes))
            self.add_counts(columns, counted["len"].to_numpy())
        else:
            frame = pl.DataFrame(dict(zip(self._names, codes, strict=True)))
            self._waiting.append(frame.group_by(self._names).agg(pl.len().alias("count")).cast(pl.Int64))
        if sum(frame.height for frame in self._waiting) >= DENSE_CELLS:
            self._merge_waiting()

    def cells(self) -> tuple[IntArray, IntArray]:
        """The cells that occur, in order, a row each, and their counts."""
        self._merge_waiting()
        cells = self._cells.sort(self._names) if self._names else self._cells
        counts: IntArray = cells["count"].to_numpy()
        return np.column_stack([cells[name].to_numpy() for name in self._names] or [np.empty((len(counts), 0))]).astype(
            np.int64
        ), counts

    def _flush_dense(self) -> None:
        """The dense counts as cells among the others."""
        cells = np.flatnonzero(self._dense)
        columns = np.unravel_index(cells, self._sizes) if self._sizes else ()
        counts = dict(zip(self._names, columns, strict=False)) | {"count": self._dense[cells]}
        if len(cells):
            self._waiting.append(pl.DataFrame(counts).cast(pl.Int64))
        self._dense = self._dense[:0]

    def _merge_waiting(self) -> None:
        self._flush_dense()
        everything = pl.concat([self._cells, *self._waiting])
        total = pl.col("count").sum()
        self._cells = everything.group_by(self._names).agg(total) if self._names else everything.select(total)
        self._waiting = []


class CellIndex:
    """The position given to each cell, a row of codes, and -1 to all others. A cell may be listed more than once."""

    def __init__(self, cells: IntArray, positions: IntArray, sizes: Sequence[int]) -> None:
        self._sizes = tuple(sizes)
        self._dense: IntArray | None = None
        if math.prod(sizes) <= DENSE_CELLS:
            self._dense = np.full(math.prod(sizes), UNKNOWN, dtype=np.int64)
            self._dense[pack_codes(list(cells.T), sizes, len(cells))] = positions
        else:
            self._known = self._frame(list(cells.T)).with_columns(position=positions).unique()

    def map(self, becomes: IntArray) -> "CellIndex":
        """The index that gives `becomes[position]` for every position."""
        other = copy(self)
        if self._dense is not None:
            other._dense = np.where(self._dense < 0, UNKNOWN, becomes[self._dense])
        else:
            was = self._known["position"].to_numpy()
            other._known = self._known.with_columns(position=np.where(was < 0, UNKNOWN, becomes[was]))
        return other

    def positions(self, codes: Sequence[Codes], rows: int) -> IntArray:
        if self._dense is not None:
            return np.asarray(self._dense[pack_codes(codes, self._sizes, rows)])
        frame = self._frame(codes).join(self._known, on=self._known.columns[:-1], how="left", maintain_order="left")
        found: IntArray = frame["position"].fill_null(UNKNOWN).to_numpy()
        return found

    def _frame(self, codes: Sequence[Codes] | Sequence[IntArray]) -> pl.DataFrame:
        if math.prod(self._sizes) >= MOST_KEYS:
            return pl.DataFrame({f"{i}": column.astype(np.int64) for i, column in enumerate(codes)})
        key = pack_codes(codes, self._sizes, len(codes[0])).astype(np.int64)
        for column in codes:
            if column.dtype.kind == "i":
                key[column < 0] = UNKNOWN
        return pl.DataFrame({"0": key})

    def column_codes(self, combos: IntArray) -> list[NDArray[np.int32]]:
        """What each code of each column becomes in the combinations at these positions, where columns are recoded one
        by one; and unknown where none has it."""
        if self._dense is not None:
            keys = np.flatnonzero(self._dense >= 0)
            cells, positions = np.unravel_index(keys, self._sizes), self._dense[keys]
        else:
            known = self._known.filter(pl.col("position") >= 0)
            positions = known["position"].to_numpy()
            columns = [known[name].to_numpy() for name in known.columns[:-1]]
            packed = len(columns) < len(self._sizes)
            cells = np.unravel_index(columns[0], self._sizes) if packed else tuple(columns)
        found = []
        for j, (size, column) in enumerate(zip(self._sizes, cells, strict=True)):
            becomes = np.full(size, UNKNOWN, dtype=np.int32)
            becomes[column] = combos[positions, j]
            found.append(becomes)
        return found


def pack_codes(codes: Sequence[Codes] | Sequence[IntArray], sizes: Sequence[int], rows: int) -> Any:
    """The row of codes as one number, in C order; there are fewer than `MOST_KEYS` of them."""
    if len(codes) == 1:
        return codes[0]
    kind = np.dtype(np.uint32 if math.prod(sizes) <= DENSE_CELLS else np.uint64)
    key = np.zeros(rows, dtype=kind)
    for column, size in zip(codes, sizes, strict=True):
        key *= kind.type(size)
        key += column.astype(kind, copy=False)
    return key


def distinct_rows(rows: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct rows in lexicographic order, and the position of each row among them."""
    if rows.shape[1] == 0:
        return rows[:1], np.zeros(len(rows), dtype=np.int64)
    distinct, position = np.unique(rows, axis=0, return_inverse=True)
    return distinct, position.reshape(-1)


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """One or several columns read as one: S, or X = (X¹, …, Xᵐ), with the combinations of values that it takes.

    Where a domain lists none, every combination of its labels is one, and a table has those that occur in it.
    """

    codings: tuple[Coding, ...]
    combos: IntArray  # k × m: the code in each coding, a row per combination, in lexicographic order

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(coding.column for coding in self.codings)

    @property
    def labels(self) -> tuple[str, ...]:
        """A label per combination, such as `Bachelors & Husband`, no two alike."""
        return join_labels(
            [coding.labels[code] for coding, code in zip(self.codings, combo, strict=True)]
            for combo in self.combos.tolist()
        )


@dataclass(frozen=True, slots=True, eq=False)
class Contingency:
    """n(s, x): how many rows hold each secret (c of them) with each combination of published values (k of them)."""

    weights: IntArray  # c × k
    secret: Variable
    published: Variable

    @property
    def secret_columns(self) -> tuple[str, ...]:
        return self.secret.columns

    @property
    def secret_labels(self) -> tuple[str, ...]:
        return self.secret.labels

    @property
    def attribute_names(self) -> tuple[str, ...]:
        return self.published.columns

    @property
    def attribute_labels(self) -> tuple[tuple[str, ...], ...]:
        return tuple(coding.labels for coding in self.published.codings)

    @property
    def combos(self) -> IntArray:
        return self.published.combos

    def select_secret(self, number: int) -> "Contingency":
        """The same rows counted by one of the secret columns alone."""
        combos, position = distinct_rows(self.secret.combos[:, [number]])
        weights = np.zeros((len(combos), self.weights.shape[1]), dtype=np.int64)
        np.add.at(weights, position, self.weights)
        return Contingency(freeze(weights), Variable((self.secret.codings[number],), freeze(combos)), self.published)

    def recode(self, published: Variable) -> "Contingency":
        """The same rows counted by other labels of the published columns, each of which has one."""
        becomes = recode_positions(self.published, published)
        weights = np.zeros((len(self.weights), len(published.combos)), dtype=np.int64)
        np.add.at(weights.T, becomes, self.weights.T)
        return Contingency(freeze(weights), self.secret, published)


def recode_positions(old: Variable, new: Variable) -> IntArray:
    """Where each combination stands in a variable of the same columns: a label that it does not list is its rest."""
    codes = []
    for mine, other, column in zip(old.codings, new.codings, old.combos.T, strict=True):
        place = {label: code for code, label in enumerate(other.labels)}
        rest = UNKNOWN if other.rest is None else other.rest
        becomes = np.array([place.get(label, rest) for label in mine.labels], dtype=np.int64)
        if mine.missing is not None and other.missing is not None:
            becomes[mine.missing] = other.missing
        codes.append(becomes[column])
    index = CellIndex(new.combos, np.arange(len(new.combos)), [len(coding.labels) for coding in new.codings])
    return index.positions(codes, len(old.combos))


@dataclass(frozen=True, slots=True)
class UnknownRows:
    """Rows that hold what is not known."""

    rows: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)  # in which columns a value is not known, in how many rows

    @property
    def combinations(self) -> int:
        """How many at least of these rows hold known values in a combination that is not."""
        return max(0, self.rows - sum(self.columns.values()))

    def combine(self, other: "UnknownRows", rows: int) -> "UnknownRows":
        """Both, which are so many rows together."""
        return UnknownRows(rows, {**self.columns, **other.columns})


def count_variable(
    coders: Sequence[Coder],
    cells: IntArray,
    counts: IntArray,
    known: IntArray | None,
    merges: Mapping[str, Merge] | None = None,
) -> tuple[Variable, CellIndex, IntArray, UnknownRows]:
    """The variable that these columns make, where its combinations are found, the combination of each cell, and which
    rows have none that is known."""
    codings, finals = [], [np.empty((len(cells), 0), dtype=np.int64)]
    strange: dict[str, int] = {}
    for coder, column in zip(coders, cells.T, strict=True):
        coding, final = coder.coding(np.unique(column).tolist())
        if merges and coder.column in merges:
            rows = np.zeros(len(coding.labels), dtype=np.int64)
            np.add.at(rows, final[column], counts)
            coding, becomes = merges[coder.column].merged(coding, rows)
            final = np.where(final < 0, UNKNOWN, becomes[final])
        codings.append(coding)
        finals.append(final[column][:, None])
        lost = int(counts[final[column] < 0].sum())
        if lost:
            strange[coder.column] = lost
    final_cells = np.hstack(finals)
    listed = (final_cells >= 0).all(axis=1)
    positions = np.full(len(cells), UNKNOWN, dtype=np.int64)
    if known is None:
        combos, positions[listed] = distinct_rows(final_cells[listed])
    else:
        combos = known
        lookup = CellIndex(known, np.arange(len(known)), [len(coding.labels) for coding in codings])
        positions[listed] = lookup.positions(list(final_cells[listed].T), int(listed.sum()))
    found = UnknownRows(int(counts[positions < 0].sum()), strange)
    index = CellIndex(cells, positions, [coder.size for coder in coders])
    return Variable(tuple(codings), freeze(combos)), index, positions, found


@dataclass(frozen=True, slots=True)
class MergedLabels:
    """How many labels of a column are published as another one, and how many rows have them: the owner's own."""

    column: str
    merged: int
    labels: int
    share: float  # of the rows

    @classmethod
    def compare(cls, before: Contingency, after: Contingency) -> "tuple[MergedLabels, ...]":
        """The columns of a table of which labels are missing in the other."""
        rows, found = before.weights.sum(axis=0), []
        for j, (old, new) in enumerate(zip(before.published.codings, after.published.codings, strict=True)):
            lost = np.array([label not in new.labels for label in old.labels])
            if lost.any() and not old.edges:
                share = float(rows[lost[before.combos[:, j]]].sum() / rows.sum())
                found.append(cls(old.column, int(lost.sum()), len(old.labels), share))
        return tuple(found)
