"""Small linear programmes with more rows than unknowns: as HiGHS solves them, wherever they begin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from privacyfunnel.engine.lp.batched_simplex import Tableaus, minimise_tableaus
from tests.engine.problems import SEEDS


@given(seed=SEEDS, m=st.integers(2, 9), d=st.integers(2, 5))
@settings(max_examples=60, deadline=None)
def test_programmes_of_many_rows_are_solved_as_highs_solves_them(seed: int, m: int, d: int) -> None:
    """One after the other over the same polytopes, each beginning where the last one ended."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(5, m, d))
    low = np.hstack([random.uniform(-1, 0, (5, d)), np.full((5, m), -0.5)])
    high = low + random.choice([0.0, 0.3, 1.0], size=low.shape)
    at = Tableaus.from_rows(rows)
    for _ in range(3):
        cost = np.hstack([random.normal(size=(5, d)), random.choice([0.0, 1.0], size=(5, m))])
        ended = minimise_tableaus(at, cost, low, high)
        for k in range(5):
            # In the unknowns alone: rows are what they are.
            A = np.vstack([rows[k], -rows[k]])
            b = np.concatenate([high[k, d:], -low[k, d:]])
            bounds = list(zip(low[k, :d], high[k, :d], strict=True))
            reference = linprog(cost[k, :d] + cost[k, d:] @ rows[k], A_ub=A, b_ub=b, bounds=bounds, method="highs")
            assert ended.optimal[k] == (reference.status == 0)
            if ended.optimal[k]:
                assert cost[k] @ ended.x[k] == pytest.approx(reference.fun, abs=1e-8)
                assert rows[k] @ ended.x[k, :d] == pytest.approx(ended.x[k, d:], abs=1e-8)
                assert (ended.x[k] >= low[k] - 1e-8).all()
                assert (ended.x[k] <= high[k] + 1e-8).all()
        at = ended.tableaus


def test_programmes_leave_the_tables_they_begin_with_as_they_are() -> None:
    rows = np.random.default_rng(0).normal(size=(4, 6, 3))
    start = Tableaus.from_rows(rows.copy())
    minimise_tableaus(start, np.ones((4, 9)), np.full((4, 9), -1.0), np.full((4, 9), 1.0))
    np.testing.assert_array_equal(start.table, rows)
    assert (start.basic == np.arange(3, 9)).all()


def test_where_reduced_costs_are_nothing_whoever_leaves_stays_at_the_bound_it_broke() -> None:
    """Every point of a polytope is its cheapest: one must be found, and there is one."""
    random = np.random.default_rng(0)
    rows, v = random.normal(size=(2000, 6, 3)), random.normal(size=(2000, 3))
    x = np.hstack([v, np.matmul(rows, v[:, :, None])[:, :, 0]])
    low = x - random.choice([0.0, 0.3, 1.0], size=x.shape)
    high = x + random.choice([0.0, 0.3, 1.0], size=x.shape) + 0.1
    ended = minimise_tableaus(Tableaus.from_rows(rows), np.zeros(x.shape), low, high)
    assert ended.optimal.all()
    assert (ended.x >= low - 1e-9).all()
    assert (ended.x <= high + 1e-9).all()
