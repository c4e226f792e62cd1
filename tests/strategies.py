"""Joints and protocols for property tests: even, sparse, nearly certain and lopsided ones."""

import numpy as np
from hypothesis import strategies as st

from privacyfunnel.arrays import IntArray
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Protocol


@st.composite
def tables(draw: st.DrawFn, shape: tuple[int, ...]) -> IntArray:
    """Counts in which every label of every axis occurs."""
    n = int(np.prod(shape))
    kind = draw(st.sampled_from(["spread", "sparse", "nearly certain", "one dominates"]))
    entries = {
        "spread": st.integers(1, 1000),
        "sparse": st.sampled_from([0, 0, 0, 1, 2, 7]),
        "nearly certain": st.sampled_from([0, 1, 1, 1000]),
        "one dominates": st.integers(0, 3),
    }[kind]
    table = np.array(draw(st.lists(entries, min_size=n, max_size=n)), dtype=np.int64).reshape(shape)
    if kind == "one dominates":
        table[..., draw(st.integers(0, shape[-1] - 1))] += 10**6
    for axis, size in enumerate(shape):
        for label in range(size):
            cells = np.moveaxis(table, axis, 0)[label]
            if not cells.any():
                cells[tuple(label % k for k in cells.shape)] = 1
    return table


@st.composite
def joints(
    draw: st.DrawFn, max_c: int = 4, max_a: int = 5, attributes: int = 1, *, min_c: int = 1, min_a: int = 1
) -> Joint:
    """Joints of up to max_c secrets and max_a values per attribute."""
    sizes = [draw(st.integers(min_a, max_a)) for _ in range(attributes)]
    return Joint.from_counts(draw(tables((draw(st.integers(min_c, max_c)), *sizes))))


@st.composite
def protocols_for(draw: st.DrawFn, joint: Joint, sees_secret: bool = False, max_b: int = 4) -> Protocol:
    """Protocols for the joint's inputs: noisy ones, functions of the input, and some in between."""
    n = joint.a * (joint.c if sees_secret else 1)
    b = draw(st.integers(1, max_b))
    entries = draw(
        st.sampled_from([st.integers(1, 20), st.sampled_from([0, 0, 1, 5]), st.sampled_from([99, 100, 101])])
    )
    weights = np.array(draw(st.lists(entries, min_size=n * b, max_size=n * b)), dtype=np.float64).reshape(n, b)
    for z in np.flatnonzero(weights.sum(axis=1) == 0):
        weights[z, draw(st.integers(0, b - 1))] = 1
    return Protocol(weights / weights.sum(axis=1, keepdims=True), sees_secret=sees_secret)


def identity(joint: Joint) -> Protocol:
    """Publish the value as it is."""
    return Protocol(np.eye(joint.a), joint.values)
