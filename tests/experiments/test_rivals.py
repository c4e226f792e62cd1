"""The comparison with other programs: its page says what its CSV says, and its rivals are treated right."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from benchmarks.comparison.channels import channel_leak, invariant_pram, unary_epsilon, unary_leak, unary_ratios
from benchmarks.comparison.page import FAILURES, PAGE, RESULTS, TEMPLATE, format_figure, make_page, read_lines
from benchmarks.comparison.regressions import regress
from benchmarks.comparison.tables import Analysis, Case
from benchmarks.published_model import code_frame

from privacyfunnel.arrays import FloatArray
from privacyfunnel.model.joint import Joint


def test_the_page_is_made_of_the_results_alone() -> None:
    template = TEMPLATE.read_text(encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == make_page(template, read_lines(RESULTS), read_lines(FAILURES))


def test_what_the_readme_says_of_eight_columns_is_among_the_results() -> None:
    results = {(line["table"], line["epsilon"], line["arm"], line["question"]): line for line in read_lines(RESULTS)}
    kept = results["census 8, income", "1", "privacyfunnel, default", "real"]
    readme = " ".join(Path("README.md").read_text(encoding="utf-8").split())
    assert f"keep {float(kept['mean']):.0%} of the rows".replace("%", " %") in readme


def test_a_figure_is_shown_with_its_interval() -> None:
    line = {"mean": "0.8631", "half_width": "0.0021", "question": "real"}
    assert format_figure(line, interval=True) == "86.3 ± 0.2 %"
    assert format_figure({**line, "question": "one_way", "mean": "inf"}) == "unbounded"


RARE = np.array([[4, 1, 1, 1, 1], [1, 248, 248, 248, 247]]) / 1000  # the worst report names what is rare


@pytest.mark.parametrize(
    "p", [RARE, *(np.random.default_rng(seed).dirichlet(np.full(15, 0.5)).reshape(3, 5) for seed in range(4))]
)
@pytest.mark.parametrize("own", [0.3, 1.0, 2.5])
def test_the_leak_of_unary_encoding_is_that_of_its_worst_report(p: FloatArray, own: float) -> None:
    on, off = unary_ratios(own)
    worst = 0.0
    for bits in product((False, True), repeat=5):
        told = p @ np.where(bits, on, off)
        worst = max(worst, float(np.abs(np.log(told / told.sum() / p.sum(axis=1))).max()))
    assert unary_leak(p, own) == pytest.approx(worst, abs=1e-12)
    assert unary_leak(p, unary_epsilon(p, 0.4)) <= 0.4


def test_the_matrix_of_pram_keeps_shares_and_the_promise() -> None:
    joint = Joint.from_counts([[30, 10, 5], [10, 20, 25]])
    p = joint.weights / joint.weights.sum()
    matrix = invariant_pram(joint, 0.4, seed=0)
    assert np.allclose(p.sum(axis=0) @ matrix, p.sum(axis=0))
    assert np.allclose(matrix.sum(axis=1), 1)
    assert 0.39 < channel_leak(p, matrix) <= 0.4


def test_coefficients_of_one_indicator_are_differences_of_means_and_of_log_odds() -> None:
    import polars as pl

    rows = [("a", "1", "x")] * 30 + [("a", "2", "y")] * 10 + [("b", "1", "y")] * 6 + [("b", "2", "x")] * 14
    frame = pl.DataFrame(rows, schema=["g", "v", "s"], orient="row")
    case = Case("small", Path("unused"), code_frame(frame, "s"), "v")
    found = regress(
        case, Analysis(("v", "2"), ("v", {"1": 1.0, "2": 2.0}), ("g",)), case.coded.codes, np.ones(len(rows))
    )
    odds = np.log((14 / 6) / (10 / 30))
    assert found.values == pytest.approx([odds, 0.7 - 0.25])
    assert found.errors == pytest.approx([np.sqrt(1 / 14 + 1 / 6 + 1 / 10 + 1 / 30), np.sqrt(0.21 / 20 + 0.1875 / 40)])
    assert found.conclusions().tolist() == [1.0, 1.0]
