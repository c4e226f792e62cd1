"""What a chain says and does, measured along its paths: its worst output, I(X;Y), and how rows went."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple
from typing import Protocol as Shape

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, sparse
from privacyfunnel.laws.chain_step import UNIT, Step
from privacyfunnel.laws.exact import NO_LEAK, ExactLeak, exact_leak
from privacyfunnel.laws.tally import Pooled
from privacyfunnel.model.comparisons import Comparisons, Leak
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocol import Labels
from privacyfunnel.model.sets import PriorSets

ROUNDED = 1e-12  # a chance that is rounding alone


class Paths(NamedTuple):
    """P(y^1, …, y^j | x) of some outputs of a step, a row each."""

    number: int  # of the step
    first: int  # the number of the first of these outputs
    chances: sparse.csr_array


class Tree(Shape):
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

    def ended(self) -> Iterator[tuple[int, IntArray, sparse.csr_array]]:
        """Every whole output, some at a time: its last step, the codes of its labels, and P(y | x), a row each."""

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
        total = 0.0
        for number, first, chances in self.law.paths():
            step = self.law.steps[number]
            output, value, p_yx = _by_value(self.law, number, chances, joint.p_x)
            context, size = step.context_of_output[output + first] - step.context_of_output[first], len(step.values)
            cell = context * size + value
            p_cx = np.bincount(cell, p_yx, minlength=(1 + context.max(initial=0)) * size)
            p_c = p_cx.reshape(-1, size).sum(axis=1)
            p_y = np.bincount(output, p_yx, minlength=chances.shape[0])
            # Σ p(x,y) ln p(x,y) p(c) / (p(x,c) p(y)), over these contexts c of the step
            total += float((p_yx * np.log(p_yx * p_c[context] / (p_cx[cell] * p_y[output]))).sum())
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


@lru_cache(maxsize=1)  # of one release: its outcomes, its codebook and its report all need it
def with_values(law: Tree, joint: Joint) -> tuple[tuple[IntArray, FloatArray], ...]:
    """p(x, y) of each column and the labels it shows, over all contexts: a label may stand for others in each."""
    sizes = [len(at.labels) for at in joint.attributes]
    found = [np.zeros((size, len(labels))) for size, labels in zip(sizes, law.columns, strict=True)]
    said = [np.zeros(len(step.values)) for step in law.steps]  # the chance that a step says something of each value
    for number, first, chances in law.paths():
        step = law.steps[number]
        output, value, p_yx = _by_value(law, number, chances, joint.p_x)
        said[number] += np.bincount(value, p_yx, minlength=len(step.values))
        for i, j in enumerate(step.attributes):
            np.add.at(found[j], (step.values[value, i], step.labels[output + first, i]), p_yx)
    for number, step in enumerate(law.steps):
        silent = np.bincount(law.values_of(number), joint.p_x, minlength=len(step.values)) - said[number]
        silent = np.where(silent > ROUNDED, silent, 0.0)
        for i, j in enumerate(step.attributes):
            np.add.at(found[j][:, step.otherwise[i]], step.values[:, i], silent)
    return tuple((np.arange(size)[:, None], p_xy) for size, p_xy in zip(sizes, found, strict=True))


def _by_value(
    law: Tree, number: int, chances: sparse.csr_array, p_x: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """p(y, x) of some outputs of a step and the values of that step: outputs, values, and probabilities above 0."""
    values = law.values_of(number)
    sums = sparse.coo_array((p_x, (np.arange(len(values)), values)), shape=(len(values), len(law.steps[number].values)))
    listed = sparse.coo_array(chances @ sparse.csr_array(sums))
    output, value = (each.astype(np.int64) for each in listed.coords)
    return output, value, listed.data


def expected_same(law: Tree, told: Callable[[IntArray], IntArray], own: NDArray[Any], joint: Joint) -> float:
    """The chance that what whole outputs tell, by the codes of their labels, is a row's own."""
    place = {row: x for x, row in enumerate(map(tuple, own.tolist()))}
    total = 0.0
    for _, shown, chances in law.ended():
        combo = np.array([place.get(row, -1) for row in map(tuple, told(shown).tolist())], dtype=np.int64)
        output = np.flatnonzero(combo >= 0)
        mine = sparse.csr_array((joint.p_x[combo[output]], (output, combo[output])), shape=chances.shape)
        total += float(chances.multiply(mine).sum())
    return total
