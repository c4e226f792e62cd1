"""Designs for a population beyond one column: products, side channels, and protocols that see the secret."""

import numpy as np
import pytest

from privacyfunnel.designs.optimum import optimal
from privacyfunnel.designs.product.budgets import product_protocol
from privacyfunnel.laws.exact import exp_below
from privacyfunnel.laws.sealing import exact_worst
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise

SEVERAL = Joint.from_counts([[[500, 300], [200, 400]], [[300, 100], [250, 700]]])


@pytest.mark.parametrize("kind", [LIP, LDP])
def test_a_pair_never_seen_is_an_input_that_the_population_may_have(kind: type[Promise]) -> None:
    joint = Joint.from_counts([[600, 400, 0], [200, 800, 500]])
    promise = kind(1.0).for_population(joint)
    best = optimal(joint, promise, sees_secret=True, gap=1e-2, time_limit=20)
    assert best.sealed is not None
    ratio = exact_worst(best.sealed.law, promise, joint).ratio
    assert ratio is not None
    assert ratio <= exp_below(1.0)
    assert 0 < best.utility <= best.bound <= optimal(joint, kind(1.0), sees_secret=True).bound + 1e-4
    channel = best.protocol.channel
    assert channel.shape[0] == 6
    assert np.allclose(channel.sum(axis=1), 1)


@pytest.mark.parametrize("kind", [LIP, SRLIP])
def test_products_and_the_optimum_of_several_columns_keep_it(kind: type[Promise]) -> None:
    promise = kind(1.0).for_population(SEVERAL)
    best = optimal(SEVERAL, promise, gap=1e-3)
    product = product_protocol(SEVERAL, promise, seconds=5)
    for sealed in (best.sealed, product.seal()):
        assert sealed is not None
        ratio = exact_worst(sealed.law, promise, SEVERAL).ratio
        assert ratio is not None
        assert ratio <= exp_below(1.0)
    assert 0 < product.information <= best.bound + 1e-9
