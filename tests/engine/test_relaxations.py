"""Simpler problems bound from the right side: groups of secrets, one side channel at a time."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import dense
from privacyfunnel.engine import Problem, split
from privacyfunnel.engine.bounding import ByRelaxations
from privacyfunnel.engine.clock import Clock
from privacyfunnel.engine.plan import generation_for
from privacyfunnel.engine.reductions import grouped_secrets, side_channels, which_class
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import SRLIP, Promise
from privacyfunnel.model.rows import Rows
from tests.engine.problems import (
    KINDS,
    SEEDS,
    SMALL,
    cheapest,
    easier,
    excess,
    lip,
    made,
    problem_of,
    random_joint,
    vertices_of,
)


def relaxed(problem: Problem, seconds: float) -> ByRelaxations:
    """The bound that simpler problems alone give in about so many seconds."""
    bounding = ByRelaxations(problem, None, easier)
    now = time.monotonic()
    bounding.prove(np.zeros(problem.size), 1e-6, Clock(now - seconds, now + seconds))
    assert bounding.relaxed
    return bounding


@given(seed=SEEDS, kind=KINDS, c=st.integers(3, 5), a=st.integers(3, 4), epsilon=st.floats(0.05, 2))
@settings(max_examples=15, deadline=None)
def test_grouped_secrets_never_cost_more(seed: int, kind: type[Promise], c: int, a: int, epsilon: float) -> None:
    problem = made(kind, seed, c, a, epsilon)
    groups = grouped_secrets(problem)
    assert groups is not None
    assert groups.count == c
    order = np.random.default_rng(seed).permutation(c).tolist()
    least, vertices = cheapest(problem), vertices_of(problem)
    for few in (order[:1], order[:2], order[: c - 1]):
        simpler = groups.singled_out(few)
        assert simpler is not None
        assert simpler.rows.of_two == (len(few) == 1)
        assert excess(simpler, vertices) <= 1e-9
        assert split(simpler, gap=1e-3).bound <= least + 1e-9
    assert relaxed(problem, 5.0).bound <= least + 1e-9


def test_rows_that_compare_no_secrets_are_not_grouped() -> None:
    problem = lip(0, 4, 6, 0.5)
    L = dense(problem.rows.functionals)
    assert grouped_secrets(problem.easier(Rows.of_pairs(L[[0, 1]], L[[1, 2]]))) is None
    assert grouped_secrets(lip(0, 2, 6, 0.5)) is None  # two secrets cannot be grouped


def test_the_bound_from_groups_is_used_where_branching_takes_too_long() -> None:
    problem = lip(1, 6, 160, 0.5)
    generation = generation_for(problem)
    assert isinstance(generation.bounding, ByRelaxations)
    generation.run(0.1, None, None, proofs=False)
    assert generation.bound == 0.0
    assert 0.0 < relaxed(problem, 3.0).bound <= generation.value


def solved(problem: Problem) -> float:
    found = split(problem, gap=1e-6, time_limit=60.0)
    assert found.value - found.bound <= 1e-6
    return found.value


@given(seed=SEEDS, shape=SMALL, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=15, deadline=None)
def test_no_side_channel_alone_costs_more_than_all_together(seed: int, shape: tuple[int, ...], epsilon: float) -> None:
    problem = problem_of(random_joint(seed, shape), SRLIP(epsilon))
    least = solved(problem)
    ways = side_channels(problem)
    assert [len(parts) for parts in ways] == sorted(len(parts) for parts in ways)
    assert len(ways[0]) == 1  # nobody knows anything: LIP
    assert ways[0][0].mass == pytest.approx(1.0)
    for parts in ways:
        assert sum(part.mass for part in parts) <= 1 + 1e-12
        assert sum(part.mass * solved(part.problem) for part in parts) <= least + 2e-6


@given(seed=SEEDS, shape=SMALL, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=15, deadline=None)
def test_which_class_and_which_input_of_it_together_cost_no_more(
    seed: int, shape: tuple[int, ...], epsilon: float
) -> None:
    problem = problem_of(random_joint(seed, shape), SRLIP(epsilon))
    least = solved(problem)
    for deeper in (False, True):
        for parts in side_channels(problem, deeper=deeper):
            told = which_class(problem, parts)
            assert (told is None) == (len(parts) == 1)
            cost = sum(part.mass * solved(part.problem) for part in parts)
            assert cost + (0.0 if told is None else solved(told)) <= least + 3e-6


def test_deeper_rows_are_those_of_the_promise_within_the_class() -> None:
    """Of (2, 2, 2) values, whoever knows the first faces the promise for the records that have it."""
    joint = random_joint(3, (2, 2, 2, 2))
    problem = problem_of(joint, SRLIP(0.3))
    two = [parts for parts in side_channels(problem, deeper=True) if len(parts) == 2]
    assert two
    for part in (part for parts in two for part in parts):
        own = Joint.from_probabilities(joint.p_sx[:, part.inputs].reshape(2, 2, 2) / joint.p_sx[:, part.inputs].sum())
        expected = problem_of(own, SRLIP(0.3))
        assert len(part.problem.rows) == len(expected.rows)
        np.testing.assert_allclose(part.problem.prior, expected.prior)
        np.testing.assert_allclose(part.problem.inequalities, expected.inequalities, atol=1e-12)


def test_the_classes_of_a_side_channel_are_the_values_of_what_is_known() -> None:
    """Two attributes of 2 and 3 values: nothing known, the first known, the second known."""
    problem = problem_of(random_joint(5, (2, 2, 3)), SRLIP(0.3))
    ways = side_channels(problem)
    assert sorted(len(parts) for parts in ways) == [1, 2, 3]
    for parts in ways:
        assert sum(part.problem.size for part in parts) == 6
        for part in parts:
            assert part.problem.rows.against_everybody  # within a class each secret is compared with everybody
            assert np.abs(part.problem.rows.dense[1] - 1).max() <= 1e-12
            np.testing.assert_allclose(part.problem.prior * part.mass, problem.prior[part.inputs])


def test_without_side_channels_there_is_nothing_to_take_one_at_a_time() -> None:
    assert side_channels(lip(0, 3, 6, 0.5)) == []
