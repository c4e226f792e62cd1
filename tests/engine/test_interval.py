"""Everything depends on one number: the table says what the general way says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.engine import Problem
from privacyfunnel.engine.oracles.oracle import IntervalOracle, coordinate, ends
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.promises import LIP, Promise
from tests.engine.problems import KINDS, SEEDS, by_vertices, made, problem_of, random_joint, vertices_of, with_loans


@given(seed=SEEDS, kind=KINDS, a=st.integers(2, 9), epsilon=st.floats(0, 2))
@settings(max_examples=25, deadline=None)
def test_with_two_secrets_the_table_and_the_general_way_agree(
    seed: int, kind: type[Promise], a: int, epsilon: float
) -> None:
    problem = made(kind, seed, 2, a, epsilon)
    assert problem.constraints.is_one_dimensional
    interval = IntervalOracle(problem)
    table, general = with_loans(problem, interval, interval), with_loans(problem, *by_vertices(problem))
    table.run(1e-7, 20.0)
    general.run(1e-7, 20.0)
    assert table.value - table.bound <= 1e-7
    assert table.bound <= general.value + 1e-8
    assert general.bound <= table.value + 1e-8


@given(seed=SEEDS, kind=KINDS, a=st.integers(2, 5), epsilon=st.floats(0.05, 2))
@settings(max_examples=25, deadline=None)
def test_what_is_allowed_is_an_interval_of_one_number(seed: int, kind: type[Promise], a: int, epsilon: float) -> None:
    problem = made(kind, seed, 2, a, epsilon)
    r = coordinate(problem)
    low, high = ends(problem, r)
    at = vertices_of(problem) @ r
    assert at.min() == pytest.approx(max(low, r.min()), abs=1e-9)
    assert at.max() == pytest.approx(min(high, r.max()), abs=1e-9)


def test_two_inputs_need_no_structure() -> None:
    """Whatever the rows are about: an atom over two inputs is one number."""
    random = np.random.default_rng(0)
    N, D = random.uniform(0.5, 2, (2, 5, 2))
    problem = Problem.from_values(np.array([0.4, 0.6]), LinearConstraints.from_pairs(N, D), 1.5)
    assert problem.constraints.is_one_dimensional
    low, high = ends(problem, coordinate(problem))
    at = vertices_of(problem)[:, 1]
    assert (at.min(), at.max()) == pytest.approx((low, high), abs=1e-9)


def test_three_secrets_need_more_than_one_number() -> None:
    joint = random_joint(0, (3, 6))
    assert not problem_of(joint, LIP(0.5)).constraints.is_one_dimensional
    two = random_joint(0, (2, 6))
    assert not problem_of(
        two, LIP(0.5).for_priors([random_joint(1, (2, 6))])
    ).constraints.is_one_dimensional  # nor do two priors
