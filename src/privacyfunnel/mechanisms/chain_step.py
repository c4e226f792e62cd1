"""One step of a chain: its contexts, each with a channel of integers, kept as one list of entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ProtocolFileError

BITS = 62  # so that a certain output, 2^62, still fits an int64
UNIT = 1 << BITS  # what the integers of a row sum to
HALF = BITS // 2
MOST_ENTRIES = 1 << 24  # that the lines of a file may stand for: values alike share one, so few bytes can say many
FINEST = 1 << (BITS - 40)  # no smaller chance is drawn: products along a path then stay far from underflow


@dataclass(frozen=True, eq=False)
class Step:
    """The contexts of one step. Entries are sorted by context, then value, then output; outputs by context.

    Context k was reached from output `came_by[k]` of the step before, counted over all its contexts. Output o of the
    step belongs to context `context_of_output[o]` and has label `labels[o, i]` in the i-th of the step's attributes.
    In a context that is not listed nothing is said: whatever the value, `otherwise` is shown.
    """

    attributes: tuple[int, ...]
    values: IntArray  # V × attributes: the labels that each value of the step stands for
    parent_output: IntArray  # (K,)
    context_of_output: IntArray  # (O,)
    labels: IntArray  # O × attributes
    value: IntArray  # (entries,)
    output: IntArray  # (entries,), counted over all contexts
    numerator: IntArray  # (entries,)
    default_labels: IntArray  # (attributes,): the labels that are shown in contexts which are not listed

    def __post_init__(self) -> None:
        contexts, outputs = len(self.parent_output), len(self.context_of_output)
        ordered = bool((np.diff(self.context_of_output) >= 0).all())
        inside = (
            self.labels.shape == (outputs, len(self.attributes))
            and self.default_labels.shape == (len(self.attributes),)
            and bool(((self.output >= 0) & (self.output < outputs)).all())
            and bool(((self.value >= 0) & (self.value < len(self.values))).all())
            and bool(((self.context_of_output >= 0) & (self.context_of_output < contexts)).all())
        )
        if not (ordered and inside and self._is_sorted):
            raise ProtocolFileError(
                "Contexts of a chain must be listed in order, once and within bounds; some are not."
            )
        if (self.numerator < FINEST).any() or (self.numerator > UNIT).any():
            raise ProtocolFileError(f"Chances of a chain must lie between 2^-40 and 1; some do not ({BITS} bits).")
        wrong = ~self._complete_rows
        if wrong.any():
            raise ProtocolFileError(
                f"Every row of a channel must sum to 2^{BITS}; {int(wrong.sum())} of {len(wrong)} do not. "
                "The file was damaged or altered: make it again."
            )

    @property
    def _is_sorted(self) -> bool:
        """Whether entries come by context, value and output, each once."""
        cell, output = np.diff(self.cell), np.diff(self.output)
        return bool(((cell > 0) | ((cell == 0) & (output > 0))).all())

    @property
    def _complete_rows(self) -> NDArray[np.bool_]:
        """Which rows sum to 2^62: in two halves of 31 bits each, neither of which can overflow."""
        starts = self.cell_starts[:-1]
        if not len(starts):
            return np.ones(0, dtype=bool)
        high, low = (np.add.reduceat(part, starts) for part in (self.numerator >> HALF, self.numerator & (2**HALF - 1)))
        return np.asarray((low % 2**HALF == 0) & (high + (low >> HALF) == 2**HALF))

    @property
    def context(self) -> IntArray:
        """The context of every entry."""
        return self.context_of_output[self.output]

    @cached_property
    def cell(self) -> IntArray:
        """context · V + value of every entry."""
        return np.asarray(self.context * len(self.values) + self.value)

    @cached_property
    def cells(self) -> IntArray:
        """The pairs of context and value that have a row, in order."""
        return np.unique(self.cell)

    @cached_property
    def cell_starts(self) -> IntArray:
        """Where each row's entries begin, and where the last one ends."""
        return np.searchsorted(self.cell, np.append(self.cells, np.iinfo(np.int64).max))

    @property
    def branching_outputs(self) -> IntArray:
        """Outputs whose context had others: where there is no choice, nothing new is said."""
        many = np.bincount(self.context_of_output, minlength=len(self.parent_output)) > 1
        return np.flatnonzero(many[self.context_of_output])

    def row_numbers(self, context: IntArray, value: IntArray) -> IntArray:
        """The number of the channel row of each pair of context and value; −1 where there is none."""
        cells = self.cells
        wanted = context * len(self.values) + value
        row = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
        return np.where((context >= 0) & (cells[row] == wanted), row, -1)

    def require_rows(self, context: IntArray, value: IntArray) -> IntArray:
        """The same, where each pair must have one."""
        row = self.row_numbers(context, value)
        if (row < 0).any():
            raise ProtocolFileError("Every context must have a row for every value that it can hold; one has not.")
        return row

    def find_outputs(self, context: IntArray, labels: IntArray) -> IntArray:
        """The output by which each context shows these labels (n × attributes); −1 where none does."""
        # Context and labels become one number column by column; ranks in between keep it small, however many there are.
        known, wanted, first = self.context_of_output, context, np.zeros(0, dtype=np.int64)
        for mine, theirs in zip(self.labels.T, labels.T, strict=True):
            size = 1 + int(mine.max(initial=0))
            asked = np.where((wanted >= 0) & (theirs >= 0) & (theirs < size), wanted * size + theirs, -1)
            keys, first, known = np.unique(known * size + mine, return_index=True, return_inverse=True)
            at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
            wanted = np.where((asked >= 0) & (keys[at] == asked), at, -1)
        return np.where(wanted >= 0, first[wanted], -1)

    def entry_numbers(self, row: IntArray, output: IntArray) -> IntArray:
        """The number of the entry by which each channel row becomes an output; −1 where it never does."""
        outputs = len(self.context_of_output)
        entries = self.cell * outputs + self.output
        wanted = self.cells[np.maximum(row, 0)] * outputs + output
        at = np.minimum(np.searchsorted(entries, wanted), len(entries) - 1)
        return np.where((row >= 0) & (output >= 0) & (entries[at] == wanted), at, -1)

    def draw(self, rows: IntArray, random_words: NDArray[np.uint64]) -> IntArray:
        """The output that each word chooses in its row: the first whose running sum exceeds the word's 62 bits."""
        starts = self.cell_starts
        sums = np.cumsum(self.numerator.astype(np.uint64))  # wraps; differences within a row do not
        base = np.concatenate([np.zeros(1, dtype=np.uint64), sums])[starts[:-1]]
        running = (sums - np.repeat(base, np.diff(starts))).astype(np.int64)
        word = (random_words >> np.uint64(64 - BITS)).astype(np.int64)
        low, high = starts[rows], starts[rows + 1] - 1
        while (low < high).any():
            middle = (low + high) // 2
            above = word < running[middle]
            high = np.where(above, middle, high)
            low = np.where(above, low, np.minimum(middle + 1, high))
        return self.output[low]

    def expand_rows(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Every entry of these channel rows, as (place in `rows`, number of the entry)."""
        starts = self.cell_starts
        lengths = starts[rows + 1] - starts[rows]
        place = np.repeat(np.arange(len(rows)), lengths)
        within = np.arange(len(place)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return place, starts[rows[place]] + within

    def to_json(self) -> dict[str, Any]:
        """A line per context: where it came from, its outputs' labels, and its rows; values alike share one."""
        lines = []
        ends = np.searchsorted(self.context, np.arange(len(self.parent_output) + 1)).tolist()
        outs = np.searchsorted(self.context_of_output, np.arange(len(self.parent_output) + 1)).tolist()
        value, output, numerator = self.value.tolist(), self.output.tolist(), self.numerator.tolist()
        for k, origin in enumerate(self.parent_output.tolist()):
            labels = ",".join("/".join(map(str, row)) for row in self.labels[outs[k] : outs[k + 1]].tolist())
            rows: dict[int, str] = {}
            for i in range(ends[k], ends[k + 1]):
                rows[value[i]] = rows.get(value[i], "") + f",{output[i] - outs[k]}:{numerator[i]:x}"
            alike: dict[str, list[str]] = {}
            for x, row in rows.items():
                alike.setdefault(row, []).append(str(x))
            lines.append(f"{origin} {labels} " + ";".join("/".join(xs) + row for row, xs in alike.items()))
        return {
            "attributes": list(self.attributes),
            "values": ["/".join(map(str, row)) for row in self.values.tolist()],
            "otherwise": self.default_labels.tolist(),
            "contexts": lines,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Step:
        """The step that a protocol file states."""
        came_by: list[int] = []
        of_output: list[int] = []
        labels: list[list[int]] = []
        rows = _RowParser()
        for k, line in enumerate(content["contexts"]):
            origin, named, listed = line.split(" ")
            came_by.append(int(origin))
            first = len(labels)
            for label in named.split(","):
                labels.append([int(code) for code in label.split("/")])
                of_output.append(k)
            for row in listed.split(";"):
                rows.add(row, first, len(labels))
        value, output, numerator = rows.entries(np.array(of_output, dtype=np.int64))
        attributes = tuple(content["attributes"])
        return cls(
            attributes=attributes,
            values=_int_table([row.split("/") for row in content["values"]], len(attributes)),
            parent_output=np.array(came_by, dtype=np.int64),
            context_of_output=np.array(of_output, dtype=np.int64),
            labels=_int_table(labels, len(attributes)),
            value=value,
            output=output,
            numerator=numerator,
            default_labels=np.array(content["otherwise"], dtype=np.int64),
        )


def count_entries(steps: Sequence[Mapping[str, Any]]) -> int:
    """How many entries the lines of some steps stand for: found by counting signs, before any is written out."""
    total = 0
    for row in (row for step in steps for line in step["contexts"] for row in line.split(" ")[2].split(";")):
        values, _, channel = row.partition(",")
        total += (values.count("/") + 1) * (channel.count(",") + 1)
    return total


class _RowParser:
    """Rows of channels while they are read: `values,output:numerator,…`, values that are alike sharing one."""

    def __init__(self) -> None:
        self._values: list[int] = []
        self._outputs: list[int] = []
        self._numerators: list[int] = []
        self._ends: list[tuple[int, int]] = [(0, 0)]  # of each row's values and of its entries

    def add(self, row: str, first: int, end: int) -> None:
        """One row of a context whose outputs are `first`, …, `end` − 1."""
        values, *channel = row.split(",")
        for entry in channel:
            y, n = entry.split(":")
            if not 0 <= int(y) < end - first:
                raise ProtocolFileError("Outputs of a context must be listed; some are not.")
            self._outputs.append(first + int(y))
            self._numerators.append(int(n, 16))
        self._values += map(int, values.split("/"))
        self._ends.append((len(self._values), len(self._outputs)))

    def entries(self, context_of_output: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Value, output and numerator of every entry, by context, value and output."""
        ends = np.array(self._ends, dtype=np.int64)
        value = np.array(self._values, dtype=np.int64)
        output, numerator = (np.array(found, dtype=np.int64) for found in (self._outputs, self._numerators))
        row = np.repeat(np.arange(len(ends) - 1), np.diff(ends[:, 0]))  # of each value
        wide = np.diff(ends[:, 1])[row]
        place = np.repeat(np.arange(len(value)), wide)
        entry = np.arange(len(place)) - np.repeat(np.cumsum(wide) - wide, wide) + ends[row[place], 1]
        value, output, numerator = value[place], output[entry], numerator[entry]
        order = np.lexsort((output, value, context_of_output[output]))
        return value[order], output[order], numerator[order]


def next_contexts(came_by: IntArray, output: IntArray) -> IntArray:
    """The context that each output leads to; −1 where there is none."""
    order = np.argsort(came_by, kind="stable")
    at = np.minimum(np.searchsorted(came_by, output, sorter=order), len(came_by) - 1)
    context = order[at]
    return np.where(came_by[context] == output, context, -1)


def _int_table(rows: Sequence[Sequence[Any]], columns: int) -> IntArray:
    return np.array([[int(n) for n in row] for row in rows], dtype=np.int64).reshape(-1, columns)
