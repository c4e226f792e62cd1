"""--with-shares, end to end: published by `sanitise`, said, audited, and used by `estimate` until it is told not to."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.commands import found_by, run, several

COLUMNS = "relationship,sex"


@pytest.fixture
def out(some: Path, tmp_path: Path) -> Path:
    """A release of two columns with their shares, of which the summary says what they give away; one column is kept."""
    done = run(
        *several(
            some,
            tmp_path / "out",
            COLUMNS,
            "--with-shares",
            "--keep",
            "race",
            "--accept-kept",
            "--details",
            secret="income",
            epsilon=0.1,
        )
    )
    assert "The exact shares of relationship & sex are published in protocol.json" in done.stdout
    return tmp_path / "out"


def test_the_shares_of_each_column_stand_in_the_file_which_an_audit_checks(
    some: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = pl.read_csv(some, infer_schema=False)
    stated = json.loads((out / "owner" / "protocol.json").read_text())["shares"]
    for column, counts in zip(COLUMNS.split(","), stated, strict=True):
        assert counts == people[column].value_counts().sort(column)["count"].to_list()
    assert found_by(capsys, "audit", out / "owner" / "protocol.json", some, "--secret", "income")["holds"] is True


def test_estimates_are_exact_for_columns_calibrated_for_cells_and_groups_and_free_where_asked(
    some: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = pl.read_csv(some, infer_schema=False)
    files = [out / "owner" / "protocol.json", out / "public" / "sanitised.csv"]
    alone = found_by(capsys, "estimate", *files)
    for table in alone["tables"]:
        true = dict(people[table["columns"][0]].value_counts(normalize=True).iter_rows())
        for cell in table["cells"]:
            assert cell["lower"] == cell["share"] == cell["upper"]
            assert cell["share"] == pytest.approx(true[cell["labels"][0]], abs=1e-12)
    assert "exact shares of the protocol file" in " ".join(alone["notes"])

    cross, free = (
        found_by(capsys, "estimate", *files, "--columns", COLUMNS, *more)["tables"][0]["cells"]
        for more in ([], ["--no-shares"])
    )
    men = sum(cell["share"] for cell in cross if cell["labels"][1] == "Male")
    assert men == pytest.approx((people["sex"] == "Male").mean(), abs=1e-3)
    width, wider = (sum(cell["upper"] - cell["lower"] for cell in cells) for cells in (cross, free))
    assert width < 0.9 * wider
    groups = found_by(capsys, "estimate", *files, "--by", "race", "--columns", "sex")["tables"]
    male = sum(
        table["rows"] * cell["share"] for table in groups for cell in table["cells"] if cell["labels"] == ["Male"]
    )
    assert male / len(people) == pytest.approx((people["sex"] == "Male").mean(), abs=5e-3)
