"""Repeated releases: what several outputs say together, against fractions; what adds, and what does not."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacyfunnel.arrays import IntArray
from privacyfunnel.designs.baselines import randomised_response
from privacyfunnel.errors import DistributionError, SizeError
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.mechanism import UNIT, Mechanism
from privacyfunnel.mechanisms.sealing import exact_worst_leak, seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.release.findings import composition_leakage
from privacyfunnel.release.findings.composition_leakage import composition_leak
from tests.mechanisms.kinds import JOINT, MAKERS, sealed_of
from tests.strategies import joints, protocols_for, tables

CLOSE = 1e-9  # utility of a bound: it may be that much too large, never too small


def fractions(law: ChannelMechanism) -> list[dict[int, Fraction]]:
    """q(y | input), a row per input."""
    rows = zip(law.indptr[:-1], law.indptr[1:], strict=True)
    return [
        {int(y): Fraction(int(n), UNIT) for y, n in zip(law.output[i:j], law.numerator[i:j], strict=True)}
        for i, j in rows
    ]


def by_definition(joint: Joint, promise: Promise, laws: Sequence[ChannelMechanism]) -> Fraction | None:
    """The largest ratio of P(y1 … yk | E) to P(y1 … yk | F), either way up; None where it is infinite."""
    sees = any(law.sees_secret for law in laws)
    rows = [(law, fractions(law)) for law in laws]
    largest = Fraction(1)
    for block in promise.comparisons(joint, sees):
        for outputs in product(*(range(len(law.outputs)) for law in laws)):
            p = [Fraction(0)] * len(block.totals)
            for event, z, weight in zip(block.event, block.input, block.weight, strict=True):
                chance = Fraction(int(weight), int(block.totals[event]))
                for (law, q), y in zip(rows, outputs, strict=True):
                    chance *= q[z if law.sees_secret == sees else z % joint.a].get(y, Fraction(0))
                p[event] += chance
            for one, other in block.pairs:
                if (p[one] == 0) != (p[other] == 0):
                    return None
                if p[one]:
                    largest = max(largest, p[one] / p[other], p[other] / p[one])
    return largest


@pytest.mark.parametrize("promise", [LIP(1), LDP(1), SRLIP(1)])
@given(data=st.data())
def test_what_releases_say_together_is_what_fractions_say(promise: Promise, data: st.DataObject) -> None:
    joint = data.draw(joints(3, 2, attributes=2, min_c=2))
    laws = [
        ChannelMechanism.from_protocol(data.draw(protocols_for(joint, sees_secret=sees, max_b=3)))
        for sees in data.draw(st.sampled_from([(False, False), (True, False), (False, True), (False, False, False)]))
    ]
    exact, found = by_definition(joint, promise, laws), composition_leak(joint, promise, laws)
    if exact is None:
        assert math.isinf(found.epsilon)
    else:
        assert exact <= exp_below(found.epsilon)
        assert found.epsilon <= math.log(exact) + CLOSE


@pytest.mark.parametrize("kind", MAKERS)
def test_one_release_says_what_it_is_certified_for(kind: str) -> None:
    law = sealed_of(kind).mechanism
    alone = exact_worst_leak(law, LIP(0), JOINT).leak.epsilon
    found = composition_leak(JOINT, LIP(0), [law])
    assert found.epsilon == pytest.approx(alone, abs=CLOSE)
    twice = composition_leak(JOINT, LIP(0), [law, law])
    assert twice.epsilon > found.epsilon
    assert "about health = " in twice.description


def on(joint: Joint, protocol: Protocol, attribute: int) -> Mechanism:
    """The protocol of one attribute's labels, as a law of the whole joint."""
    return ChannelMechanism.from_protocol(protocol).restrict_inputs(joint.combos[:, attribute])


XOR = Joint.from_counts([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])


def test_two_columns_that_say_nothing_each_give_the_secret_away_together() -> None:
    laws = [on(XOR, Protocol(np.eye(2)), j) for j in (0, 1)]
    for promise in (LIP(0), LDP(0)):
        assert [composition_leak(XOR, promise, [law]).epsilon < 1e-13 for law in laws] == [True, True]
        assert math.isinf(composition_leak(XOR, promise, laws).epsilon)


def test_one_protocol_that_says_nothing_drawn_twice_gives_the_secret_away() -> None:
    # Values are (0, 0), (0, 1), (1, 0), (1, 1); outputs say that the first bit is 0 or 1, or that the second is.
    either = [[0.5, 0, 0.5, 0], [0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0], [0, 0.5, 0, 0.5]]
    law = ChannelMechanism.from_protocol(Protocol(np.array(either)))
    for promise in (LIP(0), LDP(0)):
        assert composition_leak(XOR, promise, [law]).epsilon < 1e-13
        assert math.isinf(composition_leak(XOR, promise, [law, law]).epsilon)


def two_rows(table: IntArray) -> Joint:
    """Two rows about one person, independent given the secret, each distributed like the table: p(s) p(x|s) p(x'|s)."""
    totals = table.sum(axis=1)
    scale = np.array(math.lcm(*map(int, totals)) // totals)
    return Joint.from_counts(table[:, :, None] * table[:, None, :] * scale[:, None, None])


@given(data=st.data())
def test_for_rows_independent_given_the_secret_ldp_adds_and_twice_the_sum_bounds_lip(data: st.DataObject) -> None:
    table = data.draw(tables((data.draw(st.integers(2, 3)), data.draw(st.integers(2, 3)))))
    table = np.minimum(table, 50)  # the product of three counts must stay a count
    one, both = Joint.from_counts(table), two_rows(table)
    protocol, other = data.draw(protocols_for(one, max_b=3)), data.draw(protocols_for(one, max_b=3))
    laws = [on(both, protocol, 0), on(both, other, 1)]
    ldp, lip = ([composition_leak(both, promise, [law]).epsilon for law in laws] for promise in (LDP(0), LIP(0)))
    assert composition_leak(both, LDP(0), laws).epsilon <= sum(ldp) + 1e-12
    assert composition_leak(both, LDP(0), laws).epsilon <= 2 * sum(lip) + 1e-12
    assert composition_leak(both, LIP(0), laws).epsilon <= 2 * sum(lip) + 1e-12


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_under_lip_even_rows_independent_given_the_secret_say_more_than_the_sum(k: int) -> None:
    # X is the secret itself, so draws for it are independent given the secret; it is 1 for one person in three.
    person = Joint.from_counts([[2, 0], [0, 1]])
    law = ChannelMechanism.from_protocol(Protocol(np.array([[1 / 8, 7 / 8], [1 / 2, 1 / 2]])))
    found = composition_leak(person, LIP(0), [law] * k).epsilon
    assert found == pytest.approx(math.log((4**k + 2) / 3), abs=1e-13)
    assert found > k * math.log(2) or k == 1
    assert found <= 2 * k * math.log(2)


def test_what_cannot_be_gone_through_is_refused() -> None:
    many = Joint.from_counts(np.ones((2, 40), dtype=int) + np.arange(80).reshape(2, 40))
    law = seal(randomised_response(many, LIP(0.01)), LIP(0.01), many).mechanism
    with pytest.raises(SizeError, match="too many"):
        composition_leak(many, LIP(0.01), [law] * 4)
    law = ChannelMechanism.from_protocol(Protocol(np.full((2, 2), 1 / 2)))
    with pytest.raises(DistributionError, match="a row per input"):
        composition_leak(XOR, LIP(0.1), [law])


def test_more_attackers_than_can_be_looked_at_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    law = sealed_of("channel").mechanism  # every output for every value
    three = composition_leak(JOINT, SRLIP(1), [law, law]).epsilon  # who knows nothing, the colour, or the size
    assert three >= composition_leak(JOINT, LIP(1), [law, law]).epsilon
    monkeypatch.setattr(composition_leakage, "MOST_LOOKS", 2 * JOINT.a**3)
    assert composition_leak(JOINT, LIP(1), [law, law]).epsilon <= three
    with pytest.raises(SizeError, match="SRLIP asks for more, for everyone who knows some of 2 columns"):
        composition_leak(JOINT, SRLIP(1), [law, law])
