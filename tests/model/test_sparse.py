"""Sparse protocols measure what the same table measures in full, and become quieter without changing what they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import sparse
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, Promise
from privacyfunnel.model.protocols import sparse_protocol as sparse_protocols
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol


def both(seed: int) -> tuple[Joint, Protocol, SparseProtocol]:
    """Each output from a few of 12 values, and from one of the first two so that both secrets lead to it."""
    random = np.random.default_rng(seed)
    joint = Joint.from_counts(random.integers(1, 50, (3, 12)))
    channel = random.dirichlet(np.ones(9), 12) * (random.random((12, 9)) < 0.3)
    channel[0] += 0.01
    channel[1:, 0] += 0.01
    channel /= channel.sum(axis=1, keepdims=True)
    return joint, Protocol(channel), SparseProtocol(sparse.csr_array(channel))


@given(seed=st.integers(0, 10**6), kind=st.sampled_from([LIP, LDP]))
@settings(max_examples=30, deadline=None)
def test_a_sparse_protocol_leaks_and_tells_what_its_table_does(seed: int, kind: type[Promise]) -> None:
    joint, table, few = both(seed)
    assert kind(0).leakage(joint, few) == pytest.approx(kind(0).leakage(joint, table), abs=1e-12)
    assert few.mutual_information(joint) == pytest.approx(table.mutual_information(joint), abs=1e-12)
    assert few.joint_with_values(joint).toarray() == pytest.approx(table.joint_with_values(joint), abs=1e-15)


@given(seed=st.integers(0, 10**6), sliver=st.floats(1e-6, 0.5))
@settings(max_examples=30, deadline=None)
def test_a_quieter_sparse_protocol_is_a_protocol_that_leaks_less(seed: int, sliver: float) -> None:
    joint, _, few = both(seed)
    quieter = few.mix_constant(joint, sliver)
    assert quieter.channel.sum(axis=1) == pytest.approx(np.ones(12))
    assert LIP(0).leakage(joint, quieter) < LIP(0).leakage(joint, few)


@given(seed=st.integers(0, 10**6), sliver=st.floats(1e-6, 1e-2), few_values=st.booleans())
@settings(max_examples=20, deadline=None)
def test_every_ratio_moves_towards_1_also_that_of_a_secret_which_few_have(
    seed: int, sliver: float, few_values: bool
) -> None:
    """Three people have the third secret: among the likeliest values alone it would seem rarer than it is."""
    random, values = np.random.default_rng(seed), 150
    counts = np.zeros((3, values), dtype=np.int64)
    counts[:2] = random.integers(1, 200, (2, values)) // (1 + np.arange(values))
    counts[0, counts.sum(axis=0) == 0] = 1
    counts[2, random.choice(values, 3, replace=False)] = 1
    joint = Joint.from_counts(counts)
    channel = 0.7 * np.eye(values)[:, random.permutation(values)] + 0.3 / values
    protocol = SparseProtocol(sparse.csr_array(channel))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sparse_protocols, "SMALL", 0)
        patched.setattr(sparse_protocols, "LIKELIEST", 12 if few_values else 60)
        quieter = protocol.mix_constant(joint, sliver)
    assert quieter.channel.sum(axis=1) == pytest.approx(np.ones(values))
    assert quieter.channel.data.min() >= 0
    given_secret = joint.p_sx / joint.p_s[:, None]
    before, after = (
        np.log((given_secret @ each.channel.toarray()) / (joint.p_x @ each.channel.toarray()))
        for each in (protocol, quieter)
    )
    assert (np.abs(after) <= np.abs(before) + 1e-12).all()
    off = np.abs(before) > 1e-3
    assert (np.abs(after)[off] < np.abs(before)[off]).all()


def test_an_output_that_one_secret_never_shows_is_a_leak_without_bound() -> None:
    joint = Joint.from_counts([[1, 0], [1, 3]])
    assert LIP(0).leakage(joint, SparseProtocol(sparse.csr_array(np.eye(2)))) == np.inf
