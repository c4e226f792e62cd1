"""Designs for a population beyond one column: side channels, and protocols that see the secret."""

import numpy as np
import pytest

from privacyfunnel.designs.baselines import randomised_response
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import ParameterError, SizeError
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.sealing import exact_worst_leak
from privacyfunnel.model.credal.sample_rule import ClopperPearson
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.uses.linear_use import Distance, Values
from privacyfunnel.model.uses.statistics_use import Balanced, Statistics
from privacyfunnel.model.uses.use import Use

SEVERAL = Joint.from_counts([[[500, 300], [200, 400]], [[300, 100], [250, 700]]])


@pytest.mark.parametrize("kind", [LIP, LDP])
def test_a_pair_never_seen_is_an_input_that_the_population_may_have(kind: type[Promise]) -> None:
    joint = Joint.from_counts([[600, 400, 0], [200, 800, 500]])
    promise = kind(1.0).for_population(joint)
    best = optimal(joint, promise, sees_secret=True, gap=1e-2)
    assert best.sealed is not None
    ratio = exact_worst_leak(best.sealed.mechanism, promise, joint).ratio
    assert ratio is not None
    assert ratio <= exp_below(1.0)
    assert 0 < best.utility <= best.bound <= optimal(joint, kind(1.0), sees_secret=True).bound + 1e-4
    channel = best.protocol.channel
    assert channel.shape[0] == 6
    assert np.allclose(channel.sum(axis=1), 1)


@pytest.mark.parametrize("kind", [LIP, SRLIP])
def test_the_optimum_of_several_columns_keeps_it(kind: type[Promise]) -> None:
    promise = kind(1.0).for_population(SEVERAL)
    best = optimal(SEVERAL, promise, gap=1e-3)
    assert best.sealed is not None
    ratio = exact_worst_leak(best.sealed.mechanism, promise, SEVERAL).ratio
    assert ratio is not None
    assert ratio <= exp_below(1.0)


PEOPLE = Joint.from_counts([[900, 300, 60], [200, 400, 500], [150, 380, 490]], values=["1", "2", "3"])
USES = [
    (LIP, Values()),
    (LDP, Values(margin=True)),
    (LIP, Distance("squared")),
    (LIP, Statistics()),
    (LDP, Statistics()),
    (LIP, Balanced()),
]


@pytest.mark.parametrize(("kind", "use"), USES, ids=str)
def test_every_use_is_kept_for_the_people_and_proved(kind: type[Promise], use: Use) -> None:
    promise = kind(1.0).for_population(PEOPLE)
    best = optimal(PEOPLE, promise, use)
    assert best.sealed is not None
    ratio = exact_worst_leak(best.sealed.mechanism, promise, PEOPLE).ratio
    assert ratio is not None
    assert ratio <= exp_below(1.0)
    assert best.value == use.value(PEOPLE, best.protocol)
    assert best.bound <= best.value <= best.bound * 1.002 + 1e-6
    plain = optimal(PEOPLE, kind(1.0), use)
    assert best.value > plain.bound  # people cost something
    if isinstance(use, Statistics | Values):
        assert best.value < use.value(PEOPLE, randomised_response(PEOPLE, promise))
    if isinstance(use, Balanced):
        assert best.utility >= use.kept * optimal(PEOPLE, promise, gap=1e-3).utility - 1e-4
        assert best.value < Statistics().value(PEOPLE, optimal(PEOPLE, promise, gap=1e-3).protocol)


def test_a_protocol_that_sees_the_secret_is_proved_where_no_pair_is_missing() -> None:
    promise = LIP(1.0).for_population(SEEN_IN_PART)
    best = optimal(SEEN_IN_PART, promise, Values(), sees_secret=True)
    assert best.value - 1e-5 <= best.bound <= best.value
    for use in (Statistics(), Values(margin=True)):
        with pytest.raises(ParameterError, match="some never occur"):
            optimal(SEEN_IN_PART, promise, use, sees_secret=True)


SEEN_IN_PART = Joint.from_counts([[600, 400, 0], [200, 800, 500]])


@pytest.mark.parametrize("kind", [LIP, LDP, SRLIP])
@pytest.mark.parametrize("sees_secret", [False, True])
def test_how_many_shares_sets_bound_is_known_before_they_are_made(kind: type[Promise], sees_secret: bool) -> None:
    promise = kind(1.0).for_population(SEVERAL)
    sets = promise.credal_sets(SEVERAL, sees_secret)
    assert sets is not None
    assert promise.share_count(SEVERAL, sees_secret) == sets.high.size
    assert kind(1.0).share_count(SEVERAL, sees_secret) == 0


def test_too_many_shares_are_refused_before_one_of_them_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = Joint.from_counts(np.full((110, 100), 3))
    promise = LIP(1.0).for_population(joint)
    monkeypatch.setattr(ClopperPearson, "box", lambda *_: pytest.fail("a share was bounded"))
    with pytest.raises(SizeError, match=r"at most 20,000 shares .* has 22,000\. Make one secret of several"):
        optimal(joint, promise)
