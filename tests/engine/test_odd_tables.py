"""Many rows under attack: odd tables, tiny and huge ε, short times. What is sealed never leaks more, bounds hold."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import IntArray
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.engine import split
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP, SRLIP
from tests.engine.problems import SEEDS, by_programmes, problem_of

EPSILONS = (0.001, 0.05, 0.3, 1.0, 5.0, 12.0)
ODD = ("few", "rare", "dominated", "copied", "almost the secret")


def odd_table(kind: str, shape: tuple[int, ...], seed: int) -> IntArray:
    """Counts with empty cells, combinations seen once in 10^7, or columns that repeat each other or the secret."""
    random = np.random.default_rng(seed)
    counts = random.integers(0, 3, shape)
    if kind == "rare":
        counts = np.where(random.random(shape) < 0.3, 1, random.integers(1, 10**7, shape))
    elif kind == "dominated":
        counts.flat[0] = 10**7
    elif kind == "copied":
        for i in range(min(shape[1:3])):
            counts[:, i, i] += random.integers(50, 100, counts[:, i, i].shape)
    elif kind == "almost the secret":
        for i in range(min(shape[:2])):
            counts[i, i] += random.integers(50, 100, counts[i, i].shape)
    counts.reshape(shape[0], -1)[:, 0] += 1  # every secret occurs, and so does every label
    for axis, size in enumerate(shape[1:], 1):
        for label in range(size):
            counts[tuple(label if k == axis else 0 for k in range(len(shape)))] += 1
    return counts


def largest_ratio(joint: Joint, law: ChannelMechanism) -> Fraction | None:
    """The largest P(y | s, x^J) / P(y | x^J), or its inverse, by definition and in fractions; None if infinite."""
    numbers = np.zeros((joint.a, len(law.outputs)), dtype=object)
    numbers[np.repeat(np.arange(joint.a), np.diff(law.indptr)), law.output] = law.numerator
    weights = joint.weights.astype(object)
    largest = Fraction(1)
    for known in (J for size in range(joint.m) for J in combinations(range(joint.m), size)):
        peers = [tuple(combo[list(known)].tolist()) for combo in joint.combos]
        for label in set(peers):
            among = [x for x, peer in enumerate(peers) if peer == label]
            masses, told = weights[:, among].sum(axis=1), weights[:, among] @ numbers[among]
            for y in np.flatnonzero(told.sum(axis=0)):
                everybody = Fraction(told[:, y].sum(), masses.sum())
                for s in np.flatnonzero(masses):
                    ratio = Fraction(told[s, y], masses[s]) / everybody
                    if ratio == 0:
                        return None
                    largest = max(largest, ratio, 1 / ratio)
    return largest


@pytest.mark.parametrize(
    ("kind", "epsilon"),
    [("copied", 1.0), ("copied", 12.0), ("rare", 0.05), ("rare", 1.0), ("dominated", 1.0), ("dominated", 30.0)],
)
def test_what_is_sealed_in_a_hurry_leaks_no_more_in_fractions(kind: str, epsilon: float) -> None:
    joint = Joint.from_counts(odd_table(kind, (3, 5, 4, 3), 1))
    promise = SRLIP(epsilon)
    assert promise.count(joint) > 150  # each makes two rows
    found = optimal(joint, promise, time_limit=0.3)
    law = seal(found.protocol, promise, joint).mechanism
    assert isinstance(law, ChannelMechanism)
    largest = largest_ratio(joint, law)
    assert largest is not None
    assert largest <= exp_below(epsilon)
    assert found.utility <= found.bound + 1e-12


@given(
    seed=SEEDS,
    kind=st.sampled_from(ODD),
    shape=st.sampled_from([(2, 2, 3), (3, 2, 2), (3, 2, 3), (2, 2, 2, 2)]),
    epsilon=st.sampled_from(EPSILONS),
)
@settings(max_examples=10, deadline=None)
def test_side_channels_bound_odd_tables_from_the_right_side(
    seed: int, kind: str, shape: tuple[int, ...], epsilon: float
) -> None:
    joint = Joint.from_counts(odd_table(kind, shape, seed))
    problem = problem_of(joint, SRLIP(epsilon))
    assume(len(problem.inequalities) > 0)
    by_vertices = split(problem, time_limit=1.0)
    generation = by_programmes(problem)
    generation.run(1e-6, 0.5)
    best = generation.best()
    assert generation.bound <= by_vertices.value + 1e-9
    assert by_vertices.bound <= best.value + 1e-9
    assert entropy(joint.p_x) - best.value <= optimal(joint, LIP(epsilon), time_limit=1.0).bound + 1e-9
