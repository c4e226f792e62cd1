import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import entropy_terms
from privacyfunnel.model.information import entropy, information, mutual_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Protocol
from tests.strategies import identity, joints, protocols_for


def test_entropy_of_a_fair_die_is_ln_6_and_of_certainty_0() -> None:
    assert entropy([1 / 6] * 6) == pytest.approx(math.log(6), abs=1e-15)
    assert entropy([0.0, 1.0]) == 0
    assert entropy_terms([0.0, math.exp(-1), 1.0]) == pytest.approx([0, math.exp(-1), 0])


@given(joint=joints())
@settings(max_examples=50, deadline=None)
def test_information_is_what_the_entropies_leave(joint: Joint) -> None:
    by_entropies = entropy(joint.p_s) + entropy(joint.p_x) - entropy(joint.p_sx.ravel())
    assert information(joint.p_sx) == pytest.approx(by_entropies, abs=1e-12)


@given(data=st.data(), joint=joints(), sees_secret=st.booleans())
@settings(max_examples=50, deadline=None)
def test_no_protocol_keeps_more_than_the_values_hold(data: st.DataObject, joint: Joint, sees_secret: bool) -> None:
    protocol = data.draw(protocols_for(joint, sees_secret))
    assert 0 <= mutual_information(joint, protocol) <= entropy(joint.p_x) + 1e-12


@given(data=st.data(), joint=joints())
@settings(max_examples=50, deadline=None)
def test_a_protocol_that_sees_values_only_tells_no_more_about_the_secret_than_about_the_value(
    data: st.DataObject, joint: Joint
) -> None:
    protocol = data.draw(protocols_for(joint))
    about_secret = information(protocol.joint_with_secret(joint))
    assert about_secret <= mutual_information(joint, protocol) + 1e-12
    assert about_secret <= information(joint.p_sx) + 1e-12


@given(joint=joints())
@settings(max_examples=30, deadline=None)
def test_the_identity_keeps_everything_and_a_constant_nothing(joint: Joint) -> None:
    assert mutual_information(joint, identity(joint)) == pytest.approx(entropy(joint.p_x), abs=1e-12)
    assert mutual_information(joint, Protocol(np.full((joint.a, 3), 1 / 3))) == pytest.approx(0, abs=1e-15)


def test_a_small_information_keeps_its_digits() -> None:
    d = 1e-7
    p = 0.25 * np.array([[1 + d, 1 - d], [1 - d, 1 + d]])
    assert information(p) == pytest.approx(d * d / 2, rel=0.05)
