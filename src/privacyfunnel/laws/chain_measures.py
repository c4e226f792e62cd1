"""What a chain says and does, measured along its paths: its worst output, I(X;Y), and how rows went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar
from typing import Protocol as Shape

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, sparse
from privacyfunnel.laws.chain_step import UNIT, Step
from privacyfunnel.laws.exact import NO_LEAK, ExactLeak, exact_leak
from privacyfunnel.laws.tally import Pooled
from privacyfunnel.model.comparisons import Comparisons, Leak
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.sets import PriorSets

ROUNDED = 1e-12  # a chance that is rounding alone


class Tree(Shape):
    """The contexts of a chain, step by step."""

    @property
    def steps(self) -> tuple[Step, ...]: ...

    def values_of(self, number: int) -> IntArray:
        """The value that every input has in that step."""

    def paths(self) -> Iterator[tuple[Step, sparse.csr_array]]:
        """For every step P(y^1, …, y^j | x), a row per output that its contexts could publish."""

    def followed(self, inputs: IntArray, shown: NDArray[Any]) -> Iterator[tuple[IntArray, IntArray]]:
        """For every step which rows still can have become what they show, and by which entry."""

    def worst(self, comparisons: Comparisons) -> ExactLeak:
        """An upper bound on the largest ratio."""

    def worst_over(self, sets: PriorSets) -> ExactLeak:
        """The same over all members of sets of priors."""


@dataclass(frozen=True, slots=True, eq=False)
class ReachedChain:
    """A chain as a protocol."""

    law: Tree
    sees_secret: ClassVar[bool] = False

    def worst(self, comparisons: Comparisons) -> Leak:
        """The largest log-ratio, rounded upwards."""
        return self.law.worst(comparisons).leak

    def worst_over(self, sets: PriorSets) -> Leak:
        """The same over all members of sets of priors."""
        return self.law.worst_over(sets).leak

    def describe(self, leak: Leak, joint: Joint) -> str:
        """The leak in words. An output is what was published up to some step, of which only the number is known."""
        return leak.describe(joint)

    def mutual_information(self, joint: Joint) -> float:
        """I(X;Y) in nats: what each step adds in each context, H(p) − Σ_y q_y H(v_y), times the context's chance."""
        p_x, total = joint.p_x, 0.0
        for number, (step, outputs) in enumerate(self.law.paths()):
            p = sparse.csr_array(outputs.multiply(p_x[None, :]))
            values = self.law.values_of(number)
            sums = sparse.coo_array((np.ones(len(values)), (np.arange(len(values)), values)))
            p_yx = sparse.coo_array(sparse.csr_array(p @ sparse.csr_array(sums)))  # output × value of the step
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


class ChainTally:
    """How often each value became each output in each context."""

    def __init__(self, law: Tree) -> None:
        self._law = law
        self._counts = [np.zeros(len(step.numerator), dtype=np.int64) for step in law.steps]
        self._strange = 0

    def add(self, inputs: IntArray, drawn: NDArray[Any]) -> None:
        """Count some rows, following each along the labels it shows."""
        before = len(inputs)
        for counts, (left, entry) in zip(self._counts, self._law.followed(inputs, drawn), strict=True):
            self._strange += before - len(left)
            before = len(left)
            np.add.at(counts, entry[entry >= 0], 1)

    @property
    def impossible(self) -> int:
        """How many rows show what their values never become."""
        return self._strange

    @property
    def rows(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Counts and chances of every row of a channel that was drawn from."""
        for counts, step in zip(self._counts, self._law.steps, strict=True):
            starts = step.cell_starts
            drawn = np.add.reduceat(counts, starts[:-1])
            for row in np.flatnonzero(drawn):
                mine = slice(starts[row], starts[row + 1])
                yield counts[None, mine], step.numerator[None, mine] / UNIT

    @property
    def pooled(self) -> Iterator[Pooled]:
        """By the labels that a step shows, over all its contexts, step by step."""
        for counts, step in zip(self._counts, self._law.steps, strict=True):
            starts = step.cell_starts
            drawn = np.add.reduceat(counts, starts[:-1])
            row = np.repeat(np.arange(len(drawn)), np.diff(starts))
            shown, label = np.unique(step.labels, axis=0, return_inverse=True)
            at = label.reshape(-1)[step.output]  # two outputs of a context never show the same
            chances = sparse.csr_array((step.numerator / UNIT, (row, at)), shape=(len(drawn), len(shown)))
            seen = np.bincount(at, weights=counts.astype(np.float64), minlength=len(shown))
            yield Pooled.of(np.asarray(seen - chances.T @ drawn), chances, drawn)

    @property
    def size(self) -> int:
        """A count per entry."""
        return sum(map(len, self._counts))

    def empty(self) -> ChainTally:
        """Nothing counted yet."""
        return ChainTally(self._law)


def outward(
    comparisons: Comparisons, outputs: sparse.csr_array, given: sparse.csr_array, names: IntArray, error: float
) -> ExactLeak:
    """The largest ratio among some outputs, a row each of P(y | x); the error of the float sums is added to it."""
    if not len(names):
        return NO_LEAK
    p = np.asarray(sparse.csr_array(outputs @ given).toarray(), dtype=np.float64)
    one, other = p[:, comparisons.pairs[:, 0]], p[:, comparisons.pairs[:, 1]]
    # What is no number compares with nothing, and then passes no check.
    only_one = ((one > 0) != (other > 0)) | ~(np.isfinite(one) & np.isfinite(other))
    if only_one.any():
        output, pair = map(int, np.argwhere(only_one)[0])
        return exact_leak(comparisons, None, pair, int(names[output]))
    both = one > 0
    ratio = np.divide(one, other, out=np.ones_like(one), where=both)
    ratio = np.maximum(ratio, np.divide(1.0, ratio))
    output, pair = map(int, np.unravel_index(int(ratio.argmax()), ratio.shape))
    above = Fraction(float(ratio[output, pair])) * (1 + Fraction(error))
    return exact_leak(comparisons, above, pair, int(names[output]))


def with_values(law: Tree, columns: Sequence[Sequence[str]], joint: Joint) -> tuple[tuple[IntArray, FloatArray], ...]:
    """p(x, y) of each column and the labels it shows, over all contexts: a label may stand for others in each."""
    sizes = [len(at.labels) for at in joint.attributes]
    found = [np.zeros((size, len(labels))) for size, labels in zip(sizes, columns, strict=True)]
    for step, outputs in law.paths():
        listed = sparse.coo_array(outputs)
        output, combo = listed.coords
        for i, j in enumerate(step.attributes):
            np.add.at(found[j], (joint.combos[combo, j], step.labels[output, i]), listed.data * joint.p_x[combo])
            silent = np.maximum(1 - np.bincount(combo, listed.data, minlength=joint.a), 0.0) * joint.p_x
            np.add.at(found[j][:, step.otherwise[i]], joint.combos[:, j], np.where(silent > ROUNDED, silent, 0.0))
    return tuple((np.arange(size)[:, None], p_xy) for size, p_xy in zip(sizes, found, strict=True))


def expected_likely(whole: tuple[IntArray, sparse.csr_array], likely: Sequence[IntArray], joint: Joint) -> float:
    """The chance that the values stated for its labels are a row's own, of whole outputs."""
    shown, chances = whole
    listed = sparse.coo_array(chances)
    output, combo = listed.coords
    right = np.ones(len(output), dtype=bool)
    for j, label in enumerate(likely):
        right &= label[shown[output, j], 0] == joint.combos[combo, j]
    return float((listed.data[right] * joint.p_x[combo[right]]).sum())
