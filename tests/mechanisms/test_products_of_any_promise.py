"""A product is certified right for promises that nobody thought of: against every channel multiplied out."""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.errors import DistributionError, GuaranteeError
from privacyfunnel.mechanisms.product import ProductMechanism
from privacyfunnel.mechanisms.sealing import certify, exact_worst_leak
from privacyfunnel.model.comparisons import Comparisons, compare_groups
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.protocols.product_protocol import ProductProtocol, pair_bounds
from tests.mechanisms.kinds import JOINT, MAKERS, sealed_of
from tests.strategies import joints


class EveryoneElse(Promise, named=False):
    """Each secret against all others: two events of which neither is within the other."""

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        if joint.c > 1:
            groups = np.concatenate([np.eye(joint.c, dtype=bool), ~np.eye(joint.c, dtype=bool)])
            yield compare_groups(joint, sees_secret, groups, [[s, joint.c + s] for s in range(joint.c)])


class EverybodyFirst(Promise, named=False):
    """LIP with its events the other way round: F within E."""

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        for block in LIP(self.epsilon).comparisons(joint, sees_secret):
            yield replace(block, pairs=block.pairs[:, ::-1])


class Impossible(Promise, named=False):
    """Compares events that never happen."""

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        for block in LIP(self.epsilon).comparisons(joint, sees_secret):
            yield replace(block, weight=np.where(block.event == 0, 0, block.weight))


def random_product(joint: Joint, seed: int) -> ProductProtocol:
    rng = np.random.default_rng(seed)
    factors = [Protocol(rng.dirichlet(np.full(3, 0.7), size=len(at.labels))) for at in joint.attributes]
    return ProductProtocol(tuple(factors), joint.combos)


def multiplied_out(product: ProductProtocol) -> Protocol:
    rows = [channel[product.combos[:, j]] for j, channel in enumerate(product.channels)]
    return Protocol(reduce(lambda one, other: (one[:, :, None] * other[:, None, :]).reshape(len(one), -1), rows))


PROMISES = [LIP(0), LDP(0), SRLIP(0), EveryoneElse(0), EverybodyFirst(0)]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.name)
@given(joint=joints(max_c=4, max_a=3, attributes=3, min_c=2), seed=st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_a_product_leaks_what_its_whole_channel_leaks(promise: Promise, joint: Joint, seed: int) -> None:
    product = random_product(joint, seed)
    truth = promise.leakage(joint, multiplied_out(product))
    assert promise.leakage(joint, product) == pytest.approx(truth, abs=1e-9)
    assert exact_worst_leak(ProductMechanism.from_protocol(product), promise, joint).leak.epsilon == pytest.approx(
        truth, abs=1e-9
    )
    for block in promise.comparisons(joint, False):
        bounds = pair_bounds(product.channels, product.combos, block)
        for pair, bound in zip(block.pairs, bounds, strict=True):
            assert multiplied_out(product).worst(replace(block, pairs=pair[None, :])).epsilon <= bound


def test_a_product_that_leaks_to_everyone_else_is_not_certified() -> None:
    joint = Joint.from_counts([[[9, 1], [1, 1]], [[1, 1], [1, 9]]])
    product = ProductProtocol((Protocol(np.array([[0.8, 0.2], [0.2, 0.8]])),) * 2, joint.combos)
    truth = EveryoneElse(0).leakage(joint, multiplied_out(product))
    assert truth > 0.7
    assert certify(ProductMechanism.from_protocol(product), EveryoneElse(truth + 1e-9), joint) == pytest.approx(truth)
    with pytest.raises(GuaranteeError, match="more"):
        certify(ProductMechanism.from_protocol(product), EveryoneElse(truth - 1e-9), joint)


def test_a_part_of_an_event_is_told_from_one_that_only_has_the_same_inputs() -> None:
    # Both secrets have both values. Secret 1 has less mass at one value and more at the other: it is not within 0.
    joint = Joint.from_counts([[[5, 0], [0, 5]], [[1, 0], [0, 7]]])
    flips = (Protocol(np.array([[0.9, 0.1], [0.1, 0.9]])),) * 2
    product = ProductProtocol(flips, joint.combos)
    (block,) = LDP(0).comparisons(joint, False)
    block = replace(block, pairs=block.pairs[:, ::-1])
    assert pair_bounds(product.channels, product.combos, block).min() >= product.worst(block).epsilon


@pytest.mark.parametrize("kind", MAKERS)
def test_events_that_never_happen_certify_nothing(kind: str) -> None:
    with pytest.raises(DistributionError, match="must be able to happen"):
        certify(sealed_of(kind).mechanism, Impossible(5.0), JOINT)
