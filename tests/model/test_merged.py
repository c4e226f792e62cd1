"""Merged values keep the promise for the values as they were; merged secrets keep it for the group and no more."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from privacyfunnel import LDP, LIP, SRLIP, Joint, Protocol, randomised_response
from privacyfunnel.model.joint import merge_secrets
from privacyfunnel.model.promises import Promise

counts = st.lists(st.lists(st.integers(1, 30), min_size=4, max_size=4), min_size=3, max_size=4)


@settings(max_examples=40, deadline=None)
@given(table=counts, promise=st.sampled_from([LIP(0.4), LDP(0.7)]))
def test_a_protocol_for_merged_values_leaks_the_same_about_the_values_as_they_were(
    table: list[list[int]], promise: Promise
) -> None:
    whole = Joint.from_counts(table)
    merged = whole.relabel(0, ["0", "1", "other", "other"])
    protocol = randomised_response(merged, promise)
    through = Protocol(protocol.channel[[0, 1, 2, 2]], protocol.outputs)
    assert promise.leakage(whole, through) == pytest.approx(promise.leakage(merged, protocol), abs=1e-12)


def test_who_knows_which_of_the_merged_values_it_was_is_not_covered_by_srlip() -> None:
    """X¹ merges two values that tell S from X²: knowing one of them, the published X² says more."""
    table = np.array([[[30, 10], [10, 30]], [[10, 30], [30, 10]]])
    whole = Joint.from_counts(table, names=["u", "v"])
    merged = Joint.from_counts(table.sum(axis=1), names=["v"])
    publish = Protocol(np.eye(2), (("0",), ("1",)))
    assert SRLIP(0).leakage(merged, publish) == 0
    assert SRLIP(0).leakage(whole, Protocol(np.eye(2)[[0, 1, 0, 1]], (("0",), ("1",)))) > 0.4


@settings(max_examples=60, deadline=None)
@given(table=counts, epsilon=st.floats(0.1, 2))
def test_the_belief_in_a_merged_secret_rises_at_most_to_that_in_its_group(
    table: list[list[int]], epsilon: float
) -> None:
    whole = Joint.from_counts(table)
    labels = ["rare", "rare", *map(str, range(2, whole.c))]
    group = merge_secrets(whole, labels)
    assert group.weights.tolist() == [np.sum(table[:2], axis=0).tolist(), *table[2:]]
    protocol = randomised_response(group, LIP(epsilon))
    assert LIP(epsilon).leakage(group, protocol) <= epsilon
    before, after = beliefs(whole, protocol), beliefs(group, protocol)
    assert (before[0] + before[1] == after[0]).all()  # so neither is above the group's, which is kept
    assert (before[2:] == after[1:]).all()


def beliefs(joint: Joint, protocol: Protocol) -> NDArray[np.object_]:
    """P(s | y) in fractions."""
    weights = np.array([[Fraction(int(n)) for n in row] for row in joint.weights], dtype=object)
    both = weights @ np.array([[Fraction(q) for q in row] for row in protocol.channel.tolist()], dtype=object)
    return np.asarray(both / both.sum(axis=0))


def test_merged_secrets_can_be_told_apart_at_no_epsilon() -> None:
    whole = Joint.from_counts([[10, 0], [0, 10], [10, 10]], secret=["a", "b", "c"])
    as_it_is = Protocol(np.eye(2), (("0",), ("1",)))
    assert LIP(0).leakage(merge_secrets(whole, ["other", "other", "c"]), as_it_is) == 0
    assert LIP(0).leakage(whole, as_it_is) == float("inf")
    assert (
        Fraction(int(whole.weights[0, 0]), int(whole.weights[:2, 0].sum())) == 1
    )  # who is in the group and shows 0 is a
