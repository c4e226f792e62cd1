"""Promises with local rows: cones by their rays, classes, and a proof that never claims too much."""

import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine import Splitting
from privacyfunnel.engine.columns import Generation
from privacyfunnel.engine.cones import WIDER, Cone, cone_of
from privacyfunnel.engine.lines import Lines, lines_of
from privacyfunnel.engine.lines_branching import LinesProver
from privacyfunnel.engine.lines_programme import Programme
from privacyfunnel.engine.polytope import dense, polytope_of
from privacyfunnel.engine.pricing import VertexPricer, pricer_for
from privacyfunnel.engine.vertices import reduced_costs
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP, SRLIP, Promise
from tests.enumeration import corners

SEEDS = st.integers(0, 10**6)
SMALL = st.sampled_from([(2, 2, 2), (2, 2, 3), (3, 2, 2)])
SHAPES = st.sampled_from([(2, 2, 2), (2, 2, 3), (3, 2, 2), (3, 2, 3), (2, 3, 3)])


def splitting(seed: int, shape: tuple[int, ...], promise: Promise) -> Splitting:
    joint = Joint.from_probabilities(np.random.default_rng(seed).dirichlet(np.ones(int(np.prod(shape)))).reshape(shape))
    n, d = promise.rows(joint)
    return Splitting(joint.p_x, np.arange(joint.a), n, d, promise.epsilon)


def rows_of(problem: Splitting) -> FloatArray:
    """rows·v <= 0 for every allowed v, without those that say nothing."""
    N, D = dense(problem.numerators), dense(problem.denominators)
    e = np.exp(problem.epsilon)
    rows = np.concatenate([N - e * D, D - e * N])
    return np.asarray(rows[rows.max(axis=1) > 0])


def in_lines(problem: Splitting, classes: int) -> Lines:
    """The problem seen through the classes of its first or second attribute, however few rays the whole has."""
    polytope = polytope_of(problem)
    rows = polytope.matrix[1:, : polytope.inputs]
    parts = tuple(np.array_split(np.arange(polytope.inputs), classes))
    cones, across = [], np.ones(len(rows), dtype=bool)
    for z in parts:
        within = (np.delete(rows, z, axis=1) == 0).all(axis=1)
        across &= ~within
        cone = cone_of(rows[within][:, z], 5000)
        assert cone is not None
        cones.append(cone)
    return Lines(parts, tuple(cones), rows[across])


def seen(problem: Splitting) -> Lines | None:
    return lines_of(problem, polytope_of(problem))


def same_points(one: FloatArray, other: FloatArray, tolerance: float) -> bool:
    distance = np.abs(one[:, None] - other[None]).max(axis=2)
    return bool((distance.min(axis=1) < tolerance).all() and (distance.min(axis=0) < tolerance).all())


@given(seed=SEEDS, k=st.integers(2, 5), n=st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_a_cone_has_the_rays_that_enumeration_finds(seed: int, k: int, n: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(n, k)) + 0.2
    cone = cone_of(rows, 10_000)
    expected = corners(-rows)
    assume(len(expected) > 0)
    assert cone is not None
    assert cone.rays.shape[0] == cone.tight.size == len(expected)
    assert same_points(cone.rays, expected, 1e-7)


@given(seed=SEEDS, k=st.integers(2, 5), n=st.integers(0, 4), cuts=st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_both_halves_of_a_cone_have_the_rays_of_their_own_inequalities(seed: int, k: int, n: int, cuts: int) -> None:
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n, k)) + 0.3
    cone = cone_of(rows, 10_000)
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
    whole = cone_of(rows, 10_000)
    assert whole is not None
    assert cone_of(rows, whole.entropy.size) is not None
    assert cone_of(rows, 3) is None
    assert cone_of(np.ones((60, 5)), 10_000) is None


def test_rows_that_meet_by_accident_are_told_apart_on_the_safe_side() -> None:
    """Three rows through one ray: the widened cone holds it, and no sign was left to rounding."""
    rows = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, -1.0]])
    cone = cone_of(rows, 100)
    assert cone is not None
    assert same_points(cone.rays, corners(-rows), 10 * WIDER)
    centre = np.full(3, 1 / 3)
    assert np.abs(cone.rays - centre).max(axis=1).min() < 10 * WIDER


def test_a_cone_without_a_free_bit_is_not_cut() -> None:
    cone = Cone(np.eye(2), np.array([2**64 - 2, 2**64 - 3], dtype=np.uint64), np.zeros(2))
    assert cone.cut(np.array([1.0, -1.0])) is None


@given(seed=SEEDS, shape=SHAPES, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=40, deadline=None)
def test_classes_and_their_cones_hold_every_allowed_atom(seed: int, shape: tuple[int, ...], epsilon: float) -> None:
    """Every vertex is a mixture of rays, and across the classes the remaining rows hold."""
    problem = splitting(seed, shape, SRLIP(epsilon))
    lines = seen(problem)
    assume(lines is not None)
    assert lines is not None
    assert sorted(np.concatenate(lines.classes)) == list(range(problem.prior.size))
    for z, cone in zip(lines.classes, lines.cones, strict=True):
        spread = np.zeros((cone.entropy.size, problem.prior.size))
        spread[:, z] = cone.rays
        local = rows_of(problem)
        local = local[(np.delete(local, z, axis=1) == 0).all(axis=1)]
        assert (spread @ local.T <= 1e-9 * np.abs(local).max(initial=1.0)).all()


def test_lines_are_seen_from_the_rows_alone_and_only_where_there_are_some() -> None:
    assert seen(splitting(0, (3, 5), LIP(0.3))) is None
    small = seen(splitting(0, (2, 2, 3), SRLIP(0.3)))
    assert small is not None
    assert len(small.classes) == 1  # few rays in all: every atom is in the table
    assert seen(splitting(0, (2, 6, 6), SRLIP(0.3))) is None  # many rays, and nothing nested
    problem = splitting(3, (2, 3, 3, 4), SRLIP(1.0))
    large = seen(problem)
    assert large is not None
    assert 1 < len(large.classes) < 9
    assert isinstance(VertexPricer(problem, by_classes=True).prover, LinesProver)


@given(seed=SEEDS, shape=SMALL, epsilon=st.floats(0.1, 1.5), classes=st.integers(1, 2))
@settings(max_examples=20, deadline=None)
def test_the_proof_by_lines_finds_the_least_vertex_and_never_claims_more(
    seed: int, shape: tuple[int, ...], epsilon: float, classes: int
) -> None:
    problem = splitting(seed, shape, SRLIP(epsilon))
    assume(polytope_of(problem).matrix.shape[0] > 1)
    prices = np.random.default_rng(seed).normal(size=problem.prior.size)
    least = float(reduced_costs(corners(rows_of(problem)), prices).min())
    general = VertexPricer(problem)
    prover = LinesProver(in_lines(problem, shape[1] if classes == 2 else 1), general.walks.polished)
    for slack in (1e-5, 0.2):
        proof = prover.prove(prices, -least + slack, time.monotonic() + 60)
        assert -1.01 * slack <= proof.bound - least <= 1e-9
        assert not proof.atoms.size
    proof = prover.prove(prices, -least - 0.1, time.monotonic() + 60)
    assert proof.bound <= least + 1e-9
    assert reduced_costs(proof.atoms, prices).min() < least + 0.1


@given(seed=SEEDS, shape=SHAPES, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=10, deadline=None)
def test_with_lines_and_with_boxes_the_optimum_is_the_same(seed: int, shape: tuple[int, ...], epsilon: float) -> None:
    problem = splitting(seed, shape, SRLIP(epsilon))
    by_lines, by_boxes = Generation(problem, pricer_for(problem)), Generation(problem, VertexPricer(problem))
    by_lines.run(1e-5, 20.0, None)
    by_boxes.run(1e-5, 20.0, None)
    assert by_lines.value - by_lines.bound <= 1e-5
    assert by_lines.bound <= by_boxes.value + 1e-8
    assert by_boxes.bound <= by_lines.value + 1e-8


def test_three_attributes_are_proved_to_a_thousandth() -> None:
    """Chords on 36 entries alone take far longer."""
    problem = splitting(3, (2, 3, 3, 4), SRLIP(1.5))
    generation = Generation(problem, pricer_for(problem))
    generation.run(1e-3, 60.0, None)
    assert generation.value - generation.bound <= 1e-3
    v = generation.best().atoms
    assert (rows_of(problem) @ v.T <= 1e-10 * np.abs(rows_of(problem)).max()).all()


@given(seed=SEEDS, shape=SMALL, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=12, deadline=None)
def test_a_proof_claims_no_more_than_it_was_asked(seed: int, shape: tuple[int, ...], epsilon: float) -> None:
    """Boxes are trimmed by the goal and left at the goal, so beyond it nothing was shown."""
    problem = splitting(seed, shape, SRLIP(epsilon))
    prices = np.random.default_rng(seed).normal(size=problem.prior.size)
    least = float(reduced_costs(corners(rows_of(problem)), prices).min())
    for pricer in (VertexPricer(problem), pricer_for(problem)):
        for slack in (1e-3, 0.05, 0.5):
            proof = pricer.prove(prices, -least + slack, time.monotonic() + 60)
            assert proof.bound <= least - slack + 1e-9
            assert proof.bound >= least - slack - 1e-9


def test_when_time_is_up_the_proof_says_what_it_has() -> None:
    problem = splitting(0, (2, 3, 3, 4), SRLIP(0.5))
    pricer = pricer_for(problem)
    assert isinstance(pricer, VertexPricer)
    prices = np.zeros(problem.prior.size)
    assert pricer.prove(prices, 1e-3, time.monotonic() - 1).bound == -np.inf


def test_a_programme_that_cannot_be_met_is_bounded_by_its_penalty() -> None:
    """One ray that breaks the only row: the bound is high, and no atom is made of it."""
    programme = Programme(1, 1)
    solved = programme.solve(
        [np.zeros(1)], [np.array([[-1.0]])], (np.zeros(1), np.ones(1)), (np.array([0]),), cutoff=1.0
    )
    assert solved.bound >= 1.0
    assert solved.weights is None
    assert solved.reduced[0].shape == (1,)
    free = programme.solve(
        [np.array([0.3, 0.2])],
        [np.array([[1.0], [0.5]])],
        (np.zeros(1), np.ones(1)),
        (np.array([0]),),
        cutoff=1.0,
    )
    assert free.bound == pytest.approx(0.2, abs=1e-9)
    assert free.weights is not None
    assert free.weights[0] == pytest.approx([0.0, 1.0], abs=1e-9)
