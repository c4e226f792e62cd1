import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.errors import DistributionError, SizeError
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP
from privacyfunnel.model.protocols import channel_protocol as protocol_room
from privacyfunnel.model.protocols.channel_protocol import Protocol, check_channel_size, posterior_labels
from tests.strategies import joints, protocols_for

JOINT = Joint.from_counts([[5, 1, 2], [1, 5, 2]], values=["a", "b", "c"])
PAIRS = Joint.from_counts([[[3, 1], [1, 3]], [[1, 2], [2, 1]]], values=[["a", "b"], ["u", "v"]])


@pytest.mark.parametrize(
    "channel",
    [
        [[0.5, 0.4], [0.5, 0.5]],
        [[1.5, -0.5], [0.5, 0.5]],
        [[math.nan, 1.0], [0.5, 0.5]],
        [[math.inf, 0.0], [0.5, 0.5]],
        [0.5, 0.5],
        [[], []],
    ],
)
def test_rows_that_are_no_distributions_are_refused(channel: list[list[float]]) -> None:
    with pytest.raises(DistributionError, match="channel"):
        Protocol(np.array(channel))


def test_labels_must_be_as_many_as_outputs() -> None:
    with pytest.raises(DistributionError, match="1 label 2"):
        Protocol(np.eye(2), (("a",),))
    assert Protocol(np.eye(2)).outputs == (("0",), ("1",))


def test_a_protocol_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Protocol(np.eye(2)).channel[0, 0] = 0.5


def test_a_protocol_fits_the_inputs_it_has_rows_for() -> None:
    assert Protocol(np.eye(3)).fits(JOINT)
    assert not Protocol(np.eye(6)).fits(JOINT)
    assert Protocol(np.eye(6), sees_secret=True).fits(JOINT)


@given(data=st.data(), joint=joints(max_c=3, max_a=3, attributes=2), sees_secret=st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_joints_with_values_and_secret_have_the_right_marginals(
    data: st.DataObject, joint: Joint, sees_secret: bool
) -> None:
    protocol = data.draw(protocols_for(joint, sees_secret))
    p_xy, p_sy = protocol.joint_with_values(joint), protocol.joint_with_secret(joint)
    assert p_xy.sum(axis=1) == pytest.approx(joint.p_x)
    assert p_sy.sum(axis=1) == pytest.approx(joint.p_s)
    assert p_xy.sum(axis=0) == pytest.approx(p_sy.sum(axis=0))


@given(data=st.data(), joint=joints(max_c=3, max_a=3, attributes=2), sees_secret=st.booleans())
@settings(max_examples=80, deadline=None)
def test_as_values_publishes_the_original_distribution_and_never_leaks_or_tells_more(
    data: st.DataObject, joint: Joint, sees_secret: bool
) -> None:
    protocol = data.draw(protocols_for(joint, sees_secret))
    drawn = protocol.as_values(joint)
    assert drawn.outputs == joint.values
    assert drawn.joint_with_values(joint).sum(axis=0) == pytest.approx(joint.p_x)
    assert drawn.mutual_information(joint) <= protocol.mutual_information(joint) + 1e-12
    for kind in (LIP, LDP, SRLIP):
        assert kind(1).leakage(joint, drawn) <= kind(1).leakage(joint, protocol) + 1e-12
    assert drawn.as_values(joint) is drawn


def test_a_protocol_that_publishes_values_already_stays_as_it_is() -> None:
    protocol = Protocol(np.array([[0.8, 0.1, 0.1]] * 3), JOINT.values)
    assert protocol.as_values(JOINT) is protocol


def test_as_values_holds_where_a_pair_that_never_occurs_leads_to_an_output_that_never_comes() -> None:
    joint = Joint.from_counts([[1, 0], [1, 2]], values=["a", "b"])
    protocol = Protocol(np.array([[1.0, 0], [0, 1], [1, 0], [1, 0]]), sees_secret=True)
    drawn = protocol.as_values(joint)
    assert drawn.channel == pytest.approx(np.array([[0.5, 0.5]] * 4))


@given(data=st.data(), joint=joints(max_c=3, max_a=3, attributes=2), sliver=st.floats(1e-6, 1))
@settings(max_examples=60, deadline=None)
def test_quieter_moves_every_ratio_towards_1(data: st.DataObject, joint: Joint, sliver: float) -> None:
    protocol = data.draw(protocols_for(joint))
    p_y = protocol.joint_with_secret(joint).sum(axis=0)
    quieter = protocol.mix_constant(p_y, sliver)
    # P(y|s)/P(y) - 1 shrinks by the factor 1 - sliver; so does what is known given attributes, at most.
    before, after = (q.joint_with_secret(joint) / joint.p_s[:, None] for q in (protocol, quieter))
    assert after - p_y == pytest.approx((1 - sliver) * (before - p_y), abs=1e-12)
    for kind in (LIP, LDP, SRLIP):
        assert kind(1).leakage(joint, quieter) <= kind(1).leakage(joint, protocol) + 1e-12


def test_leakage_is_the_same_when_outputs_are_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    protocol = Protocol(rng.dirichlet(np.ones(9), size=3))
    at_once = [kind(1).worst(JOINT, protocol) for kind in (LIP, LDP, SRLIP)]
    monkeypatch.setattr(protocol_room, "WORKED_ON", 1)
    one_by_one = [kind(1).worst(JOINT, protocol) for kind in (LIP, LDP, SRLIP)]
    assert [(leak.output, leak.secrets) for leak in one_by_one] == [(leak.output, leak.secrets) for leak in at_once]
    assert [leak.epsilon for leak in one_by_one] == pytest.approx([leak.epsilon for leak in at_once], rel=1e-14)


# -- labels ---------------------------------------------------------------------------------------------------


def test_an_output_is_called_by_what_it_stands_for_most_likely_first() -> None:
    p_xy = np.array([[0.3, 0.1, 0.0], [0.0, 0.2, 0.0], [0.0, 1e-9, 0.4]])
    assert posterior_labels(JOINT, p_xy) == (("a",), ("b | a",), ("c",))


def test_outputs_that_would_be_called_alike_get_percentages() -> None:
    p_xy = np.array([[0.3, 0.2, 0.0], [0.1, 0.1, 0.0], [0.0, 0.0, 0.3]])
    assert posterior_labels(JOINT, p_xy) == (("a 75% | b 25%",), ("a 66.7% | b 33.3%",), ("c",))


def test_outputs_whose_percentages_agree_get_numbers() -> None:
    p_xy = np.array([[0.2, 0.2, 0.2], [0.1, 0.1, 0.1], [0.0, 0.0, 0.1]])
    assert posterior_labels(JOINT, p_xy) == (("a 66.7% | b 33.3%",), ("a 66.7% | b 33.3% #2",), ("a | b | c",))


def test_each_column_lists_its_part_of_the_same_combinations() -> None:
    p_xy = np.array([[0.3, 0.0], [0.1, 0.0], [0.0, 0.2], [0.0, 0.4]])
    assert posterior_labels(PAIRS, p_xy) == (("a | a", "u | v"), ("b | b", "v | u"))


def test_a_long_list_says_how_many_it_leaves_out() -> None:
    joint = Joint.from_counts(np.ones((2, 11), dtype=np.int64))
    ((label,),) = posterior_labels(joint, np.full((11, 1), 1 / 11))
    assert label == "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | … 3 more"


@given(data=st.data(), joint=joints(max_c=2, max_a=3, attributes=2))
@settings(max_examples=60, deadline=None)
def test_no_two_outputs_are_called_alike(data: st.DataObject, joint: Joint) -> None:
    p_xy = data.draw(protocols_for(joint, max_b=8)).joint_with_values(joint)
    p_xy = p_xy[:, p_xy.sum(axis=0) > 0]
    labels = posterior_labels(joint, p_xy)
    assert len(set(labels)) == len(labels) == p_xy.shape[1]
    assert {len(label) for label in labels} == {joint.m}


def test_a_value_that_looks_like_a_numbered_label_is_not_taken_for_it() -> None:
    joint = Joint.from_counts([[1, 1], [1, 1]], values=["a 100%", "a 100% #2"])
    p_xy = np.array([[0.1, 0.1, 0.1, 0.0], [0.0, 0.0, 0.0, 0.3]])
    labels = posterior_labels(joint, p_xy)
    assert len(set(labels)) == 4


def test_a_table_too_large_for_memory_is_refused_with_what_to_do() -> None:
    check_channel_size(14_000, 14_000, "This", "")
    with pytest.raises(SizeError, match=r"This needs a table of 1,000,000 × 1,000,000 probabilities.* Do that\.$"):
        check_channel_size(10**6, 10**6, "This", "Do that.")


def test_an_output_that_never_comes_is_labelled_like_the_prior() -> None:
    joint = Joint.from_counts([[1, 2], [3, 4]])
    labels = posterior_labels(joint, np.array([[0.4, 0.0], [0.6, 0.0]]))
    assert len(set(labels)) == 2
