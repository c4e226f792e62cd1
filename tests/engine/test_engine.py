"""The engine, part by part: bounds that hold, vertices that are vertices, a wrong bound that is caught."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine import Pricing, Splitting, split
from privacyfunnel.engine.branching import chords
from privacyfunnel.engine.columns import Generation
from privacyfunnel.engine.interval import IntervalPricer, coordinate
from privacyfunnel.engine.master import Master
from privacyfunnel.engine.merging import merged
from privacyfunnel.engine.polytope import polytope_of
from privacyfunnel.engine.pricing import VertexPricer, pricer_for
from privacyfunnel.engine.simplex import Programmes, solve
from privacyfunnel.engine.vertices import cheapest_vertices, descend, entropy_terms, reduced_costs
from privacyfunnel.errors import SolverError
from tests.enumeration import corners

SEEDS = st.integers(0, 10**6)


def lip(seed: int, c: int, a: int, epsilon: float, concentration: float = 0.5) -> Splitting:
    p = np.random.default_rng(seed).dirichlet(np.full(c * a, concentration)).reshape(c, a) + 1e-9
    p /= p.sum()
    N = p / p.sum(axis=0) / p.sum(axis=1, keepdims=True)
    return Splitting(p.sum(axis=0), np.arange(a), N, np.ones_like(N), epsilon)


def ldp(seed: int, c: int, a: int, epsilon: float) -> Splitting:
    like = lip(seed, c, a, epsilon)
    N = np.asarray(like.numerators)
    one, other = np.triu_indices(c, 1)
    return Splitting(like.prior, like.group, N[one], N[other], epsilon)


def vertices_of(problem: Splitting) -> FloatArray:
    N, D = np.asarray(problem.numerators), np.asarray(problem.denominators)
    e = math.exp(problem.epsilon)
    return corners(np.concatenate([N - e * D, D - e * N]))


@given(seed=SEEDS, m=st.integers(1, 4), n=st.integers(5, 9))
@settings(max_examples=60, deadline=None)
def test_many_small_programmes_are_solved_as_highs_solves_them(seed: int, m: int, n: int) -> None:
    random = np.random.default_rng(seed)
    A = np.hstack([random.normal(size=(m, n)), -np.eye(m)])
    low = np.hstack([random.uniform(-1, 0, (5, n)), np.full((5, m), -0.5)])
    high = low + random.choice([0.0, 0.3, 1.0], size=low.shape)
    cost = np.hstack([random.normal(size=(5, n)), np.zeros((5, m))])
    basis = np.tile(np.arange(n, n + m), (5, 1))
    solved = solve(Programmes(A, np.zeros(m), cost, low, high, basis))
    for k in range(5):
        reference = linprog(cost[k], A_eq=A, b_eq=np.zeros(m), bounds=list(zip(low[k], high[k], strict=True)))
        expected = math.inf if reference.status == 2 else reference.fun
        assert solved.bound[k] == pytest.approx(expected, abs=1e-8)
        if reference.status == 0:
            assert solved.optimal[k]
            assert cost[k] @ solved.x[k] == pytest.approx(expected, abs=1e-8)


@given(low=st.floats(0, 1), width=st.floats(0, 1), at=st.floats(0, 1))
def test_a_chord_lies_below_the_entropy(low: float, width: float, at: float) -> None:
    high = min(1.0, low + width)
    slope, intercept = chords(np.array([low]), np.array([high]))
    t = np.array([low + at * (high - low)])
    assert slope * t + intercept <= entropy_terms(t) + 1e-12


@given(seed=SEEDS, c=st.integers(2, 4), a=st.integers(2, 4), epsilon=st.floats(0.05, 2), pairs=st.booleans())
@settings(max_examples=60, deadline=None)
def test_pricing_finds_and_proves_the_best_vertex(seed: int, c: int, a: int, epsilon: float, pairs: bool) -> None:
    problem = ldp(seed, c, a, epsilon) if pairs else lip(seed, c, a, epsilon)
    prices = np.random.default_rng(seed).normal(size=a)
    least = float(reduced_costs(vertices_of(problem), prices).min())
    pricers = [VertexPricer(problem)]
    for pricer in [*pricers, pricer_for(problem)]:
        proof = pricer.prove(prices, -least + 1e-6, time.monotonic() + 60)
        assert proof.bound <= least + 1e-9
        assert proof.bound >= least - 1.1e-6
        pricer.start()
        found = np.concatenate([pricer.search(prices) for _ in range(3)])
        assert reduced_costs(found, prices).min() >= least - 1e-8


@given(seed=SEEDS, c=st.integers(2, 5), a=st.integers(2, 8), epsilon=st.floats(0.05, 2))
@settings(max_examples=40, deadline=None)
def test_a_walk_ends_at_vertices_of_the_polytope_and_never_goes_up(seed: int, c: int, a: int, epsilon: float) -> None:
    problem = lip(seed, c, a, epsilon)
    polytope = polytope_of(problem)
    random = np.random.default_rng(seed)
    prices = random.normal(size=a)
    start = cheapest_vertices(polytope, random.normal(size=(7, a)))
    end = descend(polytope, start, prices)
    v = end.x[:, :a]
    lifts = v @ np.asarray(problem.numerators).T
    assert (np.abs(v.sum(axis=1) - 1) < 1e-9).all()
    assert (lifts <= math.exp(epsilon) + 1e-9).all()
    assert (lifts >= math.exp(-epsilon) - 1e-9).all()
    assert ((v > 1e-9).sum(axis=1) <= polytope.support).all()
    assert reduced_costs(v, prices).min() <= reduced_costs(start.x[:, :a], prices).min() + 1e-9


@given(seed=SEEDS, a=st.integers(2, 9), epsilon=st.floats(0, 2), pairs=st.booleans())
@settings(max_examples=40, deadline=None)
def test_with_two_secrets_the_table_and_the_general_way_agree(seed: int, a: int, epsilon: float, pairs: bool) -> None:
    problem = ldp(seed, 2, a, epsilon) if pairs else lip(seed, 2, a, epsilon)
    r = coordinate(problem)
    assert r is not None
    table, general = Generation(problem, IntervalPricer(problem, r)), Generation(problem, VertexPricer(problem))
    table.run(1e-7, 20.0, None)
    general.run(1e-7, 20.0, None)
    assert table.value - table.bound <= 1e-7
    assert table.bound <= general.value + 1e-8
    assert general.bound <= table.value + 1e-8


def test_three_secrets_need_more_than_one_number() -> None:
    assert coordinate(lip(0, 3, 6, 0.5)) is None


@given(seed=SEEDS, c=st.integers(2, 5), a=st.integers(2, 12), epsilon=st.floats(0.05, 2))
@settings(max_examples=30, deadline=None)
def test_a_split_averages_to_the_prior_and_its_value_is_its_entropy(seed: int, c: int, a: int, epsilon: float) -> None:
    problem = lip(seed, c, a, epsilon)
    found = split(problem, gap=1e-6)
    assert found.weights @ found.atoms == pytest.approx(problem.prior, abs=1e-12)
    assert (found.weights > 0).all()
    assert found.value == pytest.approx(float(found.weights @ entropy_terms(found.atoms).sum(axis=1)), abs=1e-12)
    assert -1e-9 <= found.value - found.bound <= 1e-6


class Overconfident(VertexPricer):
    """Claims a bound that is too high by a hundredth of a nat."""

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Pricing:
        proof = super().prove(prices, target, deadline)
        return Pricing(proof.bound + 0.01, proof.atoms)


def test_a_bound_that_is_too_high_is_caught_by_enumeration() -> None:
    problem = lip(1, 3, 4, 0.3)
    vertices = vertices_of(problem)
    costs = entropy_terms(vertices).sum(axis=1)
    answer = linprog(costs, A_eq=vertices.T, b_eq=problem.prior)
    assert answer.fun is not None
    truth = float(answer.fun)
    honest, liar = Generation(problem, VertexPricer(problem)), Generation(problem, Overconfident(problem))
    honest.run(1e-6, None, None)
    liar.run(1e-6, None, None)
    assert honest.bound <= truth + 1e-9
    assert liar.bound > truth + 1e-9


@given(seed=SEEDS, parts=st.integers(2, 3))
@settings(max_examples=15, deadline=None)
def test_values_alike_are_merged_and_split_again_at_no_cost(seed: int, parts: int) -> None:
    small = lip(seed, 3, 4, 0.4)
    shares = np.random.default_rng(seed).dirichlet(np.ones(parts), size=4)
    prior = (small.prior[:, None] * shares).ravel()
    N = np.repeat(np.asarray(small.numerators), parts, axis=1)
    large = Splitting(prior / prior.sum(), np.arange(4 * parts), N, np.ones_like(N), 0.4)
    assert merged(large).problem.prior.size == 4
    one, other = split(small), split(large)
    assert other.value == pytest.approx(one.value, abs=2e-6)
    assert other.weights @ other.atoms == pytest.approx(large.prior, abs=1e-12)
    assert other.weights @ entropy_terms(other.atoms).sum(axis=1) == pytest.approx(other.value, abs=1e-9)


def test_very_many_values_alike_are_told_apart_at_no_cost() -> None:
    small = lip(3, 2, 4, 0.4)
    parts = 200
    N = np.repeat(np.asarray(small.numerators), parts, axis=1)
    large = Splitting(np.repeat(small.prior, parts) / parts, np.arange(4 * parts), N, np.ones_like(N), 0.4)
    told = split(large)
    assert told.value == pytest.approx(split(small).value, abs=2e-6)
    assert told.weights @ told.atoms == pytest.approx(large.prior, abs=1e-12)


def test_an_expanded_split_leaves_its_lightest_atoms_whole_when_it_would_grow_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("privacyfunnel.engine.merging.MOST_ENTRIES", 0)
    shares = np.random.default_rng(0).dirichlet(np.ones(9), size=4)
    small = lip(1, 3, 4, 0.4)
    N = np.repeat(np.asarray(small.numerators), 9, axis=1)
    large = Splitting((small.prior[:, None] * shares).ravel(), np.arange(36), N, np.ones_like(N), 0.4)
    cut_short = split(large, time_limit=1e-9)
    assert cut_short.weights @ cut_short.atoms == pytest.approx(large.prior, abs=1e-12)
    assert len(cut_short.weights) <= 2 * 36 + len(small.prior) + 1
    assert cut_short.value >= split(large).value - 1e-9


def test_rows_that_cannot_bind_are_left_out() -> None:
    assert polytope_of(lip(0, 4, 6, 50.0)).matrix.shape == (1, 6)
    assert polytope_of(ldp(0, 4, 6, 50.0)).matrix.shape[0] == 1


def test_a_master_that_cannot_be_solved_raises() -> None:
    master = Master(np.array([0.5, 0.5]), 1.0)
    master.add(np.array([[1.0, 0.0]]), np.array([0.0]))
    master.forbid_loans()
    with pytest.raises(SolverError, match="must be solved to optimality"):
        master.solve()
