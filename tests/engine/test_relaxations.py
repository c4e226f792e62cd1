"""Simpler problems bound from the right side: groups of secrets."""

import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import dense
from privacyfunnel.engine import Problem, split
from privacyfunnel.engine.bounding import ByRelaxations
from privacyfunnel.engine.clock import Clock
from privacyfunnel.engine.plan import generation_for
from privacyfunnel.engine.reductions import grouped_secrets
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.rows import Rows
from tests.engine.problems import (
    KINDS,
    SEEDS,
    begun,
    cheapest,
    excess,
    lip,
    made,
    vertices_of,
)


def relaxed(problem: Problem, seconds: float) -> ByRelaxations:
    """The bound that simpler problems alone give in about so many seconds."""
    bounding = ByRelaxations(problem, None, begun)
    now = time.monotonic()
    dear = np.full(problem.size, 2 * problem.worth)  # at these prices no bound would be enough
    while not bounding.relaxed:
        bounding.prove(dear, 1e-6, Clock(now - seconds, now + seconds))
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
