"""`check`: a release.toml is judged before anything is counted, and nothing is written."""

import json
from pathlib import Path

import pytest

from privacyfunnel.cli import main
from tests.commands import refused, run

COLUMNS = 'table = "people.csv"\nsecret = "illness"\npublish = ["town", "age"]\n'
REQUEST = f'{COLUMNS}epsilon = 1.0\ninto = "out"\nprior = "table"\n'
ROWS = "illness,town,age,name\n" + "flu,Delft,30,a\nnone,Gouda,70,b\n" * 5


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(ROWS)
    return tmp_path


def request(folder: Path, more: str = "", text: str = REQUEST) -> Path:
    path = folder / "release.toml"
    path.write_text(text + more)
    return path


def test_a_good_request_is_described_and_nothing_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = request(folder, "keep_order = true\n[bins]\nage = [0, 18, 65]\n")
    before = sorted(folder.rglob("*"))
    assert main(["check", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["valid"]
    assert found["columns"] == ["illness", "town", "age", "name"]
    assert found["left_out"] == ["name"]
    assert [Path(name).name for name in found["files"]] == ["sanitised.csv", "protocol.json", "report.html"]
    assert found["spec"]["keep_order"] is True
    assert main(["check", str(path)]) == 0
    assert "11.0 to 74.3 %" in capsys.readouterr().out
    assert sorted(folder.rglob("*")) == before


def test_what_check_says_would_be_written_is_what_sanitise_writes(folder: Path) -> None:
    path = request(folder, "anyway = true\n[bins]\nage = [0, 18, 65]\n")
    files = json.loads(run("check", path, "--json").stdout)["files"]
    assert run("sanitise", path).returncode == 0
    assert all(Path(name).is_file() for name in files)
    refused(["check", path], "OutputError", "exists already")


@pytest.mark.parametrize(
    ("more", "kind", "part"),
    [
        (
            'keep = "nme"\n',
            "ColumnError",
            "column 'nme'; the table has none among 4. Did you mean 'name'?",
        ),
        ('row_id = "id"\n', "ColumnError", "--row-id names column 'id'"),
        ("[bins]\nname = [0, 1]\n", "ColumnError", "--bin names column 'name', which is neither secret nor published"),
        ("[merge_rare]\nshoe = 10\n", "ColumnError", "--merge-rare names column 'shoe'"),
        ("factor = 2.0\n", "ParameterError", "--factor and --epsilon say the same thing"),
        ("spead = 3\n", "ParameterError", "A spec has no field 'spead'"),
        ('domain = "d.json"\n', "ParameterError", "A domain file is for a mechanism made from counts with noise"),
    ],
)
def test_what_sanitise_would_refuse_is_refused(folder: Path, more: str, kind: str, part: str) -> None:
    refused(["check", request(folder, more)], kind, part)


def test_another_table_may_be_named_and_none_need_be(folder: Path) -> None:
    (folder / "other.csv").write_text("illness,town\nflu,Delft\n")
    refused(["check", request(folder), folder / "other.csv"], "ColumnError", "--publish names column 'age'")
    path = request(folder, text=REQUEST.split("\n", 1)[1])
    assert "columns not checked" in run("check", path).stdout
    refused(["check", folder / "people.csv"], "ParameterError", "check takes a release.toml; got 'people.csv'")
