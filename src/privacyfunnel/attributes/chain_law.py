r"""The law of a chain: a tree of contexts, each with a channel of integers.

Attributes are published step by step, one or a few at a time. A context is what was published so far. In a context the
next step's value x becomes output y with chance :math:`N(x, y) / 2^{62}`, so a whole output :math:`y = (y^1, …, y^m)`
has chance

.. math:: P(y \mid E) = \sum_x P(x \mid E) \prod_j N^j_{y^{<j}}(x^j, y^j) \,/\, 2^{62}.

Only the channels along its own path matter for an output, so the tree holds the contexts that the data reached, and
every output that these could have published is checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ProtocolFileError
from privacyfunnel.exact import NO_LEAK, ExactLeak, exact_leak, worse
from privacyfunnel.joint import Joint
from privacyfunnel.promises import Comparisons, Leak
from privacyfunnel.protocol import Labels
from privacyfunnel.sampling import Words

BITS = 62  # so that a certain output, 2^62, still fits an int64
UNIT = 1 << BITS
FINEST = 1 << (BITS - 40)  # no smaller chance is drawn: products along a path then stay far from underflow
MOST_STEPS = 20
ROUNDING = 2.0**-53
WORKED_ON = 1 << 23  # entries of P(y | E) that are worked on at a time


@dataclass(frozen=True, eq=False)
class Step:
    """The contexts of one step. Entries are sorted by context, then value, then output; outputs by context.

    Context k was reached from output `came_by[k]` of the step before, counted over all its contexts. Output o of the
    step belongs to context `context_of_output[o]` and has label `labels[o, i]` in the i-th of the step's attributes.
    """

    attributes: tuple[int, ...]
    values: IntArray  # V × attributes: the labels that each value of the step stands for
    came_by: IntArray  # (K,)
    context_of_output: IntArray  # (O,)
    labels: IntArray  # O × attributes
    value: IntArray  # (entries,)
    output: IntArray  # (entries,), counted over all contexts
    numerator: IntArray  # (entries,)

    def __post_init__(self) -> None:
        contexts, outputs = len(self.came_by), len(self.context_of_output)
        ordered = bool((np.diff(self.context_of_output) >= 0).all())
        inside = (
            self.labels.shape == (outputs, len(self.attributes))
            and bool(((self.output >= 0) & (self.output < outputs)).all())
            and bool(((self.value >= 0) & (self.value < len(self.values))).all())
            and bool(((self.context_of_output >= 0) & (self.context_of_output < contexts)).all())
        )
        if not (ordered and inside and bool((np.diff(self.cell) >= 0).all())):
            raise ProtocolFileError("Contexts of a chain must be listed in order and within bounds; some are not.")
        starts = self.cell_starts[:-1]
        # Each entry is at most 2^62 and a row has few: a sum that wrapped would not come back to 2^62 exactly.
        if (self.numerator < FINEST).any() or (self.numerator > UNIT).any():
            raise ProtocolFileError(f"Chances of a chain must lie between 2^-40 and 1; some do not ({BITS} bits).")
        sums = np.add.reduceat(self.numerator.astype(object), starts) if len(starts) else np.zeros(0, dtype=object)
        if (sums != UNIT).any():
            raise ProtocolFileError(
                f"Every row of a channel must sum to 2^{BITS}; {int((sums != UNIT).sum())} of {len(sums)} do not. "
                "The file was damaged or altered: make it again."
            )

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
    def chosen(self) -> IntArray:
        """Outputs whose context had others: where there is no choice, nothing new is said."""
        many = np.bincount(self.context_of_output, minlength=len(self.came_by)) > 1
        return np.flatnonzero(many[self.context_of_output])

    def rows_of(self, context: IntArray, value: IntArray) -> IntArray:
        """The number of the channel row of each pair of context and value; −1 where there is none."""
        cells = self.cells
        wanted = context * len(self.values) + value
        row = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
        return np.where((context >= 0) & (cells[row] == wanted), row, -1)

    def draw(self, rows: IntArray, words: NDArray[np.uint64]) -> IntArray:
        """The output that each word chooses in its row: the first whose running sum exceeds the word's 62 bits."""
        starts = self.cell_starts
        sums = np.cumsum(self.numerator.astype(np.uint64))  # wraps; differences within a row do not
        base = np.concatenate([np.zeros(1, dtype=np.uint64), sums])[starts[:-1]]
        running = (sums - np.repeat(base, np.diff(starts))).astype(np.int64)
        word = (words >> np.uint64(64 - BITS)).astype(np.int64)
        low, high = starts[rows], starts[rows + 1] - 1
        while (low < high).any():
            middle = (low + high) // 2
            above = word < running[middle]
            high = np.where(above, middle, high)
            low = np.where(above, low, np.minimum(middle + 1, high))
        return self.output[low]

    def spread(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Every entry of these channel rows, as (place in `rows`, number of the entry)."""
        starts = self.cell_starts
        lengths = starts[rows + 1] - starts[rows]
        place = np.repeat(np.arange(len(rows)), lengths)
        within = np.arange(len(place)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return place, starts[rows[place]] + within

    def to_json(self) -> dict[str, Any]:
        """A line per context: where it came from, its outputs' labels, and its rows; values alike share one."""
        lines = []
        ends = np.searchsorted(self.context, np.arange(len(self.came_by) + 1)).tolist()
        outs = np.searchsorted(self.context_of_output, np.arange(len(self.came_by) + 1)).tolist()
        value, output, numerator = self.value.tolist(), self.output.tolist(), self.numerator.tolist()
        for k, origin in enumerate(self.came_by.tolist()):
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
            "contexts": lines,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Step:
        """The step that a protocol file states."""
        came_by: list[int] = []
        of_output: list[int] = []
        labels: list[list[int]] = []
        entries: list[tuple[int, int, int]] = []
        for k, line in enumerate(content["contexts"]):
            origin, named, rows = line.split(" ")
            came_by.append(int(origin))
            first = len(labels)
            for label in named.split(","):
                labels.append([int(code) for code in label.split("/")])
                of_output.append(k)
            listed = []
            for row in rows.split(";"):
                xs, *channel = row.split(",")
                for x in xs.split("/"):
                    for y, n in (entry.split(":") for entry in channel):
                        if not 0 <= int(y) < len(labels) - first:
                            raise ProtocolFileError("Outputs of a context must be listed; some are not.")
                        listed.append((int(x), first + int(y), int(n, 16)))
            entries += sorted(listed)
        table = np.array(entries, dtype=np.int64).reshape(-1, 3)
        attributes = tuple(map(int, content["attributes"]))
        return cls(
            attributes=attributes,
            values=_table([row.split("/") for row in content["values"]], len(attributes)),
            came_by=np.array(came_by, dtype=np.int64),
            context_of_output=np.array(of_output, dtype=np.int64),
            labels=_table(labels, len(attributes)),
            value=table[:, 0],
            output=table[:, 1],
            numerator=table[:, 2],
        )


@dataclass(frozen=True, eq=False)
class ChainLaw:
    """Steps of a chain, the labels of each published column, and the combinations of labels that are inputs."""

    steps: tuple[Step, ...]
    columns: tuple[Labels, ...]
    combos: IntArray
    kind: ClassVar[str] = "chain"
    checked: ClassVar[str] = "with every rounding outwards"
    sees_secret: ClassVar[bool] = False

    def __post_init__(self) -> None:
        attributes = sorted(j for step in self.steps for j in step.attributes)
        if attributes != list(range(len(self.columns))) or self.combos.shape[1] != len(self.columns):
            raise ProtocolFileError("A chain must publish every attribute in exactly one step; this one does not.")
        if len(self.steps) > MOST_STEPS:
            raise ProtocolFileError(f"A chain has at most {MOST_STEPS} steps; this one has {len(self.steps)}.")
        if any(len(set(labels)) != len(labels) for labels in self.columns):
            raise ProtocolFileError("The labels of a published column must differ; some repeat.")
        before = 1  # what leads to the contexts of the first step
        for step in self.steps:
            self._check(step, before)
            before = len(step.context_of_output)

    def _check(self, step: Step, before: int) -> None:
        """Refuse a step whose contexts come from nowhere, and labels or values that are not in the columns."""
        came_by = step.came_by
        if not len(came_by) or came_by.min() < 0 or came_by.max() >= before or len(np.unique(came_by)) < len(came_by):
            raise ProtocolFileError("Every context must come from an output of its own; some do not.")
        for i, j in enumerate(step.attributes):
            codes = step.labels[:, i]
            if codes.min(initial=0) < 0 or codes.max(initial=0) >= len(self.columns[j]):
                raise ProtocolFileError("Every output must have labels of its columns; some have others.")
        names = np.column_stack([step.context_of_output, step.labels])
        if len(np.unique(names, axis=0)) < len(names):
            raise ProtocolFileError("Outputs of one context must have different labels; some have not.")
        held = {tuple(row) for row in step.values.tolist()}
        wanted = set(map(tuple, np.unique(self.combos[:, list(step.attributes)], axis=0).tolist()))
        if len(held) < len(step.values) or not wanted <= held:
            raise ProtocolFileError("A step must list every value of its columns once; it does not.")

    @cached_property
    def _values(self) -> tuple[IntArray, ...]:
        """For each step the value that every input has in it."""
        return tuple(value_numbers(self.combos, step.attributes, step.values) for step in self.steps)

    def values_of(self, number: int) -> IntArray:
        """The value that every input has in that step."""
        return self._values[number]

    @property
    def inputs(self) -> int:
        """How many combinations are inputs."""
        return len(self.combos)

    @property
    def protocol(self) -> ReachedChain:
        """The law as something to measure."""
        return ReachedChain(self)

    def paths(self) -> Iterator[tuple[Step, csr_array]]:
        """For every step P(y^1, …, y^j | x), a row per output that its contexts could publish."""
        path = coo_array(np.ones((1, len(self.combos))))
        for number, (step, values) in enumerate(zip(self.steps, self._values, strict=True)):
            node, combo = path.coords
            rows = step.rows_of(node.astype(np.int64), values[combo])
            if (rows < 0).any():
                raise ProtocolFileError("Every context must have a row for every value that it can hold; one has not.")
            pair, entry = step.spread(rows)
            chance = path.data[pair] * (step.numerator[entry] / UNIT)
            shape = (len(step.context_of_output), len(self.combos))
            outputs = csr_array(coo_array((chance, (step.output[entry], combo[pair])), shape=shape))
            yield step, outputs
            if number + 1 < len(self.steps):
                path = coo_array(csr_array(outputs[self.steps[number + 1].came_by]))

    def whole_outputs(self) -> tuple[IntArray, csr_array]:
        """Every whole output that reached contexts could publish: the codes of its labels, and P(y | x), a row each."""
        shown, chances = np.zeros((1, len(self.columns)), dtype=np.int64), csr_array(np.ones((1, len(self.combos))))
        for step, outputs in self.paths():
            shown = shown[step.came_by][step.context_of_output]
            shown[:, list(step.attributes)] = step.labels
            chances = outputs
        return shown, chances

    def worst(self, comparisons: Comparisons) -> ExactLeak:
        r"""An upper bound on the largest ratio, over every output that a reached context could have published.

        All terms of P(y|E) are positive, so a float sum of n terms with m factors each is off by a factor of at most
        :math:`(1 + 2^{-53})^{n + 2m + 4}`. The bound is widened by that, twice: nothing is left to rounding.
        """
        if comparisons.inputs != len(self.combos):
            raise ProtocolFileError(
                f"A law must have a row per input; it has {len(self.combos)}, the table {comparisons.inputs}."
            )
        given = csr_array(comparisons.distributions.T)
        width = max(given.shape[1], len(comparisons.pairs))
        error = math.expm1(2 * (len(self.combos) + 2 * len(self.steps) + 8) * ROUNDING)
        largest = NO_LEAK
        for step, outputs in self.paths():
            for part in np.array_split(step.chosen, 1 + len(step.chosen) * width // WORKED_ON):
                largest = worse(largest, _outward(comparisons, csr_array(outputs[part]), given, part, error))
        return largest

    def draw(self, codes: NDArray[Any], stream: Words, first_row: int) -> NDArray[Any]:
        drawn = np.zeros((len(codes), len(self.columns)), dtype=np.int64)
        node = np.zeros(len(codes), dtype=np.int64)
        for number, (step, values) in enumerate(zip(self.steps, self._values, strict=True)):
            row = step.rows_of(node, values[codes])
            if (row < 0).any():
                raise ProtocolFileError(
                    f"A chain is made for the rows that it was drawn for; {int((row < 0).sum())} of {len(codes)} rows "
                    "came to a context that is not in it. Sanitise the table again."
                )
            output = step.draw(row, stream.words(first_row, len(codes), draw=number))
            drawn[:, list(step.attributes)] = step.labels[output]
            if number + 1 < len(self.steps):
                node = arrivals(self.steps[number + 1].came_by, output)
        return drawn

    def to_json(self) -> dict[str, Any]:
        return {
            "bits": BITS,
            "columns": [list(labels) for labels in self.columns],
            "steps": [step.to_json() for step in self.steps],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], sees_secret: bool, combos: IntArray) -> ChainLaw:
        """The law that a protocol file states, over the combinations of its domain."""
        if sees_secret or content["bits"] != BITS:
            raise ProtocolFileError(f"A chain never sees the secret and has {BITS} bits; this file says otherwise.")
        columns = tuple(tuple(map(str, labels)) for labels in content["columns"])
        return cls(tuple(Step.from_json(step) for step in content["steps"]), columns, combos)


@dataclass(frozen=True, slots=True, eq=False)
class ReachedChain:
    """A chain as a protocol. What it could have published in contexts that no row came to counts as not published."""

    law: ChainLaw
    sees_secret: ClassVar[bool] = False

    def worst(self, comparisons: Comparisons) -> Leak:
        """The largest log-ratio, rounded upwards."""
        return self.law.worst(comparisons).leak

    def mutual_information(self, joint: Joint) -> float:
        """I(X;Y) in nats: what each step adds in each context, H(p) − Σ_y q_y H(v_y), times the context's chance."""
        p_x, total = joint.p_x, 0.0
        for number, (step, outputs) in enumerate(self.law.paths()):
            p = csr_array(outputs.multiply(p_x[None, :]))
            values = self.law.values_of(number)
            sums = coo_array((np.ones(len(values)), (np.arange(len(values)), values)))
            p_yx = coo_array(csr_array(p @ csr_array(sums)))  # output × value of the step
            output, value = p_yx.coords
            context = step.context_of_output[output]
            size = len(step.values)
            p_cx = np.bincount(context * size + value, p_yx.data, minlength=len(step.came_by) * size)
            p_c = p_cx.reshape(-1, size).sum(axis=1)
            p_y = np.bincount(output, p_yx.data, minlength=outputs.shape[0])
            # Σ p(x,y) ln p(x,y) p(c) / (p(x,c) p(y)), over all contexts c of the step
            cell = context * size + value
            terms = p_yx.data * np.log(p_yx.data * p_c[context] / (p_cx[cell] * p_y[output]))
            total += float(terms.sum())
        return max(0.0, total)


def value_numbers(combos: IntArray, attributes: tuple[int, ...], values: IntArray) -> IntArray:
    """Which of a step's values each combination has."""
    place = {tuple(row): number for number, row in enumerate(values.tolist())}
    return np.array([place[tuple(row)] for row in combos[:, attributes].tolist()], dtype=np.int64)


def arrivals(came_by: IntArray, output: IntArray) -> IntArray:
    """The context that each output leads to; −1 where there is none."""
    order = np.argsort(came_by, kind="stable")
    at = np.minimum(np.searchsorted(came_by, output, sorter=order), len(came_by) - 1)
    context = order[at]
    return np.where(came_by[context] == output, context, -1)


def _outward(
    comparisons: Comparisons, outputs: csr_array, given: csr_array, names: IntArray, error: float
) -> ExactLeak:
    if not len(names):
        return NO_LEAK
    p = np.asarray(csr_array(outputs @ given).toarray(), dtype=np.float64)
    one, other = p[:, comparisons.pairs[:, 0]], p[:, comparisons.pairs[:, 1]]
    only_one = (one > 0) != (other > 0)
    if only_one.any():
        output, pair = map(int, np.argwhere(only_one)[0])
        return exact_leak(comparisons, None, pair, int(names[output]))
    both = one > 0
    ratio = np.divide(one, other, out=np.ones_like(one), where=both)
    ratio = np.maximum(ratio, np.divide(1.0, ratio))
    output, pair = map(int, np.unravel_index(int(ratio.argmax()), ratio.shape))
    above = Fraction(float(ratio[output, pair])) * (1 + Fraction(error))
    return exact_leak(comparisons, above, pair, int(names[output]))


def _table(rows: Sequence[Sequence[Any]], columns: int) -> IntArray:
    return np.array([[int(n) for n in row] for row in rows], dtype=np.int64).reshape(-1, columns)
