"""The description for catalogues: the files and columns that there are, what is sensitive, and nothing of the rows."""

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

from privacyfunnel.report.croissant import CONFORMS
from tests.commands import refused, run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("catalogue")
    rows = {"job": ["clerk", "miner"] * 60, "town": ["u", "v", "u", "w"] * 30, "sex": ["f", "m", "m"] * 40}
    pl.DataFrame(rows).write_csv(folder / "people.csv")
    words = [
        "sanitise",
        "people.csv",
        "-s",
        "job",
        "-p",
        "town",
        "-e",
        0.5,
        "--keep",
        "sex",
        "--accept-kept",
        "--into",
        "out",
    ]
    done = run(*words, "--croissant", "--no-report", "--format", "parquet", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "out/croissant.json" in done.stdout
    return folder


def test_it_describes_the_files_and_columns_that_there_are(made: Path) -> None:
    told = json.loads((made / "out" / "croissant.json").read_text(encoding="utf-8"))
    assert told["conformsTo"] == CONFORMS
    (file,) = told["distribution"]
    assert file["contentUrl"] == "sanitised.parquet"
    assert file["encodingFormat"] == "application/x-parquet"
    assert file["sha256"] == hashlib.sha256((made / "out" / "sanitised.parquet").read_bytes()).hexdigest()
    (rows,) = told["recordSet"]
    assert [field["name"] for field in rows["field"]] == pl.read_parquet(made / "out" / "sanitised.parquet").columns
    assert all(field["source"]["fileObject"]["@id"] == file["@id"] for field in rows["field"])


def test_it_says_what_is_sensitive_and_what_is_not_promised_and_holds_nothing_of_the_rows(made: Path) -> None:
    text = (made / "out" / "croissant.json").read_text(encoding="utf-8")
    told = json.loads(text)
    sensitive = " ".join(told["rai:personalSensitiveInformation"])
    assert "job: not published; LIP with ε = 0.5" in sensitive
    assert "town: randomised" in sensitive
    assert "sex: published unchanged" in sensitive
    assert any("only job is" in line for line in told["rai:dataLimitations"])
    assert "miner" not in text
    assert "120" not in text.replace(told["distribution"][0]["sha256"], "")


def test_it_is_never_overwritten_unasked_and_goes_with_its_release(made: Path) -> None:
    words = [
        "sanitise",
        made / "people.csv",
        "-s",
        "job",
        "-p",
        "town",
        "-e",
        0.5,
        "--into",
        made / "out",
        "--no-report",
    ]
    refused([*words, "--croissant"], "OutputError", "--force")
    assert run(*words, "--force", "--format", "parquet").returncode == 0
    assert not (made / "out" / "croissant.json").exists()
