"""What is sealed keeps its promise on the very integers that are drawn; what does not keep it is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import data, floats, integers, sampled_from

from privacyfunnel import (
    LDP,
    LIP,
    SRLIP,
    Joint,
    Protocol,
    conditional_reporting,
    randomised_response,
    seal,
)
from privacyfunnel.errors import GuaranteeError, ProtocolFileError
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.mechanism import BITS, UNIT
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import SMALLEST_EPSILON, certify
from privacyfunnel.model.promises import Promise
from tests.strategies import joints

COIN = Joint.from_counts([[1, 0], [0, 1]])  # S = X, a fair coin
MAKERS = [randomised_response, conditional_reporting]


def symmetric(flip: float) -> Protocol:
    return Protocol(np.array([[1 - flip, flip], [flip, 1 - flip]]))


def fractions_of(law: ChannelMechanism) -> list[dict[int, Fraction]]:
    """Each row of the law as {output: probability}."""
    rows = []
    for i, j in zip(law.indptr[:-1], law.indptr[1:], strict=True):
        rows.append({int(y): Fraction(int(n), UNIT) for y, n in zip(law.output[i:j], law.numerator[i:j], strict=True)})
    return rows


def lip_by_definition(joint: Joint, law: ChannelMechanism) -> Fraction | None:
    """max over s, y of P(y|s)/P(y) or its inverse, in fractions, straight from the definition; None is infinite."""
    rows, total = fractions_of(law), joint.total
    worst = Fraction(1)
    for y in range(len(law.outputs)):
        p_y = Fraction(0)
        p_y_given_s = []
        for s in range(joint.c):
            p_sy = Fraction(0)
            for x in range(joint.a):
                row = rows[s * joint.a + x if law.sees_secret else x]
                p_sy += Fraction(int(joint.weights[s, x]), total) * row.get(y, Fraction(0))
            p_y += p_sy
            p_y_given_s.append(p_sy / Fraction(int(joint.weights[s].sum()), total))
        for given_s in p_y_given_s:
            if p_y == 0:
                continue
            if given_s == 0:
                return None
            worst = max(worst, given_s / p_y, p_y / given_s)
    return worst


def test_a_protocol_one_percent_too_loud_is_refused() -> None:
    flip = math.exp(-0.5) / 2
    seal(symmetric(flip * 1.01), LIP(0.5), COIN)
    with pytest.raises(GuaranteeError, match=r"promised ε = 0.5"):
        seal(symmetric(flip * 0.99), LIP(0.5), COIN)


def test_rounding_is_mended_and_a_part_in_a_hundred_thousand_is_not() -> None:
    flip = math.exp(-0.5) / 2
    sealed = seal(symmetric(flip * (1 - 1e-12)), LIP(0.5), COIN)
    assert sealed.epsilon <= 0.5
    with pytest.raises(GuaranteeError):
        seal(symmetric(flip * (1 - 1e-5)), LIP(0.5), COIN)


@given(joint=joints(), epsilon=floats(0.01, 3), maker=sampled_from(MAKERS))
@settings(max_examples=60, deadline=None)
def test_sealed_integers_keep_the_promise_by_its_definition(joint: Joint, epsilon: float, maker) -> None:  # type: ignore[no-untyped-def]
    sealed = seal(maker(joint, LIP(epsilon)), LIP(epsilon), joint)
    law = sealed.mechanism
    assert isinstance(law, ChannelMechanism)
    by_definition = lip_by_definition(joint, law)
    assert by_definition is not None
    assert by_definition <= exp_below(epsilon)
    assert sealed.epsilon <= epsilon
    assert by_definition <= 1 or sealed.epsilon >= float(math.log(by_definition)) - 1e-15
    assert all(sum(row.values()) == 1 for row in fractions_of(law))


@given(joint=joints(), epsilon=floats(0.01, 3), promise=sampled_from([LIP, LDP, SRLIP]), seed=integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_whatever_is_sealed_leaks_no_more_than_certified(
    joint: Joint, epsilon: float, promise: type[Promise], seed: int
) -> None:
    draw = np.random.default_rng(seed)
    protocol = Protocol(draw.dirichlet(np.ones(3), size=joint.a))
    leakage = promise(epsilon).leakage(joint, protocol)
    if leakage > epsilon + 1e-4:
        with pytest.raises(GuaranteeError):
            seal(protocol, promise(epsilon), joint)
    else:
        sealed = seal(protocol, promise(epsilon), joint)
        assert sealed.epsilon <= epsilon
        assert certify(sealed.mechanism, promise(epsilon), joint) == sealed.epsilon


def test_exact_check_agrees_for_small_and_for_huge_weights() -> None:
    table = np.array([[5, 1, 3], [2, 7, 1]])
    small = Joint.from_counts(table)
    huge = Joint.from_counts(table.astype(object) * 3**80)
    assert huge.weights.dtype == object
    for promise in (LIP(0.3), LDP(0.3), SRLIP(0.3)):
        sealed = seal(randomised_response(small, promise), promise, small)
        assert certify(sealed.mechanism, promise, huge) == sealed.epsilon


def test_an_infinite_leak_is_refused_with_its_size() -> None:
    with pytest.raises(GuaranteeError, match="without bound"):
        seal(Protocol(np.eye(2)), LIP(0.5), COIN)


def test_a_refusal_says_where_the_protocol_leaks() -> None:
    coin = Joint.from_counts([[3, 1], [1, 3]], ["ill", "well"], ["a", "b"], secret_name="health")
    with pytest.raises(GuaranteeError, match=r"more \(someone who knows nothing else, for output \w, about health = "):
        seal(replace(symmetric(0.2), outputs=coin.values), LIP(0.1), coin)


def test_zero_epsilon_says_what_was_certified() -> None:
    sealed = seal(Protocol(np.full((2, 2), 0.5)), LIP(0), COIN)
    assert sealed.epsilon == 0.0
    table = Joint.from_counts([[1, 2, 3], [2, 4, 6]])
    sealed = seal(Protocol(np.eye(3)), LIP(0), table)
    assert 0 <= sealed.epsilon <= SMALLEST_EPSILON


def test_what_was_sealed_in_floats_too_needs_no_further_sliver() -> None:
    joint = Joint.from_counts([[5, 1, 3], [2, 7, 1]])
    sealed = seal(randomised_response(joint, LIP(0.3)), LIP(0.3), joint, also_in_floats=True)
    protocol = sealed.mechanism.table_protocol
    assert protocol is not None
    assert LIP(0.3).leakage(joint, protocol) <= 0.3
    again = seal(protocol, LIP(0.3), joint).mechanism.table_protocol
    assert again is not None
    assert np.abs(again.channel - protocol.channel).max() < 2.0**-52


@given(data())
@settings(max_examples=40, deadline=None)
def test_rounded_rows_sum_exactly_and_stay_within_their_width_of_the_floats(draws) -> None:  # type: ignore[no-untyped-def]
    rows = draws.draw(integers(1, 5))
    width = draws.draw(integers(1, 6))
    channel = np.random.default_rng(draws.draw(integers(0, 10**6))).dirichlet(np.full(width, 0.3), size=rows)
    law = ChannelMechanism.from_protocol(Protocol(channel))
    for row, floats_of_row in zip(fractions_of(law), law.channel, strict=True):
        assert sum(row.values()) == 1
        assert abs(floats_of_row.sum() - 1) < 1e-12
    assert np.abs(law.channel - channel).max() < 1e-12


def test_a_channel_that_does_not_sum_is_refused() -> None:
    with pytest.raises(ProtocolFileError, match="sum to"):
        ChannelMechanism(np.array([0, 1]), np.array([0]), np.array([UNIT - 1], dtype=object), (("a",),), False)


def test_draws_follow_the_sealed_integers() -> None:
    joint = Joint.from_counts([[5, 1, 3], [2, 7, 1]])
    sealed = seal(randomised_response(joint, LIP(0.3)), LIP(0.3), joint)
    codes = np.zeros(200_000, dtype=np.int64)
    drawn = sealed.sample(codes, KeyStream.from_seed(7))
    assert drawn.shape == (200_000, 1)
    law = sealed.mechanism
    assert isinstance(law, ChannelMechanism)
    frequencies = np.bincount(drawn[:, 0], minlength=3) / len(codes)
    # Six standard deviations: a false alarm once in 10⁹ seeds; this seed is fixed.
    assert np.abs(frequencies - law.channel[0]).max() < 6 * math.sqrt(0.25 / len(codes))
    assert BITS == 64
