"""Edges that come from the data are coarse numbers, not people's: in the table, its labels and the public file."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.names import parse_interval
from privacyfunnel.tables.coding.quantiles import QuantileSummary
from tests.commands import found_by

ROUND = tuple(factor * Fraction(10) ** k for k in range(-6, 12) for factor in (1, 2, Fraction(5, 2), 5))


def summary_of(numbers: list[float]) -> QuantileSummary:
    summary = QuantileSummary()
    summary.add(pl.Series(numbers, dtype=pl.Float64))
    return summary


def coarsest(width: Fraction) -> Fraction:
    """The largest round number up to half the width."""
    return max(step for step in ROUND if step <= width / 2)


def salaries(n: int) -> list[float]:
    """Salaries to the cent, no two alike and none of them round."""
    drawn = np.random.default_rng(11).lognormal(10.5, 0.6, size=n)
    return sorted({math.floor(salary) + 0.37 for salary in drawn.tolist()})


@settings(max_examples=80, deadline=None)
@given(
    numbers=st.lists(st.integers(-(10**9), 10**9).map(lambda n: n / 100) | st.integers(-3, 3), min_size=2, max_size=60),
    count=st.integers(2, 8),
)
def test_an_edge_is_a_multiple_of_the_coarsest_step_that_keeps_bins_apart(numbers: list[float], count: int) -> None:
    summary = summary_of(numbers)
    cuts, edges = summary.cuts(count), summary.edges(count)
    assert len(cuts) == len(edges)
    assert list(edges) == sorted(set(edges))
    if cuts[0] == min(numbers):  # no cut: almost all numbers are the smallest one
        return
    for (before, cut), edge in zip(pairwise(cuts), edges[1:], strict=True):
        exact, low = Fraction(str(cut)), Fraction(str(before))
        step = coarsest(Fraction(str(cut - before)))
        assert (Fraction(str(edge)) / step).denominator == 1
        assert step > (exact - low) / 4 * (1 - Fraction(1, 10**9))  # the width is a difference of floats
        assert low < Fraction(str(edge)) <= exact < Fraction(str(edge)) + step
    assert any(number < edges[0] for number in numbers)  # the first edge cuts off something
    assert all(any(low <= number < high for number in numbers) for low, high in pairwise(edges))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12), st.integers(2, 5))
def test_whatever_the_numbers_edges_are_finite_and_increase(numbers: list[float], count: int) -> None:
    edges = summary_of(numbers).edges(count)
    assert edges
    assert all(map(math.isfinite, edges))
    assert all(low < high for low, high in pairwise(edges))


def test_no_edge_is_a_salary_and_bins_stay_even() -> None:
    paid = salaries(3000)
    edges = summary_of(paid).edges(20)
    assert len(edges) == 19
    assert not set(edges) & set(paid)
    assert all(edge % 50 == 0 for edge in edges)
    counts = np.histogram(paid, bins=[-np.inf, *edges, np.inf])[0]
    assert counts.min() > len(paid) / 20 * 0.4
    assert counts.max() < len(paid) / 20 * 1.6


def test_a_column_that_is_one_number_does_not_show_it() -> None:
    assert summary_of([37_123.45] * 9).edges(4) == (30_000.0,)
    assert summary_of([-37_123.45] * 9).edges(4) == (-30_000.0,)
    assert summary_of([0.0] * 9).edges(4) == (0.0,)


@pytest.mark.parametrize("sees_secret", [False, True])
def test_no_persons_number_stands_in_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sees_secret: bool
) -> None:
    paid = salaries(600)
    age = [20.03 + i * 67 % len(paid) / 10 for i in range(len(paid))]
    pl.DataFrame({"salary": paid, "age": age}).write_csv(tmp_path / "people.csv")
    out = tmp_path / "out"
    words = [
        "sanitise",
        "--prior=table",
        tmp_path / "people.csv",
        "--secret",
        "salary",
        "--publish",
        "age",
        "--epsilon",
        1,
        "--into",
        out,
    ]
    bins = ["--bin", "salary=quantiles:4", "--bin", "age=quantiles:6", "--method", "randomised-response", "--no-report"]
    if sees_secret:
        bins[-2] = "conditional-reporting"
    found_by(capsys, *words, *bins)
    stated = json.loads((out / "owner" / "protocol.json").read_text())
    text = (out / "owner" / "protocol.json").read_text() + (out / "public" / "sanitised.csv").read_text()
    shown = {end for label in stated["publish"][0]["labels"] for end in parse_interval(label) or () if isfinite(end)}
    assert shown == set(stated["publish"][0]["bins"])
    assert not shown & set(age)
    assert len(stated["secret"]["labels"]) == (4 if sees_secret else 0)
    assert not [number for number in (*paid, *age) if f"{number!r}" in text.replace("[", " ").replace(")", " ").split()]
    assert not [label for label in stated["secret"]["labels"] if ".37" in label]
