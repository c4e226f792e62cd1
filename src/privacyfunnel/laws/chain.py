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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, sparse
from privacyfunnel.errors import ProtocolFileError, SizeError
from privacyfunnel.laws.chain_measures import ChainTally, ReachedChain, expected_likely, outward, with_values
from privacyfunnel.laws.chain_step import BITS, MOST_ENTRIES, UNIT, Step, arrivals, entries_of
from privacyfunnel.laws.exact import NO_LEAK, ExactLeak, worse
from privacyfunnel.laws.law import Law, Model
from privacyfunnel.laws.over_sets import outward_over
from privacyfunnel.laws.sampling import Words
from privacyfunnel.model.comparisons import Comparisons
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocol import Labels
from privacyfunnel.model.sets import PriorSets
from privacyfunnel.model.sparse import SparseProtocol

MOST_STEPS = 20  # the error of products of so many chances is still counted outwards
ROUNDING = 2.0**-53  # of one operation on floats
WORKED_ON = 1 << 23  # entries of P(y | E) that are worked on at a time


@dataclass(frozen=True, eq=False)
class ChainLaw(Law):
    """Steps of a chain, the labels of each published column, and the combinations of labels that are inputs."""

    steps: tuple[Step, ...]
    labels: tuple[Labels, ...]  # of each published column
    combos: IntArray
    kind: ClassVar[str] = "chain"
    checked: ClassVar[str] = "with every rounding outwards"
    unlisted: ClassVar[str] = "a chain has several"
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
    def columns(self) -> tuple[Labels, ...]:
        return self.labels

    @property
    def inputs(self) -> int:
        """How many combinations are inputs."""
        return len(self.combos)

    @property
    def protocol(self) -> ReachedChain:
        return ReachedChain(self)

    def paths(self) -> Iterator[tuple[Step, sparse.csr_array]]:
        """For every step P(y^1, …, y^j | x), a row per output that its contexts could publish."""
        path = sparse.coo_array(np.ones((1, len(self.combos))))
        for number, (step, values) in enumerate(zip(self.steps, self._values, strict=True)):
            node, combo = path.coords
            rows = step.rows_of(node.astype(np.int64), values[combo])
            if (rows < 0).any():
                raise ProtocolFileError("Every context must have a row for every value that it can hold; one has not.")
            pair, entry = step.spread(rows)
            chance = path.data[pair] * (step.numerator[entry] / UNIT)
            shape = (len(step.context_of_output), len(self.combos))
            outputs = sparse.csr_array(sparse.coo_array((chance, (step.output[entry], combo[pair])), shape=shape))
            yield step, outputs
            if number + 1 < len(self.steps):
                path = sparse.coo_array(sparse.csr_array(outputs[self.steps[number + 1].came_by]))

    def whole_outputs(self) -> tuple[IntArray, sparse.csr_array]:
        """Every whole output that reached contexts could publish: the codes of its labels, and P(y | x), a row each."""
        shown, chances = (
            np.zeros((1, len(self.columns)), dtype=np.int64),
            sparse.csr_array(np.ones((1, len(self.combos)))),
        )
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
        given = sparse.csr_array(comparisons.distributions.T)
        width = max(given.shape[1], len(comparisons.pairs))
        error = math.expm1(2 * (len(self.combos) + 2 * len(self.steps) + 8) * ROUNDING)
        largest = NO_LEAK
        for step, outputs in self.paths():
            for part in np.array_split(step.chosen, 1 + len(step.chosen) * width // WORKED_ON):
                largest = worse(largest, outward(comparisons, sparse.csr_array(outputs[part]), given, part, error))
        return largest

    def worst_over(self, sets: PriorSets) -> ExactLeak:
        """An upper bound, as above, over all members of sets of priors."""
        error = math.expm1(2 * (2 * len(self.combos) + 2 * len(self.steps) + 16) * ROUNDING)
        width, largest = max(len(self.combos), len(sets.low), len(sets.pairs)), NO_LEAK
        for step, outputs in self.paths():
            for part in np.array_split(step.chosen, 1 + len(step.chosen) * width // WORKED_ON):
                largest = worse(largest, outward_over(sets, outputs[part].toarray().T, part, error))
        return largest

    def draw(self, codes: NDArray[Any], words: Words) -> NDArray[Any]:
        drawn = np.zeros((len(codes), len(self.columns)), dtype=np.int64)
        node = np.zeros(len(codes), dtype=np.int64)
        for number, (step, values) in enumerate(zip(self.steps, self._values, strict=True)):
            row = step.rows_of(node, values[codes])
            if (row < 0).any():
                raise ProtocolFileError(
                    f"A chain is made for the rows that it was drawn for; {int((row < 0).sum())} of {len(codes)} rows "
                    "came to a context that is not in it. Sanitise the table again."
                )
            output = step.draw(row, words.word(number))
            drawn[:, list(step.attributes)] = step.labels[output]
            if number + 1 < len(self.steps):
                node = arrivals(self.steps[number + 1].came_by, output)
        return drawn

    def followed(self, inputs: IntArray, shown: NDArray[Any]) -> Iterator[tuple[IntArray, IntArray]]:
        """Along the labels that rows with these inputs show, step by step: which rows still can have become them, and
        by which entry of the step."""
        left = np.arange(len(inputs))
        node = np.zeros(len(inputs), dtype=np.int64)
        for number, step in enumerate(self.steps):
            output = step.showing(node, shown[left][:, list(step.attributes)])
            entry = step.entries_of(step.rows_of(node, self.values_of(number)[inputs[left]]), output)
            good = entry >= 0
            left = left[good]
            yield left, entry[good]
            if number + 1 < len(self.steps):
                node = arrivals(self.steps[number + 1].came_by, output[good])

    def tally(self) -> ChainTally:
        return ChainTally(self)

    def among(self, inputs: IntArray) -> ChainLaw:
        return replace(self, combos=self.combos[inputs])

    def whole(self, most: int) -> SparseProtocol | None:
        shown, paths = self.whole_outputs()
        labels = (tuple(self.columns[j][code] for j, code in enumerate(row)) for row in shown.tolist())
        return SparseProtocol(sparse.csr_array(paths.T), tuple(labels)) if paths.nnz <= most else None

    def spelled(self, most: int) -> SparseProtocol | None:
        """Every output that reached contexts could have published."""
        return self.whole(most)

    def expected_unchanged(self, own: NDArray[Any], joint: Joint) -> float:
        """In the contexts that were reached."""
        chance = joint.p_x.copy()
        for step, (left, entry) in zip(self.steps, self.followed(np.arange(self.inputs), own), strict=True):
            stays = np.zeros(len(chance))
            stays[left] = chance[left] * (step.numerator[entry] / UNIT)
            chance = stays
        return float(chance.sum())

    def with_values(self, joint: Joint) -> tuple[tuple[IntArray, FloatArray], ...]:
        return with_values(self, self.columns, joint)

    def expected_likely(self, likely: Sequence[IntArray], joint: Joint) -> float:
        return expected_likely(self.whole_outputs(), likely, joint)

    def covering(self, wanted: Sequence[int], attributes: int) -> tuple[int, ...]:
        """Those of the first steps, up to the last that publishes one of them."""
        last = max(number for number, step in enumerate(self.steps) if set(step.attributes) & set(wanted))
        return tuple(j for step in self.steps[: last + 1] for j in step.attributes)

    def restricted(self, attributes: Sequence[int]) -> tuple[ChainLaw, IntArray]:
        """What the first steps show depends on their own columns only."""
        combos, first = np.unique(self.combos[:, attributes], axis=0, return_index=True)
        place = {j: i for i, j in enumerate(attributes)}
        steps = tuple(
            replace(step, attributes=tuple(place[j] for j in step.attributes))
            for step in self.steps
            if place.keys() >= set(step.attributes)
        )
        return ChainLaw(steps, tuple(self.columns[j] for j in attributes), combos), first

    @property
    def expanded(self) -> int:
        return sum(len(step.context_of_output) for step in self.steps)

    @property
    def unseen(self) -> int:
        return sum(len(one.context_of_output) - len(other.came_by) for one, other in pairwise(self.steps))

    def observation(self, channel: Callable[[FloatArray], Model], sets: Callable[[int, float], Model]) -> Model:
        """P(y | x) of all outputs of the last step, and of earlier ones that lead to contexts the law does not hold.

        Together they are everything that can happen, so each row sums to 1.
        """
        told: FloatArray = np.zeros((self.inputs, 0))
        rest: list[FloatArray] = []
        for number, (step, chances) in enumerate(self.paths()):
            told = np.asarray(chances.todense()).T
            if number + 1 < len(self.steps):
                onward = self.steps[number + 1].came_by
                rest.append(told[:, np.setdiff1d(np.arange(len(step.context_of_output)), onward)])
        return channel(np.hstack([told, *rest]))

    def observed(self, drawn: NDArray[Any]) -> NDArray[Any]:
        """The output of the last step that each row's labels lead to."""
        output = node = np.zeros(len(drawn), dtype=np.int64)
        for number, step in enumerate(self.steps):
            if number:
                node = np.where(output >= 0, arrivals(step.came_by, output), -1)
            output = step.showing(node, drawn[:, list(step.attributes)])
        return output[:, None]

    def to_json(self) -> dict[str, Any]:
        return {
            "bits": BITS,
            "columns": [list(labels) for labels in self.columns],
            "steps": [step.to_json() for step in self.steps],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], sees_secret: bool, combos: IntArray) -> ChainLaw:
        if sees_secret:
            raise ProtocolFileError("A chain never sees the secret; this file says that it does. Make it again.")
        if entries_of(content["steps"]) > MOST_ENTRIES:
            raise SizeError(
                f"A chain is read that has at most {MOST_ENTRIES:,} chances; this one has more. Publish fewer columns."
            )
        columns = tuple(map(tuple, content["columns"]))
        return cls(tuple(Step.from_json(step) for step in content["steps"]), columns, combos)


def value_numbers(combos: IntArray, attributes: tuple[int, ...], values: IntArray) -> IntArray:
    """Which of a step's values each combination has."""
    place = {tuple(row): number for number, row in enumerate(values.tolist())}
    return np.array([place[tuple(row)] for row in combos[:, attributes].tolist()], dtype=np.int64)
