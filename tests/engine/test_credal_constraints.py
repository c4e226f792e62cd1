"""Sets of priors in the engine: the same optimum as with every vertex of every set written out as a row."""

from itertools import product as every
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.lp.highs import Programme
from privacyfunnel.engine.masters.actions import bound_by_prices, split_by_actions
from privacyfunnel.engine.masters.mixture import Moment
from privacyfunnel.engine.objective import Objective
from privacyfunnel.engine.oracles.constraint_oracle import ConstraintOracle
from privacyfunnel.engine.oracles.credal_batch import ROW, Bases, solve
from privacyfunnel.engine.oracles.credal_constraints import CredalConstraints
from privacyfunnel.engine.oracles.oracle import BoxCosts
from privacyfunnel.engine.plan import choose_generation
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.proofs.products import CredalProductCuts
from privacyfunnel.engine.splits import cone_constraints, linear_oracle, split, split_by_moment
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.credal.clopper_pearson import SCALE
from privacyfunnel.model.credal.credal_sets import CredalSets

GAP = 1e-5


def vertices(low: FloatArray, high: FloatArray) -> FloatArray:
    """All vertices of a box cut by the simplex."""
    found, d = [], len(low)
    for free in range(d):
        for ends in every((0, 1), repeat=d - 1):
            point = np.insert(
                [(low, high)[end][z] for end, z in zip(ends, np.delete(np.arange(d), free), strict=True)], free, 0
            )
            point[free] = 1 - point.sum()
            if low[free] - 1e-12 <= point[free] <= high[free] + 1e-12:
                found.append(point)
    return np.unique(np.round(found, 12), axis=0)


def chance_problem(seed: int, d: int, epsilon: float = 0.7) -> Problem:
    """Boxes around the rows of a chance table, each secret against the others with a share, or against each other."""
    random = np.random.default_rng(seed)
    p_sx = random.dirichlet(np.ones(3 * d)).reshape(3, d)
    prior, given = p_sx.sum(axis=0), p_sx / p_sx.sum(axis=1, keepdims=True)
    width = random.uniform(0.05, 0.4)
    low = np.floor(given * (1 - width) * SCALE).astype(np.int64)
    high = np.minimum(np.ceil(given * (1 + width) * SCALE + 0.01 * SCALE), SCALE).astype(np.int64)
    pairs = np.array([(e, f) for e in range(3) for f in range(3) if e != f])
    share = random.integers(0, SCALE // 4, len(pairs)) * (seed % 2)
    sets = CredalSets(low, high, np.eye(3, dtype=bool), ((),) * 3, pairs, share)
    nothing = LinearConstraints.from_pairs(np.empty((0, d)), np.empty((0, d)))
    return Problem(prior, nothing, epsilon, Objective.from_groups(np.arange(d)), credal_sets=sets)


def written_out(problem: Problem) -> Problem:
    """The same with a row for every pair of vertices."""
    sets = problem.credal_sets
    assert sets is not None
    corners = [vertices(low / SCALE, high / SCALE) for low, high in zip(sets.low, sets.high, strict=True)]
    one, other = [], []
    for (e, f), share in zip(sets.pairs, sets.share / SCALE, strict=True):
        for P, R in every(corners[e], corners[f]):
            one.append(P / problem.prior)
            other.append((share * P + (1 - share) * R) / problem.prior)
    return Problem.from_values(
        problem.prior, LinearConstraints.from_pairs(np.array(one), np.array(other)), problem.epsilon
    )


@pytest.mark.parametrize("seed", range(10))
def test_the_optimum_is_the_one_with_every_vertex_written_out(seed: int) -> None:
    problem = chance_problem(seed, 3)
    found, listed = split(problem, gap=GAP), split(written_out(problem), gap=GAP)
    assert found.bound <= listed.value + 1e-9
    assert listed.bound <= found.value + 1e-9
    assert found.value - found.bound <= GAP
    assert np.allclose(found.weights @ found.atoms, problem.prior, atol=1e-12)
    assert written_out(problem).is_feasible(found.atoms[found.weights > 0]).all()


def test_what_is_drawn_in_is_allowed_and_no_further_than_needed() -> None:
    problem = chance_problem(5, 3)
    far = np.eye(3)
    needed, listed = problem.prior_share(far), written_out(problem).prior_share(far)
    assert np.allclose(needed, listed, rtol=1e-9)
    assert problem.is_feasible(problem.mix_with_prior(far)).all()


def listed_rows(problem: Problem) -> FloatArray:
    """Every pair of vertices as a row with row·v <= 0."""
    n, d = written_out(problem).constraints.dense
    return np.concatenate([n - problem.exp_epsilon * d, d - problem.exp_epsilon * n])


@pytest.mark.parametrize("seed", range(6))
def test_a_bound_holds_whatever_the_multipliers_are(seed: int) -> None:
    random = np.random.default_rng(seed)
    problem = chance_problem(seed, 3)
    oracle = ConstraintOracle(problem)
    low, high = np.zeros(3), np.ones(3)
    cost = random.normal(size=3)
    found = oracle.minimum(cost, low, high)
    assert found is not None
    rows = listed_rows(problem)
    linear: Any = linprog
    best = linear(cost, rows, np.zeros(len(rows)), np.ones((1, 3)), [1], bounds=(0, 1)).fun
    assert best - 1e-7 <= found.lower <= best + 1e-9
    right = oracle._programme.multipliers
    for _ in range(20):
        wrong = right * random.normal(1, 1, right.size) + random.normal(0, 0.3, right.size)
        assert oracle.lower_bound(cost, low, high, wrong)[0] <= best + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_minima_and_empty_boxes_are_those_with_every_vertex_written_out(seed: int) -> None:
    random = np.random.default_rng(seed)
    problem = chance_problem(seed, 4)
    rows, rules = listed_rows(problem), CredalConstraints.from_problem(problem)
    cost, middle = random.normal(size=(30, 4)), random.dirichlet(np.full(4, 0.4), 30)
    low, high = np.maximum(middle - 0.1, 0), np.minimum(middle + 0.1, 1)
    first = Bases.initial(cost.argmin(axis=1), 4)
    found = solve(rules, cost, low, high, first)
    written = ConstraintOracle(problem).minimise_in_boxes(BoxCosts(cost, low, high, (), np.full(30, np.inf)), np.inf)
    assert written.lower == pytest.approx(found.lower, abs=1e-8)
    linear: Any = linprog
    for i in range(30):
        box = np.stack([low[i], high[i]], axis=1)
        best = linear(cost[i], rows, np.zeros(len(rows)), np.ones((1, 4)), [1], bounds=box)
        assert (found.lower[i] == np.inf) == (best.status == 2)
        if best.status == 0:
            assert best.fun - 1e-8 <= found.lower[i] <= best.fun + 1e-9
            assert found.optimal[i]
    assert 0 < np.isinf(found.lower).sum() < 30


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most", [2, 4])
def test_a_bound_holds_however_early_a_programme_ends_and_the_next_goes_on_from_there(seed: int, most: int) -> None:
    random = np.random.default_rng(seed)
    problem = chance_problem(seed, 4)
    rules, cost = CredalConstraints.from_problem(problem), random.normal(size=(20, 4))
    low, high = np.zeros((20, 4)), np.ones((20, 4))
    best = solve(rules, cost, low, high, Bases.initial(cost.argmin(axis=1), 4)).lower
    bases = Bases.initial(cost.argmin(axis=1), 4)
    for _ in range(100):
        found = solve(rules, cost, low, high, bases, most=most)
        assert (found.lower <= best + 1e-9).all()
        bases = found.bases
        if found.optimal.all():
            break
    assert found.lower == pytest.approx(best, abs=1e-9)


def test_a_bound_holds_from_any_basis_of_rows_that_atoms_keep() -> None:
    problem = chance_problem(1, 4)
    random, rules = np.random.default_rng(7), CredalConstraints.from_problem(problem)
    cost, low, high = random.normal(size=(20, 4)), np.zeros((20, 4)), np.ones((20, 4))
    best = solve(rules, cost, low, high, Bases.initial(cost.argmin(axis=1), 4)).lower
    for _ in range(10):
        wrong = Bases.initial(cost.argmin(axis=1), 4)
        wrong.kinds[:, :2][wrong.kinds[:, :2] >= 0] = ROW
        wrong.rows[:] = [rules.worst_constraint(random.normal(size=((kinds == ROW).sum(), 4))) for kinds in wrong.kinds]
        found = solve(rules, cost, low, high, wrong)
        assert (found.lower <= best + 1e-9).all()
        # What a singular basis ended begins anew.
        assert solve(rules, cost, low, high, found.bases).lower == pytest.approx(best, abs=1e-8)


def test_the_worst_row_is_kept_by_every_allowed_atom_and_broken_by_every_other() -> None:
    problem = chance_problem(3, 4)
    random, rules = np.random.default_rng(2), CredalConstraints.from_problem(problem)
    allowed = problem.mix_with_prior(random.dirichlet(np.full(4, 0.3), 200))
    others = random.dirichlet(np.full(4, 0.2), 50)
    assert (allowed @ rules.worst_constraint(others).T >= 0).all()
    broken = np.einsum("ij,ij->i", rules.worst_constraint(others), others) < 0
    assert broken.tolist() == (~problem.is_feasible(others)).tolist()


def test_the_plan_takes_sets_of_priors_to_linear_programmes() -> None:
    problem = chance_problem(3, 4, epsilon=3.0)
    run = choose_generation(problem)
    run.run(1e-3)
    assert run.strategy == "credal sets, linear programmes"
    assert run.value - run.bound <= 1e-3


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kept", [False, True])
def test_actions_are_as_cheap_as_with_every_vertex_written_out(seed: int, kept: bool) -> None:
    problem = chance_problem(seed, 3)
    losses = np.random.default_rng(seed).uniform(size=(3, 3))
    np.fill_diagonal(losses, 0.0)
    shares = problem.prior if kept else None
    found, listed = (
        split_by_actions(cone_constraints(each), each.prior, losses, shares) for each in (problem, written_out(problem))
    )
    assert found is not None
    assert listed is not None
    assert (found.masses * losses).sum() == pytest.approx((listed.masses * losses).sum(), abs=1e-8)
    bound = bound_by_prices(linear_oracle(problem), problem.prior, losses, found, shares)
    assert (found.masses * losses).sum() == pytest.approx(bound, abs=1e-7)


@pytest.mark.parametrize(("seed", "informative"), [(0, False), (1, False), (2, True), (5, True)])
def test_second_moments_are_as_good_as_with_every_vertex_written_out(seed: int, informative: bool) -> None:
    problem, p = chance_problem(seed, 3), chance_problem(seed, 3).prior
    most, start = None, None
    if informative:
        least = split(problem, gap=1e-3)
        most, start = least.value + 0.1 * (problem.prior_cost - least.value), least.atoms
    moment = Moment(np.diag(p) - np.outer(p, p), np.zeros((3, 0)), most, constant=float(1 - p @ p))
    found, listed = (split_by_moment(each, moment, start=start) for each in (problem, written_out(problem)))
    assert found.bound <= listed.value * (1 + 1e-9)
    assert listed.bound <= found.value * (1 + 1e-9)
    assert found.value - found.bound <= 2e-3 * found.value


def test_rows_that_a_proof_brings_in_are_kept_by_every_allowed_atom() -> None:
    problem = chance_problem(3, 4)
    random = np.random.default_rng(2)
    atoms = problem.mix_with_prior(random.dirichlet(np.full(4, 0.3), 200))
    missing, broken = CredalProductCuts(problem), 0
    for v in random.dirichlet(np.full(4, 0.2), 20):
        rows, times = missing(np.outer(v, v), np.eye(4))
        assert (atoms @ rows.T >= 0).all()
        assert ((rows @ v) * v[times] < 0).all()
        broken += len(rows)
    assert broken > 0


def test_a_programme_that_is_late_leaves_the_prior_and_a_bound_that_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = chance_problem(1, 4)
    cost = np.random.default_rng(2).normal(size=(1, 4))
    least = ConstraintOracle(problem).minimise(cost).lower[0]
    oracle = ConstraintOracle(problem)
    monkeypatch.setattr(oracle, "_solve", lambda deadline: False)
    monkeypatch.setattr(Programme, "late", True)  # by HiGHS's own clock, which may be a moment ahead
    found = oracle.minimise(cost, np.inf)
    assert (found.atoms[0] == problem.prior).all()
    assert found.lower[0] <= least
