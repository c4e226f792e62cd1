"""Variables: the secret and what is published, each one or several columns read as one, and how often they occur."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from privacyfunnel.arrays import IntArray, freeze
from privacyfunnel.names import join_labels
from privacyfunnel.tables.coding.cell_counts import CellIndex, distinct_rows
from privacyfunnel.tables.coding.coders import UNKNOWN, Coder, Coding
from privacyfunnel.tables.coding.merges import Merge


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """One or several columns read as one: S, or X = (X¹, …, Xᵐ), with the combinations of values that it takes."""

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
    if known is None:
        combos, positions = distinct_rows(final_cells)
    else:
        combos = known
        lookup = CellIndex(known, np.arange(len(known)), [len(coding.labels) for coding in codings])
        listed = (final_cells >= 0).all(axis=1)
        positions = np.full(len(cells), UNKNOWN, dtype=np.int64)
        positions[listed] = lookup.positions(list(final_cells[listed].T), int(listed.sum()))
    found = UnknownRows(int(counts[positions < 0].sum()), strange)
    index = CellIndex(cells, positions, [coder.size for coder in coders])
    return Variable(tuple(codings), freeze(combos)), index, positions, found
