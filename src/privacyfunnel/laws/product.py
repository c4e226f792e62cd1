"""The law of a product: integers per attribute, an exact check of the whole, and its seal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import GuaranteeError, ProtocolFileError, SizeError
from privacyfunnel.laws.channel import ChannelLaw
from privacyfunnel.laws.exact import NO_LEAK, ExactLeak, exact_leak, worse
from privacyfunnel.laws.sampling import Words, sample
from privacyfunnel.laws.sealing import Domain, SealedProtocol, certify
from privacyfunnel.model.comparisons import Comparisons
from privacyfunnel.model.contraction import contracted
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.product import ProductProtocol, bounds_of_pairs, checked_factors, worst_leak
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocol import Labels

NEAR = 1e-10  # log-ratios closer than this to the largest are compared again as fractions


@dataclass(frozen=True, eq=False)
class ProductLaw:
    """One law of integers per attribute; each attribute has a draw number of its own."""

    factors: tuple[ChannelLaw, ...]
    combos: IntArray
    kind: ClassVar[str] = "product"
    checked: ClassVar[str] = "in exact arithmetic"
    sees_secret: ClassVar[bool] = False
    listed: ClassVar[None] = None  # outputs are too many to list

    def __post_init__(self) -> None:
        checked_factors([factor.inputs for factor in self.factors], self.combos)
        for factor in self.factors:
            if len(set(factor.outputs)) != len(factor.outputs) or any(len(labels) != 1 for labels in factor.outputs):
                raise ProtocolFileError("Outputs of a column must have one label each, all different; some have not.")

    @classmethod
    def of(cls, protocol: ProductProtocol) -> ProductLaw:
        """Each factor rounded to integers."""
        return cls(tuple(ChannelLaw.of(factor) for factor in protocol.factors), protocol.combos)

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
        """The law as a product of protocols of floats."""
        return ProductProtocol(tuple(factor.protocol for factor in self.factors), self.combos)

    def worst(self, comparisons: Comparisons, floor: float = 0.0) -> ExactLeak:
        """The largest ratio, exactly: floats say where it must be, fractions what it is.

        All terms of P(y|E) are positive, so a float sum is off by a factor of less than 1 + NEAR/4 and the largest
        ratio is among those whose floats are near the largest one.
        """
        protocol = self.protocol
        protocol.check(comparisons)
        if (len(self.combos) + 4 * len(self.factors)) * 2.0**-52 > NEAR / 8:
            raise SizeError(f"A product is sealed for fewer combinations than {len(self.combos):,}.")
        wanted = bounds_of_pairs(protocol.channels, self.combos, comparisons) > floor
        near: list[tuple[float, int, tuple[int, ...]]] = []
        top = 0.0
        for part in contracted(protocol.channels, self.combos, comparisons, wanted):
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
        rows = _rows(comparisons)
        return reduce(worse, (self._exactly(comparisons, rows, pair, y) for _, pair, y in near), NO_LEAK)

    def _exactly(self, comparisons: Comparisons, rows: list[IntArray], pair: int, output: tuple[int, ...]) -> ExactLeak:
        """The ratio of one pair at one output: Σ_x w_E(x) Π_j N^j(x^j, y^j), in Python's integers."""
        unknown = [j for j in range(len(self.factors)) if j not in comparisons.known]
        columns = {j: _column(self.factors[j], output[j]) for j in unknown}
        masses, totals = [], []
        for event in comparisons.pairs[pair]:
            mine = rows[event]
            terms = comparisons.weight[mine].astype(object)
            totals.append(int(terms.sum()))
            for j in unknown:
                terms = terms * columns[j][self.combos[comparisons.input[mine], j]]
            masses.append(int(terms.sum()))
        up, down = masses[0] * totals[1], masses[1] * totals[0]
        if (up == 0) != (down == 0):
            return exact_leak(comparisons, None, pair, output)
        ratio = Fraction(max(up, down), min(up, down)) if up else Fraction(1)
        return exact_leak(comparisons, ratio, pair, output)

    def draw(self, codes: NDArray[Any], stream: Words, first_row: int) -> NDArray[Any]:
        drawn = [
            sample(factor.tables, self.combos[codes, j], stream, first_row, draw=j)
            for j, factor in enumerate(self.factors)
        ]
        return np.stack(drawn, axis=1)

    def to_json(self) -> dict[str, Any]:
        return {
            "factors": [factor.to_json() for factor in self.factors],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], sees_secret: bool, combos: IntArray) -> ProductLaw:
        """The law that a protocol file states, over the combinations of its domain."""
        if sees_secret:
            raise ProtocolFileError("A product never sees the secret; this file says that it does. Make it again.")
        return cls(tuple(ChannelLaw.from_json(factor, False, combos) for factor in content["factors"]), combos)


def _column(law: ChannelLaw, output: int) -> NDArray[Any]:
    """N(x, y) of one output for every value, as Python integers."""
    column = np.zeros(law.inputs, dtype=object)
    entries = np.flatnonzero(law.output == output)
    column[np.searchsorted(law.indptr, entries, side="right") - 1] = law.numerator[entries]
    return column


def _rows(comparisons: Comparisons) -> list[IntArray]:
    """Which masses of the comparisons each event has."""
    order = np.argsort(comparisons.event, kind="stable")
    ends = np.searchsorted(comparisons.event[order], np.arange(int(comparisons.event.max()) + 2))
    return [order[i:j] for i, j in pairwise(ends.tolist())]


def seal_product(
    protocol: ProductProtocol, promise: Promise, joint: Joint, *, bound: float | None = None
) -> SealedProtocol:
    """The product as integers that keep the promise, checked exactly; with the smallest sliver that rounding needs."""
    for sliver in (0.0, *(2.0**-k for k in range(52, 19, -1))):
        quieter = protocol.quieter(joint, sliver) if sliver else protocol
        law = ProductLaw.of(quieter)
        with suppress(GuaranteeError):
            return SealedProtocol(
                law=law,
                promise=promise,
                epsilon=certify(law, promise, joint),
                domain=Domain.of(joint, False),
                information=law.protocol.mutual_information(joint),
                entropy=entropy(joint.p_x),
                bound=bound,
            )
        if worst_leak(joint, promise, protocol).epsilon > promise.epsilon + 1e-6:
            break
    leak = worst_leak(joint, promise, protocol)
    excess = leak.epsilon - promise.epsilon
    raise GuaranteeError(
        f"{promise.name} promised ε = {promise.epsilon:g}; this product leaks {excess:.2g} more "
        f"({protocol.describe(leak, joint)}). It was not returned and no row was sanitised."
    )
