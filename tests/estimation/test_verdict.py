"""A release that says nothing is refused, and what is said to help helps: every piece of advice is run."""

import random
import re
from pathlib import Path
from typing import Any

import pytest

from privacyfunnel.errors import ParameterError
from privacyfunnel.estimation.verdict import COARSE, GOOD, USELESS, Verdict
from privacyfunnel.hints import word_for_command_line
from privacyfunnel.release.sanitise import sanitise_file
from privacyfunnel.spec import ReleaseSpec
from tests.commands import said

OPTION = re.compile(r"(--(?:epsilon|bin) \S+) \(about")
COLUMN = re.compile(r"leave out (\w+) \(about")
ROWS = re.compile(r"about ([\d,]+) rows")


@pytest.mark.parametrize(
    ("verdict", "grade"),
    [
        (Verdict(0.001, 0.9, 0.8), GOOD),
        (Verdict(0.1, 0.3, 0.2), COARSE),
        (Verdict(0.001, 0.9, 0.8, merged=0.5), COARSE),  # half of the rows have a label that is not named
        (Verdict(0.44, 0.3, 0.2), USELESS),
        (Verdict(0.1, 0.3, 0.2, most_error=0.05), USELESS),  # for everybody
        (Verdict(0.06, 0.025, 0.02), USELESS),
        (Verdict(0.01, 0.025, 0.02), GOOD),  # margins of very many values
        (Verdict(None, 0.6, 0.5), GOOD),
        (Verdict(None, 0.01, 0.01), USELESS),
        (Verdict(None, None, 0.0), USELESS),
    ],
)
def test_the_grade_follows_error_real_share_and_information(verdict: Verdict, grade: str) -> None:
    assert verdict.grade == grade


def table(path: Path, rows: int) -> Path:
    draw = random.Random(1)
    lines = []
    for i in range(rows):
        secret = "ab"[i % 2]
        town = secret if draw.random() < 0.9 else "ab"[draw.randrange(2)]
        lines.append(f"{secret},{town},{'fm'[i // 2 % 2]}\n")
    path.write_text("s,town,sex\n" + "".join(lines))
    return path


def test_a_useless_release_is_refused_and_every_piece_of_advice_helps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = table(tmp_path / "people.csv", 60)
    asked: dict[str, Any] = {"secret": "s", "publish": ["town", "sex"], "epsilon": 0.02, "prior": "table"}
    with pytest.raises(ParameterError, match="This release would be useless: shares off by") as refused:
        sanitise_file(people, ReleaseSpec(**asked, into=tmp_path / "no"))
    assert not (tmp_path / "no").exists()
    sentence = word_for_command_line(str(refused.value.sentence))
    words = ["sanitise", people, "-s", "s", "--prior", "table", "--no-report"]
    options, columns, rows = (pattern.findall(sentence) for pattern in (OPTION, COLUMN, ROWS))
    assert options
    assert columns
    advised = [["-p", "town,sex", *option.split()] for option in options]
    advised += [["-p", "sex" if name == "town" else "town", "-e", 0.02] for name in columns]
    for i, more in enumerate(advised):
        code, out, err = said(capsys, *words, *more, "--again", "--into", tmp_path / f"out{i}")
        assert (code, err) == (0, ""), more
        assert "useless:" not in out
    for number in rows:
        words[1] = table(tmp_path / "more.csv", int(number.replace(",", "")))
        assert said(capsys, *words, "-p", "town,sex", "-e", 0.02, "--into", tmp_path / "more")[0] == 0
    words[1] = people
    anyway = said(capsys, *words, "-p", "town,sex", "-e", 0.02, "--anyway", "--again", "--into", tmp_path / "anyway")
    assert anyway[0] == 0
    assert "Accuracy     useless: " in anyway[1]


@pytest.mark.parametrize("prior", ["table", "model"])
def test_trying_leaves_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str], prior: str) -> None:
    people = table(tmp_path / "people.csv", 2000)
    words = ["sanitise", people, "-s", "s", "-p", "sex", "--prior", prior, "--factor", 2]
    for _ in range(2):
        code, out, err = said(capsys, *words, "--try")
        assert (code, err) == (0, "")
        assert out.startswith("Tried        nothing was drawn, written or recorded")
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_without_an_epsilon_no_belief_more_than_doubles() -> None:
    assert 0.6931 < ReleaseSpec(prior="table", secret="s", publish="x").promise_value.epsilon < 0.6932


def test_a_preset_sets_what_is_not_given() -> None:
    for_all = ReleaseSpec(secret="s", publish="x", for_whom="everybody")
    assert for_all.publishes_model
    assert for_all.as_ == "values"
    assert ReleaseSpec(secret="s", publish="x", for_whom="everybody", as_="labels").as_ == "labels"
    assert ReleaseSpec(secret="s", publish="x", for_whom="inside").with_shares


def test_a_column_that_tells_the_secret_by_itself_is_never_called_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(3)
    jobs = [draw.choice(("clerk", "miner", "nurse")) for _ in range(6000)]
    rows = "".join(f"{job},{job[0]},{draw.choice('ab')}\n" for job in jobs)
    people = tmp_path / "people.csv"
    people.write_text("job,group,house\n" + rows, encoding="utf-8")
    for column, copy in (("group", True), ("house", False)):
        words = ["sanitise", people, "-s", "job", "-p", column, "-e", 3, "--seed", 1, "--try"]
        code, out, _ = said(capsys, *words)
        assert code == 0
        assert ("as group tells the secret by itself" in out) is copy
        assert ("Accuracy     good" in out) is not copy
