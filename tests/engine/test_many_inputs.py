"""Many inputs: coarse splits are splits, every solution is one, and grouped secrets bound from the right side."""

import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine import Splitting, split
from privacyfunnel.engine.coarsening import coarse
from privacyfunnel.engine.columns import Generation
from privacyfunnel.engine.grouping import ever_finer, secrets_of
from privacyfunnel.engine.many_inputs import ManyInputs, generation_for
from privacyfunnel.engine.polytope import polytope_of
from privacyfunnel.engine.pricing import VertexPricer
from privacyfunnel.engine.rest import RestMaster
from privacyfunnel.engine.vertices import entropy_terms
from tests.engine.test_engine import SEEDS, ldp, lip, vertices_of

Make = Callable[[int, int, int, float], Splitting]
PROMISES = st.sampled_from([lip, ldp])


def excess(problem: Splitting, atoms: FloatArray) -> float:
    """By how much the worst row is broken."""
    N, D = np.asarray(problem.numerators) @ atoms.T, np.asarray(problem.denominators) @ atoms.T
    loud = np.exp(problem.epsilon)
    return float(max((N - loud * D).max(initial=-np.inf), (D - loud * N).max(initial=-np.inf)))


def cheapest(problem: Splitting) -> float:
    """The value of the cheapest split, over all vertices of the polytope."""
    generation = Generation(problem, VertexPricer(problem))
    vertices = vertices_of(problem)
    generation.master.add(vertices, entropy_terms(vertices).sum(axis=1))
    generation.master.forbid_loans()
    weights, _, _ = generation.master.solve()
    return float(generation.master.costs @ weights)


@given(seed=SEEDS, make=PROMISES, parts=st.integers(1, 9), epsilon=st.floats(0.05, 2))
@settings(max_examples=30, deadline=None)
def test_a_split_over_parts_is_a_split_over_inputs(seed: int, make: Make, parts: int, epsilon: float) -> None:
    problem = make(seed, 3, 9, epsilon)
    small = coarse(problem, parts)
    assert small.problem.prior.size <= parts
    found = split(small.problem, gap=1e-4)
    atoms = small.expanded(found.atoms)
    assert found.weights @ atoms == pytest.approx(problem.prior, abs=1e-9)
    assert excess(problem, atoms) <= 1e-9
    within = entropy_terms(problem.prior).sum() - entropy_terms(small.problem.prior).sum()
    assert found.weights @ entropy_terms(atoms).sum(axis=1) == pytest.approx(found.value + within, abs=1e-8)


@given(seed=SEEDS, make=PROMISES, c=st.integers(3, 5), a=st.integers(3, 5), epsilon=st.floats(0.05, 2))
@settings(max_examples=25, deadline=None)
def test_grouped_secrets_never_cost_more(seed: int, make: Make, c: int, a: int, epsilon: float) -> None:
    problem = make(seed, c, a, epsilon)
    secrets = secrets_of(problem)
    assert secrets is not None
    random = np.random.default_rng(seed)
    of_secret = random.permutation(np.arange(secrets.count) % 3)
    groups = [np.flatnonzero(of_secret == g).tolist() for g in np.unique(of_secret)]
    least, vertices = cheapest(problem), vertices_of(problem)
    easier = [secrets.singled_out([s]) for s in range(secrets.count)]
    easier += [secrets.grouped(groups), *ever_finer(secrets, np.arange(float(secrets.count)))]
    for grouped in easier:
        assert excess(grouped, vertices) <= 1e-9
        assert split(grouped, gap=1e-3).bound <= least + 1e-9


def test_rows_that_compare_no_secrets_are_not_grouped() -> None:
    problem = lip(0, 4, 6, 0.5)
    N = np.asarray(problem.numerators)
    some = Splitting(problem.prior, problem.group, N[[0, 1]], N[[1, 2]], 0.5)
    assert secrets_of(some) is None
    assert secrets_of(lip(0, 2, 6, 0.5)) is None  # two secrets cannot be grouped


@given(seed=SEEDS, make=PROMISES, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=20, deadline=None)
def test_every_solution_with_a_rest_is_a_split(seed: int, make: Make, epsilon: float) -> None:
    problem = make(seed, 3, 8, epsilon)
    random = np.random.default_rng(seed)
    master = RestMaster(problem.prior, polytope_of(problem).cone(), random.normal(size=8))
    vertices = vertices_of(problem)
    vertices = vertices[random.permutation(len(vertices))[:6]]
    master.add(vertices, entropy_terms(vertices).sum(axis=1))
    for _ in range(8):
        weights, _, rest = master.solve()
        assert weights @ master.atoms + master.loans_taken == pytest.approx(problem.prior, abs=1e-8)
        assert excess(problem, master.loans_taken[None, :]) <= 1e-7
        assert rest == pytest.approx(master.loans_taken.sum())
        master.raise_penalty()


@given(seed=SEEDS, make=PROMISES, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=15, deadline=None)
def test_from_coarse_to_fine_is_as_good_as_all_vertices(seed: int, make: Make, epsilon: float) -> None:
    problem = make(seed, 3, 7, epsilon)
    least = cheapest(problem)
    generation = ManyInputs(problem, VertexPricer(problem))
    said: list[tuple[float, float]] = []
    generation.run(1e-5, 20.0, lambda value, bound: said.append((value, bound)))
    assert all(bound - 1e-9 <= least <= value + 1e-9 for value, bound in said)
    assert all(one[0] >= other[0] for one, other in pairwise(said))
    found = generation.best()
    assert found.value == pytest.approx(least, abs=1e-5 + 1e-9)
    assert found.weights @ found.atoms == pytest.approx(problem.prior, abs=1e-9)
    generation.relax(np.inf)
    assert generation.bound <= least + 1e-9


def test_the_bound_from_groups_is_used_where_branching_takes_too_long() -> None:
    problem = lip(1, 6, 200, 0.5)
    generation = generation_for(problem)
    assert isinstance(generation, ManyInputs)
    generation.run(0.1, None, None, proofs=False)
    assert generation.bound == 0.0
    generation.relax(time.monotonic() + 3.0)
    assert 0.0 < generation.bound <= generation.value


def test_many_inputs_are_solved_to_the_gap() -> None:
    problem = lip(2, 3, 200, 0.5)
    found = split(problem, gap=0.05, time_limit=60.0)
    assert 0.0 <= found.value - found.bound <= 0.05
    assert found.weights @ found.atoms == pytest.approx(problem.prior, abs=1e-9)
    assert excess(problem, found.atoms) <= 1e-9


@pytest.mark.parametrize("at", [1, 2, 8, 30])
def test_an_interrupted_solve_of_many_inputs_is_a_split(at: int) -> None:
    problem = lip(3, 4, 200, 0.5)
    said: list[float] = []

    def interrupt(value: float, bound: float) -> None:
        said.append(value)
        if len(said) == at:
            raise KeyboardInterrupt

    found = split(problem, gap=1e-4, progress=interrupt)
    assert len(said) == at
    assert found.weights @ found.atoms == pytest.approx(problem.prior, abs=1e-9)
    assert excess(problem, found.atoms) <= 1e-9
    assert found.value <= said[-1] + 1e-6
