"""The loop: what it hands out is a split with a bound, when it is done and when time is up."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.engine import Problem, split
from privacyfunnel.engine.bounds.dual_bounds import RelaxationBound
from privacyfunnel.engine.plan import choose_generation
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import SRLIP, Promise
from privacyfunnel.tables.readers.adult import adult_counts
from tests.engine.problems import (
    KINDS,
    SEEDS,
    by_programmes,
    by_vertices,
    cheapest,
    entropies,
    excess,
    lip,
    made,
    problem_of,
    random_joint,
    with_rest,
)


@given(seed=SEEDS, c=st.integers(2, 5), a=st.integers(2, 12), epsilon=st.floats(0.05, 2))
@settings(max_examples=30, deadline=None)
def test_a_split_averages_to_the_prior_and_its_value_is_its_entropy(seed: int, c: int, a: int, epsilon: float) -> None:
    problem = lip(seed, c, a, epsilon)
    found = split(problem, gap=1e-6)
    assert found.weights @ found.atoms == pytest.approx(problem.prior, abs=1e-12)
    assert (found.weights > 0).all()
    assert found.value == pytest.approx(float(found.weights @ entropies(found.atoms)), abs=1e-12)
    assert -1e-9 <= found.value - found.bound <= 1e-6
    assert problem.is_feasible(found.atoms).all()


@given(seed=SEEDS, kind=KINDS, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=12, deadline=None)
def test_from_coarse_to_fine_is_as_good_as_all_vertices(seed: int, kind: type[Promise], epsilon: float) -> None:
    problem = made(kind, seed, 3, 6, epsilon)
    least = cheapest(problem)
    generation = with_rest(problem, *by_vertices(problem))
    said: list[tuple[float, float]] = []
    generation.run(1e-5, 20.0, lambda value, bound: said.append((value, bound)))
    assert all(bound - 1e-9 <= least <= value + 1e-9 for value, bound in said)
    assert all(one[0] >= other[0] - 1e-12 and one[1] <= other[1] for one, other in pairwise(said))
    found = generation.best()
    assert found.value == pytest.approx(least, abs=1e-5 + 1e-9)
    assert found.weights @ found.atoms == pytest.approx(problem.prior, abs=1e-9)


@pytest.mark.parametrize("start_from", ["nothing", "the optimum"])
def test_a_split_is_never_worse_than_what_it_started_from(start_from: str) -> None:
    problem = lip(4, 4, 12, 0.4)
    best = split(problem, gap=1e-6)
    start = best.atoms if start_from == "the optimum" else None
    hasty = split(problem, gap=1e-6, time_limit=1e-9, start=start)
    assert hasty.weights @ hasty.atoms == pytest.approx(problem.prior, abs=1e-12)
    assert hasty.bound <= best.value + 1e-9
    assert (hasty.value <= best.value + 1e-9) == (start_from == "the optimum")


def test_many_inputs_are_solved_to_the_gap() -> None:
    problem = lip(2, 3, 160, 0.5)
    found = split(problem, gap=0.05)
    assert 0.0 <= found.value - found.bound <= 0.05
    assert found.weights @ found.atoms == pytest.approx(problem.prior, abs=1e-9)
    assert excess(problem, found.atoms) <= 1e-9


@pytest.mark.parametrize("at", [1, 2, 20])
def test_an_interrupt_ends_the_solve_and_hands_nothing_out(at: int) -> None:
    said: list[float] = []

    def interrupt(value: float, bound: float) -> None:
        said.append(value)
        if len(said) == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        split(lip(3, 4, 160, 0.5), gap=1e-4, progress=interrupt)
    assert len(said) == at


@pytest.mark.parametrize("limit", [0.3, 1.0])
def test_when_time_is_short_the_best_split_so_far_is_handed_out(limit: float) -> None:
    joint = Joint.from_counts(adult_counts("income", "education", "relationship", "race")[0])
    problem = problem_of(joint, SRLIP(1.0))
    generation = choose_generation(problem)
    assert isinstance(generation.dual_bound, RelaxationBound)
    generation.run(1e-6, limit)
    best = generation.best()
    assert best.value <= generation.value + 1e-7
    assert best.weights @ best.atoms == pytest.approx(problem.prior, abs=1e-9)
    assert problem.is_feasible(best.atoms).all()


def test_what_no_proof_can_mend_ends_by_itself() -> None:
    """Without a time limit the search stops once it finds nothing any more, gap or no gap."""
    problem = problem_of(random_joint(2, (3, 2, 3)), SRLIP(0.7))
    generation = by_programmes(problem)
    generation.run(1e-9)
    assert generation.dual_bound.is_exhausted
    assert 1e-9 < generation.value - generation.bound < 0.5


def test_rows_of_which_none_can_be_spared_are_searched_as_they_are() -> None:
    """Seventy secrets compared in a ring: neither LIP nor LDP, and every row is about all inputs."""
    secrets = np.random.default_rng(4).dirichlet(np.ones(20), size=70)
    prior = secrets.mean(axis=0)
    L = secrets / prior
    problem = Problem.from_values(prior, LinearConstraints.from_pairs(L, np.roll(L, -1, axis=0)), 0.3)
    generation = choose_generation(problem)
    assert isinstance(generation.dual_bound, RelaxationBound)
    generation.run(0.05, proofs=False)
    best = generation.best()
    assert problem.is_feasible(best.atoms).all()
    assert best.weights @ best.atoms == pytest.approx(prior, abs=1e-9)
    assert best.value < 0.999 * problem.prior_cost
