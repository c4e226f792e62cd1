"""The comparison with other programs: its page says what its CSV says, and its rivals are treated right."""

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks import rivals
from benchmarks.comparison import judging
from benchmarks.comparison.arms import Arm
from benchmarks.comparison.channels import channel_leak, invariant_pram, unary_epsilon, unary_leak, unary_ratios
from benchmarks.comparison.environments import PACKAGES, RivalError
from benchmarks.comparison.judging import Judgement
from benchmarks.comparison.page import CONTROLS, FAILURES, PAGE, RESULTS, TEMPLATE, format_figure, make_page, read_lines
from benchmarks.comparison.published import Published
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


def test_what_the_comparison_says_in_figures_stands_on_the_page() -> None:
    text = Path("docs/comparison.md").read_text(encoding="utf-8").split("```")[::2]
    figures = re.findall(r"\d+\.\d+|\d+ %|\d+ times", " ".join(text))
    page = PAGE.read_text(encoding="utf-8")
    assert [figure for figure in figures if figure not in page] == []


RIVALS = r"\b(MST|AIM|PrivBayes|dpmm|OpenDP|PAC-Synth|ANJANA|pyCANON|ARX|sdcMicro|PRAM|multi-freq-ldpy|OUE|DP Wizard)\b"
FIGURE = r"\d*\.\d+|\d+(?= %| points| times)"


def test_a_figure_about_a_rival_stands_on_the_page_or_beside_the_command_that_measures_it() -> None:
    page, found = PAGE.read_text(encoding="utf-8"), []
    for path in (Path("README.md"), Path("CHANGELOG.md"), *Path("docs").glob("*.md")):
        if path.name in ("rivals.md", "reproduction.md"):  # the paper's figures are those of `reproduce`
            continue
        text = "".join(path.read_text(encoding="utf-8").split("```")[::2])
        for part in re.split(r"\n\s*\n|\n(?=[-|])", text):
            if re.search(RIVALS, part) and "python -m benchmarks" not in part:
                found += [(path.name, figure) for figure in re.findall(FIGURE, part) if figure not in page]
    assert found == []


def test_what_is_said_of_a_rival_names_where_it_stands() -> None:
    text = Path("docs/comparison.md").read_text(encoding="utf-8")
    named = re.findall(RIVALS, next(line for line in text.splitlines() if line.startswith("| | privacyfunnel")))
    sources = [line for line in text[text.index("What is said here of others") :].splitlines() if line.startswith("- ")]
    assert [name for name in named if not any(re.match(f"- .*{name}.*: ", line) for line in sources)] == []
    page = PAGE.read_text(encoding="utf-8")
    versions = page[page.index("- **Versions.**") :].split("\n- ")[0]
    packages = {package.split("==")[0] for name in USED for package in PACKAGES[name]} - {"pandas", "numpy"}
    assert [
        package for package in packages if package.lower().replace("-", "") not in versions.lower().replace("-", "")
    ] == []


USED = ("dpmm", "anjana", "anonymeter", "ldp", "pac", "opendp", "qif")


def test_the_matrix_has_every_arm_and_no_empty_cell() -> None:
    page = PAGE.read_text(encoding="utf-8")
    lines = page[page.index("|  | table | A1 |") :].split("\n\n")[0].splitlines()[2:]
    arms = {
        line["arm"] for line in read_lines(RESULTS) if line["epsilon"] == "1" and not line["arm"].endswith(CONTROLS)
    }
    assert sorted(line.removeprefix("| ").split(" (")[0] for line in lines) == sorted(
        arm.split(" (")[0] for arm in arms
    )
    assert all(cell.strip() not in ("", "–") for line in lines for cell in line.strip("| ").split(" | "))


def test_a_second_implementation_finds_the_same_attacker() -> None:
    found = {(line["table"], line["epsilon"], line["arm"], line["question"]): line for line in read_lines(RESULTS)}
    pairs = [(found[*at[:3], "linked_exact"], line) for at, line in found.items() if at[3] == "linked_qif"]
    assert len(pairs) > 20
    assert [own for own, by_qif in pairs if own["mean"] != by_qif["mean"]] == []


def test_a_figure_is_shown_with_its_interval() -> None:
    line = {"mean": "0.8631", "half_width": "0.0021", "question": "real", "draws": "9"}
    assert format_figure(line, interval=True) == "86.3 ± 0.2 %"
    assert format_figure({**line, "draws": "2"}, interval=True) == "86.3 %"
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


@pytest.fixture
def case() -> Case:
    rows = [("a", "1", "x")] * 30 + [("a", "2", "y")] * 10 + [("b", "1", "y")] * 6 + [("b", "2", "x")] * 14
    return Case("small", Path("unused"), code_frame(pl.DataFrame(rows, schema=["g", "v", "s"], orient="row"), "s"), "v")


def test_draws_are_kept(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def judge(case: Case, arm: Arm, epsilon: float, seed: int) -> Judgement:
        asked.append(seed)
        if arm.name == "fails":
            raise RivalError("no reason")
        answers: dict[str, Any] = dict.fromkeys(field.name for field in fields(Judgement))
        return Judgement(**{**answers, "one_way": 1.0, "seconds": 30.0})

    monkeypatch.setattr(rivals, "BUILD", tmp_path)
    monkeypatch.setattr(rivals, "judge", judge)
    arm = Arm("some", "none", _not_called, most_draws=3)
    for draws in (1, 2, 2, 20):
        rivals.run_draws(case, arm, 1.0, draws)
    assert asked == [0, 1, 2]
    for _ in range(2):
        rivals.run_draws(case, Arm("fails", "none", _not_called), 1.0, 20)
    assert asked == [0, 1, 2, 0]
    assert json.loads((tmp_path / "judged" / "small-fails-1.json").read_text()) == {"failed": "no reason"}


def test_the_command_draws_within_its_time_and_says_why_a_figure_is_missing(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, float, int]] = []

    def judge(case: Case, arm: Arm, epsilon: float, seed: int) -> Judgement:
        asked.append((arm.name, epsilon, seed))
        if arm.name == "fails":
            raise RivalError("no reason")
        answers: dict[str, Any] = dict.fromkeys(field.name for field in fields(Judgement))
        return Judgement(**{**answers, "one_way": seed, "seconds": 2.0 if arm.name == "quick" else 50.0, "asking": 0.0})

    names = "quick", "slow", "fails", "old"
    arms = [Arm(name, "none", _not_called, most_draws=4) for name in names]
    before = {"table": "small", "epsilon": "1", "arm": "old", "promise": "none", "draws": "9", "question": "one_way"}
    results, failures = tmp_path / "results.csv", tmp_path / "failures.csv"
    pl.DataFrame([{**before, "mean": "7", "half_width": ""}]).write_csv(results)
    pl.DataFrame({"table": ["small"], "epsilon": ["2"], "arm": ["old"], "reason": ["too slow"]}).write_csv(failures)
    monkeypatch.setattr(rivals, "RESULTS", results)
    monkeypatch.setattr(rivals, "FAILURES", failures)
    monkeypatch.setattr(rivals, "BUILD", tmp_path)
    monkeypatch.setattr(rivals, "judge", judge)
    monkeypatch.setattr(rivals, "all_arms", lambda: iter(arms))
    monkeypatch.setattr(rivals, "_all_cases", lambda: [case])
    monkeypatch.setattr(rivals, "write_page", lambda: None)
    monkeypatch.setattr(rivals, "ProcessPoolExecutor", lambda *_: ThreadPoolExecutor(1))
    monkeypatch.setattr(rivals, "DRAWING", 78 / 60 / len(os.sched_getaffinity(0)))

    rivals.main(["--minutes", "1", "--only", "i"])  # quick and fails
    rivals.main(["--minutes", "1", "--only", "slow"])
    first = [(name, 1.0, 0) for name in ("quick", "fails")]
    more = [("quick", 1.0, seed) for seed in (1, 2)] + [("quick", at, seed) for at in (0.5, 2.0) for seed in range(3)]
    last = [("quick", epsilon, 3) for epsilon in (1.0, 0.5, 2.0)]
    assert asked == [*first, *more, *last, ("slow", 1.0, 0)]
    lines = [line for line in read_lines(results) if line["question"] == "one_way"]
    told = [(line["arm"], line["epsilon"], line["draws"], line["mean"]) for line in lines]
    drawn = [("quick", epsilon, "4", "1.5") for epsilon in ("0.5", "1", "2")]
    assert sorted(line for line in told if line[0] == "quick") == drawn
    assert ("old", "1", "9", "7") in told
    reasons = {(line["arm"], line["epsilon"]): line["reason"] for line in read_lines(failures)}
    late = {("slow", epsilon): "a draw takes 50 processor seconds" for epsilon in ("0.5", "2")}
    never = {("old", "0.5"): "it was not drawn", ("old", "2"): "too slow"}
    undrawn = {("fails", epsilon): "it was not drawn" for epsilon in ("0.5", "2")}
    assert reasons == {("fails", "1"): "no reason", **late, **never, **undrawn}


def test_every_arm_gets_the_same_seconds_and_one_draw_at_least() -> None:
    costs = {("t", arm, epsilon): (cost, most) for arm, cost, most in ARMS for epsilon in (1.0, 2.0)}
    draws = rivals.plan_draws(costs, 200.0)
    assert sum(costs[cell][0] * number for cell, number in draws.items()) <= 200.0
    assert [draws["t", arm, 1.0] for arm, _, _ in ARMS] == [20, 1, 8, 1]
    assert [draws["t", arm, 2.0] for arm, _, _ in ARMS] == [20, 1, 4, 0]
    assert max(rivals.plan_draws(costs, 1e9).values()) == 20
    assert set(rivals.plan_draws(costs, -1.0).values()) == {0, 1}


ARMS = (("quick", 0.1, 20), ("once", 0.1, 1), ("some", 8.0, 20), ("slow", 95.0, 20))


def _not_called(case: Case, epsilon: float, seed: int) -> Published:
    raise AssertionError


def test_records_beyond_the_promise_are_those_that_tell_more_to_who_knows_the_table(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    beliefs = np.array([[30, 0], [0, 10], [0, 6], [14, 0]]) + 1e-3
    place = np.repeat(np.arange(4), [30, 10, 6, 14])
    beliefs = (beliefs / beliefs.sum(axis=1, keepdims=True))[place]
    monkeypatch.setattr(judging, "cross_val_predict", lambda *_, **__: beliefs)
    rows = case.coded.codes.copy()
    rows[:5] = rows[-1]  # synthetic ones are not counted
    keep = np.where(place == 1, 0.0, 1.0)

    def beyond(epsilon: float, synthetic: float) -> Any:
        law = keep, np.full((60, 2), synthetic)
        return judging._beyond(case, Published(rows, np.ones(60), rows, 0.0, linked_law=law), epsilon)

    assert beyond(1.0, 1e-9) == pytest.approx(45 / 55)  # all but those that are never shown
    assert beyond(1.0, 5.0) == 0


def test_coefficients_of_one_indicator_are_differences_of_means_and_of_log_odds(case: Case) -> None:
    analysis = Analysis(("v", "2"), ("v", {"1": 1.0, "2": 2.0}), ("g",))
    found = regress(case, analysis, case.coded.codes, np.ones(case.coded.rows))
    odds = np.log((14 / 6) / (10 / 30))
    assert found.values == pytest.approx([odds, 0.7 - 0.25])
    assert found.errors == pytest.approx([np.sqrt(1 / 14 + 1 / 6 + 1 / 10 + 1 / 30), np.sqrt(0.21 / 20 + 0.1875 / 40)])
    assert found.conclusions().tolist() == [1.0, 1.0]
