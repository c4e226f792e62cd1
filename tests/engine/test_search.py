"""The search: what it meets is allowed, and walks never go up."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.masters.restricted_master import repair_split
from privacyfunnel.engine.objective import reduced_costs
from privacyfunnel.engine.oracles.constraint_oracle import ConstraintOracle
from privacyfunnel.engine.oracles.polytope import build_polytope
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.search.subspace import RatioConstraints, SubspaceSearch
from privacyfunnel.engine.search.vertices import VertexWalks, Vertices
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import SRLIP
from privacyfunnel.tables.readers.adult import adult_counts
from tests.engine.problems import (
    SEEDS,
    SMALL,
    by_programmes,
    by_vertices,
    excess,
    ldp,
    lip,
    problem_of,
    random_joint,
    with_loans,
)


@pytest.fixture(scope="module")
def three_columns() -> Problem:
    """More inputs than a walk looks at, in classes."""
    return problem_of(Joint.from_counts(adult_counts("occupation", "education", "relationship", "sex")[0]), SRLIP(1.0))


@given(seed=SEEDS, c=st.integers(2, 5), a=st.integers(2, 8), epsilon=st.floats(0.05, 2))
@settings(max_examples=40, deadline=None)
def test_a_walk_ends_at_vertices_of_the_polytope_and_never_goes_up(seed: int, c: int, a: int, epsilon: float) -> None:
    problem = lip(seed, c, a, epsilon)
    polytope = build_polytope(problem)
    random = np.random.default_rng(seed)
    prices = random.normal(size=a)
    walks = VertexWalks(polytope, problem.objective)
    start = walks.cheapest(random.normal(size=(7, a)))
    v = walks.descend(start, prices).x[:, :a]
    assert (np.abs(v.sum(axis=1) - 1) < 1e-9).all()
    assert excess(problem, v) <= 1e-9
    assert ((v > 1e-9).sum(axis=1) <= polytope.support).all()
    before, after = (reduced_costs(problem.objective, atoms, prices).min() for atoms in (start.x[:, :a], v))
    assert after <= before + 1e-9


def test_a_basis_without_an_inverse_is_no_vertex_and_no_warning() -> None:
    """An infinite inverse times nothing is no number, of which numpy warns."""
    problem = lip(1, 4, 6, 0.5)
    walks, prices = VertexWalks(build_polytope(problem), problem.objective), np.random.default_rng(0).normal(size=6)
    sound = walks.cheapest(np.eye(6))
    singular = Vertices(sound.x[:1], np.full_like(sound.basis[:1], sound.basis[0, 0]))
    for found in (walks.recompute(singular), walks.descend(singular, prices), walks.trace(singular, prices, 3)):
        assert not len(found.x)
    assert len(walks.descend(singular.concatenate(sound), prices).x) == len(sound.x)


def test_rows_that_cannot_bind_are_left_out() -> None:
    assert build_polytope(lip(0, 4, 6, 50.0)).matrix.shape == (1, 6)
    assert build_polytope(ldp(0, 4, 6, 50.0)).matrix.shape[0] == 1


@given(seed=SEEDS, shape=SMALL, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=10, deadline=None)
def test_walks_by_programmes_meet_allowed_atoms_and_end_near_the_optimum(
    seed: int, shape: tuple[int, ...], epsilon: float
) -> None:
    problem = problem_of(random_joint(seed, shape), SRLIP(epsilon))
    assume(len(problem.inequalities) > 0)
    generation, reference = by_programmes(problem), with_loans(problem, *by_vertices(problem))
    generation.run(1e-4, 20.0)
    reference.run(1e-6, 60.0)
    assert reference.value - reference.bound <= 1e-6
    assert generation.bound <= reference.value + 1e-6
    best = generation.best()
    assert best.weights @ best.atoms == pytest.approx(problem.prior, abs=1e-9)
    assert problem.is_feasible(best.atoms).all()
    assert reference.value - 1e-6 <= best.value <= reference.value + 2e-2


def allowed_atoms(search: SubspaceSearch, problem: Problem) -> FloatArray:
    """What walks that cover the inputs meet, once it is seen that these are atoms and allowed."""
    atoms = np.concatenate([search.cover(-np.log(problem.prior), problem.prior) for _ in range(2)])
    assert len(atoms) > 3
    assert atoms.sum(axis=1) == pytest.approx(np.ones(len(atoms)))
    clean = problem.clean(atoms)
    assert len(clean) >= 0.9 * len(atoms)
    assert problem.is_feasible(clean).all()
    return atoms


@given(seed=st.integers(0, 10**6), epsilon=st.floats(0.1, 1.5), share=st.floats(0.0, 1.0))
@settings(max_examples=20, deadline=None)
def test_what_atoms_leave_over_is_closed_to_an_allowed_split(seed: int, epsilon: float, share: float) -> None:
    problem = lip(seed, 3, 8, epsilon)
    atoms = problem.first_atoms()
    weights = share * np.random.default_rng(seed).dirichlet(np.ones(len(atoms)))
    q, v, value = repair_split(problem, weights, atoms)
    assert q @ v == pytest.approx(problem.prior, abs=1e-12)
    assert problem.is_feasible(v).all()
    assert value == pytest.approx(float(q @ problem.costs(v)), abs=1e-9)
    assert value <= problem.prior_cost + 1e-9


def test_walks_among_neighbours_meet_allowed_atoms_of_these(three_columns: Problem) -> None:
    problem = three_columns
    assert problem.size > SETTINGS.search.neighbours
    search = SubspaceSearch(problem, SETTINGS.search.neighbours, SETTINGS.search.first_neighbours)
    atoms = allowed_atoms(search, problem)
    assert (np.count_nonzero(atoms, axis=1) <= SETTINGS.search.neighbours).all()


def test_neighbours_are_those_who_share_the_smallest_classes(three_columns: Problem) -> None:
    """By chance anybody may be among them; on average they share more of what the rows look at than others do."""
    problem, x, few = three_columns, int(np.argmax(three_columns.prior)), 40
    search = SubspaceSearch(problem, few, few)
    members = problem.constraints.members[problem.constraints.compared_classes].astype(int)
    shared = members[:, x] @ members
    around = [search._nearest(np.array([x]), few) for _ in range(20)]
    assert all(x in inputs and inputs.size == few for inputs in around)
    assert np.mean([shared[inputs].mean() for inputs in around]) > 1.3 * shared.mean()


def test_walks_begin_between_an_atom_that_has_what_is_missing_and_a_cheap_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = problem_of(Joint.from_counts(adult_counts("income", "education", "relationship", "sex")[0]), SRLIP(1.0))
    search = SubspaceSearch(problem, 40, 40)
    known = search.start().any(axis=0)
    x = int(np.argmin(np.where(known, problem.prior, np.inf)))
    prices = -np.log(problem.prior)
    cheap = {atom.tobytes() for atom in search._pool[np.argsort(search._reduced_costs(prices))[: problem.size]]}
    begun, between = [], search._start_between

    def seen(one: FloatArray, other: FloatArray) -> tuple[FloatArray, IntArray]:
        begun.append(one[x] > 0 and other.tobytes() in cheap)
        return between(one, other)

    monkeypatch.setattr(search, "_start_between", seen)
    atoms = search.cover(prices, np.eye(1, problem.size, x)[0])
    assert len(begun) == SETTINGS.search.subspace_walks - -(
        -SETTINGS.search.subspace_walks // SETTINGS.search.fresh_walks
    )
    assert all(begun)
    assert (atoms[:, x] > 0).any()


def test_the_first_atoms_give_each_input_as_much_as_any_among_its_neighbours() -> None:
    problem = problem_of(random_joint(7, (2, 3, 3), 0.3), SRLIP(0.5))
    found = SubspaceSearch(problem, 2, problem.size).start()
    oracle = ConstraintOracle(problem)
    most = -oracle.minimise(-np.eye(problem.size)).lower
    assert found.max(axis=0) == pytest.approx(most, abs=1e-6)


@given(seed=SEEDS, shape=SMALL, epsilon=st.floats(0.05, 2), kept=st.floats(0.3, 1))
@settings(max_examples=40, deadline=None)
def test_the_cheapest_atom_among_some_inputs_is_that_of_their_own_problem(
    seed: int, shape: tuple[int, ...], epsilon: float, kept: float
) -> None:
    problem = problem_of(random_joint(seed, (*shape, 2), 0.3), SRLIP(epsilon))
    random = np.random.default_rng(seed)
    inputs = np.flatnonzero(random.random(problem.size) < kept)
    assume(inputs.size > 0)
    among, own = RatioConstraints(problem).restrict(inputs), ConstraintOracle(problem.restrict(inputs))
    for cost in random.normal(size=(3, inputs.size)):
        v, w = among.cheapest(cost), own.minimum(cost, np.zeros(inputs.size), np.ones(inputs.size))
        assert (v is None) == (w is None or np.isinf(w.lower))
        if v is not None and w is not None:
            assert v.sum() == pytest.approx(1.0)
            assert cost @ v == pytest.approx(cost @ w.atom, abs=1e-6)


def test_the_pool_keeps_what_is_cheapest_however_long_ago_it_was_met(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(random_joint(7, (2, 3, 3)), SRLIP(0.5))
    search = SubspaceSearch(problem, SETTINGS.search.neighbours, SETTINGS.search.first_neighbours)
    monkeypatch.setitem(vars(SETTINGS.search), "subspace_pool", 5)
    random = np.random.default_rng(3)
    prices, atoms = random.normal(size=problem.size), random.dirichlet(np.ones(problem.size), 10)
    by_cost = atoms[np.argsort(reduced_costs(problem.objective, atoms, prices))]
    search._add_to_pool([by_cost[:5]], prices)
    assert len(search._add_to_pool([by_cost[5:]], prices)) == 5
    np.testing.assert_array_equal(search._pool, by_cost[:5])
