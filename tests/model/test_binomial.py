"""Clopper–Pearson bounds, each against tails that are summed in fractions."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privacyfunnel.model.credal.clopper_pearson import (
    SCALE,
    binomial_tail,
    exact_lower_bound,
    exact_lower_bounds,
    exact_upper_bound,
    exact_upper_bounds,
    is_at_most,
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
    m=st.integers(1, SCALE - 1),
    unit=st.sampled_from([10**9, 10**30]),
)
def test_a_tail_is_said_to_be_at_most_a_level_only_where_it_is(cell: tuple[int, int], m: int, unit: int) -> None:
    k, n = cell
    tail = at_least(k, n, Fraction(m, SCALE))
    below = Fraction(int(tail * unit), unit)
    assert not is_at_most(lambda: binomial_tail(k, n, m), below) or tail <= below
    assert is_at_most(lambda: binomial_tail(k, n, m), below + Fraction(2, unit))


def test_what_no_precision_tells_apart_is_not_said_to_be_at_most() -> None:
    assert not is_at_most(lambda: binomial_tail(2, 3, SCALE // 2), Fraction(1, 2))
    assert not is_at_most(lambda: binomial_tail(2, 3, SCALE // 2) / 0, Fraction(1, 2))  # no number at all


@pytest.mark.parametrize(("n", "k"), [(1_000, 300), (1_000, 990), (4_000, 30)])
def test_large_samples_agree_with_tails_summed_in_integers(n: int, k: int) -> None:
    level = Fraction(1, 2000)
    bound = exact_lower_bound(k, n, level)

    def tail(m: int) -> int:
        """The tail times SCALE to the power of n; by whichever side has fewer terms."""
        some = range(k, n + 1) if 2 * k > n else range(k)
        ways, total = comb(n, some[0]), 0
        for j in some:
            total += ways * m**j * (SCALE - m) ** (n - j)
            ways = ways * (n - j) // (j + 1)
        return total if 2 * k > n else SCALE**n - total

    assert tail(bound) * 2000 <= SCALE**n < tail(bound + 1) * 2000


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
