"""Many small linear programmes at once: as HiGHS solves them, whatever becomes of their neighbours."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from privacyfunnel.engine.lp.batched_simplex import BatchSolution, Programmes, inverses, solve
from tests.engine.problems import SEEDS


def assert_as_highs_says(programmes: Programmes, solved: BatchSolution) -> None:
    for k, cost in enumerate(programmes.cost):
        matrix, rhs = programmes.matrix, programmes.rhs
        bounds = list(zip(programmes.low[k], programmes.high[k], strict=True))
        reference = linprog(cost, A_eq=matrix, b_eq=rhs, bounds=bounds, method="highs")
        expected = math.inf if reference.status == 2 else reference.fun
        assert solved.bound[k] == pytest.approx(expected, abs=1e-8)
        if reference.status == 0:
            assert solved.optimal[k]
            assert cost @ solved.x[k] == pytest.approx(expected, abs=1e-8)
            assert np.abs(matrix @ solved.x[k] - rhs).max() <= 1e-8


@given(seed=SEEDS, m=st.integers(1, 4), n=st.integers(5, 9))
@settings(max_examples=60, deadline=None)
def test_many_small_programmes_are_solved_as_highs_solves_them(seed: int, m: int, n: int) -> None:
    random = np.random.default_rng(seed)
    matrix = np.hstack([random.normal(size=(m, n)), -np.eye(m)])
    rhs = random.choice([0.0, 0.1], size=m)
    low = np.hstack([random.uniform(-1, 0, (5, n)), np.full((5, m), -0.5)])
    high = low + random.choice([0.0, 0.3, 1.0], size=low.shape)
    cost = np.hstack([random.normal(size=(5, n)), np.zeros((5, m))])
    basis = np.tile(np.arange(n, n + m), (5, 1))
    programmes = Programmes(matrix, rhs, cost, low, high, basis)
    assert_as_highs_says(programmes, solve(programmes))


@given(seed=SEEDS, stop=st.floats(-2, 2))
@settings(max_examples=20, deadline=None)
def test_a_bound_holds_wherever_the_cutoff_or_the_clock_ends_it(seed: int, stop: float) -> None:
    random = np.random.default_rng(seed)
    matrix = np.hstack([random.normal(size=(3, 7)), -np.eye(3)])
    cost, low = random.normal(size=(6, 10)), np.full((6, 10), -0.5)
    programmes = Programmes(matrix, np.zeros(3), cost, low, low + 1, np.tile([7, 8, 9], (6, 1)))
    early, whole = solve(programmes, np.full(6, stop)), solve(programmes)
    assert (early.bound <= whole.bound + 1e-9).all()
    assert ((early.bound >= stop) | early.optimal).all()
    late = solve(programmes, deadline=-np.inf)  # one pivot, and what it says holds
    assert (late.bound <= whole.bound + 1e-9).all()


def test_a_singular_basis_leaves_the_other_programmes_their_answers() -> None:
    """In its own place the bound says nothing, which is true."""
    matrix = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, -1.0, 0.0, -1.0]])
    cost = np.array([[c, 1.0, 2.0, 0.0] for c in (0.5, 0.7, 0.9, 1.5, 3.0)])
    low, high = np.tile([0.0, 0.0, 0.0, -1.0], (5, 1)), np.tile([2.0, 2.0, 2.0, 1.0], (5, 1))
    basis = np.tile([0, 3], (5, 1))
    basis[2] = [2, 2]  # the same column twice
    solved = solve(Programmes(matrix, np.array([1.0, 0.0]), cost, low, high, basis))
    assert solved.optimal.tolist() == [True, True, False, True, True]
    assert solved.bound[2] == -np.inf
    np.testing.assert_allclose(solved.bound[[0, 1, 3, 4]], [0.5, 0.7, 1.0, 1.0], atol=1e-12)


def test_one_matrix_without_an_inverse_leaves_the_others_theirs() -> None:
    bases = np.stack([2 * np.eye(2), np.ones((2, 2)), np.eye(2)])
    found = inverses(bases)
    np.testing.assert_allclose(found[[0, 2]], [np.eye(2) / 2, np.eye(2)])
    assert np.isnan(found[1]).all()
