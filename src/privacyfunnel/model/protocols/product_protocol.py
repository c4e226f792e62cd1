"""Product protocols: every attribute randomised on its own, and what the whole then says about the secret."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, entropy_terms
from privacyfunnel.errors import DistributionError, SizeError
from privacyfunnel.model.comparisons import Comparisons, Leak
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.protocols.contraction import contract_channels, output_chances

LARGEST_PRODUCT = 5 * 10**7  # outputs that are gone through; more would take hours
MOST_FACTORS = 14  # products of so many chances of 2^-64 are still floats
LARGEST_LOG = 700.0  # e^700 is still a float
ROUNDING = 1e-12  # relative and absolute: far more than the floats of a bound are off
LARGEST_TABLE = 1 << 24  # chances of a product multiplied out: 128 MB
MOST_COMPARED = 1 << 22  # inputs of events that are compared at a time


@dataclass(frozen=True, slots=True, eq=False)
class ProductProtocol:
    """Q(y|x) = Π_j Q^j(y^j | x^j). `combos` says which value of each attribute an input has."""

    factors: tuple[Protocol, ...]
    combos: IntArray
    sees_secret: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_factors([len(factor.channel) for factor in self.factors], self.combos)

    @property
    def channels(self) -> tuple[FloatArray, ...]:
        """The factors' tables of probabilities."""
        return tuple(factor.channel for factor in self.factors)

    @property
    def outputs(self) -> int:
        """How many outputs there are."""
        return math.prod(channel.shape[1] for channel in self.channels)

    def worst(self, comparisons: Comparisons, floor: float = 0.0) -> Leak:
        """The output, one number per attribute, and the pair of events with the largest |ln P(y|E)/P(y|F)|.

        Only leaks above `floor` are looked for; where there are none, the answer is at most that.
        """
        self.check(comparisons)
        wanted = ~(pair_bounds(self.channels, self.combos, comparisons) <= floor)
        largest = Leak(0.0)
        for part in contract_channels(self.channels, self.combos, comparisons, wanted):
            size, pair, y = part.largest()
            if largest.output is None or size > largest.epsilon:
                output = part.output(y, len(self.factors))
                largest = comparisons.leak(size, int(part.pairs[pair]), output)
                if math.isinf(size):
                    break
        return largest

    def worst_credal_leak(self, sets: CredalSets) -> Leak:
        """The output, one number per attribute, and the pair with the largest log-ratio over all members of sets."""
        leak = sets.worst(multiply_channels(self.channels, self.combos))
        output = np.unravel_index(leak.output or 0, [channel.shape[1] for channel in self.channels])
        return replace(leak, output=None if leak.output is None else tuple(map(int, output)))

    def measure(self, comparisons: Comparisons, floor: float, deadline: float) -> tuple[Leak, bool]:
        """The worst leak above `floor`; a block is gone through to its end once it was begun."""
        return self.worst(comparisons, floor), True

    def bound(self, comparisons: Comparisons) -> float:
        """A number that no leak exceeds."""
        return float(pair_bounds(self.channels, self.combos, comparisons).max(initial=0.0))

    def describe(self, leak: Leak, joint: Joint) -> str:
        """The leak in words. What is shown of an attribute that the attacker knows does not matter."""
        if leak.output is None:
            return leak.describe(joint)
        known = {j for j, _ in leak.known}
        shown = [
            "anything" if j in known else " & ".join(factor.outputs[y])
            for j, (factor, y) in enumerate(zip(self.factors, leak.output, strict=True))
        ]
        return leak.describe(joint, f"({', '.join(shown)})")

    def check(self, comparisons: Comparisons) -> None:
        """Refuse events over other inputs, and more outputs than can be gone through."""
        if comparisons.inputs != len(self.combos):
            raise DistributionError(
                f"A protocol must have a row per input; it has {len(self.combos)}, the table {comparisons.inputs}."
            )
        if self.outputs > LARGEST_PRODUCT:
            raise SizeError(
                f"A product's outputs are measured up to {LARGEST_PRODUCT:,}; this one has {self.outputs:,}. "
                "Publish fewer columns, or use the method chain."
            )

    def mutual_information(self, joint: Joint) -> float:
        """I(X;Y) = H(Y) − Σ_j H(Y^j | X^j) in nats."""
        h_y = sum(map(entropy, output_chances(self.channels, self.combos, joint.p_x)))
        given = sum(
            float(joint.p_x @ entropy_terms(channel).sum(axis=1)[self.combos[:, j]])
            for j, channel in enumerate(self.channels)
        )
        return max(0.0, h_y - given)

    def as_values(self, joint: Joint) -> ProductProtocol:
        """Every attribute's output replaced by a value drawn from what it stands for; the promise stands."""
        factors = (factor.as_values(joint.project([j])) for j, factor in enumerate(self.factors))
        return ProductProtocol(tuple(factors), self.combos)

    def mix_constant(self, joint: Joint, sliver: float) -> ProductProtocol:
        """With chance `sliver` each attribute's output is drawn from its distribution whatever the value."""
        factors = []
        for j, factor in enumerate(self.factors):
            p_y = np.bincount(self.combos[:, j], joint.p_x) @ factor.channel
            factors.append(factor.mix_constant(p_y / p_y.sum(), sliver))
        return ProductProtocol(tuple(factors), self.combos)


def multiply_channels(channels: Sequence[FloatArray], combos: IntArray) -> FloatArray:
    """Q(y|x) as one table, outputs in C order."""
    outputs = math.prod(channel.shape[1] for channel in channels)
    if outputs * len(combos) > LARGEST_TABLE:
        raise SizeError(
            f"For a population a product is measured with at most {LARGEST_TABLE:,} chances; {len(combos):,} "
            f"combinations and {outputs:,} outputs have more. Publish fewer columns, or promise for the table alone."
        )
    whole = np.ones((len(combos), 1))
    for j, channel in enumerate(channels):
        whole = (whole[:, :, None] * channel[combos[:, j]][:, None, :]).reshape(len(combos), -1)
    return whole


def worst_leak(joint: Joint, promise: Promise, product: ProductProtocol) -> Leak:
    """Where the product leaks most. Blocks that cannot beat what was found already are skipped, exactly."""
    worst = Leak(0.0)
    for block in promise.comparisons(joint, False):
        found = product.worst(block, worst.epsilon)
        worst = found if found.output is not None and (worst.output is None or found.epsilon > worst.epsilon) else worst
    sets = promise.credal_sets(joint)
    return worst if sets is None else max(worst, product.worst_credal_leak(sets), key=lambda leak: leak.epsilon)


def pair_bounds(channels: Sequence[FloatArray], combos: IntArray, comparisons: Comparisons) -> FloatArray:
    r"""For each pair an upper bound on |ln P(y|E)/P(y|F)| over all outputs.

    Let the likelihood of an output vary by at most a factor R over the inputs of both events; attributes that all of
    them share do not count. The ratio then lies between 1/R and R. Where E is within F (no input has more weight in E
    than in F), with P(E|F) = π, it even lies between :math:`1/(π + (1-π)R)` and :math:`R/(πR + 1 - π)`.
    """
    e, f = comparisons.pairs.T
    totals = comparisons.totals
    log_range = np.zeros(len(e))
    for j, channel in enumerate(channels):
        if j in comparisons.known:
            continue
        least, most = channel.min(axis=0), channel.max(axis=0)
        seen = most > 0
        reach = math.inf if (least[seen] == 0).any() else float(np.log(most[seen] / least[seen]).max())
        value = combos[comparisons.input, j]
        low, high = np.full(len(totals), np.iinfo(np.int64).max), np.full(len(totals), -1)
        np.minimum.at(low, comparisons.event, value)
        np.maximum.at(high, comparisons.event, value)
        log_range[np.minimum(low[e], low[f]) != np.maximum(high[e], high[f])] += reach
    # Where E is not within F, no share of it is taken off: π = 0 leaves R.
    share = np.where(_is_subset(comparisons), np.asarray(totals[e] / totals[f], dtype=np.float64), 0.0)
    with np.errstate(over="ignore"):
        spread = np.exp(np.minimum(log_range, LARGEST_LOG)) - 1
    down = np.log1p((1 - share) * spread)
    up = np.log1p((1 - share) * spread / (1 + share * spread))
    if comparisons.scales is not None:
        up, down = (side / scale for side, scale in zip((up, down), comparisons.scales.T, strict=True))
    bound = np.maximum(down, up) * (1 + ROUNDING) + ROUNDING
    # Beyond what floats hold, and for whatever is no number, nothing is known.
    bound[~(log_range <= LARGEST_LOG) | np.isnan(bound)] = np.inf
    return np.asarray(bound)


def _is_subset(comparisons: Comparisons) -> BoolArray:
    """For each pair whether E is within F: no input has more weight in E than in F, in exact integers."""
    inputs, (e, f) = comparisons.inputs, comparisons.pairs.T
    cells = comparisons.event * inputs + comparisons.input
    order = np.argsort(cells, kind="stable")
    cells, first = np.unique(cells[order], return_index=True)
    weight = np.add.reduceat(comparisons.weight[order], first)  # an event may list an input several times
    starts = np.searchsorted(cells, np.arange(len(comparisons.totals) + 1) * inputs)
    lengths = starts[e + 1] - starts[e]
    within = np.ones(len(e), dtype=np.bool_)
    # Every input of E, beside the same input of F; some pairs at a time, for many may share an event.
    for pairs in np.split(np.arange(len(e)), np.flatnonzero(np.diff(np.cumsum(lengths) // MOST_COMPARED)) + 1):
        mine = lengths[pairs]
        pair = np.repeat(pairs, mine)
        cell = starts[e[pair]] + np.arange(len(pair)) - np.repeat(np.cumsum(mine) - mine, mine)
        wanted = f[pair] * inputs + cells[cell] % inputs
        at = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
        inside = (cells[at] == wanted) & (weight[cell] <= weight[at]).astype(np.bool_)
        within[pair[~inside]] = False
    return within


def check_factors(rows: Sequence[int], combos: IntArray) -> None:
    """Refuse factors that do not fit the combinations."""
    if len(rows) > MOST_FACTORS:
        raise SizeError(
            f"A product has at most {MOST_FACTORS} attributes; this has {len(rows)}. Publish fewer columns."
        )
    if len(rows) != combos.shape[1] or (combos.max(axis=0) >= np.array(rows)).any():
        raise DistributionError(
            f"A product needs a protocol per attribute with a row per value; it has {list(rows)} rows for "
            f"{combos.shape[1]} attributes."
        )
