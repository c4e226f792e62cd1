"""Bounds of e^ε and ln lie on the safe side, and close."""

import math
from decimal import Context, Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis.strategies import floats, integers

from privacyfunnel.mechanisms.exact_arithmetic import exp_below, log_above

WIDE = Context(prec=120, Emax=10**9, Emin=-(10**9))


@given(floats(0, 700))
def test_exp_below_is_below_and_within_a_part_in_ten_to_the_fifty(epsilon: float) -> None:
    truth = Fraction(WIDE.exp(Decimal(epsilon)))
    below = exp_below(epsilon)
    assert below <= truth
    assert truth - below < truth / 10**50


@given(integers(1, 10**30), integers(1, 10**30))
def test_log_above_is_above_and_within_two_floats(one: int, other: int) -> None:
    ratio = Fraction(max(one, other), min(one, other))
    truth = WIDE.ln(WIDE.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    above = log_above(ratio)
    assert Decimal(above) >= truth
    assert Decimal(math.nextafter(math.nextafter(above, 0), 0)) <= truth


def test_no_ratio_is_no_leak() -> None:
    assert log_above(Fraction(1)) == 0.0
    assert exp_below(0.0) == 1
    assert log_above(exp_below(0.25)) <= math.nextafter(0.25, 1)


def test_a_huge_epsilon_is_bounded_on_the_safe_side_at_once() -> None:
    assert exp_below(1e300) == exp_below(700.0)
    assert exp_below(700.0) < exp_below(math.nextafter(700.0, 0)) * 2
