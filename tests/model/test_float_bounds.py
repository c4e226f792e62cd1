"""Clopper–Pearson bounds in floats have the digits that they are said to have."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacyfunnel.model.credal.clopper_pearson import SCALE, exact_lower_bounds, lower_bounds

LEVELS = [0.5, 0.4, 0.05, 1e-3, 1e-6, 1e-12]


@given(n=st.integers(1, 40), data=st.data(), level=st.sampled_from(LEVELS))
def test_the_tail_at_the_bound_is_the_level(n: int, data: st.DataObject, level: float) -> None:
    k = data.draw(st.integers(1, n))
    p = Fraction(float(lower_bounds(np.array([float(k)]), np.array([float(n)]), level)[0]))
    tail = sum(comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1))
    assert float(abs(tail / Fraction(level) - 1)) < 1e-12


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", [10**3, 10**6, 10**9])
def test_among_many_rows_ten_digits_are_those_of_the_proved_bound(n: int, level: float) -> None:
    some = np.unique(np.geomspace(1, n / 2, 7).astype(np.int64))
    k, total = np.concatenate([some, n - some]), np.full(2 * len(some), n)
    proved = exact_lower_bounds(k, total, Fraction(level)) / SCALE
    assert np.allclose(lower_bounds(k.astype(float), total.astype(float), level), proved, rtol=1e-10, atol=1 / SCALE)
