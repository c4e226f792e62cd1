"""Simpler problems bound from the right side: groups of secrets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import dense
from privacyfunnel.engine import Problem, split
from privacyfunnel.engine.bounds.dual_bounds import RelaxationBound
from privacyfunnel.engine.clock import Clock, clock_for, now
from privacyfunnel.engine.plan import choose_generation
from privacyfunnel.engine.reductions import group_secrets
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.promises import Promise
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


def relaxed(problem: Problem, seconds: float) -> RelaxationBound:
    """The bound that simpler problems alone give in so many nominal seconds of counted work."""
    bounding = RelaxationBound(problem, None, begun)
    dear = np.full(problem.size, 2 * problem.prior_cost)  # at these prices no bound would be enough
    with clock_for(None):
        here = now()
        while not bounding.relaxed:
            bounding.prove(dear, 1e-6, Clock(here - seconds, here + seconds))
    return bounding


@given(seed=SEEDS, kind=KINDS, c=st.integers(3, 5), a=st.integers(3, 4), epsilon=st.floats(0.05, 2))
@settings(max_examples=15, deadline=None)
def test_grouped_secrets_never_cost_more(seed: int, kind: type[Promise], c: int, a: int, epsilon: float) -> None:
    problem = made(kind, seed, c, a, epsilon)
    groups = group_secrets(problem)
    assert groups is not None
    assert groups.count == c
    order = np.random.default_rng(seed).permutation(c).tolist()
    least, vertices = cheapest(problem), vertices_of(problem)
    for few in (order[:1], order[:2], order[: c - 1]):
        simpler = groups.single_out(few)
        assert simpler is not None
        assert simpler.constraints.is_one_dimensional == (len(few) == 1)
        assert excess(simpler, vertices) <= 1e-9
        assert split(simpler, gap=1e-3).bound <= least + 1e-9
    assert relaxed(problem, 5.0).bound <= least + 1e-9


def test_rows_that_compare_no_secrets_are_not_grouped() -> None:
    problem = lip(0, 4, 6, 0.5)
    L = dense(problem.constraints.functionals)
    assert group_secrets(problem.replace_constraints(LinearConstraints.from_pairs(L[[0, 1]], L[[1, 2]]))) is None
    assert group_secrets(lip(0, 2, 6, 0.5)) is None  # two secrets cannot be grouped


def test_the_bound_from_groups_is_used_where_branching_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(SETTINGS.plan), "many_inputs", 150)
    problem = lip(1, 6, 160, 0.5)
    generation = choose_generation(problem)
    assert isinstance(generation.dual_bound, RelaxationBound)
    generation.run(0.1, None, None, proofs=False)
    assert generation.bound == 0.0
    assert 0.0 < relaxed(problem, 3.0).bound <= generation.value


def solved(problem: Problem) -> float:
    found = split(problem, gap=1e-6)
    assert found.value - found.bound <= 1e-6
    return found.value
