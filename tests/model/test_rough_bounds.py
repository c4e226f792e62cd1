"""Bounds in floats lie outside the exact ones, by next to nothing."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.model.credal.clopper_pearson import SCALE, OutwardBounds
from privacyfunnel.model.credal.sample_rule import ClopperPearson

LEVELS = st.sampled_from([Fraction(1, 20), Fraction(3, 10**4), Fraction(1, 10**6), Fraction(1, 2)])
COUNTS = st.lists(st.sampled_from([0, 1, 2, 15, 37, 628, 11687, 10**6]) | st.integers(0, 3000), min_size=2, max_size=4)


@given(counts=COUNTS.filter(any), level=LEVELS)
@settings(max_examples=40)
def test_rough_bounds_lie_outside_the_exact_ones_and_close(counts: list[int], level: Fraction) -> None:
    seen = np.array(counts, dtype=np.int64)
    (low, high), (exactly_low, exactly_high) = OutwardBounds().box(seen, level), ClopperPearson().box(seen, level)
    assert (low <= exactly_low).all()
    assert (exactly_high <= high).all()
    assert (exactly_low - low <= 2e-9 * exactly_low + 4).all()
    assert (high - exactly_high <= 2e-9 * (SCALE - exactly_high) + 4).all()
    some, others = counts[0], sum(counts[1:])
    share, exactly = OutwardBounds().least_share(some, others, level), ClopperPearson().least_share(some, others, level)
    assert exactly - 2e-9 * exactly - 4 <= share <= exactly
