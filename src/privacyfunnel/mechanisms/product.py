"""Mechanism of a product: integers per attribute, and an exact check of the whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import ProtocolFileError, SizeError
from privacyfunnel.mechanisms.alias_tables import sample
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.credal_checks import exact_credal_leak
from privacyfunnel.mechanisms.draw_tally import ChannelTally
from privacyfunnel.mechanisms.exact_arithmetic import NO_LEAK, ExactLeak, exact_pair_leak, larger_leak
from privacyfunnel.mechanisms.mechanism import Mechanism, Model, ObservationModels, check_table_size
from privacyfunnel.mechanisms.sampling import RandomWords
from privacyfunnel.model.comparisons import Comparisons
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Labels
from privacyfunnel.model.protocols.contraction import contract_channels
from privacyfunnel.model.protocols.product_protocol import (
    ProductProtocol,
    check_factors,
    multiply_channels,
    pair_bounds,
)
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol

NEAR = 1e-10  # log-ratios closer than this to the largest are compared again as fractions


@dataclass(frozen=True, eq=False)
class ProductMechanism(Mechanism):
    """One mechanism of integers per attribute; each attribute has a draw number of its own."""

    factors: tuple[ChannelMechanism, ...]
    combos: IntArray
    kind: ClassVar[str] = "product"
    check_method: ClassVar[str] = "in exact arithmetic"
    no_table_reason: ClassVar[str] = "a product has several"
    sees_secret = False

    def __post_init__(self) -> None:
        check_factors([factor.inputs for factor in self.factors], self.combos)
        check_table_size(1, sum(factor.inputs * len(factor.outputs) for factor in self.factors))
        for factor in self.factors:
            if len(set(factor.outputs)) != len(factor.outputs) or any(len(labels) != 1 for labels in factor.outputs):
                raise ProtocolFileError("Outputs of a column must have one label each, all different; some have not.")

    @classmethod
    def from_protocol(cls, protocol: ProductProtocol) -> ProductMechanism:
        """Each factor rounded to integers."""
        return cls(tuple(ChannelMechanism.from_protocol(factor) for factor in protocol.factors), protocol.combos)

    @property
    def inputs(self) -> int:
        """How many combinations are inputs."""
        return len(self.combos)

    @property
    def columns(self) -> tuple[Labels, ...]:
        """The labels of every attribute's outputs."""
        return tuple(tuple(label for (label,) in factor.outputs) for factor in self.factors)

    @property
    def protocol(self) -> ProductProtocol:
        return ProductProtocol(tuple(factor.table for factor in self.factors), self.combos)

    def worst(self, comparisons: Comparisons, floor: float = 0.0) -> ExactLeak:
        """The largest ratio, exactly: floats say where it must be, fractions what it is.

        All terms of P(y|E) are positive, so a float sum is off by a factor of less than 1 + NEAR/4 and the largest
        ratio is among those whose floats are near the largest one.
        """
        protocol = self.protocol
        protocol.check(comparisons)
        if (len(self.combos) + 4 * len(self.factors)) * 2.0**-52 > NEAR / 8:
            raise SizeError(f"A product is sealed for fewer combinations than {len(self.combos):,}.")
        wanted = ~(pair_bounds(protocol.channels, self.combos, comparisons) <= floor)
        near: list[tuple[float, int, tuple[int, ...]]] = []
        top = 0.0
        for part in contract_channels(protocol.channels, self.combos, comparisons, wanted):
            sizes = part.sizes()
            top = max(top, float(sizes.max(initial=0.0)))
            pairs, ys = np.nonzero(sizes >= top - NEAR)
            if math.isinf(top):
                pairs, ys = pairs[:1], ys[:1]
            found = zip(sizes[pairs, ys].tolist(), part.pairs[pairs].tolist(), ys.tolist(), strict=True)
            near = [entry for entry in near if entry[0] >= top - NEAR]
            near += [(size, pair, part.output(y, len(self.factors))) for size, pair, y in found]
            if math.isinf(top):
                break
        rows = _event_masses(comparisons)
        return reduce(larger_leak, (self._exact_pair_leak(comparisons, rows, pair, y) for _, pair, y in near), NO_LEAK)

    def worst_credal_leak(self, sets: CredalSets) -> ExactLeak:
        channels = self.protocol.channels
        shape = [channel.shape[1] for channel in channels]

        def name(output: int) -> tuple[int, ...]:
            return tuple(map(int, np.unravel_index(output, shape)))

        def column(output: int) -> list[int]:
            parts = [factor.column(y) for factor, y in zip(self.factors, name(output), strict=True)]
            return [math.prod(parts[j][x] for j, x in enumerate(combo)) for combo in self.combos.tolist()]

        return exact_credal_leak(sets, multiply_channels(channels, self.combos), column, name, len(channels))

    def _exact_pair_leak(
        self, comparisons: Comparisons, rows: list[IntArray], pair: int, output: tuple[int, ...]
    ) -> ExactLeak:
        """The ratio of one pair at one output: Σ_x w_E(x) Π_j N^j(x^j, y^j), in Python's integers."""
        unknown = [j for j in range(len(self.factors)) if j not in comparisons.known]
        columns = {j: np.array(self.factors[j].column(output[j]), dtype=object) for j in unknown}
        masses, totals = [], []
        for event in comparisons.pairs[pair]:
            mine = rows[event]
            terms = comparisons.weight[mine].astype(object)
            totals.append(int(terms.sum()))
            for j in unknown:
                terms = terms * columns[j][self.combos[comparisons.input[mine], j]]
            masses.append(int(terms.sum()))
        return exact_pair_leak(comparisons, pair, masses[0] * totals[1], masses[1] * totals[0], output)

    def draw(self, codes: NDArray[Any], random_words: RandomWords) -> NDArray[Any]:
        drawn = [
            sample(factor.tables, self.combos[codes, j], random_words, draw=j) for j, factor in enumerate(self.factors)
        ]
        return np.stack(drawn, axis=1)

    def tally(self) -> ChannelTally:
        return ChannelTally([factor.channel for factor in self.factors], self.combos)

    def restrict_inputs(self, inputs: IntArray) -> ProductMechanism:
        return replace(self, combos=self.combos[inputs])

    def measurable_protocol(self, most: int) -> ProductProtocol:
        """All of it: what cannot be gone through in time is bounded."""
        return self.protocol

    def explicit_protocol(self, most: int) -> SparseProtocol | None:
        columns = [
            factor.restrict_inputs(self.combos[:, j]).explicit_protocol(most) for j, factor in enumerate(self.factors)
        ]
        found = columns[0]
        for column in columns[1:]:
            found = None if found is None or column is None else found.combine(column, most)
        return found

    def unchanged_probability(self, own: NDArray[Any], joint: Joint) -> float:
        can = (own >= 0).all(axis=1)
        stays, combos = joint.p_x[can], self.combos[can]
        for j, factor in enumerate(self.factors):
            stays = stays * factor.channel[combos[:, j], own[can, j]]
        return float(stays.sum())

    def value_joint(self, joint: Joint) -> tuple[tuple[IntArray, FloatArray], ...]:
        found = []
        for j, factor in enumerate(self.factors):
            p_x = np.bincount(joint.combos[:, j], joint.p_x, minlength=factor.inputs)
            found.append((np.arange(factor.inputs)[:, None], p_x[:, None] * factor.channel))
        return tuple(found)

    def likely_probability(self, likely: Sequence[IntArray], joint: Joint) -> float:
        right = joint.p_x
        for j, (factor, shown) in enumerate(zip(self.factors, likely, strict=True)):
            own = np.where(shown[:, 0] == np.arange(factor.inputs)[:, None], factor.channel, 0.0).sum(axis=1)
            right = right * own[joint.combos[:, j]]
        return float(right.sum())

    def required_attributes(self, wanted: Sequence[int], attributes: int) -> tuple[int, ...]:
        return tuple(sorted(wanted))

    def restrict_attributes(self, attributes: Sequence[int]) -> tuple[ProductMechanism, IntArray]:
        """Each column is drawn by itself, so what some show depends on their own values only."""
        combos, first = np.unique(self.combos[:, attributes], axis=0, return_index=True)
        return ProductMechanism(tuple(self.factors[j] for j in attributes), combos), first

    @property
    def expansion_size(self) -> int:
        return math.prod(len(factor.outputs) for factor in self.factors)

    def observation(self, shapes: ObservationModels[Model]) -> Model:
        """Row by row the products of the columns' own chances, outputs in C order."""
        rows = [factor.channel[self.combos[:, j]] for j, factor in enumerate(self.factors)]
        return shapes.channel(
            reduce(lambda one, other: (one[:, :, None] * other[:, None, :]).reshape(len(one), -1), rows)
        )

    def observation_codes(self, drawn: NDArray[Any]) -> NDArray[Any]:
        known = (drawn >= 0).all(axis=1)
        shape = [len(factor.outputs) for factor in self.factors]
        return np.where(known, np.ravel_multi_index(tuple(np.maximum(drawn, 0).T), shape), -1)[:, None]

    def to_json(self) -> dict[str, Any]:
        return {"factors": [factor.to_json() for factor in self.factors]}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], sees_secret: bool, combos: IntArray) -> ProductMechanism:
        if sees_secret:
            raise ProtocolFileError("A product never sees the secret; this file says that it does. Make it again.")
        # Whether there is a factor per column is checked on the whole; each has one label per output.
        return cls(
            tuple(ChannelMechanism.from_json(factor, False, combos[:, :1]) for factor in content["factors"]), combos
        )


def _event_masses(comparisons: Comparisons) -> list[IntArray]:
    """Which masses of the comparisons each event has."""
    order = np.argsort(comparisons.event, kind="stable")
    ends = np.searchsorted(comparisons.event[order], np.arange(int(comparisons.event.max()) + 2))
    return [order[i:j] for i, j in pairwise(ends.tolist())]
