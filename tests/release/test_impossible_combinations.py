"""Combinations that nobody has: real files through the real command line, and what cannot be."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from privacyfunnel import ReleaseSpec, design, sanitise
from privacyfunnel.errors import ColumnError, ParameterError, TableError
from privacyfunnel.model.promises import LIP
from tests.commands import run
from tests.release.test_wide_release import people, spec

ZEROS = (
    "relationship,sex,marital-status,race\nWife,Male,,\nHusband,Female,,\nUnmarried,,Married-civ-spouse,\n"
    ",Female,Divorced,\nNot-in-family,Male,Never-married,White\n"  # which no tree has beside the others
)


def test_impossible_combinations_are_never_published(tmp_path: Path) -> None:
    """Neither as synthetic rows nor where a row of the table has one; and the promise is proved as it was."""
    (tmp_path / "zeros.csv").write_text(ZEROS)
    strange = pl.DataFrame({"relationship": ["Husband"] * 40, "sex": ["Female"] * 40})
    rows = people().select("income", "relationship", "sex", "marital-status", "race")
    rows = pl.concat([rows, rows.head(40).with_columns(strange.get_columns())])
    rows.write_csv(tmp_path / "people.csv")
    words = ["--secret", "income", "--publish", "relationship,sex,marital-status,race", "-e", "2"]
    out = tmp_path / "out"
    done = run("sanitise", tmp_path / "people.csv", *words, "--zeros", tmp_path / "zeros.csv", "--into", out)
    assert done.returncode == 0, done.stderr
    assert "rows have a combination that --zeros calls impossible" in " ".join(done.stdout.split())
    published = pl.read_csv(out / "public" / "sanitised.csv")
    assert {"Husband", "Wife"} & set(published["relationship"])
    assert published.filter(relationship="Husband", sex="Female").is_empty()
    assert published.filter(relationship="Wife", sex="Male").is_empty()
    named = {"relationship": "Not-in-family", "sex": "Male", "marital-status": "Never-married"}
    assert published.filter(race="White", **named).is_empty()
    assert not published.filter(race="Black", **named).is_empty()
    assert published.filter(pl.col("sex") == "Female", pl.col("marital-status") == "Divorced").is_empty()
    assert run("audit", out / "public").returncode == 0


@pytest.mark.parametrize(
    ("text", "error", "parts"),
    [
        ("relationship,sex\nHusband,\n", TableError, ["line 2 names 1"]),
        ("relationship,sex\n", TableError, ["names none"]),
        ("relationship,age\nHusband,17\n", ColumnError, ["'age', which is not published"]),
        ("race,sex\nWhite,Male\nWhite,Female\n", ParameterError, ["leave 'White' of 'race' nothing to occur with"]),
        ("race,race\nWhite,Black\n", ColumnError, ["'race' is named twice"]),
    ],
)
def test_impossible_combinations_that_no_model_can_have_are_refused(
    tmp_path: Path, text: str, error: type[Exception], parts: list[str]
) -> None:
    (tmp_path / "zeros.csv").write_text(text)
    with pytest.raises(error) as caught:
        design(people(), spec(zeros=tmp_path / "zeros.csv"))
    for part in parts:
        assert part in str(caught.value)
    with pytest.raises(ParameterError, match="under a published model"):
        design(people(), spec(zeros=tmp_path / "zeros.csv", prior="table"))


def test_impossible_combinations_of_a_domain_file_are_never_published_or_refused(tmp_path: Path) -> None:
    """Those of published columns; a mechanism that cannot avoid them is none for this file."""
    rows = pl.DataFrame({"s": ["x", "y"] * 400, "a": ["0", "1", "1", "0"] * 200, "b": ["0"] * 300 + ["1"] * 500})
    rows = rows.with_columns(c=pl.Series(["0", "1", "1"] * 266 + ["0", "0"]))
    columns = {name: {"labels": sorted(set(rows[name])), "missing": False} for name in rows.columns}
    content = {"format": "privacyfunnel domain", "version": 1, "columns": columns}
    path = tmp_path / "domain.json"
    path.write_text(json.dumps({**content, "impossible": [{"a": "0", "b": "1", "c": "1"}]}))
    wide = ReleaseSpec(secret="s", publish=["a", "b", "c"], promise=LIP(2), domain=path)
    published = sanitise(rows, replace(wide, seed=1)).table
    assert published.filter(a="0", b="1", c="1").is_empty()
    assert not published.filter(a="0", b="1", c="0").is_empty()
    assert sanitise(rows, replace(wide, publish=["a", "b"])).method == "optimal"
    with pytest.raises(ParameterError, match="which real or synthetic records alone avoid"):
        sanitise(rows, replace(wide, method="optimal"))
