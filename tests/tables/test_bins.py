"""Bins: every number falls where its label says, edges are few and round, and what cannot be binned is refused."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.hints import word_for_command_line
from privacyfunnel.names import parse_interval
from privacyfunnel.tables.coding import quantiles
from privacyfunnel.tables.coding.bin_syntax import parse_bin
from privacyfunnel.tables.coding.bins import Bins, bin_labels, example_edges
from privacyfunnel.tables.coding.coders import MOST_LABELS
from privacyfunnel.tables.coding.encoding import encode
from privacyfunnel.tables.coding.grouping_rules import ByDate
from privacyfunnel.tables.coding.known_domain import encode_known
from privacyfunnel.tables.coding.quantiles import QuantileSummary
from privacyfunnel.tables.readers.eager_frames import contingency_from_frame
from privacyfunnel.tables.readers.formats import NumberFormat
from tests.tables.coded import decoded, frame


@settings(max_examples=60, deadline=None)
@given(
    edges=st.lists(st.integers(-20, 20).map(lambda i: i / 4), min_size=1, max_size=5, unique=True).map(sorted),
    numbers=st.lists(st.integers(-24, 24).map(lambda i: i / 4), min_size=1, max_size=20),
    as_text=st.booleans(),
)
def test_every_number_falls_into_the_bin_whose_label_says_so(
    edges: list[float], numbers: list[float], as_text: bool
) -> None:
    entries: list[Any] = [f" {number} " if as_text else number for number in numbers]
    bins = [Bins("x", edges=tuple(edges))]
    code = encode(frame(s=["u"] * len(numbers), x=entries), secret=["s"], publish=["x"], bins=bins)
    for number, (_, label) in zip(numbers, decoded(code), strict=True):
        ends = parse_interval(label)
        assert ends is not None
        assert ends[0] <= number < ends[1]
        assert ends in pairwise((-math.inf, *edges, math.inf))
    again = encode_known(frame(x=entries), published=code.contingency.published)
    assert [x for _, x in decoded(again)] == [x for _, x in decoded(code)]


def test_bins_keep_missing_apart_and_infinity_outside() -> None:
    table = frame(s=["u"] * 6, x=["1", "", None, "NaN", "inf", "-inf"])
    code = encode(table, secret=["s"], publish=["x"], bins=[Bins("x", edges=(0, 2))])
    assert [x for _, x in decoded(code)] == ["0–1", "(missing)", "(missing)", "(missing)", "2+", "under 0"]


@pytest.mark.parametrize("bins", ["x=0,2", "x=quantiles:2"])
def test_what_is_no_number_cannot_be_binned_and_is_counted_not_shown(bins: str) -> None:
    table = frame(s=["u"] * 4, x=["1", "secret-entry", "", "two"])
    with pytest.raises(ColumnError, match="column 'x' must hold numbers to be binned; 2 of 4 rows") as caught:
        encode(table, secret=["s"], publish=["x"], bins=[parse_bin(bins)])
    assert "secret-entry" not in str(caught.value)


@settings(max_examples=60, deadline=None)
@given(numbers=st.lists(st.integers(0, 30), min_size=1, max_size=60), count=st.integers(2, 6))
def test_quantile_bins_are_as_even_as_repeated_numbers_allow(numbers: list[int], count: int) -> None:
    summary = QuantileSummary()
    for start in range(0, len(numbers), 7):
        summary.add(pl.Series(numbers[start : start + 7], dtype=pl.Float64))
    cuts = summary.cuts(count)
    assert list(cuts) == sorted(set(cuts))
    for rank in range(1, count):
        target = rank * len(numbers) / count
        expected = min(v for v in numbers if sum(u <= v for u in numbers) > target)
        assert expected in cuts or expected == min(numbers)


def test_a_stream_too_long_for_exact_quantiles_is_within_the_stated_error(monkeypatch: pytest.MonkeyPatch) -> None:
    points = 1 << 10
    monkeypatch.setattr(quantiles, "MOST_POINTS", points)
    rng = np.random.default_rng(5)
    summary, everything = QuantileSummary(), []
    merges = 0
    for _ in range(60):
        numbers = np.where(rng.random(points // 2) < 0.3, 0.0, rng.normal(size=points // 2))
        everything.append(numbers)
        summary.add(pl.Series(numbers))
        merges += 1
    numbers = np.concatenate(everything)
    error = merges * 8 / points  # a merge moves a rank by less than 8 n / MOST_POINTS
    assert error < 0.5
    for rank, edge in zip((1, 2, 4, 5), np.array(summary.cuts(6))[[0, 1, -2, -1]], strict=True):
        below, upto = np.mean(numbers < edge), np.mean(numbers <= edge)
        assert below - error / 10 <= rank / 6 <= upto + error / 10
    assert 0.0 in summary.cuts(6)
    assert 0.0 in summary.edges(6)


def test_numbers_too_large_for_bins_are_refused_without_bins() -> None:
    frame = pl.DataFrame({"s": ["a", "b"] * 30, "x": [f"{i + 1}{'0' * 400}" for i in range(60)]})
    with pytest.raises(ColumnError, match="They are too large for bins: leave it out") as refusal:
        contingency_from_frame(frame, secret="s", publish="x")
    assert "inf" not in str(refusal.value)


def test_a_separator_before_a_number_is_no_fault() -> None:
    code = encode(frame(s=["u", "v"], x=["\x1c1", "2"]), secret=["s"], publish=["x"])
    assert code.contingency.attribute_labels == (("\x1c1", "2"),)


def test_many_numbers_are_refused_with_bins_that_would_do() -> None:
    table = frame(s=["u", "v"] * 37, age=[str(i) for i in range(17, 91)])
    with pytest.raises(ColumnError) as caught:
        encode(table, secret=["s"], publish=["age"])
    message = str(caught.value)
    assert message.startswith("column 'age' holds 74 different numbers or more, too many for categories.")
    option = word_for_command_line(caught.value.sentence).split("--bin ")[1].split(" or ", maxsplit=1)[0]
    assert option == "age=20,40,60,80"
    binned = encode(table, secret=["s"], publish=["age"], bins=[parse_bin(option)])
    assert binned.contingency.attribute_labels[0] == ("under 20", "20–39", "40–59", "60–79", "80+")
    whole = encode(table, secret=["s"], publish=["age"], bins=[parse_bin("age=values")])
    assert len(whole.contingency.attribute_labels[0]) == 74


def test_codes_with_leading_zeros_are_labels_however_many() -> None:
    entries = [f"{i:04}" for i in range(200)]
    code = encode(frame(s=["u", "v"] * 100, x=entries), secret=["s"], publish=["x"])
    assert code.contingency.attribute_labels == (tuple(entries),)


@pytest.mark.parametrize("prefix", ["", "person "])
def test_a_column_of_too_many_values_is_refused(prefix: str) -> None:
    table = frame(s=["u"] * (MOST_LABELS + 5), x=[f"{prefix}{i}" for i in range(MOST_LABELS + 5)])
    with pytest.raises(ColumnError, match='"x": "20000,40000' if not prefix else f"at most {MOST_LABELS:,} distinct"):
        encode(table, secret=["s"], publish=["x"])


@given(low=st.floats(-1e9, 1e9), span=st.floats(1e-6, 1e9))
def test_example_edges_lie_in_the_range_and_are_few(low: float, span: float) -> None:
    edges = parse_bin("x=" + example_edges(low, low + span)).edges
    assert 1 <= len(edges) <= 7
    slack = 1e-9 * max(abs(low), abs(low + span), 1)
    assert low - slack <= edges[0] <= edges[-1] <= low + span + slack


@pytest.mark.parametrize("text", ["age", "=1,2", "age=", "age=1,x", "age=2,1", "age=1,1", "age=nan", "age=inf"])
def test_bins_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(ParameterError):
        parse_bin(text)


@pytest.mark.parametrize("count", ["1", "x", "1001", ""])
def test_quantiles_that_cannot_be_are_refused(count: str) -> None:
    with pytest.raises(ParameterError):
        parse_bin(f"age=quantiles:{count}")


def test_a_column_name_may_hold_an_equals_sign() -> None:
    assert parse_bin("a=b=1,2") == Bins("a=b", edges=(1.0, 2.0))
    assert bin_labels((1.0, 2.5)) == ("under 1", "1 to under 2.5", "2.5+")


def test_dates_are_grouped_by_decades() -> None:
    days = pl.Series("born", ["03.04.1965", "17.12.2001", "1969-01-01", "2000s", None])
    labels, odd = ByDate("decade").labels(days, NumberFormat())
    assert labels.to_list() == ["1960s", "2000s", "1960s", "2000s", None]
    assert odd is None or not odd.any()
