"""--for, --as values, --average and funnel, through the command."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from privacyfunnel.mechanisms.sealing import SealedProtocol
from tests.commands import found_by, refused, said, sanitise, told, turned_down

COUNTS = "S,1,2,3,4\na,10,20,5,6\nb,3,8,20,30\n"
WORDS = "S,low,mid,high\na,10,20,5\nb,3,8,20\n"


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    path = tmp_path / "counts.csv"
    path.write_text(COUNTS)
    return path


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.csv"
    path.write_text(WORDS)
    return path


@pytest.mark.parametrize(
    ("use", "unit", "less"),
    [
        ("information", "nats of information about X", False),
        ("values", "chance of a wrong guess", True),
        ("values:margin", "chance that the published value is not the true one", True),
        ("distance:absolute", "expected absolute error", True),
        ("distance:squared", "expected squared error", True),
        ("distance:squared,margin", "expected squared error", True),
    ],
)
def test_solve_states_value_bound_and_unit_of_the_use_beside_utility_and_leakage(
    counts: Path, capsys: pytest.CaptureFixture[str], use: str, unit: str, less: bool
) -> None:
    found = found_by(capsys, "solve", counts, "--epsilon", 0.3, "--for", use)
    assert (found["use"], found["unit"]) == (use, unit)
    assert 0 <= (found["value"] - found["bound"]) * (1 if less else -1) < 2e-6
    assert found["leakage"]["lip"] <= 0.3
    assert (found["utility"] == found["value"]) == (use == "information")
    other = found_by(capsys, "solve", counts, "--epsilon", 0.3, "--for", use, "--method", "randomised-response")
    assert (other["value"] >= found["bound"]) == less
    assert other["bound"] is None


def test_a_table_of_costs_is_followed_and_a_bad_one_refused(
    words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = tmp_path / "costs.csv"
    cases = {
        "": "must hold a header of values and a line per value",
        "v,low,mid\nlow,0,1\nmid,1,0\n": "each of the 3 values of 'X' and no others; ",
        "v,low,mid\nlow,0,1\nhigh,1,0\n": "a line and a column for each value, once",
        "v,low,mid,high\nlow,0,1,-1\nmid,1,0,1\nhigh,2,1,0\n": "costs must be finite and at least 0",
        "v,low,mid,high\nlow,0,1,inf\nmid,1,0,1\nhigh,2,1,0\n": "costs must be finite and at least 0",
        "v,low,mid,high\nlow,0,1,much\nmid,1,0,1\nhigh,2,1,0\n": "costs must be numbers",
    }
    for content, part in cases.items():
        costs.write_text(content)
        assert part in turned_down(capsys, "solve", words, "--epsilon", 1, "--for", f"distance:{costs}")
    costs.write_text("v,high,mid,low\nlow,2,1,0\nmid,1,0,1\nhigh,0,1,2\n")
    by_file = found_by(capsys, "solve", words, "--epsilon", 0.3, "--for", f"distance:{costs}")
    numbers = tmp_path / "numbers.csv"
    numbers.write_text(WORDS.replace("low,mid,high", "0,1,2"))
    by_number = found_by(capsys, "solve", numbers, "--epsilon", 0.3, "--for", "distance")
    assert by_file["value"] == pytest.approx(by_number["value"], abs=1e-9)
    by_order = found_by(capsys, "solve", words, "--epsilon", 0.3, "--for", "distance", "--ordered", "X=low,mid,high")
    assert by_order["value"] == pytest.approx(by_number["value"], abs=1e-9)


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (["--for", "distance"], "values that are numbers; some of 'X' are none"),
        (["--for", "distance", "--ordered", "X=low,high"], "each of the 3 values of 'X' once"),
        (["--for", "distance", "--ordered", "Y=low,high"], "must be of a published column; 'Y' is none"),
        (["--ordered", "X"], "have an order of their own; some of 'X' are neither"),
        (["--for", "distance:squarred"], "'squarred' is none. Did you mean 'squared'?"),
        (["--for", "valus"], "there is none called 'valus'. Did you mean 'values'?"),
        (["--for", "values:most"], "not as 'values:most'"),
        (["--for", "information:all"], "nothing behind it"),
        (["--for", "distance:nowhere.csv"], "no file 'nowhere.csv'"),
        (["--for", "values", "--method", "real-or-synthetic"], "real-or-synthetic is not made for 'values'"),
        (["--average", "-1"], "--average must be a finite number at least 0; got '-1'."),
        (["--average", "0", "--method", "randomised-response"], "an average is for the method optimal"),
        (["--average", "0.1", "--for", "values"], "an average is solved for the information"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(
    words: Path, capsys: pytest.CaptureFixture[str], more: list[str], part: str
) -> None:
    assert part in turned_down(capsys, "solve", words, "--epsilon", 1, *more)


@pytest.mark.parametrize("use", ["values", "distance"])
def test_a_method_that_a_refusal_names_serves_the_use(
    counts: Path, capsys: pytest.CaptureFixture[str], use: str
) -> None:
    sentence = turned_down(capsys, "solve", counts, "--epsilon", 0.3, "--for", use, "--method", "real-or-synthetic")
    assert sentence.startswith(f"ParameterError: real-or-synthetic is not made for '{use}")
    named = sentence.rstrip(".\n").split("use the method ")[1].replace(" or ", ", ").split(", ")
    for other in named:
        found_by(capsys, "solve", counts, "--epsilon", 0.3, "--for", use, "--method", other)


def test_files_of_numbers_may_be_written_as_europeans_write_them(
    words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = "v,low,mid,high\nlow,0,1.5,2\nmid,1,0,1\nhigh,2,1,0\n"
    found = []
    for name, text in (
        ("a", content),
        ("b", content.replace(",", ";").replace(".", ",")),
        ("c", content.replace(",", "\t")),
    ):
        (tmp_path / f"{name}.csv").write_text(text)
        costs = f"distance:{tmp_path}/{name}.csv"
        found.append(found_by(capsys, "solve", words, "--epsilon", 0.3, "--for", costs)["value"])
    assert found[0] == found[1] == found[2]
    words.write_text(words.read_text().replace(",", ";"))
    again = found_by(capsys, "solve", words, "--epsilon", 0.3, "--for", f"distance:{tmp_path}/a.csv")
    assert again["value"] == found[0]


def test_a_curve_is_drawn_in_the_unit_of_the_use(
    counts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "drawn"
    found = found_by(capsys, "curve", counts, "--for", "values", "--epsilons", "0.2,0.5", "--into", into)
    assert {point["name"] for point in found["points"]} >= {"optimal", "randomised-response"}
    best = [point for point in found["points"] if point["name"] == "optimal"]
    assert best[0]["value"] > best[1]["value"] >= best[1]["bound"]
    assert pl.read_csv(into / "curve.csv")["unit"].unique().to_list() == ["chance of a wrong guess"]


def test_values_are_published_directly_with_the_margin_kept(adult: Path, tmp_path: Path) -> None:
    """Drawn from the posteriors of the information optimum, a value was right with chance .8596; I was 1.6583."""
    found = told(*sanitise(adult, tmp_path / "out", method="optimal", **{"as": "values"}))
    assert found["use"] == "values:margin"
    assert found["value"] == pytest.approx(1 - 0.8967, abs=6e-5)
    assert found["information_nats"] == pytest.approx(1.6952, abs=6e-5)
    assert found["unchanged_expected"] == pytest.approx(0.8967, abs=6e-5)
    assert any("shares of education in this table can be computed" in said for said in found["not_promised"])
    sealed = SealedProtocol.load(tmp_path / "out" / "owner" / "protocol.json")
    assert sealed.epsilon <= 1
    before, after = shares(adult), shares(tmp_path / "out" / "public" / "sanitised.csv")
    assert set(after) <= set(before)
    assert all(abs(after.get(value, 0) - share) < 0.02 for value, share in before.items())


def shares(path: Path) -> dict[str, float]:
    values = pl.read_csv(path, columns=["education"])["education"].value_counts(normalize=True)
    return dict(values.iter_rows())


def test_several_columns_are_published_as_values_too_and_a_named_use_is_served_as_it_is(
    some: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def published(name: str, *more: str) -> Any:
        order = ["--secret", "income", "--publish", "relationship,sex", "--epsilon", 0.3, "--into", tmp_path / name]
        return found_by(
            capsys, "sanitise", "--prior=table", some, "--no-report", "--again", *order, "--as", "values", *more
        )

    kept, free = published("kept"), published("free", "--for", "values")
    assert (kept["use"], free["use"]) == ("values:margin", "values")
    assert free["value"] <= kept["value"]
    own, drawn = (
        set(pl.read_csv(path, infer_schema=False).select("relationship", "sex").iter_rows())
        for path in (some, tmp_path / "kept" / "public" / "sanitised.csv")
    )
    assert drawn <= own


def test_an_average_alone_is_solved_for_comparison_and_its_worst_case_stated(
    counts: Path, some: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = found_by(capsys, "solve", counts, "--average", 0.02, "--gap", 1e-4)
    both = found_by(capsys, "solve", counts, "--average", 0.02, "--epsilon", 0.3, "--gap", 1e-4)
    assert alone["promise"] is None
    assert alone["about_secret"] <= 0.02
    assert alone["leakage"]["lip"] > 0.3 >= both["leakage"]["lip"]
    assert both["utility"] <= alone["bound"] <= alone["utility"] + 1e-4
    words = [
        "sanitise",
        "--prior=table",
        some,
        "--no-report",
        "--again",
        "--secret",
        "income",
        "--publish",
        "sex",
        "--average",
        0.005,
    ]
    refused([*words, "--into", tmp_path / "no"], "ParameterError", "A promise needs its ε", "--average-only")
    assert not (tmp_path / "no").exists()
    made = found_by(capsys, *words, "--average-only", "--gap", 1e-4, "--into", tmp_path / "yes")
    assert "Only the average leakage about income is bounded" in made["not_promised"][0]
    stated = SealedProtocol.load(tmp_path / "yes" / "owner" / "protocol.json").epsilon  # rounded up, to four digits
    assert made["certified"] <= stated <= made["certified"] + 1e-4
    summary = said(capsys, *words, "--average-only", "--gap", 1e-4, "--into", tmp_path / "yes", "--force", "--details")[
        1
    ]
    assert "none about income, only an average; as LIP it is certified" in summary
    assert "0 to 100 %" not in summary  # what nobody asked for leaves nothing open
    assert made["bound_nats"] is None  # what holds with the average is no bound on what the promise allows


def test_the_funnel_is_drawn_beside_greedy_merging_and_promises(
    counts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "drawn"
    found = found_by(capsys, "funnel", counts, "--averages", "0.01,0.05", "--gap", 1e-4, "--into", into)
    for point in found["points"]:
        assert point["about_secret"] <= point["average"]
        assert point["greedy"] - 1e-4 <= point["utility"] <= point["bound"] <= point["utility"] + 1e-4
    assert {each["promise"] for each in found["promises"]} == {"lip", "ldp"}
    assert sorted(path.name for path in into.iterdir()) == ["funnel.csv", "funnel.png", "funnel.svg"]
    assert "--force" in turned_down(capsys, "funnel", counts, "--into", into)


def test_a_search_that_was_cut_short_is_said_to_be_and_one_that_ended_is_not(
    adult: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = sanitise(adult, tmp_path / "cut", method="optimal", publish="education,sex", epsilon=0.3)
    found = found_by(capsys, *words, "--time-limit", 0.001, "--for", "information")
    assert (found["search_cut"], found["stopped"]) == (True, "time")
    assert found["missing_at_most"] == pytest.approx(found["bound_nats"] - found["information_nats"])
    whole = sanitise(adult, tmp_path / "whole", method="optimal", publish="sex", secret="income")
    ended = found_by(capsys, *whole, "--for", "information")
    assert (ended["search_cut"], ended["stopped"]) == (False, "gap")
    _, text, _ = said(capsys, *words, "--time-limit", 0.001, "--force", "--for", "information")
    assert "a longer --time-limit might be more accurate" in text


def test_a_design_a_curve_and_a_funnel_say_what_ended_their_searches(
    adult: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = [adult, "--secret", "occupation", "--publish", "education,sex"]
    design = [
        "design",
        "--prior=table",
        *columns,
        "-e",
        0.3,
        "--for",
        "information",
        "--method",
        "optimal",
        "--time-limit",
        0.001,
    ]
    found = found_by(capsys, *design, "--into", tmp_path / "one.json")
    assert (found["search_cut"], found["stopped"]) == (True, "time")
    assert found["missing_at_most"] == pytest.approx(found["bound_nats"] - found["information_nats"])
    _, text, _ = said(capsys, *design, "--into", tmp_path / "two" / "protocol.json", "--details")
    assert re.search(r"made for +information; within [\d.]+ % of the best that is possible, proved", text)
    _, text, _ = said(capsys, "curve", *columns, "--epsilons", "0.3", "--time-limit", 0.001)
    assert "Cut short at ε = 0.3: stopped by the time limit; a longer --time-limit may find more." in text
    columns[-1] = "education"
    _, text, _ = said(capsys, "funnel", *columns, "--averages", "0.02", "--time-limit", 0.001)
    assert "Cut short at 0.0200: stopped by the time limit; a longer --time-limit may find more." in text
