"""Advice in an error is run on the table that caused it: whoever follows it never comes back to the same error."""

import random
from pathlib import Path

import pytest

from tests.commands import said

ROWS = 3000


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Persons with an id, a birthday, a place, a note, an age, a wage, a code, a town and a job that is secret."""
    path, draw = tmp_path_factory.mktemp("advice") / "people.csv", random.Random(29)
    lines = ["id;born;lat;note;age;wage;code;town;rare;group;area;job"]
    for i in range(ROWS):
        job = draw.choices(("clerk", "miner", "nurse"), (5, 3, 2))[0]
        town = draw.choices(("Ulm", "Wien", "Graz"), (6, 3 + 2 * (job == "miner"), 2))[0]
        note = " ".join(draw.choices(("came", "late", "Maier", "rang", "again", "tel", "home", str(i)), k=8))
        lines.append(
            f"P{i:05};{1930 + i % 80}-{1 + i % 12:02}-{1 + i % 28:02};{48 + draw.random():.5f};{note};{18 + i % 74};"
            f"{draw.randrange(900, 9000) / 100:.2f};{draw.randrange(400)};{town};{'ab'[i % 100 == 0]};{job[0]};"
            f"{'NS'[i % 2]}{i % 9};{job}"
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("words", "advised"),
    [
        ("-p age", ["--bin age=20,40,60,80", "--bin age=values --prior table"]),
        ("-p wage", ["--bin wage=20,40,60,80"]),
        ("-p born", ["--bin born=year --prior table"]),
        ("-p born --bin born=1950,1970", ["--bin born=year --prior table"]),
        ("-p lat", ["--bin lat=48.2,48.4,48.6,48.8"]),
        ("-p id", ["--bin id=prefix:4 --prior table"]),
        ("-p age --bin age=quantiles:4", ["--bin age=0,10,20", "--prior table"]),
        ("-p town -e 0,7", ["--epsilon 0.7"]),
        ("-p town --keep rare", ["--prior table"]),
        ("-p town --prior table --keep group", ["--accept-kept"]),
        ("-p town,area,group -e 0.2", ["--prior table"]),
        ("-p town,area -e 0.5", ["--public-labels town,area", "--prior table"]),
        ("-p town --person-row first", ["--person id"]),
        ("-p town --excel-safe --format parquet", ["--format csv"]),
    ],
)
def test_whoever_follows_an_advice_is_not_refused_again(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, advised: list[str]
) -> None:
    """The first option of each is named in the error."""
    asked = ["sanitise", people, "-s", "job", "--no-report", "--seed", 1]  # the same noise every time
    code, _, error = said(capsys, *asked, *words.split(), "--into", tmp_path / "out", "--ledger", tmp_path / "none")
    assert code == 2
    for i, more in enumerate(advised):
        option = more.split()[0]
        assert option in error, (more, error)
        files = ["--into", tmp_path / f"out{i}", "--ledger", tmp_path / f"{i}", "--anyway"]
        code, _, again = said(capsys, *asked, *without(words.split(), option), *more.split(), *files)
        assert code == 0, (more, again)


def without(words: list[str], option: str) -> list[str]:
    """The words without an option that the advice gives anew."""
    same = {"--epsilon": "-e"}.get(option, option)
    at = [i for i, word in enumerate(words) if word == same]
    return [word for i, word in enumerate(words) if not any(i in {k, k + 1} for k in at)]
