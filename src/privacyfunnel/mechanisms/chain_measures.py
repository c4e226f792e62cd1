"""What a chain says and does, measured along its paths: its worst output, I(X;Y), and how rows went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple
from typing import Protocol as Shape

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, sparse
from privacyfunnel.mechanisms.chain_step import UNIT, Step, next_contexts
from privacyfunnel.mechanisms.draw_tally import PooledCounts
from privacyfunnel.mechanisms.exact_arithmetic import NO_LEAK, ExactLeak, exact_leak, larger_leak, sides
from privacyfunnel.model.comparisons import Comparisons, Leak
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.joint import Joint, cache_with_joint
from privacyfunnel.model.protocols.channel_protocol import Labels

AT_ONCE = 1 << 18  # pairs of a context and an input that it may be, on the way to the next contexts
ROUNDED = 1e-12  # a chance that is rounding alone


class Paths(NamedTuple):
    """P(y^1, …, y^j | x) of some outputs of a step, a row each."""

    number: int  # of the step
    first: int  # the number of the first of these outputs
    chances: sparse.csr_array


class ContextTree(Shape):
    """The contexts of a chain, step by step."""

    @property
    def steps(self) -> tuple[Step, ...]: ...

    @property
    def columns(self) -> tuple[Labels, ...]:
        """The labels of each published column."""

    def values_of(self, number: int) -> IntArray:
        """The value that every input has in that step."""

    def paths(self) -> Iterator[Paths]:
        """For every step all outputs that its contexts could publish, those of some contexts at a time, in order."""

    def final_outputs(self) -> Iterator[tuple[int, IntArray, sparse.csr_array]]:
        """Every whole output, some at a time: its last step, the codes of its labels, and P(y | x), a row each."""

    def trace(self, inputs: IntArray, shown: NDArray[Any]) -> Iterator[tuple[IntArray, IntArray]]:
        """For every step which rows still can have become what they show, and by which entry."""

    def worst(self, comparisons: Comparisons) -> ExactLeak:
        """An upper bound on the largest ratio."""

    def worst_credal_leak(self, sets: CredalSets) -> ExactLeak:
        """The same over all members of sets of priors."""


@dataclass(frozen=True, slots=True, eq=False)
class ChainProtocol:
    """A chain as a protocol."""

    mechanism: ContextTree
    sees_secret: ClassVar[bool] = False

    def worst(self, comparisons: Comparisons) -> Leak:
        """The largest log-ratio, rounded upwards."""
        return self.mechanism.worst(comparisons).leak

    def worst_credal_leak(self, sets: CredalSets) -> Leak:
        """The same over all members of sets of priors."""
        return self.mechanism.worst_credal_leak(sets).leak

    def describe(self, leak: Leak, joint: Joint) -> str:
        """The leak in words. An output is what was published up to some step, of which only the number is known."""
        return leak.describe(joint)

    def mutual_information(self, joint: Joint) -> float:
        """I(X;Y) in nats: what each step adds in each context, H(p) − Σ_y q_y H(v_y), times the context's chance."""
        total = 0.0
        for step, p_cx in zip(self.mechanism.steps, _context_chances(self.mechanism, joint), strict=True):
            row, p_yx = _entry_chances(step, p_cx)
            met = p_yx > 0  # a file may list contexts that this table never comes to
            row, output, p_yx = row[met], step.output[met], p_yx[met]
            context = step.context_of_output[output]
            p_c, p_y = np.bincount(context, p_yx), np.bincount(output, p_yx)
            # Σ p(x,y) ln p(x,y) p(c) / (p(x,c) p(y)), over all contexts c of the step
            total += float((p_yx * np.log(p_yx * p_c[context] / (p_cx[row] * p_y[output]))).sum())
        return max(0.0, total)


class ChainTally:
    """How often each value became each output in each context."""

    def __init__(self, mechanism: ContextTree) -> None:
        self._mechanism = mechanism
        self._counts = [np.zeros(len(step.numerator), dtype=np.int64) for step in mechanism.steps]
        self._impossible = 0

    def add(self, inputs: IntArray, drawn: NDArray[Any]) -> None:
        """Count some rows, following each along the labels it shows."""
        before = len(inputs)
        for counts, (left, entry) in zip(self._counts, self._mechanism.trace(inputs, drawn), strict=True):
            self._impossible += before - len(left)
            before = len(left)
            np.add.at(counts, entry[entry >= 0], 1)

    @property
    def impossible(self) -> int:
        """How many rows show what their values never become."""
        return self._impossible

    @property
    def rows(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Counts and chances of every row of a channel that was drawn from."""
        for counts, step in zip(self._counts, self._mechanism.steps, strict=True):
            starts = step.cell_starts
            drawn = np.add.reduceat(counts, starts[:-1])
            for row in np.flatnonzero(drawn):
                mine = slice(starts[row], starts[row + 1])
                yield counts[None, mine], step.numerator[None, mine] / UNIT

    @property
    def pool_counts(self) -> Iterator[PooledCounts]:
        """By the labels that a step shows, over all its contexts, step by step."""
        for counts, step in zip(self._counts, self._mechanism.steps, strict=True):
            starts = step.cell_starts
            drawn = np.add.reduceat(counts, starts[:-1])
            row = np.repeat(np.arange(len(drawn)), np.diff(starts))
            shown, label = np.unique(step.labels, axis=0, return_inverse=True)
            at = label.reshape(-1)[step.output]  # two outputs of a context never show the same
            chances = sparse.csr_array((step.numerator / UNIT, (row, at)), shape=(len(drawn), len(shown)))
            seen = np.bincount(at, weights=counts.astype(np.float64), minlength=len(shown))
            yield PooledCounts.from_counts(np.asarray(seen - chances.T @ drawn), chances, drawn)

    @property
    def size(self) -> int:
        """A count per entry."""
        return sum(map(len, self._counts))

    def empty(self) -> ChainTally:
        """Nothing counted yet."""
        return ChainTally(self._mechanism)


def outward_leak(
    comparisons: Comparisons, outputs: sparse.csr_array, given: sparse.csr_array, names: IntArray, error: float
) -> ExactLeak:
    """The largest ratio among some outputs, a row each of P(y | x); the error of the float sums is added to it."""
    if not len(names):
        return NO_LEAK
    p = np.asarray(sparse.csr_array(outputs @ given).toarray(), dtype=np.float64)
    one, other = p[:, comparisons.pairs[:, 0]], p[:, comparisons.pairs[:, 1]]
    worst = NO_LEAK
    for side in sides(comparisons):
        large, small = side.order(one[:, side.pairs], other[:, side.pairs])
        # What is no number compares with nothing, and then passes no check.
        infinite = ((large > 0) & (small == 0)) | ~(np.isfinite(large) & np.isfinite(small))
        ratio = np.divide(large, small, out=np.ones_like(large), where=small > 0)
        ratio[infinite] = np.inf
        output, pair = map(int, np.unravel_index(int(ratio.argmax()), ratio.shape))
        above = None if infinite.any() else Fraction(float(ratio[output, pair])) * (1 + Fraction(error))
        found = exact_leak(comparisons, above, int(side.pairs[pair]), int(names[output]), side.scale)
        worst = larger_leak(worst, found)
    return worst


@cache_with_joint  # of one release: its outcomes, its codebook and its report all need it
def chain_value_joint(mechanism: ContextTree, joint: Joint) -> tuple[tuple[IntArray, FloatArray], ...]:
    """p(x, y) of each column and the labels it shows, over all contexts: a label may stand for others in each."""
    sizes = [len(at.labels) for at in joint.attributes]
    found = [np.zeros((size, len(labels))) for size, labels in zip(sizes, mechanism.columns, strict=True)]
    for number, (step, p_cx) in enumerate(zip(mechanism.steps, _context_chances(mechanism, joint), strict=True)):
        _, p_yx = _entry_chances(step, p_cx)
        said = np.bincount(step.value, p_yx, minlength=len(step.values))  # that the step says something of each value
        silent = np.bincount(mechanism.values_of(number), joint.p_x, minlength=len(step.values)) - said
        silent = np.where(silent > ROUNDED, silent, 0.0)
        for i, j in enumerate(step.attributes):
            np.add.at(found[j], (step.values[step.value, i], step.labels[step.output, i]), p_yx)
            np.add.at(found[j][:, step.default_labels[i]], step.values[:, i], silent)
    return tuple((np.arange(size)[:, None], p_xy) for size, p_xy in zip(sizes, found, strict=True))


def _context_chances(mechanism: ContextTree, joint: Joint) -> Iterator[FloatArray]:
    """For each step p(context, value), row by row of its channels.

    Only contexts are followed, of which there are far fewer than outputs.
    """
    node, combo, chance = np.zeros(joint.a, dtype=np.int64), np.arange(joint.a), joint.p_x
    for number, step in enumerate(mechanism.steps):
        row = step.require_rows(node, mechanism.values_of(number)[combo])
        yield np.bincount(row, chance, minlength=len(step.cells)).astype(np.float64)
        if number + 1 == len(mechanism.steps):
            return
        came_by = mechanism.steps[number + 1].parent_output
        context = np.full(len(step.context_of_output), -1)
        context[came_by] = np.arange(len(came_by))
        parts = [(node[:0], combo[:0], chance[:0])]
        for output, of, p in _output_chances(step, row, combo, chance):
            goes = context[output] >= 0
            parts.append((context[output[goes]], of[goes], p[goes]))
        node, combo, chance = map(np.concatenate, zip(*parts, strict=True))


def _output_chances(
    step: Step, row: IntArray, combo: IntArray, chance: FloatArray
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """What rows of channels publish to which inputs come with a chance, some at a time: outputs, inputs, chances."""
    for first in range(0, len(row), AT_ONCE):
        pair, entry = step.expand_rows(row[first : first + AT_ONCE])
        pair += first
        yield step.output[entry], combo[pair], chance[pair] * (step.numerator[entry] / UNIT)


def _entry_chances(step: Step, p_cx: FloatArray) -> tuple[IntArray, FloatArray]:
    """The row of each entry of a step's channels, and p(context, value, output) from p(context, value)."""
    row = np.repeat(np.arange(len(p_cx)), np.diff(step.cell_starts))
    return row, p_cx[row] * (step.numerator / UNIT)


def match_probability(
    mechanism: ContextTree, label_values: Sequence[IntArray], own: NDArray[Any], joint: Joint
) -> float:
    """The chance that what a row's labels tell, by column and code, is its own in every column.

    Whoever shows anything else in one step is followed no further.
    """
    total = 0.0
    node, combo, chance = np.zeros(joint.a, dtype=np.int64), np.arange(joint.a), joint.p_x
    for number, step in enumerate(mechanism.steps):
        later = mechanism.steps[number + 1 :]
        silent = np.ones(joint.a, dtype=bool)  # whether nothing more said tells the rest
        for other in later:
            silent &= _labels_match(label_values, own, other, other.default_labels[None, :], slice(None))
        parts = [(node[:0], combo[:0], chance[:0])]
        row = step.require_rows(node, mechanism.values_of(number)[combo])
        for output, of, p in _output_chances(step, row, combo, chance):
            same = _labels_match(label_values, own, step, step.labels[output], of)
            context = next_contexts(later[0].parent_output, output) if later else np.full(len(output), -1)
            ends, goes = same & (context < 0) & silent[of], same & (context >= 0)
            total += float(p[ends].sum())
            parts.append((context[goes], of[goes], p[goes]))
        node, combo, chance = map(np.concatenate, zip(*parts, strict=True))
    return total


def _labels_match(
    label_values: Sequence[IntArray], own: NDArray[Any], step: Step, labels: IntArray, of: IntArray | slice
) -> NDArray[np.bool_]:
    """Whether these labels of a step tell what the inputs have in its columns."""
    same = [label_values[j][labels[:, i]] == own[of, j] for i, j in enumerate(step.attributes)]
    return np.asarray(np.logical_and.reduce(same))
