"""Where the second moment of a split counts: squares are priced right, bounded soundly, and mixed best."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine import Problem
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.driver import ColumnGeneration
from privacyfunnel.engine.masters.mixture import Moment, solve_mixture
from privacyfunnel.engine.masters.moment import MomentMaster, steepest_split
from privacyfunnel.engine.masters.restricted_master import split_by_forced_response
from privacyfunnel.engine.objective import Objective, costs, reduced_costs
from privacyfunnel.engine.oracles.oracle import IntervalOracle
from privacyfunnel.engine.oracles.polytope import build_polytope
from privacyfunnel.engine.plan import (
    Request,
    _build_moment_groups,
    _build_moment_programmes,
    _single_secret_bound,
    choose,
)
from privacyfunnel.engine.proofs.branch_and_bound import BranchAndBound
from privacyfunnel.engine.proofs.chords import SquaredChords, off_diagonal_bound
from privacyfunnel.engine.proofs.products import ProductRelaxation, build_constraint_cone
from privacyfunnel.engine.reductions import SecretGroups
from privacyfunnel.engine.search.vertices import VertexSearch
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.engine.splits import split_by_moment
from privacyfunnel.errors import GuaranteeError, InputError
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, Promise
from tests.engine.problems import KINDS, SEEDS, lip, made
from tests.enumeration import best_split, corners

EPSILONS = st.floats(0.2, 2)
WEIGHTS = st.sampled_from([0.0, 0.3])  # of entropy


def vertices(problem: Problem) -> FloatArray:
    """Every vertex of the polytope."""
    return corners(-problem.inequalities)


def charged(problem: Problem, seed: int, weight: float) -> tuple[Objective, FloatArray]:
    """A square and prices at random."""
    random = np.random.default_rng(seed)
    square = random.normal(size=(problem.size, 3))
    return replace(problem.objective, weight=weight, square=square), random.normal(size=problem.size)


def polytope_shape(search: VertexSearch) -> tuple[int, int]:
    """Rows and columns."""
    m, n = search.polytope.matrix.shape
    return m, n


def shares(problem: Problem) -> Moment:
    """All shares, centred."""
    p = problem.prior
    return Moment(np.diag(p) - np.outer(p, p), np.zeros((p.size, 0)), constant=float(1 - p @ p))


@given(seed=SEEDS, kind=KINDS, epsilon=EPSILONS, weight=WEIGHTS)
@settings(max_examples=30, deadline=None)
def test_a_proof_by_products_never_claims_more_than_every_vertex_keeps(
    seed: int, kind: type[Promise], epsilon: float, weight: float
) -> None:
    problem = made(kind, seed, 3, 4, epsilon)
    objective, prices = charged(problem, seed, weight)
    least = reduced_costs(objective, vertices(problem), prices).min()
    search = VertexSearch(build_polytope(problem), objective)
    relaxation = ProductRelaxation(build_constraint_cone(problem), objective, np.ones(problem.size))
    tight = BranchAndBound(relaxation, objective, search.polish).prove(prices, -least + 1e-3, np.inf)
    assert least - 1e-3 - 1e-9 <= tight.bound <= least
    # Asked for more than there is, and never told of an atom that shows it, it must not claim it.
    nothing = BranchAndBound(relaxation, objective, lambda atoms, prices: atoms[:0])
    assert nothing.prove(prices, -least - 0.02, time.monotonic() + 0.15).bound <= least + 1e-9


@given(seed=SEEDS, kind=KINDS, epsilon=EPSILONS, weight=WEIGHTS)
@settings(max_examples=30, deadline=None)
def test_a_proof_by_chords_of_squares_never_claims_more_than_every_vertex_keeps(
    seed: int, kind: type[Promise], epsilon: float, weight: float
) -> None:
    problem = made(kind, seed, 3, 4, epsilon)
    objective, prices = charged(problem, seed, weight)
    least = reduced_costs(objective, vertices(problem), prices).min()
    search = VertexSearch(build_polytope(problem), objective)
    relaxation = SquaredChords(build_polytope(problem), objective)
    tight = BranchAndBound(relaxation, objective, search.polish).prove(prices, -least + 1e-3, np.inf)
    assert least - 1e-3 - 1e-9 <= tight.bound <= least + 1e-9
    nothing = BranchAndBound(relaxation, objective, lambda atoms, prices: atoms[:0])
    assert nothing.prove(prices, -least - 0.02, time.monotonic() + 0.15).bound <= least + 1e-9


@given(seed=SEEDS, size=st.integers(2, 9))
@settings(max_examples=30, deadline=None)
def test_numbers_beside_a_form_are_as_large_as_asked_and_no_larger_than_its_rows(seed: int, size: int) -> None:
    B = np.random.default_rng(seed).normal(size=(size, size))
    D, d = B @ B.T, off_diagonal_bound(B @ B.T)
    off = ~np.eye(size, dtype=bool)
    assert (0.5 * (d[:, None] + d) >= D - 1e-12)[off].all()
    assert (d <= np.where(off, D, -np.inf).max(axis=1) + 1e-9).all()


@given(seed=SEEDS, kind=KINDS, weight=WEIGHTS)
@settings(max_examples=20, deadline=None)
def test_a_step_to_the_best_neighbour_goes_down_where_a_square_counts(
    seed: int, kind: type[Promise], weight: float
) -> None:
    problem = made(kind, seed, 3, 6, 0.7)
    objective, prices = charged(problem, seed, weight)
    search = VertexSearch(build_polytope(problem), objective)
    d = problem.size
    start = search.walks.cheapest(np.random.default_rng(seed).normal(size=(20, d)))
    better, x, _ = search.walks._best_neighbours(start.x, start.basis, prices)
    before = reduced_costs(objective, start.x[better][:, :d], prices)
    assert (reduced_costs(objective, np.maximum(x[:, :d], 0.0), prices) < before).all()
    step, W = (
        np.random.default_rng(seed).normal(size=shape) for shape in (start.x.shape, (20, *polytope_shape(search)))
    )
    expected = np.empty_like(step)
    assert objective.square is not None
    assert objective.gram_matrix is not None
    for k, j in np.ndindex(*step.shape):
        moved = np.zeros(start.x.shape[1])
        np.add.at(moved, start.basis[k], -np.abs(step[k, j]) * W[k, :, j])
        moved[j] += step[k, j]
        expected[k, j] = (((start.x[k] + moved)[:d] @ objective.square) ** 2).sum()
    assert np.allclose(search.walks._squares(objective.gram_matrix, start.x, start.basis, W, step), expected)
    ends = search.walks.descend(start, prices)
    assert reduced_costs(objective, ends.x[:, :d], prices).min() >= (
        reduced_costs(objective, vertices(problem), prices).min() - 1e-8
    )


@given(seed=SEEDS, kind=KINDS, epsilon=EPSILONS, weight=WEIGHTS)
@settings(max_examples=20, deadline=None)
def test_with_two_secrets_pairs_are_priced_to_the_last(
    seed: int, kind: type[Promise], epsilon: float, weight: float
) -> None:
    problem = made(kind, seed, 2, 5, epsilon)
    objective, prices = charged(problem, seed, weight)
    interval = IntervalOracle(problem)
    interval.set_objective(objective)
    proof = interval.prove(prices, 0.0, np.inf)
    least = reduced_costs(objective, vertices(problem), prices).min()
    assert abs(proof.bound - least) < 1e-9
    assert abs(reduced_costs(objective, proof.atoms, prices).min() - least) < 1e-9


@given(seed=SEEDS, kind=KINDS, epsilon=st.floats(0.4, 2), entropy=st.booleans())
@example(seed=2736, kind=LDP, epsilon=1.1171875, entropy=True)  # more atoms than inputs, and a solver's tolerance
@settings(max_examples=12, deadline=None, derandomize=True)  # without a time limit a rare one takes an hour to prove
def test_the_best_split_is_what_all_vertices_together_give(
    seed: int, kind: type[Promise], epsilon: float, entropy: bool
) -> None:
    problem = made(kind, seed, 3, 4, epsilon)
    moment = shares(problem)
    everything = vertices(problem)
    if entropy:
        plain = solve_mixture(problem, moment, everything)
        used = float(plain.weights @ problem.costs(everything))
        least = best_split(everything, problem.prior)
        moment = Moment(moment.factor, moment.ridge, (used + least) / 2, moment.constant)
        if used - least < 0.002:  # nothing to choose between
            with pytest.raises(GuaranteeError, match="conditional entropy may be"):
                split_by_moment(problem, Moment(moment.factor, moment.ridge, least - 0.01, moment.constant))
            return
    found = split_by_moment(problem, moment, gap=1e-4)
    slowly = by_slsqp(problem, moment, everything, found.weights, found.atoms)
    assert found.bound <= slowly * (1 + 1e-7)
    assert found.value <= slowly + 1e-4 * (slowly - moment.constant) + 1e-7 * slowly
    assert problem.is_feasible(found.atoms).all()
    assert np.abs(found.weights @ found.atoms / problem.prior - 1).max() < 1e-9


def by_slsqp(problem: Problem, moment: Moment, atoms: FloatArray, weights: FloatArray, found: FloatArray) -> float:
    """The best mixture of these atoms by a general solver, begun near what was found."""
    near = np.abs(atoms[None, :, :] - found[:, None, :]).sum(axis=2).argmin(axis=1)
    begin = np.full(len(atoms), 1e-3)
    np.add.at(begin, near, weights)

    def value(q: FloatArray) -> float:
        M = (atoms * q[:, None]).T @ atoms
        return float(np.trace(moment.factor.T @ np.linalg.solve(M, moment.factor)))

    def slope(q: FloatArray) -> FloatArray:
        M = (atoms * q[:, None]).T @ atoms
        return np.asarray(-((atoms @ np.linalg.solve(M, moment.factor)) ** 2).sum(axis=1))

    rows: list[Any] = [{"type": "eq", "fun": lambda q: (atoms.T @ q - problem.prior) / problem.prior}]
    if moment.most_entropy is not None:
        costs, most = problem.costs(atoms), moment.most_entropy
        rows.append({"type": "ineq", "fun": lambda q: most - costs @ q})
    answer = minimize(
        value,
        begin / begin.sum(),
        jac=slope,
        bounds=[(0.0, 1.0)] * len(atoms),
        constraints=rows,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert np.abs(atoms.T @ answer.x / problem.prior - 1).max() < 1e-6, answer.message
    return float(answer.fun)


@given(seed=SEEDS, kind=KINDS, epsilon=EPSILONS, weight=WEIGHTS)
@settings(max_examples=15, deadline=None)
def test_no_split_has_more_of_the_gradient_than_the_steepest(
    seed: int, kind: type[Promise], epsilon: float, weight: float
) -> None:
    problem = made(kind, seed, 3, 4, epsilon)
    objective, _ = charged(problem, seed, weight)
    search = VertexSearch(build_polytope(problem), problem.objective)
    everything = vertices(problem)
    least = float(linprog(costs(objective, everything), A_eq=everything.T, b_eq=problem.prior).fun or 0.0)
    known = problem.first_atoms()
    found, _ = steepest_split(problem, search, objective, np.zeros(problem.size), known, -least, 1e-9, FOREVER)
    assert found.weights @ costs(objective, found.atoms) == pytest.approx(least, abs=1e-6)
    assert found.most == pytest.approx(-least, abs=1e-6)
    assert np.abs(found.weights @ found.atoms - problem.prior).max() < 1e-8


@given(seed=SEEDS, kind=KINDS, epsilon=st.floats(0.4, 2))
@settings(max_examples=15, deadline=None)
def test_a_bound_holds_at_any_prices(seed: int, kind: type[Promise], epsilon: float) -> None:
    problem = made(kind, seed, 3, 4, epsilon)
    moment, everything = shares(problem), vertices(problem)
    best = solve_mixture(problem, moment, everything)
    rough = solve_mixture(problem, moment, problem.first_atoms())
    for mixed in (best, rough):
        objective, prices = mixed.costs(problem)
        other = prices * np.random.default_rng(seed).uniform(0.8, 1.2, prices.size)
        for tried in (prices, other):
            excess = -float(reduced_costs(objective, everything, tried).min())
            assert mixed.bound(problem, moment, tried, excess) <= best.value * (1 + 1e-9)
    objective, prices = best.costs(problem)
    excess = -float(reduced_costs(objective, everything, prices).min())
    assert best.bound(problem, moment, prices, excess) == pytest.approx(best.value, rel=1e-6)


def test_where_time_is_up_at_once_the_forced_response_is_what_is_left() -> None:
    problem = lip(3, 3, 12, 0.7)
    begun = split_by_forced_response(problem)
    assert np.abs(begun.weights @ begun.atoms / problem.prior - 1).max() < 1e-9
    second = (begun.atoms * begun.weights[:, None]).T @ begun.atoms
    found = split_by_moment(problem, shares(problem), time_limit=1e-6)
    assert found.value <= shares(problem).evaluate(second, problem.prior) * (1 + 1e-9)
    assert problem.is_feasible(found.atoms).all()
    assert np.abs(found.weights @ found.atoms / problem.prior - 1).max() < 1e-9


def test_many_values_are_proved_too() -> None:
    random = np.random.default_rng(3)
    p_x, p_s = 1 / np.arange(1, SETTINGS.plan.most_multiplied + 7), np.array([0.5, 0.3, 0.2])
    p_sx = random.dirichlet(20 * p_s, p_x.size).T * p_x / p_x.sum()
    joint = Joint.from_counts(np.maximum(np.round(p_sx * 10**6), 1).astype(np.int64))
    problem = Problem.from_values(joint.p_x, LIP(1.0).constraints(joint), 1.0)
    found = split_by_moment(problem, shares(problem), gap=0.02)
    assert problem.is_feasible(found.atoms).all()
    lost = found.value - shares(problem).constant
    assert 0 < found.value - found.bound <= 0.02 * lost


@pytest.mark.parametrize("build", [_build_moment_groups, _build_moment_programmes])
def test_where_products_are_too_many_groups_of_secrets_bound_from_below(
    build: Callable[[Request, str], ColumnGeneration],
) -> None:
    problem = lip(3, 3, 6, 1.0)
    run = build(Request(problem, shares(problem)), "")
    run.run(0.01, None)
    found = run.best()
    proved = split_by_moment(problem, shares(problem))
    assert shares(problem).constant < found.bound <= proved.value
    assert proved.bound <= found.value


def test_many_inputs_are_bounded_by_groups_and_many_secrets_searched_by_programmes() -> None:
    assert choose(Request(lip(3, 3, SETTINGS.plan.most_boxed + 1, 1.0), shares(lip(3, 3, 5, 1.0)))).strategy.endswith(
        "of secrets"
    )
    many = lip(3, SETTINGS.plan.very_many_secrets + 1, 5, 1.0)
    assert choose(Request(many, shares(many))).strategy.endswith("linear programmes")  # no basis of them is inverted


def test_no_secret_is_singled_out_once_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = lip(3, 9, 6, 1.0)
    simpler = _single_secret_bound(Request(problem, shares(problem)))
    singled_out: list[int] = []
    monkeypatch.setattr(SecretGroups, "single_out", lambda groups, few: singled_out.extend(few))
    assert simpler(0.0) == 0.0
    assert not singled_out
    simpler(60.0)
    assert singled_out == list(range(9))


def test_what_a_proof_needs_of_the_polytope_is_known_in_time_or_done_without() -> None:
    problem = lip(3, 3, 6, 1.0)
    late = Clock.from_limit(0.0)
    run = choose(Request(problem, shares(problem), clock=late))
    run.run(0.01, 60.0)
    assert run.bound <= split_by_moment(problem, shares(problem)).value


def test_where_nothing_is_lost_the_proof_ends_too() -> None:
    """A gap relative to an error of 0 would be 0, below all rounding."""
    problem = made(LIP, 1, 3, 4, 8.0)  # so large that every value may be told
    found = split_by_moment(problem, shares(problem), gap=1e-4)
    assert found.value - found.bound <= 1e-8 * found.value


def test_information_that_was_not_reached_in_time_is_refused_as_what_the_owner_can_mend() -> None:
    problem = SimpleNamespace(costs=lambda atoms: np.ones(len(atoms)))
    master: Any = SimpleNamespace(problem=problem, _kept=(np.eye(2), np.array([0.5, 0.5])))
    for most, refused in ((None, False), (1.0, False), (0.5, True)):
        master.moment = SimpleNamespace(most_entropy=most)
        with pytest.raises(InputError, match="allow more time") if refused else nullcontext():
            MomentMaster.check_entropy_limit(master)
