"""Figures for people: read back, an upper bound is at least the exact one and a lower bound at most; and near it."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from privacyfunnel.formatting import (
    format_count,
    format_duration,
    format_epsilon,
    format_factor,
    format_nats,
    format_number,
    format_percent,
    format_percent_range,
    format_places,
    format_points,
)

SHARES = st.floats(0, 1)
SIZES = st.floats(0, 1e300)


def share_in(text: str) -> float:
    """The share that a text in percent states."""
    return float(Decimal(text.removesuffix(" %")) / 100)


@given(SHARES)
@example(0.7425)
@example(0.1)
@example(5e-324)
@example(math.nextafter(1, 0))
def test_a_percentage_is_rounded_outwards_and_to_a_tenth(share: float) -> None:
    down, near, up = (share_in(format_percent(share, **how)) for how in ({"down": True}, {}, {"up": True}))
    assert down <= share <= up
    assert down <= near <= up
    assert up - down <= 0.0010001
    assert down >= 0
    assert up <= 1


@given(SHARES, SHARES)
def test_an_interval_of_shares_only_widens(one: float, other: float) -> None:
    low, high = sorted((one, other))
    first, last = format_percent_range(low, high).removesuffix(" %").split(" to ")
    assert share_in(first) <= low
    assert high <= share_in(last)


@given(st.floats(0, 10))
def test_points_of_an_error_are_never_too_few(share: float) -> None:
    assert share - 1e-12 <= float(Decimal(format_points(share)) / 100) <= share * 1.1 + 0.001


@given(SIZES)
@example(0.1)
@example(math.nextafter(0.1, 1))
@example(9.9999e-7)
def test_an_epsilon_is_rounded_outwards_to_four_digits(epsilon: float) -> None:
    up, down = float(format_epsilon(epsilon)), float(format_epsilon(epsilon, down=True))
    assert down <= epsilon <= up
    assert up - down <= 1e-3 * epsilon + 1e-323


@given(st.floats(0, 1000))
def test_a_factor_is_rounded_outwards(epsilon: float) -> None:
    up, down = format_factor(epsilon), format_factor(epsilon, down=True)
    if up.startswith("e^"):
        assert float(down.removeprefix("e^")) <= epsilon <= float(up.removeprefix("e^"))
    else:
        assert Decimal(down) <= Decimal(repr(epsilon)).exp() <= Decimal(up)
        assert float(up) <= 1.02 * math.exp(epsilon)


@given(st.floats(-1e6, 1e6), st.integers(0, 8))
def test_fixed_places_are_rounded_outwards(value: float, places: int) -> None:
    up, down = format_places(value, places, up=True), format_places(value, places, down=True)
    assert float(down) <= value <= float(up)
    assert float(down) <= float(format_places(value, places)) <= float(up)
    assert not up.startswith("-0") or float(up) < 0
    assert format_nats(value) == f"{format_places(value)} nats"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_that_was_typed_is_read_back(value: float) -> None:
    assert float(format_number(value)) == value


@pytest.mark.parametrize("share", [0.3, 0.1, 0.7, 0.001, 0.125, 0.0, 1.0])
def test_a_share_that_has_few_digits_is_printed_as_it_is_whichever_way_it_is_rounded(share: float) -> None:
    texts = {format_percent(share), format_percent(share, up=True), format_percent(share, down=True)}
    assert texts == {f"{100 * share:g} %"}


def test_no_limit_is_called_unbounded() -> None:
    formats = (format_epsilon, format_factor, format_places, format_percent, format_points)
    assert {write(math.inf) for write in formats} == {"unbounded"}


def test_counts_and_durations() -> None:
    assert (format_count(1_000_000), format_count(2**50)) == ("1,000,000", "2^50")
    assert [format_duration(seconds) for seconds in (0.01, 0.5, 59.6, 599, 6000)] == [
        "10.0 ms",
        "0.5 s",
        "60 s",
        "599 s",
        "100 min",
    ]
