"""`--for statistics` and `--for balanced`, through the command."""

import csv
import json
import re
from pathlib import Path

import pytest

from tests.commands import refused, said, several, told

COUNTS: list[list[object]] = [["secret", "a", "b", "c"], ["x", 30, 10, 5], ["y", 10, 30, 9], ["z", 5, 9, 7]]


def written(path: Path, lines: list[list[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(lines)
    return path


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    return written(tmp_path / "counts.csv", COUNTS)


def test_solve_says_value_and_bound_in_squared_errors_beside_nats(counts: Path) -> None:
    best, informed = (told("solve", counts, "--epsilon", 0.5, "--for", use) for use in ("statistics", "information"))
    assert best["use"] == "statistics"
    assert best["unit"] == "n × total squared error of shares"
    assert best["bound"] <= best["value"] <= best["bound"] * 1.0011
    assert 0 < best["utility"] <= informed["bound"]
    assert best["leakage"]["lip"] <= 0.5


def test_a_search_that_came_as_near_as_statistics_ask_for_says_so(counts: Path) -> None:
    """No gap below a thousandth of the value is sought: one that was reached is not a search without success."""
    for use in ("statistics", "balanced"):
        best = told("solve", counts, "--epsilon", 0.5, "--for", use)
        assert best["value"] - best["bound"] > 1e-6  # the gap in nats
        assert best["stopped"] == "gap"


def test_balanced_shows_both_bounds(counts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    most = told("solve", counts, "--epsilon", 0.5, "--for", "information")
    best = told("solve", counts, "--epsilon", 0.5, "--for", "balanced")
    assert most["utility"] <= best["bound_nats"] <= most["bound"] + 1e-3
    assert best["utility"] >= 0.99 * best["bound_nats"] - 1e-9
    assert (
        f"no protocol keeps more than {best['bound_nats']:.6f}"
        in said(capsys, "solve", counts, "--epsilon", 0.5, "--for", "balanced")[1]
    )
    assert "nats at most" in said(capsys, "curve", counts, "--epsilons", 0.5, "--for", "balanced")[1]


def test_a_curve_of_balanced_may_rise_since_more_information_is_asked_for(tmp_path: Path) -> None:
    """99.9 % of what ε = 0.4 allows are more nats than 99.9 % of what 0.2 does: no point may stand in for another."""
    rows = [["a", 100, 220, 50, 66, 33], ["b", 30, 80, 200, 300, 20], ["c", 10, 8, 20, 4, 60]]
    table = written(tmp_path / "steep.csv", [["s", *"vwxyz"], *rows])
    found = told("curve", table, "--epsilons", "0.2,0.4", "--for", "balanced:0.999")
    small, large = (point for point in found["points"] if point["name"] == "optimal")
    assert small["value"] < large["value"]
    for point in (small, large):
        assert point["bound"] <= point["value"]
        assert point["utility"] >= 0.999 * point["bound_nats"] - 1e-9


def test_balanced_keeps_what_it_says(counts: Path) -> None:
    most = told("solve", counts, "--epsilon", 0.5, "--for", "information")
    best = told("solve", counts, "--epsilon", 0.5, "--for", "balanced:99.9%")
    assert best["use"] == "balanced:0.999"
    assert best["utility"] >= 0.999 * most["utility"]
    assert best["bound"] <= best["value"]


def test_a_file_of_queries_is_a_workload(counts: Path, tmp_path: Path) -> None:
    queries = written(tmp_path / "queries.csv", [["query", "a", "b"], ["difference", 1, -1]])
    alone = told("solve", counts, "--epsilon", 0.5, "--for", f"statistics:{queries}")
    both = told("solve", counts, "--epsilon", 0.5, "--for", f"statistics:{queries},population")
    assert alone["bound"] <= alone["value"] < both["value"]
    assert both["use"].endswith("population")


def test_a_file_of_weights_makes_some_shares_count_more(counts: Path, tmp_path: Path) -> None:
    weights = written(tmp_path / "weights.csv", [["value", "weight"], ["c", 9]])
    three = written(tmp_path / "three.csv", [["query", *"abc"], ["a", 1, 0, 0], ["b", 0, 1, 0], ["c", 0, 0, 3]])
    by_weight, by_query = (
        told("solve", counts, "--epsilon", 0.5, "--for", f"statistics:{path}") for path in (weights, three)
    )
    assert by_weight["value"] == pytest.approx(by_query["value"], rel=1e-9)
    assert by_weight["use"] == f"statistics:{weights}"
    start = ["solve", counts, "--epsilon", 0.5, "--for", f"statistics:{weights}"]
    for line, kind, part in (
        ("d,1", "ColumnError", "'d' is none"),
        ("a,0", "ParameterError", "above 0"),
        ("a,1\na,2", "ColumnError", "one weight"),
        ("a,x", "ParameterError", "must be numbers"),
    ):
        weights.write_text(f"value,weight\n{line}\n")
        refused(start, kind, part)


def test_what_does_not_fit_is_one_sentence_and_exit_2(counts: Path, tmp_path: Path) -> None:
    start = ["solve", counts, "--epsilon", 0.5, "--for"]
    unknown = written(tmp_path / "unknown.csv", [["query", "a", "bb"], ["difference", 1, -1]])
    words = written(tmp_path / "words.csv", [["query", "a", "b"], ["difference", 1, "minus one"]])
    refused([*start, f"statistics:{unknown}"], "ColumnError", "'bb'", "Did you mean 'b'?")
    refused([*start, f"statistics:{words}"], "ParameterError", "must be numbers")
    bad: list[tuple[list[list[object]], str, str]] = [
        ([["query", "a", "a"], ["twice", 1, 2]], "ColumnError", "names 'a' twice"),
        ([["query", "a", "b"], ["nothing", 0, 0]], "ParameterError", "are the same for all"),
        ([["query", "a", "b", "c"], ["everything", 2, 2, 2]], "ParameterError", "are the same for all"),
        ([["query", "a"], ["much", "inf"]], "ParameterError", "must be finite"),
    ]
    for lines, kind, part in bad:
        refused([*start, f"statistics:{written(tmp_path / 'bad.csv', lines)}"], kind, part)
    refused([*start, "statistics:nowhere"], "ColumnError", "'nowhere' is none")
    refused([*start, "balanced:2"], "ParameterError", "above 0 and below 1")
    refused(["solve", counts, "--epsilon", 0, "--for", "statistics"], "ParameterError", "'a', 'b', 'c'", "larger ε")


def test_a_design_says_what_an_analyst_gets_and_how_good_it_is_for_its_use(
    counts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long: list[list[object]] = [
        ["s", "x", "n"],
        *([s, x, n] for s, *cells in COUNTS[1:] for x, n in zip("abc", cells, strict=True)),
    ]
    words = [
        "design",
        "--prior=table",
        written(tmp_path / "long.csv", long),
        "--counts",
        "n",
        "--secret",
        "s",
        "--publish",
        "x",
    ]
    words += ["--epsilon", "0.5", "--for", "values", "--into", str(tmp_path / "out" / "protocol.json")]
    code, summary, _ = said(capsys, *words, "--details")
    assert code == 0
    best = told("solve", counts, "--epsilon", 0.5, "--for", "values")
    assert best["value"] == pytest.approx(best["bound"])
    assert re.search(r"made for +values; within [\d.e-]+ % of the best that is possible, proved", summary)
    assert "each share of x within ±" in summary


def test_the_summary_says_first_what_an_analyst_gets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The protocol that is best for statistics tells shares no worse than the one that keeps most information."""
    counted = [(s, x, n) for s, *cells in COUNTS[1:] for x, n in zip("abc", cells, strict=True)]
    table = written(tmp_path / "rows.csv", [["s", "x"], *([s, x] for s, x, n in counted for _ in range(int(str(n))))])
    start = several(table, tmp_path / "out", "x", "--force", "--again", secret="s", epsilon=0.3)
    errors = {}
    for use in ("information", "statistics"):
        code, summary, _ = said(capsys, *start, "--for", use, "--details")
        assert code == 0
        first = [line.split()[0] for line in summary.splitlines() if line.startswith(("shares", "information"))]
        assert first == ["shares"]
        assert "nats" not in summary
        assert "each share of x within ±" in summary
        (within,) = json.loads(said(capsys, *start, "--for", use, "--json")[1])["shares_within"]
        assert within["worst_value"] in {"a", "b", "c"}
        errors[use] = within["average"]
    assert errors["statistics"] <= errors["information"]
