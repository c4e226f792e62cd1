"""Leakage at scale agrees with the plain measurement, and bounds what it leaves out."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol
from privacyfunnel.release.findings.attacker_leaks import measure_leakage
from tests.strategies import joints, protocols_for


@pytest.mark.parametrize("promise", [LIP(0), LDP(0), SRLIP(0)])
@settings(max_examples=25, deadline=None)
@given(data=st.data(), joint=joints(max_c=3, max_a=3, attributes=2))
def test_a_sparse_table_is_measured_like_a_full_one(promise: Promise, data: st.DataObject, joint: Joint) -> None:
    protocol = data.draw(protocols_for(joint))
    found = measure_leakage(joint, promise, SparseProtocol(csr_array(protocol.channel)))
    assert found.leak.epsilon == pytest.approx(promise.leakage(joint, protocol), abs=1e-12)
    assert found.bound == found.leak.epsilon


def test_a_sparse_table_is_looked_at_in_parts_and_says_when_time_was_up(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 9, size=(3, 4, 3)))
    channel = SparseProtocol(csr_array(np.random.default_rng(1).dirichlet(np.ones(7), size=joint.a)))
    whole = measure_leakage(joint, SRLIP(0), channel)
    monkeypatch.setattr("privacyfunnel.model.protocols.sparse_protocol.WORKED_ON", 10)
    parts = measure_leakage(joint, SRLIP(0), channel)
    assert (parts.leak.epsilon, parts.bound) == pytest.approx((whole.leak.epsilon, whole.bound))
    assert measure_leakage(joint, SRLIP(0), channel, seconds=0).bound == math.inf


def test_publishing_as_it_is_gives_the_secret_away_and_names_who_learns_it() -> None:
    joint = Joint.from_counts(
        [[[2, 1], [3, 0]], [[1, 1], [2, 2]]], ["ill", "well"], [["f", "m"], ["old", "young"]], names=["sex", "age"]
    )
    found = measure_leakage(joint, SRLIP(0), SparseProtocol(csr_array(np.eye(joint.a))))
    assert found.leak.epsilon == math.inf
    assert found.leak.describe(joint, "m, young").startswith("someone who knows ")
    leak, whole = SparseProtocol(csr_array(np.ones((joint.a, 1)))).measure(next(iter(LIP(0).comparisons(joint, False))))
    assert whole
    assert leak.epsilon < 1e-15
