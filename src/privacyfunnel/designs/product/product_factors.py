r"""The factors of a product: the best protocol of one attribute, alone, after those before it, or next to all others.

Alone (the inequalities of the paper's Theorem "budget"): factor j keeps :math:`\varepsilon^j`-LIP w.r.t.
:math:`p(S, X \mid x^J)` for every J without j,

.. math:: e^{-\varepsilon^j} \le P(y^j \mid s, x^J) / P(y^j \mid x^J) \le e^{\varepsilon^j}.

That theorem promises :math:`\sum_j \varepsilon^j`-SRLIP for the product. It is false; what holds is measured.

After those before it: the same given, besides, every output :math:`y^K` of the earlier attributes K outside J,

.. math:: e^{-\varepsilon^j} \le P(y^j \mid s, x^J, y^K) / P(y^j \mid x^J, y^K) \le e^{\varepsilon^j}.

Then the sum does hold, by the chain rule (docs/theory.md, Theorem 20).

Next to the others: with all other factors fixed, the product keeps :math:`\varepsilon`-SRLIP exactly when

.. math:: e^{-\varepsilon} \le P(y^{-j}, y^j \mid s, x^J) / P(y^{-j}, y^j \mid x^J) \le e^{\varepsilon}

for every J and every output :math:`y^{-j}` of the others. All three are linear and homogeneous in
:math:`Q^j(y^j|\cdot)`: rows for the same engine, with posteriors over :math:`x^j`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from privacyfunnel.arrays import FloatArray, sparse
from privacyfunnel.engine import Problem, split
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.errors import SizeError
from privacyfunnel.model.comparisons import Comparisons, leak_sizes
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol, posterior_labels
from privacyfunnel.model.protocols.contraction import contract_channels
from privacyfunnel.model.protocols.product_protocol import ProductProtocol

GAP = 1e-3  # nats: factors are many and each is only a candidate
LEAST_ROOM = 1e-6  # of ε: with less than this left, a factor is not solved again
INSIDE = 1e-9  # of ε: the engine's atoms may break a row by as much
MOST_CONSTRAINTS = 500_000  # comparisons of one factor: some hundred megabytes
LARGEST_EPSILON = 12.0  # what factors are solved for where more is asked: all but everything is kept then
SECONDS, SHARE = 5.0, 0.1  # for one factor, and of the time that is left: there are many


class Factors:
    """All that one joint's factors have in common, and the clock by which they are solved."""

    def __init__(self, joint: Joint, promise: Promise, clock: Clock = FOREVER) -> None:
        self.joint, self.promise, self.clock = joint, promise, clock
        self.blocks = tuple(promise.comparisons(joint, False))
        self.marginals = tuple(joint.project([j]) for j in range(joint.m))
        self._rows_alone: dict[int, LinearConstraints] = {}
        self._alone: dict[tuple[int, float], Protocol] = {}

    def solve_alone(self, j: int, epsilon: float) -> Protocol:
        """The best factor j that keeps ε-LIP given every x^J."""
        key = (j, epsilon)
        if key not in self._alone:
            if j not in self._rows_alone:
                self._rows_alone[j] = _constraints_alone(self.blocks, self.joint, j)
            self._alone[key] = self._solve(j, self._rows_alone[j], epsilon)
        return self._alone[key]

    def solve_after(self, j: int, earlier: Mapping[int, Protocol], epsilon: float) -> Protocol:
        """The best factor j that keeps ε-LIP given every x^J and every output of the earlier factors outside J."""
        return self._solve(j, _constraints_after(self.blocks, self.joint, j, earlier), epsilon)

    def solve_beside(self, j: int, product: ProductProtocol, epsilon: float) -> Protocol | None:
        """The best factor j next to the product's other factors; none where those use up ε among themselves."""
        rows = _constraints_beside(self.blocks, self.joint, j, product)
        at_prior = leak_sizes(*rows.evaluate(self.marginals[j].p_x[None, :]), rows.scales)
        if at_prior.max(initial=0.0) > epsilon * (1 - LEAST_ROOM):
            return None
        return self._solve(j, rows, epsilon)

    def constant(self, j: int) -> Protocol:
        """The factor that says nothing."""
        return Protocol(np.ones((self.marginals[j].a, 1)))

    def product(self, factors: tuple[Protocol, ...]) -> ProductProtocol:
        """These factors over the joint's combinations."""
        return ProductProtocol(factors, self.joint.combos)

    def _solve(self, j: int, rows: LinearConstraints, epsilon: float) -> Protocol:
        marginal = self.marginals[j]
        prior = marginal.p_x
        if not len(rows):  # nothing is compared: every value may be published as it is
            return Protocol(np.eye(len(prior)), marginal.values)
        size = min(epsilon, LARGEST_EPSILON) * (1 - INSIDE)
        problem = Problem.from_values(prior, rows, size)
        found = split(problem, gap=GAP, time_limit=min(SECONDS, SHARE * self.clock.seconds_left), lazy=True)
        p_yx = found.weights[:, None] * found.atoms
        channel = (p_yx / p_yx.sum(axis=0)).T
        return Protocol(channel, posterior_labels(marginal, prior[:, None] * channel))


def _constraints_alone(blocks: tuple[Comparisons, ...], joint: Joint, j: int) -> LinearConstraints:
    """P(x^j | s, x^J) / p(x^j) against P(x^j | x^J) / p(x^j)."""
    prior = joint.project([j]).p_x
    to_value = sparse.csr_array(sparse.coo_array((np.ones(joint.a), (np.arange(joint.a), joint.combos[:, j]))))
    parts = []
    for block in blocks:
        if j not in block.known:
            lifts = sparse.csr_array(block.distributions @ to_value).toarray() / prior
            one, other = (lifts[block.pairs[:, i]] for i in (0, 1))
            parts.append(LinearConstraints.from_pairs(one, other, block.scales))
    return _drop_duplicates(LinearConstraints.concatenate(parts, len(prior)))


def _constraints_after(
    blocks: tuple[Comparisons, ...], joint: Joint, j: int, earlier: Mapping[int, Protocol]
) -> LinearConstraints:
    """P(x^j | s, x^J, y^K) / p(x^j) against the same for everybody, for every y^K; later attributes say nothing yet."""
    sizes = [len(attribute.labels) for attribute in joint.attributes]
    channels = [earlier[k].channel if k in earlier else np.ones((size, 1)) for k, size in enumerate(sizes)]
    rows = _joint_constraints(blocks, joint, j, channels)
    (n, d), prior = rows.dense, joint.project([j]).p_x
    p_one, p_other = n @ prior, d @ prior
    seen = (p_one > 0) & (p_other > 0)  # an output that either never sees: neither does, or that side is not promised
    scales = None if rows.scales is None else rows.scales[seen]
    return _drop_duplicates(
        LinearConstraints.from_pairs(n[seen] / p_one[seen][:, None], d[seen] / p_other[seen][:, None], scales)
    )


def _constraints_beside(
    blocks: tuple[Comparisons, ...], joint: Joint, j: int, product: ProductProtocol
) -> LinearConstraints:
    """P(x^j, y^-j | s, x^J) / p(x^j) against the same for everybody, for every y^-j."""
    return _drop_duplicates(_joint_constraints(blocks, joint, j, product.channels))


def _joint_constraints(
    blocks: tuple[Comparisons, ...], joint: Joint, j: int, channels: Sequence[FloatArray]
) -> LinearConstraints:
    """P(x^j, y^-j | E) / p(x^j) for both sides of every comparison that does not know x^j, and every y^-j."""
    prior = joint.project([j]).p_x
    as_it_is = [np.eye(len(prior)) if k == j else channel for k, channel in enumerate(channels)]
    asked = [block for block in blocks if j not in block.known]
    _check_constraints(sum(_count_other_outputs(channels, {j, *block.known}) * len(block.pairs) for block in asked))
    parts = []
    for block in asked:
        for part in contract_channels(as_it_is, joint.combos, block):
            place = part.unknown.index(j)
            one, other = (
                np.moveaxis(side.reshape(-1, *part.shape), 1 + place, -1).reshape(-1, len(prior)) / prior
                for side in (part.one, part.other)
            )
            each = len(one) // len(part.pairs)  # outputs of the others, beside every pair
            scales = None if part.scales is None else np.repeat(part.scales, each, axis=0)
            parts.append(LinearConstraints.from_pairs(one, other, scales))
    return LinearConstraints.concatenate(parts, len(prior))


def _count_other_outputs(channels: Sequence[FloatArray], left_out: set[int]) -> int:
    """How many outputs the other attributes have together."""
    return math.prod(channel.shape[1] for k, channel in enumerate(channels) if k not in left_out)


def _check_constraints(rows: int) -> None:
    if rows > MOST_CONSTRAINTS:
        raise SizeError(
            f"A factor of a product is solved for at most {MOST_CONSTRAINTS:,} comparisons; this table makes {rows:,}. "
            "Publish fewer columns, use coarser bins, or use the method chain."
        )


def _drop_duplicates(rows: LinearConstraints) -> LinearConstraints:
    """The rows that say something, each once; what they are multiplied with does not matter."""
    (one, other), d = rows.dense, rows.inputs
    size = other.max(axis=1, initial=0.0)
    said = (size > 0) & (np.abs(one - other).max(axis=1, initial=0.0) > 0)
    both = np.concatenate([one[said], other[said]], axis=1) / size[said, None]
    scales = rows.either_scale[said]
    distinct = np.concatenate([np.round(both, 12), scales], axis=1)
    kept = np.sort(np.unique(distinct, axis=0, return_index=True)[1])
    return LinearConstraints.from_pairs(both[kept, :d], both[kept, d:], None if rows.scales is None else scales[kept])
