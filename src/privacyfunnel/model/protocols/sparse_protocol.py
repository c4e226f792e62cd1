"""Protocols whose outputs come from few inputs each, as sparse tables; and what measuring at scale needs of any."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import ClassVar
from typing import Protocol as Shape

import numpy as np

from privacyfunnel.arrays import FloatArray, nonzero_entries, sparse
from privacyfunnel.errors import DistributionError
from privacyfunnel.model.comparisons import Comparisons, Leak, leak_sizes
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Labels, Protocol, check_channel_size

LIKELIEST = 64  # values, as many of each secret's likeliest ones, that are enough to say nothing about it
SMALL = 1 << 20  # chances of a table that may be filled
LEAST_AVERAGE = 2.0**-10  # of these chances: with less, a sliver would have to be wide
WORKED_ON = 1 << 22  # entries of P(y | E) that are worked on at a time


class Measurable(Shape):
    """A protocol over many combinations that can be measured block by block, and bounded where time is up."""

    @property
    def sees_secret(self) -> bool: ...

    def measure(self, comparisons: Comparisons, floor: float, deadline: float) -> tuple[Leak, bool]:
        """The worst leak that is above `floor`, and whether everything was looked at before the deadline."""

    def bound(self, comparisons: Comparisons) -> float:
        """A number that no leak exceeds; infinite where none is known."""

    def describe(self, leak: Leak, joint: Joint) -> str:
        """The leak in words."""


@dataclass(frozen=True, slots=True, eq=False)
class SparseProtocol:
    """q(y | x), a row per value; mostly zeros."""

    channel: sparse.csr_array
    outputs: tuple[Labels, ...] = ()  # what each is called in each published column; their numbers where left out
    sees_secret: ClassVar[bool] = False

    @property
    def table(self) -> Protocol:
        """The same as a table of all chances; refused where that would not fit in memory."""
        check_channel_size(*self.channel.shape, "A protocol as one table", "Merge rare values, or use coarser ones.")
        return Protocol(self.channel.toarray(), self.outputs)

    def measure(self, comparisons: Comparisons, floor: float = 0.0, deadline: float = math.inf) -> tuple[Leak, bool]:
        """The output and pair of events with the largest |ln P(y|E)/P(y|F)|, some outputs at a time."""
        if comparisons.inputs != self.channel.shape[0]:
            raise DistributionError(
                f"A protocol must have a row per input; it has {self.channel.shape[0]}, the table {comparisons.inputs}."
            )
        outputs = self.channel.shape[1]
        # An event has at most as many outputs as its inputs have together.
        entries = int(np.diff(self.channel.indptr)[comparisons.input].sum())
        worst = Leak(0.0)
        for part in np.array_split(np.arange(outputs), min(outputs, 1 + entries // WORKED_ON)):
            if time.monotonic() >= deadline:
                return worst, False
            found = _worst_output(sparse.csr_array(self.channel[:, part]), comparisons, int(part[0]))
            if found.output is not None and (worst.output is None or found.epsilon > worst.epsilon):
                worst = found
            if math.isinf(worst.epsilon):
                break
        return worst, True

    def worst(self, comparisons: Comparisons) -> Leak:
        """The output and pair of events with the largest log-ratio."""
        return self.measure(comparisons)[0]

    def worst_credal_leak(self, sets: CredalSets) -> Leak:
        """The same over all members of sets, from a table of all chances."""
        return self.table.worst_credal_leak(sets)

    def joint_with_values(self, joint: Joint) -> sparse.csr_array:
        """p(x, y)."""
        return sparse.csr_array(sparse.diags_array(joint.p_x) @ self.channel)

    def mutual_information(self, joint: Joint) -> float:
        """I(X;Y) in nats, summed as a divergence."""
        p_xy = self.joint_with_values(joint)
        x, y, chance = nonzero_entries(p_xy)
        return max(0.0, float(chance @ np.log(chance / joint.p_x[x] / p_xy.sum(axis=0)[y])))

    def mix_constant(self, joint: Joint, sliver: float) -> SparseProtocol:
        r"""With chance `sliver` a value leads to what does not depend on the secret: ratios move towards 1.

        Some values, likely ones of each secret, lead to any output as the table does, with chances a of which every
        secret has the same average κ; in all other cases the output is the likeliest one. With δ = `sliver` / κ

        .. math:: P'(y | s) = (1 - \delta) P(y | s) + \delta \kappa P(y) + \delta (1 - \kappa) [y = y_0],

        while few rows have more than one entry more. Where the table is small every value leads to any output (κ = 1),
        which is the same for whatever else is compared, beside secrets.
        """
        p_y = self.joint_with_values(joint).sum(axis=0)
        small = self.channel.shape[0] * self.channel.shape[1] <= SMALL
        like_any, average = (np.ones(joint.a), 1.0) if small else _balanced_chances(joint)
        share = min(sliver / average, 0.5)
        likeliest = sparse.csr_array((np.ones(1), ([0], [int(p_y.argmax())])), shape=(1, p_y.size))
        any_output = sparse.csr_array((share * like_any)[:, None]) @ sparse.csr_array(p_y[None, :])
        one_output = sparse.csr_array((share * (1 - like_any))[:, None]) @ likeliest
        return replace(self, channel=sparse.csr_array((1 - share) * self.channel + any_output + one_output))

    def combine(self, other: SparseProtocol, most: int) -> SparseProtocol | None:
        """Both, drawn independently: q(y, y' | x) = q(y | x) q'(y' | x); None if more than `most` chances make it up.

        Only pairs of outputs that some value can become are outputs; the labels of the second follow the first's.
        """
        one, two = self.channel, other.channel
        mine, yours = np.diff(one.indptr).astype(np.int64), np.diff(two.indptr).astype(np.int64)
        each = mine * yours
        if each.sum() > most:
            return None
        row = np.repeat(np.arange(len(each)), each)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(each) - each, each)
        i, j = one.indptr[row] + nth // yours[row], two.indptr[row] + nth % yours[row]
        pair = one.indices[i].astype(np.int64) * two.shape[1] + two.indices[j]
        found, column = np.unique(pair, return_inverse=True)
        cells = (row, column.reshape(-1))
        channel = sparse.csr_array((one.data[i] * two.data[j], cells), shape=(len(each), len(found)))
        pairs = zip(*(part.tolist() for part in np.divmod(found, two.shape[1])), strict=True)
        return SparseProtocol(channel, tuple(self.outputs[y] + other.outputs[z] for y, z in pairs))

    def bound(self, comparisons: Comparisons) -> float:
        """Nothing is known of outputs that were not looked at."""
        return math.inf

    def describe(self, leak: Leak, joint: Joint) -> str:
        """The leak in words."""
        if leak.output is None or not self.outputs:
            return leak.describe(joint)
        return leak.describe(joint, f"({', '.join(self.outputs[leak.output])})")


def _worst_output(channel: sparse.csr_array, comparisons: Comparisons, first: int) -> Leak:
    p = sparse.csr_array(comparisons.distributions @ channel)
    p.eliminate_zeros()
    p.sort_indices()
    one, other = sparse.csr_array(p[comparisons.pairs[:, 0]]), sparse.csr_array(p[comparisons.pairs[:, 1]])
    if comparisons.scales is not None:
        both = sparse.csr_array(one + other).tocoo()  # every entry that either has
        pairs, outputs = both.coords
        p_one, p_other = (np.asarray(side[pairs, outputs]).reshape(-1, 1) for side in (one, other))
        sizes = leak_sizes(p_one, p_other, comparisons.scales[pairs])[:, 0]
        at = int(sizes.argmax()) if sizes.size else -1
        return comparisons.leak(float(sizes[at]), int(pairs[at]), first + int(outputs[at])) if at >= 0 else Leak(0.0)
    # An output that comes under only one of the two events is an infinite leak; without one, the patterns agree.
    if one.nnz != other.nnz or (one.indptr != other.indptr).any() or (one.indices != other.indices).any():
        here, there = one.astype(bool).astype(np.int8), other.astype(bool).astype(np.int8)
        only = (here - there).tocoo()
        at = int(np.flatnonzero(only.data)[0])
        pair, output = (int(axis[at]) for axis in only.coords)
        return comparisons.leak(math.inf, pair, first + output)
    if not one.nnz:
        return Leak(0.0)
    sizes = np.abs(np.log(one.data / other.data))
    sizes[np.isnan(sizes)] = math.inf  # what is no number passes no check
    at = int(sizes.argmax())
    pair = int(np.searchsorted(one.indptr, at, side="right")) - 1
    return comparisons.leak(float(sizes[at]), pair, first + int(one.indices[at]))


def _balanced_chances(joint: Joint) -> tuple[FloatArray, float]:
    """Chances a(x), few above 0, with the same κ = Σ_x p(x|s) a(x) for every secret, as large as may be; and κ."""
    from scipy.optimize import linprog  # few protocols need it, and it is slow to import

    given = joint.p_sx / joint.p_s[:, None]
    order = np.argsort(-given, axis=1, kind="stable")
    each = max(1, LIKELIEST // joint.c)
    while True:
        likely = np.unique(order[:, :each])
        same = np.column_stack([given[:, likely], -np.ones(joint.c)])
        found = linprog(np.append(np.zeros(likely.size), -1.0), A_eq=same, b_eq=np.zeros(joint.c), bounds=(0, 1)).x
        if found is not None and found[-1] > LEAST_AVERAGE:
            chances = np.zeros(joint.a)
            chances[likely] = np.clip(found[:-1], 0.0, 1.0)  # a solver's numbers; what is drawn is checked exactly
            return chances, float((given @ chances).min())
        if each >= joint.a:
            return np.ones(joint.a), 1.0
        each *= 4
