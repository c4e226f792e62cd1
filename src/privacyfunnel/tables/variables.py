"""Variables: the secret and what is published, each one or several columns read as one, and how often they occur."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import IntArray, frozen
from privacyfunnel.errors import TableError
from privacyfunnel.tables.columns import UNKNOWN, Coder, Coding
from privacyfunnel.tables.merging import Merge
from privacyfunnel.tables.names import joined_labels
from privacyfunnel.tables.tally import Index, distinct_rows


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
        return joined_labels(
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


def counted_variable(
    coders: Sequence[Coder],
    cells: IntArray,
    counts: IntArray,
    known: IntArray | None,
    merges: Mapping[str, Merge] | None = None,
) -> tuple[Variable, Index, IntArray]:
    """The variable that these columns make, where its combinations are found, and the combination of each cell."""
    codings, finals = [], [np.empty((len(cells), 0), dtype=np.int64)]
    for coder, column in zip(coders, cells.T, strict=True):
        coding, final = coder.coding(np.unique(column).tolist())
        if merges and coder.column in merges:
            rows = np.zeros(len(coding.labels), dtype=np.int64)
            np.add.at(rows, final[column], counts)
            coding, becomes = merges[coder.column].merged(coding, rows)
            final = np.where(final < 0, UNKNOWN, becomes[final])
        codings.append(coding)
        finals.append(final[column][:, None])
    final_cells = np.hstack(finals)
    if known is None:
        combos, positions = distinct_rows(final_cells)
    else:
        combos = known
        lookup = Index(known, np.arange(len(known)), [len(coding.labels) for coding in codings])
        positions = lookup.positions(list(final_cells.T), len(cells))
        unknown = int(counts[positions < 0].sum())
        if unknown:
            names = " & ".join(coder.column for coder in coders)
            raise TableError(
                f"columns {names} must hold only combinations the protocol knows; {unknown} rows hold others. "
                "Use the table the protocol was made for."
            )
    index = Index(cells, positions, [coder.size for coder in coders])
    return Variable(tuple(codings), frozen(combos)), index, positions
