"""How much to promise: as a factor, in beliefs, and by what an analyst would get."""

import math
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacyfunnel.formatting import format_percent_range
from privacyfunnel.model.promises import LIP
from privacyfunnel.spec.checks import epsilon_of_factor
from tests.commands import found_by, said, turned_down


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [f"{'abc'[i % 3]},{'ill' if i % 3 == 0 and i % 2 else 'well'}" for i in range(300)]
    path.write_text("town,health\n" + "\n".join(rows) + "\n")
    return path


@given(st.floats(1, 1e9))
def test_the_epsilon_of_a_factor_never_allows_more(factor: float) -> None:
    from fractions import Fraction

    from privacyfunnel.mechanisms.exact_arithmetic import exp_below

    assert exp_below(epsilon_of_factor(factor)) <= Fraction(factor)


def test_a_factor_stands_for_its_logarithm_and_only_one_of_both_is_given(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "sanitise",
        "--prior=table",
        people,
        "-s",
        "health",
        "-p",
        "town",
        "--into",
        tmp_path / "out",
        "--no-report",
    ]
    assert "both were given" in turned_down(capsys, *words, "-e", 1, "--factor", 2)
    assert "at least 1" in turned_down(capsys, *words, "--factor", 0.5)
    found = found_by(capsys, *words, "--factor", 2)
    assert found["epsilon"] == pytest.approx(math.log(2))
    assert found["certified"] <= math.log(2)


def test_the_summary_and_a_scan_say_what_a_promise_leaves_of_a_belief(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "sanitise",
        "--prior=table",
        people,
        "-s",
        "health",
        "-p",
        "town",
        "-e",
        1,
        "--into",
        tmp_path / "out",
        "--no-report",
    ]
    _, out, _ = said(capsys, *words, "--details")
    assert "a belief of 30 % about health may become 11.0 to 74.3 %" in out
    assert "no guess grows by more than ×2.72" in out
    _, out, _ = said(capsys, "scan", people, "-s", "health", "--promise", "ldp", "--details")
    assert "a belief of 30 % about health may become 13.6 to 53.9 %" in out


def test_what_several_epsilons_would_cost_is_told_before_anything_is_published(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = found_by(capsys, "scan", people, "-s", "health", "-p", "town", "-e", 0.7)["to_choose"]
    assert [one["epsilon"] for one in found] == [0.1, 0.25, 0.5, 0.7, 1.0, 2.0]
    errors = [one["shares_within"][0]["average"] for one in found]
    assert errors[0] > 0
    assert all(after <= before + 1e-9 for before, after in pairwise(errors))
    assert sorted(one["becomes"][1] for one in found) == [one["becomes"][1] for one in found]
    assert list(people.parent.iterdir()) == [people]


def test_the_page_about_choosing_shows_what_the_command_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "choosing.md").read_text(encoding="utf-8")
    subprocess.run([sys.executable, root / "scripts" / "example_tables.py", tmp_path], check=True, capture_output=True)
    asked = ["--secret", "free meals", "--publish", "mark,track", "--promise", "ldp"]
    _, out, _ = said(capsys, "scan", tmp_path / "school.csv", *asked)
    printed = out.split("would be off:\n\n")[1].split("\n\n")[0]
    assert f"```text\n{printed}\n```" in page


def test_beliefs_in_the_summary_follow_the_certified_epsilon(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sanitise", "--prior=table", people, "-s", "health", "-p", "town", "-e", 50, "--no-report"]
    certified = found_by(capsys, *words, "--into", tmp_path / "one")["certified"]
    assert certified < 49
    _, out, _ = said(capsys, *words, "--again", "--details", "--into", tmp_path / "two")
    least, most = LIP(1).belief_bounds(0.3, certified)
    assert f"may become {format_percent_range(least, most)}" in out
