"""Classes of inputs: cones by their rays, boxes of masses and cones, and a proof that never claims too much."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine import Problem
from privacyfunnel.engine.objective import reduced_costs
from privacyfunnel.engine.oracles.polytope import build_polytope
from privacyfunnel.engine.plan import choose_generation
from privacyfunnel.engine.proofs.branch_and_bound import BranchAndBound
from privacyfunnel.engine.proofs.class_cones import (
    ClassCones,
    ClassRelaxation,
    RayColumns,
    RayCone,
    RayProgramme,
    build_ray_cone,
    class_cones,
)
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from tests.engine.problems import (
    SEEDS,
    SHAPES,
    SMALL,
    by_vertices,
    every_way,
    least_reduced,
    problem_of,
    random_joint,
    signed,
    with_loans,
)
from tests.enumeration import corners


def problem_for(seed: int, shape: tuple[int, ...], promise: Promise) -> Problem:
    return problem_of(random_joint(seed, shape), promise)


def in_classes(problem: Problem, classes: int) -> ClassCones:
    """The problem seen through the classes of its first attribute, however few rays the whole has."""
    polytope = build_polytope(problem)
    rows = polytope.matrix[1:, : polytope.inputs]
    parts = tuple(np.array_split(np.arange(polytope.inputs), classes))
    cones, across = [], np.ones(len(rows), dtype=bool)
    for z in parts:
        within = (np.delete(rows, z, axis=1) == 0).all(axis=1)
        across &= ~within
        cone = build_ray_cone(rows[within][:, z], 5000)
        assert cone is not None
        cones.append(cone)
    return ClassCones(parts, tuple(cones), rows[across])


def seen(problem: Problem) -> ClassCones | None:
    return class_cones(problem.constraints, build_polytope(problem))


def same_points(one: FloatArray, other: FloatArray, tolerance: float) -> bool:
    distance = np.abs(one[:, None] - other[None]).max(axis=2)
    return bool((distance.min(axis=1) < tolerance).all() and (distance.min(axis=0) < tolerance).all())


@given(seed=SEEDS, k=st.integers(2, 5), n=st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_a_cone_has_the_rays_that_enumeration_finds(seed: int, k: int, n: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(n, k)) + 0.2
    cone = build_ray_cone(rows, 10_000)
    expected = corners(-rows)
    assume(len(expected) > 0)
    assert cone is not None
    assert cone.rays.shape[0] == cone.tight.size == len(expected)
    assert same_points(cone.rays, expected, 1e-7)


@given(seed=SEEDS, k=st.integers(2, 5), n=st.integers(0, 4), cuts=st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_both_halves_of_a_cone_have_the_rays_of_their_own_inequalities(seed: int, k: int, n: int, cuts: int) -> None:
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n, k)) + 0.3
    cone = build_ray_cone(rows, 10_000)
    assume(cone is not None)
    assert cone is not None
    for _ in range(cuts):
        normal = random.normal(size=k)
        halves = cone.cut(cone.rays @ normal)
        assert halves is not None
        for half, sign in zip(halves, (1.0, -1.0), strict=True):
            expected = corners(-np.concatenate([rows, sign * normal[None]]))
            if len(expected):
                assert same_points(half.cone.rays, expected, 1e-7)
            kept = np.flatnonzero(half.place >= 0)
            assert (half.cone.rays[half.place[kept]] == cone.rays[kept]).all()
        side = 0 if halves[0].cone.entropy.size else 1
        cone = halves[side].cone
        rows = np.concatenate([rows, (1.0, -1.0)[side] * normal[None]])


def test_a_cone_of_too_many_rays_or_too_many_rows_is_given_up() -> None:
    rows = np.random.default_rng(0).normal(size=(6, 6)) + 0.6
    whole = build_ray_cone(rows, 10_000)
    assert whole is not None
    assert build_ray_cone(rows, whole.entropy.size) is not None
    assert build_ray_cone(rows, 3) is None
    assert build_ray_cone(np.ones((60, 5)), 10_000) is None


def test_rows_that_meet_by_accident_are_told_apart_on_the_safe_side() -> None:
    """Three rows through one ray: the widened cone holds it, and no sign was left to rounding."""
    rows = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, -1.0]])
    cone = build_ray_cone(rows, 100)
    assert cone is not None
    assert same_points(cone.rays, corners(-rows), 10 * SETTINGS.tolerance.wider)
    centre = np.full(3, 1 / 3)
    assert np.abs(cone.rays - centre).max(axis=1).min() < 10 * SETTINGS.tolerance.wider


def test_a_cone_without_a_free_bit_is_not_cut() -> None:
    cone = RayCone(np.eye(2), np.array([2**64 - 2, 2**64 - 3], dtype=np.uint64), np.zeros(2))
    assert cone.cut(np.array([1.0, -1.0])) is None


@given(seed=SEEDS, shape=SHAPES, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=25, deadline=None)
def test_classes_and_their_cones_hold_every_allowed_atom(seed: int, shape: tuple[int, ...], epsilon: float) -> None:
    """Every vertex is a mixture of rays, and across the classes the remaining rows hold."""
    problem = problem_for(seed, shape, SRLIP(epsilon))
    found = seen(problem)
    assume(found is not None)
    assert found is not None
    assert sorted(np.concatenate(found.classes)) == list(range(problem.size))
    for z, cone in zip(found.classes, found.cones, strict=True):
        spread = np.zeros((cone.entropy.size, problem.size))
        spread[:, z] = cone.rays
        local = signed(problem)
        local = local[(np.delete(local, z, axis=1) == 0).all(axis=1)]
        assert (spread @ local.T <= 1e-9 * np.abs(local).max(initial=1.0)).all()


def test_classes_are_those_of_the_rows_and_only_where_there_are_some() -> None:
    assert seen(problem_for(0, (3, 5), LIP(0.3))) is None
    assert seen(problem_for(0, (3, 2, 3), LDP(0.3))) is None  # attributes, but nobody who knows one is guarded against
    small = seen(problem_for(0, (2, 2, 3), SRLIP(0.3)))
    assert small is not None
    assert len(small.classes) == 1  # few rays in all: every atom is in the table
    assert seen(problem_for(0, (2, 6, 6), SRLIP(0.3))) is None  # many rays, and nothing nested
    large = seen(problem_for(3, (2, 3, 3, 4), SRLIP(1.0)))
    assert large is not None
    assert 1 < len(large.classes) < 9


@given(seed=SEEDS, shape=SMALL, epsilon=st.floats(0.1, 1.5), classes=st.integers(1, 2))
@settings(max_examples=8, deadline=None)
def test_the_proof_by_classes_finds_the_least_vertex_and_never_claims_more(
    seed: int, shape: tuple[int, ...], epsilon: float, classes: int
) -> None:
    problem = problem_for(seed, shape, SRLIP(epsilon))
    assume(build_polytope(problem).matrix.shape[0] > 1)
    prices = np.random.default_rng(seed).normal(size=problem.size)
    least = least_reduced(problem, prices)
    cones = in_classes(problem, shape[1] if classes == 2 else 1)
    objective = problem.objective
    prover = BranchAndBound(ClassRelaxation(cones, objective), objective, by_vertices(problem)[0].polish)
    for slack in (1e-5, 0.2):
        proof = prover.prove(prices, -least + slack, np.inf)
        assert -1.01 * slack <= proof.bound - least <= 1e-9
        assert not proof.atoms.size
    proof = prover.prove(prices, -least - 0.1, np.inf)
    assert proof.bound <= least + 1e-9
    assert reduced_costs(objective, proof.atoms, prices).min() < least + 0.1


@given(seed=SEEDS, shape=SHAPES, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=8, deadline=None)
def test_with_classes_and_with_boxes_the_optimum_is_the_same(seed: int, shape: tuple[int, ...], epsilon: float) -> None:
    problem = problem_for(seed, shape, SRLIP(epsilon))
    boxes, *others = [with_loans(problem, search, prover) for search, prover in every_way(problem)]
    boxes.run(1e-5, 20.0)
    for other in others:
        other.run(1e-5, 20.0)
        assert other.value - other.bound <= 1e-5
        assert other.bound <= boxes.value + 1e-8
        assert boxes.bound <= other.value + 1e-8


def test_three_attributes_are_proved_to_a_thousandth() -> None:
    """Chords on 36 entries alone take far longer."""
    problem = problem_for(3, (2, 3, 3, 4), SRLIP(1.5))
    generation = choose_generation(problem)
    generation.run(1e-3, 60.0)
    assert generation.value - generation.bound <= 1e-3
    assert problem.is_feasible(generation.best().atoms).all()


def test_a_programme_that_cannot_be_met_is_bounded_by_its_penalty() -> None:
    """One ray that breaks the only row: the bound is high, and no atom is made of it."""
    programme = RayProgramme(1, 1)
    masses, none = (np.zeros(1), np.ones(1)), np.zeros(1, dtype=np.int64)
    solved = programme.solve(RayColumns(np.zeros(1), np.array([[-1.0]]), none), masses, np.array([0]), cutoff=1.0)
    assert solved.bound >= 1.0
    assert solved.weights is None
    assert solved.reduced.shape == (1,)
    rays = RayColumns(np.array([0.3, 0.2]), np.array([[1.0], [0.5]]), np.zeros(2, dtype=np.int64))
    free = programme.solve(rays, masses, np.array([0]), cutoff=1.0)
    assert free.bound == pytest.approx(0.2, abs=1e-9)
    assert free.weights == pytest.approx([0.0, 1.0], abs=1e-9)
