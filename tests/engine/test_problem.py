"""Problems and atoms: what a solver met up to its tolerance is brought back within rounding, and loses no more."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from tests.engine.problems import KINDS, SEEDS, SHAPES, lip, made, problem_of, random_joint, signed, vertices_of

ROUGH = 1e-9  # what a linear solver may be off by


@given(seed=SEEDS, kind=KINDS, c=st.integers(2, 4), a=st.integers(3, 5), epsilon=st.floats(0.05, 2))
@settings(max_examples=25, deadline=None)
def test_an_atom_that_breaks_tight_rows_by_a_solvers_tolerance_is_brought_back_within_rounding(
    seed: int, kind: type[Promise], c: int, a: int, epsilon: float
) -> None:
    """And without losing more than that: it costs the same, up to the same tolerance."""
    problem = made(kind, seed, c, a, epsilon)
    atoms = vertices_of(problem)
    noise = 1 + ROUGH * np.random.default_rng(seed).uniform(-1, 1, atoms.shape)
    rough = atoms * noise / (atoms * noise).sum(axis=1, keepdims=True)
    clean = problem.clean(rough)
    assert len(clean) == len(rough)
    assert problem.is_feasible(clean).all()
    order = np.argsort(~problem.is_feasible(rough), kind="stable")  # those that were good come first
    assert np.abs(clean - rough[order]).max() <= 1e3 * ROUGH
    assert np.abs(problem.costs(clean) - problem.costs(rough)[order]).max() <= 1e4 * ROUGH


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [LIP, LDP])
def test_at_a_small_epsilon_it_is_mended_where_drawing_it_in_would_lose_it(seed: int, kind: type[Promise]) -> None:
    """Within 1e-4, a solver's tolerance is a hundred-thousandth of the way to the prior.

    On one table in a hundred it is not: where rows that cannot all be tight are within a millionth of it.
    """
    problem = made(kind, seed, 3, 4, 1e-4)
    atoms = vertices_of(problem)
    noise = 1 + ROUGH * np.random.default_rng(seed).uniform(-1, 1, atoms.shape)
    rough = atoms * noise / (atoms * noise).sum(axis=1, keepdims=True)
    clean = problem.clean(rough)
    assert len(clean) == len(rough)
    assert problem.is_feasible(clean).all()
    order = np.argsort(~problem.is_feasible(rough), kind="stable")
    assert np.abs(clean - rough[order]).max(initial=0.0) <= 1e3 * ROUGH


@given(seed=SEEDS, shape=SHAPES, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=10, deadline=None)
def test_rows_about_rare_classes_are_mended_as_well(seed: int, shape: tuple[int, ...], epsilon: float) -> None:
    """A class of mass 1e-6, whose rows compare sums that are as small."""
    counts = np.random.default_rng(seed).integers(1, 100, shape)
    counts[:, 0] *= 10**6
    problem = problem_of(Joint.from_counts(counts), SRLIP(epsilon))
    drawn = problem.mix_with_prior(np.eye(problem.size))
    noise = 1 + ROUGH * np.random.default_rng(seed).uniform(-1, 1, drawn.shape)
    clean = problem.clean(drawn * noise)
    assert len(clean) == len(drawn)
    assert problem.is_feasible(clean).all()


def test_dust_in_one_secret_only_is_mixed_with_as_much_of_the_prior_to_all_digits() -> None:
    """An entry of 1e-12 beside a 0 makes an infinite ratio; what mends it is a share of 1e-12 of the prior."""
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 1000, (2, 15)))
    problem = problem_of(joint, SRLIP(1.0), sees_secret=True)
    atom = (problem.prior * (problem.objective.image_index >= 5))[None]  # ten of the values, as likely as they are
    atom /= atom.sum()
    assert problem.is_feasible(atom).all()
    atom[0, 1] = 2.6e-12 * problem.prior[1]
    assert not problem.is_feasible(atom).all()
    clean = problem.clean(atom)
    assert len(clean) == 1
    assert problem.is_feasible(clean).all()
    assert np.abs(clean - atom / atom.sum()).max() <= 1e-9


def test_atoms_far_out_are_no_atoms() -> None:
    problem = lip(0, 3, 5, 0.1)
    far = np.eye(5)
    assert (problem.prior_share(far) > SETTINGS.tolerance.farthest_repair).all()
    assert problem.clean(far).shape == (0, 5)
    assert problem.clean(problem.prior[None]).shape == (1, 5)


@given(seed=SEEDS, kind=st.sampled_from([LIP, LDP, SRLIP]), sees_secret=st.booleans(), epsilon=st.floats(0, 1))
@settings(max_examples=30, deadline=None)
def test_drawn_towards_is_as_far_as_is_allowed_and_no_farther(
    seed: int, kind: type[Promise], sees_secret: bool, epsilon: float
) -> None:
    problem = problem_of(random_joint(seed, (3, 2, 2)), kind(epsilon), sees_secret=sees_secret)
    towards = np.random.default_rng(seed).dirichlet(np.full(problem.size, 0.3), size=8)
    needed = problem.prior_share(towards)
    drawn = problem.mix_with_prior(towards)
    assert problem.is_feasible(drawn).all()
    further = (1 - 0.99 * needed[:, None]) * towards + 0.99 * needed[:, None] * problem.prior
    G = signed(problem)
    broken = (G @ further.T).max(axis=0, initial=-np.inf) > 0
    assert (broken == (needed > 0))[np.abs(needed - 0.5) < 0.49].all()


@given(seed=SEEDS, kind=st.sampled_from([LIP, LDP, SRLIP]), epsilon=st.floats(0.05, 1))
@settings(max_examples=20, deadline=None)
def test_every_shape_of_the_polytope_allows_the_same_atoms(seed: int, kind: type[Promise], epsilon: float) -> None:
    """The inequalities, and the cone with its own columns, say what the pairs say."""
    problem = problem_of(random_joint(seed, (3, 2, 2)), kind(epsilon))
    random = np.random.default_rng(seed)
    points = np.concatenate([problem.mix_with_prior(np.eye(4)), random.dirichlet(np.ones(4), size=6)])
    allowed = problem.is_feasible(points)
    np.testing.assert_array_equal((points @ problem.inequalities.T >= -1e-9).all(axis=1), allowed)
    cone, d = problem.cone(), problem.size
    for point, inside in zip(points, allowed, strict=True):
        assert _lies_in_the_cone(cone.toarray(), point, d) == inside


def _lies_in_the_cone(cone: FloatArray, point: FloatArray, d: int) -> bool:
    """Whether its own columns can be chosen such that the rows hold."""
    own = cone[:, d:]
    answer = linprog(np.zeros(own.shape[1]), A_ub=own, b_ub=1e-9 - cone[:, :d] @ point, bounds=(0, None))
    return bool(answer.status == 0)


@given(seed=SEEDS, sees_secret=st.booleans(), epsilon=st.floats(0, 1))
@settings(max_examples=20, deadline=None)
def test_first_atoms_are_allowed_and_average_to_the_prior(seed: int, sees_secret: bool, epsilon: float) -> None:
    problem = problem_of(random_joint(seed, (2, 4)), LIP(epsilon), sees_secret=sees_secret)
    atoms = problem.first_atoms()
    assert problem.is_feasible(atoms).all()
    own = atoms[: problem.size]
    needed = problem.prior_share(np.eye(problem.size))
    weights = problem.prior / np.maximum(1 - needed, 1e-300)
    if epsilon > 0.05:  # drawn towards every input, in what proportion undoes the drawing
        mean = weights @ own / weights.sum()
        assert mean == pytest.approx(problem.prior, abs=1e-9)


def test_rounding_is_no_breach_and_more_is() -> None:
    problem = lip(0, 3, 4, 0.3)
    corners = np.eye(4)[problem.prior_share(np.eye(4)) > 0]
    edge = problem.mix_with_prior(corners)
    assert len(edge) > 1
    assert problem.is_feasible(edge).all()
    beyond = edge + 1e3 * SETTINGS.tolerance.constraint * (corners - edge)
    assert not problem.is_feasible(beyond).any()
