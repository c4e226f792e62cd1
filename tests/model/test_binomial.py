"""Clopper–Pearson bounds, each against tails that are summed in fractions."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privacyfunnel.model.credal.clopper_pearson import (
    DIGITS,
    SCALE,
    SLACK,
    brackets,
    exact_lower_bound,
    exact_lower_bounds,
    exact_upper_bound,
    exact_upper_bounds,
    log_factorial,
)

levels = st.fractions(Fraction(1, 10**9), Fraction(1, 2))
cells = st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def at_least(k: int, n: int, p: Fraction) -> Fraction:
    """Pr[Bin(n, p) ≥ k]."""
    return sum((comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1)), Fraction(0))


@given(cell=cells, level=levels)
def test_a_lower_bound_is_the_nearest_multiple_on_the_safe_side(cell: tuple[int, int], level: Fraction) -> None:
    k, n = cell
    bound = exact_lower_bound(k, n, level)
    if k == 0:
        assert bound == 0
        return
    assert at_least(k, n, Fraction(bound, SCALE)) <= level
    assert at_least(k, n, Fraction(bound + 1, SCALE)) >= level


@given(cell=cells, level=levels)
def test_an_upper_bound_is_the_nearest_multiple_on_the_safe_side(cell: tuple[int, int], level: Fraction) -> None:
    k, n = cell
    bound = exact_upper_bound(k, n, level)
    if k == n:
        assert bound == SCALE
        return
    assert 1 - at_least(k + 1, n, Fraction(bound, SCALE)) <= level
    assert 1 - at_least(k + 1, n, Fraction(bound - 1, SCALE)) >= level


@given(
    cell=st.integers(1, 25).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))),
    share=st.integers(1, SCALE - 1),
)
def test_convergents_lie_on_both_sides_of_the_tail_and_end_in_it(cell: tuple[int, int], share: int) -> None:
    k, n = cell
    m = share * (k + 1) // (n + 1)  # below (k + 1) / (n + 1)
    p = Fraction(m, SCALE)
    front = Fraction(factorial(n), factorial(k - 1) * factorial(n - k)) * p**k * (1 - p) ** (n - k + 1)
    if m == 0:
        return
    value = at_least(k, n, p) / front
    error = Fraction(1, 10**60)
    with localcontext(DIGITS):
        found = list(brackets(k, n, m))
    assert len(found) == n - k + 1
    assert all(Fraction(below) * (1 - error) <= value <= Fraction(above) * (1 + error) for above, below in found)
    assert found[-1][0] == found[-1][1]


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000, 20000])
def test_factorials_are_exact_to_more_digits_than_are_given_away(n: int) -> None:
    with localcontext(DIGITS):
        assert abs(log_factorial(n) - Decimal(factorial(n)).ln()) < SLACK / 1000


def test_large_samples_agree_with_tails_summed_in_integers() -> None:
    n, k, level = 30_000, 9_000, Fraction(1, 2000)
    bound = exact_lower_bound(k, n, level)
    unit = 10**80

    def tail(m: int, up: int) -> int:
        """The tail in units of 1e-80, every term rounded down, or up by `up` units."""
        with localcontext(DIGITS):
            ways = log_factorial(n) - log_factorial(k) - log_factorial(n - k)
            first = (ways + k * (Decimal(m) / SCALE).ln() + (n - k) * (1 - Decimal(m) / SCALE).ln()).exp()
            term = int(first * unit) + up * 10**20
        total = 0
        for j in range(k, n):
            total += term
            term = term * (n - j) * m // ((j + 1) * (SCALE - m)) + up
            if term <= 2:
                break
        return total + up * n

    assert Fraction(tail(bound, 1), unit) <= level < Fraction(tail(bound + 1, 0), unit)


def test_many_cells_at_once_are_the_cells_one_by_one_and_close_to_scipy() -> None:
    rng = np.random.default_rng(0)
    n = np.array([[10], [48_842], [10_000_000]])
    k = np.hstack([(rng.random((3, 6)) * n).astype(np.int64), 0 * n, n, np.minimum(n, 3)])
    level = Fraction(1, 4000)
    low, high = exact_lower_bounds(k, n, level), exact_upper_bounds(k, n, level)
    assert low.shape == k.shape
    assert low[1, 2] == exact_lower_bound(int(k[1, 2]), 48_842, level)
    assert high[2, 1] == exact_upper_bound(int(k[2, 1]), 10_000_000, level)
    assert np.allclose(low / SCALE, np.nan_to_num(stats.beta.ppf(1 / 4000, k, n - k + 1)), atol=3e-12)
    assert np.allclose(high / SCALE, np.nan_to_num(stats.beta.ppf(1 - 1 / 4000, k + 1, n - k), nan=1.0), atol=3e-12)


def test_each_cell_may_have_a_level_of_its_own() -> None:
    some = [Fraction(1, 20), Fraction(1, 200), Fraction(1, 10**50)]
    assert exact_lower_bounds(np.full(3, 7), np.full(3, 9), some).tolist() == [
        exact_lower_bound(7, 9, level) for level in some
    ]


@pytest.mark.parametrize(
    ("k", "n", "level"), [(-1, 3, Fraction(1, 9)), (4, 3, Fraction(1, 9)), (1, 3, Fraction(0)), (1, 3, Fraction(2, 3))]
)
def test_no_bound_where_there_is_none(k: int, n: int, level: Fraction) -> None:
    with pytest.raises(ValueError, match="0 ≤ k ≤ n"):
        exact_lower_bound(k, n, level)
