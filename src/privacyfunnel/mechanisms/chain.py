r"""Mechanism of a chain: a tree of contexts, each with a channel of integers.

Attributes are published step by step, one or a few at a time. A context is what was published so far. In a context the
next step's value x becomes output y with chance :math:`N(x, y) / 2^{62}`, so a whole output :math:`y = (y^1, …, y^m)`
has chance

.. math:: P(y \mid E) = \sum_x P(x \mid E) \prod_j N^j_{y^{<j}}(x^j, y^j) \,/\, 2^{62}.

Only the channels along its own path matter for an output. The tree holds the contexts that are worth a channel. In all
others nothing more is said: a row that comes there shows, whatever its values, the labels that each later step has for
such contexts. Its posterior stays that of the output which led there, so that the promise holds for the whole output
when it holds for that one, and the mechanism is whole: every row of every table has its chances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, sparse
from privacyfunnel.errors import ProtocolFileError, SizeError
from privacyfunnel.mechanisms.chain_measures import (
    ChainProtocol,
    ChainTally,
    Paths,
    chain_value_joint,
    match_probability,
    outward_leak,
)
from privacyfunnel.mechanisms.chain_step import BITS, MOST_ENTRIES, UNIT, Step, count_entries, next_contexts
from privacyfunnel.mechanisms.credal_checks import outward_credal_leak
from privacyfunnel.mechanisms.exact_arithmetic import NO_LEAK, ExactLeak, larger_leak
from privacyfunnel.mechanisms.mechanism import Mechanism, Model, ObservationModels
from privacyfunnel.mechanisms.sampling import RandomWords
from privacyfunnel.model.comparisons import Comparisons
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Labels
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol

MOST_STEPS = 20  # the error of products of so many chances is still counted outwards
ROUNDING = 2.0**-53  # of one operation on floats
AT_ONCE = 1 << 18  # pairs of a context and an input that it may be, on the way to its outputs
WORKED_ON = 1 << 23  # entries of P(y | E) that are worked on at a time


@dataclass(frozen=True, eq=False)
class ChainMechanism(Mechanism):
    """Steps of a chain, the labels of each published column, and the combinations of labels that are inputs."""

    steps: tuple[Step, ...]
    labels: tuple[Labels, ...]  # of each published column
    combos: IntArray
    kind: ClassVar[str] = "chain"
    check_method: ClassVar[str] = "with every rounding outwards"
    no_table_reason: ClassVar[str] = "a chain has several"
    sees_secret = False

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
            self._check_step(step, before)
            before = len(step.context_of_output)

    def _check_step(self, step: Step, before: int) -> None:
        """Refuse a step whose contexts come from nowhere, and labels or values that are not in the columns."""
        came_by = step.parent_output
        if not len(came_by) or came_by.min() < 0 or came_by.max() >= before or len(np.unique(came_by)) < len(came_by):
            raise ProtocolFileError("Every context must come from an output of its own; some do not.")
        for i, j in enumerate(step.attributes):
            codes = np.append(step.labels[:, i], step.default_labels[i])
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
    def columns(self) -> tuple[Labels, ...]:
        return self.labels

    @property
    def inputs(self) -> int:
        """How many combinations are inputs."""
        return len(self.combos)

    @property
    def protocol(self) -> ChainProtocol:
        return ChainProtocol(self)

    def paths(self) -> Iterator[Paths]:
        path = sparse.csr_array(np.ones((1, len(self.combos))))
        for number, step in enumerate(self.steps):
            onward = (
                self.steps[number + 1].parent_output if number + 1 < len(self.steps) else np.zeros(0, dtype=np.int64)
            )
            order = np.argsort(onward, kind="stable")
            contexts = []
            for first, chances in self._output_chances(step, self._values[number], path):
                yield Paths(number, first, chances)
                mine = slice(*np.searchsorted(onward, [first, first + chances.shape[0]], sorter=order))
                contexts.append(sparse.csr_array(chances[onward[order[mine]] - first]))
            path = sparse.csr_array(sparse.vstack(contexts, format="csr"))
            if (order[1:] < order[:-1]).any():
                path = sparse.csr_array(path[np.argsort(order)])

    def _output_chances(
        self, step: Step, values: IntArray, path: sparse.csr_array
    ) -> Iterator[tuple[int, sparse.csr_array]]:
        """P(y^1, …, y^j | x) of what some contexts publish, from P(context | x), and which output is the first."""
        ends = np.searchsorted(step.context_of_output, np.arange(len(step.parent_output) + 1))
        cuts = np.searchsorted(path.indptr, np.arange(0, path.nnz + AT_ONCE, AT_ONCE))
        for first, last in pairwise(np.unique(np.append(np.minimum(cuts, path.shape[0]), [0, path.shape[0]])).tolist()):
            some = sparse.coo_array(path[first:last])
            node, combo = some.coords
            pair, entry = step.expand_rows(step.require_rows(node.astype(np.int64) + first, values[combo]))
            chance = some.data[pair] * (step.numerator[entry] / UNIT)
            cells = (step.output[entry] - ends[first], combo[pair])
            shape = (int(ends[last] - ends[first]), len(self.combos))
            yield int(ends[first]), sparse.csr_array(sparse.coo_array((chance, cells), shape=shape))

    def final_outputs(self) -> Iterator[tuple[int, IntArray, sparse.csr_array]]:
        """Every whole output, some at a time: the step after which nothing more is said, the codes of the labels of
        each, and P(y | x), a row each."""
        shown, reached = self._default_labels[None, :], -1
        for number, first, chances in self.paths():
            step = self.steps[number]
            if number > reached:
                shown, reached = shown[step.parent_output][step.context_of_output], number
                shown[:, list(step.attributes)] = step.labels
                ends = self._final_output_numbers(number)
            left = ends[slice(*np.searchsorted(ends, [first, first + chances.shape[0]]))]
            yield number, shown[left], sparse.csr_array(chances[left - first])

    def whole_outputs(self) -> tuple[IntArray, sparse.csr_array]:
        """Every whole output: the codes of its labels, and P(y | x), a row each.

        Those of the last step come first, then those of earlier ones that lead to contexts which are not listed.
        """
        parts = sorted(self.final_outputs(), key=lambda part: part[0] + 1 < len(self.steps))
        return np.concatenate([shown for _, shown, _ in parts]), sparse.csr_array(
            sparse.vstack([chances for _, _, chances in parts], format="csr")
        )

    def _final_output_numbers(self, number: int) -> IntArray:
        """The outputs of a step after which nothing more is said."""
        every = np.arange(len(self.steps[number].context_of_output))
        return every if number + 1 == len(self.steps) else np.setdiff1d(every, self.steps[number + 1].parent_output)

    @cached_property
    def _default_labels(self) -> IntArray:
        """The labels of a row that says nothing at all."""
        labels = np.zeros(len(self.columns), dtype=np.int64)
        for step in self.steps:
            labels[list(step.attributes)] = step.default_labels
        return labels

    def worst(self, comparisons: Comparisons) -> ExactLeak:
        r"""An upper bound on the largest ratio, over every output.

        All terms of P(y|E) are positive, so a float sum of n terms with m factors each is off by a factor of at most
        :math:`(1 + 2^{-53})^{n + 2m + 4}`. The bound is widened by that, twice: nothing is left to rounding.
        """
        if comparisons.inputs != len(self.combos):
            raise ProtocolFileError(
                f"A law must have a row per input; it has {len(self.combos)}, the table {comparisons.inputs}."
            )
        given = sparse.csr_array(comparisons.distributions.T)
        width = max(given.shape[1], len(comparisons.pairs))
        error = math.expm1(2 * (len(self.combos) + 2 * len(self.steps) + 8) * ROUNDING)
        return self._largest_leak(
            width, lambda chances, names: outward_leak(comparisons, sparse.csr_array(chances), given, names, error)
        )

    def worst_credal_leak(self, sets: CredalSets) -> ExactLeak:
        """An upper bound, as above, over all members of sets of priors."""
        error = math.expm1(2 * (2 * len(self.combos) + 2 * len(self.steps) + 16) * ROUNDING)
        width = max(len(self.combos), len(sets.low), len(sets.pairs))
        return self._largest_leak(
            width, lambda chances, names: outward_credal_leak(sets, chances.toarray().T, names, error)
        )

    def _largest_leak(self, width: int, among: Callable[[sparse.csr_array, IntArray], ExactLeak]) -> ExactLeak:
        """The worst `among` the outputs of all steps, of which each takes so many numbers while it is looked at."""
        largest, chosen = NO_LEAK, [step.branching_outputs for step in self.steps]
        for number, first, chances in self.paths():
            mine = chosen[number]
            mine = mine[slice(*np.searchsorted(mine, [first, first + chances.shape[0]]))]
            for part in np.array_split(mine, 1 + len(mine) * width // WORKED_ON):
                largest = larger_leak(largest, among(sparse.csr_array(chances[part - first]), part))
        return largest

    def draw(self, codes: NDArray[Any], random_words: RandomWords) -> NDArray[Any]:
        drawn = np.repeat(self._default_labels[None, :], len(codes), axis=0)
        node, on = np.zeros(len(codes), dtype=np.int64), np.arange(len(codes))  # rows of which there is more to say
        for number, (step, values) in enumerate(zip(self.steps, self._values, strict=True)):
            output = step.draw(step.require_rows(node, values[codes[on]]), random_words.word(number)[on])
            drawn[on[:, None], list(step.attributes)] = step.labels[output]
            if number + 1 < len(self.steps):
                node = next_contexts(self.steps[number + 1].parent_output, output)
                on, node = on[node >= 0], node[node >= 0]
        return drawn

    def trace(self, inputs: IntArray, shown: NDArray[Any]) -> Iterator[tuple[IntArray, IntArray]]:
        """Along the labels that rows with these inputs show, step by step: which rows still can have become them, and
        by which entry of the step; −1 where their context is not listed."""
        left = np.arange(len(inputs))
        node = np.zeros(len(inputs), dtype=np.int64)
        for number, step in enumerate(self.steps):
            labels = shown[left][:, list(step.attributes)]
            output = step.find_outputs(node, labels)
            entry = step.entry_numbers(step.row_numbers(node, self.values_of(number)[inputs[left]]), output)
            silent = (node < 0) & (labels == step.default_labels).all(axis=1)
            good = (entry >= 0) | silent
            left, entry = left[good], np.where(silent, -1, entry)[good]
            yield left, entry
            if number + 1 < len(self.steps):
                node = np.where(silent[good], -1, next_contexts(self.steps[number + 1].parent_output, output[good]))

    def tally(self) -> ChainTally:
        return ChainTally(self)

    def restrict_inputs(self, inputs: IntArray) -> ChainMechanism:
        return replace(self, combos=self.combos[inputs])

    def measurable_protocol(self, most: int) -> SparseProtocol | None:
        if any(so_far > most for so_far in accumulate(chances.nnz for _, _, chances in self.final_outputs())):
            return None
        shown, paths = self.whole_outputs()
        labels = (tuple(self.columns[j][code] for j, code in enumerate(row)) for row in shown.tolist())
        return SparseProtocol(sparse.csr_array(paths.T), tuple(labels))

    def explicit_protocol(self, most: int) -> SparseProtocol | None:
        return self.measurable_protocol(most)

    def unchanged_probability(self, own: NDArray[Any], joint: Joint) -> float:
        return match_probability(self, [np.arange(len(labels)) for labels in self.columns], own, joint)

    def value_joint(self, joint: Joint) -> tuple[tuple[IntArray, FloatArray], ...]:
        return chain_value_joint(self, joint)

    def likely_probability(self, likely: Sequence[IntArray], joint: Joint) -> float:
        return match_probability(self, [label[:, 0] for label in likely], joint.combos, joint)

    def required_attributes(self, wanted: Sequence[int], attributes: int) -> tuple[int, ...]:
        """Those of the first steps, up to the last that publishes one of them."""
        last = max(number for number, step in enumerate(self.steps) if set(step.attributes) & set(wanted))
        return tuple(j for step in self.steps[: last + 1] for j in step.attributes)

    def restrict_attributes(self, attributes: Sequence[int]) -> tuple[ChainMechanism, IntArray]:
        """What the first steps show depends on their own columns only."""
        combos, first = np.unique(self.combos[:, attributes], axis=0, return_index=True)
        place = {j: i for i, j in enumerate(attributes)}
        steps = tuple(
            replace(step, attributes=tuple(place[j] for j in step.attributes))
            for step in self.steps
            if place.keys() >= set(step.attributes)
        )
        return ChainMechanism(steps, tuple(self.columns[j] for j in attributes), combos), first

    @property
    def expansion_size(self) -> int:
        return sum(len(self._final_output_numbers(number)) for number in range(len(self.steps)))

    def observation(self, shapes: ObservationModels[Model]) -> Model:
        """P(y | x) of all whole outputs."""
        return shapes.channel(np.asarray(self.whole_outputs()[1].todense()).T)

    def observation_codes(self, drawn: NDArray[Any]) -> NDArray[Any]:
        """The whole output that each row's labels are."""
        found = np.full(len(drawn), -1, dtype=np.int64)
        on, node = np.arange(len(drawn)), np.zeros(len(drawn), dtype=np.int64)
        last = len(self.steps) - 1
        first = len(self.steps[last].context_of_output)  # where outputs that end before are numbered from
        for number, step in enumerate(self.steps):
            output = step.find_outputs(node, drawn[on][:, list(step.attributes)])
            on, output = on[output >= 0], output[output >= 0]
            if number == last:
                found[on] = output
                break
            node, ends = next_contexts(self.steps[number + 1].parent_output, output), self._final_output_numbers(number)
            over = node < 0
            later = [j for other in self.steps[number + 1 :] for j in other.attributes]
            silent = (drawn[on[over][:, None], later] == self._default_labels[later]).all(axis=1)
            found[on[over][silent]] = first + np.searchsorted(ends, output[over][silent])
            first += len(ends)
            on, node = on[~over], node[~over]
        return found[:, None]

    def to_json(self) -> dict[str, Any]:
        return {
            "bits": BITS,
            "columns": [list(labels) for labels in self.columns],
            "steps": [step.to_json() for step in self.steps],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], sees_secret: bool, combos: IntArray) -> ChainMechanism:
        if sees_secret:
            raise ProtocolFileError("A chain never sees the secret; this file says that it does. Make it again.")
        if count_entries(content["steps"]) > MOST_ENTRIES:
            raise SizeError(
                f"A chain is read that has at most {MOST_ENTRIES:,} chances; this one has more. Publish fewer columns."
            )
        columns = tuple(map(tuple, content["columns"]))
        return cls(tuple(Step.from_json(step) for step in content["steps"]), columns, combos)


def value_numbers(combos: IntArray, attributes: tuple[int, ...], values: IntArray) -> IntArray:
    """Which of a step's values each combination has."""
    place = {tuple(row): number for number, row in enumerate(values.tolist())}
    return np.array([place[tuple(row)] for row in combos[:, attributes].tolist()], dtype=np.int64)
