"""Protocol: how a record's values are replaced at random, as a table of probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, Matrix, freeze
from privacyfunnel.errors import DistributionError, SizeError
from privacyfunnel.model.comparisons import Comparisons, Leak
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.information import information
from privacyfunnel.model.joint import Joint

LARGEST_CHANNEL = 2 * 10**8  # entries; 1.6 GB of floats
WORKED_ON = 1 << 23  # entries of P(y | event) that are worked on at a time
NEGLIGIBLE = 1e-6  # an output's label leaves out what it stands for with less than this chance
MOST_LISTED = 8  # an output's label lists at most so many values

Labels = tuple[str, ...]  # what an output is called in each published column


@dataclass(frozen=True, slots=True, eq=False)
class Protocol:
    """q(y | x), or q(y | s, x) when it `sees_secret`.

    `channel` has a row per input and a column per output, each row summing to 1. Inputs are the joint's values, or
    its pairs (s, x) in C order. `outputs` says how each output is called, one label per published column. `elsewhere`
    is the row of a record whose value is none of these, whatever its secret, where there is such a row.
    """

    channel: FloatArray
    outputs: tuple[Labels, ...] = ()
    sees_secret: bool = False
    alpha: float | None = None  # the parameter of an explicit family
    elsewhere: FloatArray | None = None

    def __post_init__(self) -> None:
        channel = np.asarray(self.channel, dtype=np.float64)
        if channel.ndim != 2 or 0 in channel.shape:
            raise DistributionError(
                f"A channel needs a row per input and a column per output; its shape is {channel.shape}."
            )
        every = channel if self.elsewhere is None else np.vstack([channel, self.elsewhere])
        if not np.isfinite(every).all() or (every < 0).any() or np.abs(every.sum(axis=1) - 1).max() > 1e-9:
            raise DistributionError("Every row of a channel must be a distribution; one is not.")
        outputs = self.outputs or tuple((str(y),) for y in range(channel.shape[1]))
        if len(outputs) != channel.shape[1]:
            raise DistributionError(f"Labels must match the outputs; {len(outputs)} label {channel.shape[1]}.")
        object.__setattr__(self, "channel", freeze(channel))
        object.__setattr__(self, "outputs", outputs)
        if self.elsewhere is not None:
            object.__setattr__(self, "elsewhere", freeze(every[-1]))

    @property
    def all_rows(self) -> FloatArray:
        """All rows, the one for anything else last where there is one."""
        return self.channel if self.elsewhere is None else np.vstack([self.channel, self.elsewhere])

    def with_rows(self, rows: FloatArray, outputs: tuple[Labels, ...] | None = None) -> Protocol:
        """The same with these rows in the place of `every`, and other outputs if there are any."""
        rows, outputs = np.asarray(rows), self.outputs if outputs is None else outputs
        if self.elsewhere is None:
            return replace(self, channel=rows, outputs=outputs)
        return replace(self, channel=rows[:-1], outputs=outputs, elsewhere=rows[-1])

    def fits(self, joint: Joint) -> bool:
        """Whether the rows are the inputs that the joint has."""
        return bool(self.channel.shape[0] == joint.a * (joint.c if self.sees_secret else 1))

    def worst(self, comparisons: Comparisons) -> Leak:
        """The output and pair of events with the largest |ln P(y|E) / P(y|F)|."""
        if comparisons.inputs != self.channel.shape[0]:
            raise DistributionError(
                f"A protocol must have a row per input; it has {self.channel.shape[0]}, the table {comparisons.inputs}."
            )
        p, mass = comparisons.distributions, comparisons.masses[:, None]
        columns = max(1, WORKED_ON // max(p.shape[0], len(comparisons.pairs)))
        largest = Leak(0.0)
        for first in range(0, self.channel.shape[1], columns):
            part = self.channel[:, first : first + columns]
            # What every input has in common is taken out of the sum, so that an output which does not depend on the
            # input leaks exactly nothing, and one that hardly does is measured to the last digits of its difference.
            common = part.min(axis=0)
            p_y = mass * common + np.asarray(p @ (part - common))
            sizes = comparisons.leak_sizes(p_y[comparisons.pairs[:, 0]], p_y[comparisons.pairs[:, 1]])
            pair, y = np.unravel_index(int(sizes.argmax()), sizes.shape)
            if largest.output is None or sizes[pair, y] > largest.epsilon:
                largest = comparisons.leak(float(sizes[pair, y]), int(pair), first + int(y))
        return largest

    def worst_credal_leak(self, sets: CredalSets) -> Leak:
        """The output and pair of events with the largest log-ratio over all members of their sets."""
        listed = self.channel.shape[0]
        return sets.worst(self.channel if sets.inputs == listed else self.all_rows)

    def describe(self, leak: Leak, joint: Joint) -> str:
        """The leak in words."""
        return leak.describe(joint, None if leak.output is None else " & ".join(self.outputs[leak.output]))

    def joint_with_values(self, joint: Joint) -> FloatArray:
        """p(x, y)."""
        if not self.sees_secret:
            return joint.p_x[:, None] * self.channel
        return np.asarray(np.einsum("sx,sxy->xy", joint.p_sx, self.channel.reshape(joint.c, joint.a, -1)))

    def joint_with_secret(self, joint: Joint) -> FloatArray:
        """p(s, y)."""
        if not self.sees_secret:
            return np.asarray(joint.p_sx @ self.channel)
        return np.asarray(np.einsum("sx,sxy->sy", joint.p_sx, self.channel.reshape(joint.c, joint.a, -1)))

    def mutual_information(self, joint: Joint) -> float:
        """I(X;Y) in nats."""
        return information(self.joint_with_values(joint))

    def mix_constant(self, p_y: FloatArray, sliver: float) -> Protocol:
        """With chance `sliver` the output is drawn from p(y) whatever the input: every ratio moves towards 1."""
        return self.with_rows((1 - sliver) * self.all_rows + sliver * p_y[None, :])

    def as_values(self, joint: Joint) -> Protocol:
        """Publish, instead of an output, a value drawn from what the output stands for.

        This is post-processing: the promise stands, and the published values are distributed like the original. A
        protocol whose outputs are called like the values already publishes values, and stays as it is.
        """
        if self.outputs == joint.values:
            return self
        p_xy = self.joint_with_values(joint)
        p_y = p_xy.sum(axis=0)
        # An output that never comes stands for nobody in particular; only inputs that never come lead to it.
        posterior = np.divide(p_xy, p_y, out=np.repeat(joint.p_x[:, None], len(p_y), axis=1), where=p_y > 0).T
        every = self.all_rows @ posterior
        return self.with_rows(every / every.sum(axis=1, keepdims=True), joint.values)


def check_channel_size(inputs: int, outputs: int, what: str, instead: str) -> None:
    """Refuse a table of probabilities that would not fit in memory."""
    if inputs * outputs > LARGEST_CHANNEL:
        raise SizeError(
            f"{what} needs a table of {inputs:,} × {outputs:,} probabilities; "
            f"at most {LARGEST_CHANNEL:,} fit. {instead}"
        )


def posterior_labels(joint: Joint, p_xy: Matrix) -> tuple[Labels, ...]:
    """How outputs are called that stand for several values: `Bachelors | Masters`, most likely first.

    For several attributes each column lists its part of the same combinations in the same order. Outputs that would
    be called alike get percentages, and a number where even those agree.
    """
    values = joint.values
    plain, detailed = [], []
    for inputs, v in _output_posteriors(p_xy, joint):
        order = np.argsort(-v, kind="stable")
        order = order[v[order] > NEGLIGIBLE]
        combos = [values[x] for x in inputs[order]]
        plain.append(format_values(combos, [""] * len(order), joint.m))
        detailed.append(format_values(combos, [f" {100 * chance:.3g}%" for chance in v[order]], joint.m))
    repeated = {labels for labels, n in Counter(plain).items() if n > 1}
    return number_duplicates([d if p in repeated else p for p, d in zip(plain, detailed, strict=True)])


def _output_posteriors(p_xy: Matrix, joint: Joint) -> Iterator[tuple[IntArray, FloatArray]]:
    """For every output some values, among them all that it can stand for, and their chances."""
    if isinstance(p_xy, np.ndarray):
        p_y = p_xy.sum(axis=0, keepdims=True)
        # An output that never comes stands for nobody in particular.
        posterior = np.divide(p_xy, p_y, out=np.repeat(joint.p_x[:, None], p_xy.shape[1], axis=1), where=p_y > 0)
        yield from ((np.arange(joint.a), v) for v in posterior.T)
        return
    columns = p_xy.tocsc()
    columns.sort_indices()
    for first, end in pairwise(columns.indptr.tolist()):
        v = columns.data[first:end]
        yield columns.indices[first:end], v / v.sum()


def format_values(combos: Sequence[Labels], notes: Sequence[str], m: int) -> Labels:
    """The values that an output stands for, column by column: `Bachelors | Masters`, with a note behind each."""
    rest = len(combos) - MOST_LISTED
    more = [f"… {rest} more"] if rest > 0 else []
    first = list(zip(combos[:MOST_LISTED], notes[:MOST_LISTED], strict=True))
    return tuple(" | ".join([combo[j] + note for combo, note in first] + more) for j in range(m))


def number_duplicates(labels: Sequence[Labels]) -> tuple[Labels, ...]:
    """The labels, with a number behind each that was there before."""
    taken: set[Labels] = set()
    out = []
    for label in labels:
        unique, n = label, 1
        while unique in taken:
            n += 1
            unique = (f"{label[0]} #{n}", *label[1:])
        taken.add(unique)
        out.append(unique)
    return tuple(out)
