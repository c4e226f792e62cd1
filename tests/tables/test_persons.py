"""Persons in several rows: one row each, one draw each."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from privacyfunnel import LIP, Joint, ReleaseSpec, apply, design, randomised_response, sanitise, seal
from privacyfunnel.errors import ColumnError, ParameterError, TableError
from privacyfunnel.release.findings.composition_leakage import composition_leak
from privacyfunnel.tables.readers import persons
from privacyfunnel.tables.readers.eager_frames import frame_table
from privacyfunnel.tables.readers.formats import Dialect
from privacyfunnel.tables.readers.table_files import open_table
from tests.adversary.interface import FRAMES, frame_text
from tests.commands import found_by, said, turned_down


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """120 persons of one to four visits each; town and illness stay, weight changes."""
    path = tmp_path / "visits.csv"
    rows = [
        f"p{i},{'abc'[i % 3]},{'ill' if i % 3 == 0 and i % 2 else 'well'},{60 + visit}"
        for i in range(120)
        for visit in range(i % 4 + 1)
    ]
    path.write_text("id,town,health,kg\n" + "\n".join(rows) + "\n")
    return path


def words(visits: Path, *more: object) -> list[object]:
    return [
        "sanitise",
        "--prior=table",
        visits,
        "-s",
        "health",
        "-e",
        1,
        "--into",
        visits.parent / "out",
        "--no-report",
        *more,
    ]


def test_each_person_is_one_row_and_drawn_once(visits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = found_by(capsys, *words(visits, "-p", "town", "--person", "id"))
    assert found["rows"] == 120
    assert found["read_as"] == ["one row for each id"]
    assert len((visits.parent / "out" / "public" / "sanitised.csv").read_text().splitlines()) == 121
    protocol, drawn = (
        visits.parent / "out" / "owner" / "protocol.json",
        visits.parent / "out" / "public" / "sanitised.csv",
    )
    assert found_by(capsys, "audit", protocol, visits, "--sanitised", drawn, "--person", "id")["rows"] == 120
    assert "must have 300 rows" in turned_down(capsys, "audit", protocol, visits, "--sanitised", drawn, "--keep-order")


def test_a_person_whose_id_is_written_otherwise_is_the_same_person() -> None:
    rows = pl.DataFrame({"id": ["7", " 7", "007", "8"], "town": ["a", "a", "a", "b"]})
    for columns in (["town"], ["id", "town"]):
        for which, towns in ((None, ["a", "b"]), ("last", ["a", "b"])):
            found = persons.reduce_to_persons(frame_table(rows), "id", which)
            assert pl.concat(list(found.batches(columns)))["town"].to_list() == towns


def test_rows_of_a_person_must_be_alike_unless_one_is_chosen(visits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = words(visits, "-p", "kg", "--person", "id")
    assert "all rows of one id must be alike in health, kg; they differ" in turned_down(capsys, *asked)
    rows = {
        which: pl.concat(list(open_table(visits, Dialect(person="id", person_row=which)).batches(["kg"])))
        for which in ("first", "last")
    }
    assert rows["first"]["kg"].unique().to_list() == ["60"]
    assert rows["last"]["kg"].to_list() == [str(60 + i % 4) for i in range(120)]
    with pytest.raises(ParameterError, match="first or last"):
        open_table(visits, Dialect(person="id", person_row="middle"))
    with pytest.raises(ParameterError, match="needs person"):
        open_table(visits, Dialect(person_row="first"))


def test_a_row_that_is_nobodys_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,x\na,1\n,2\n")
    with pytest.raises(TableError, match="1 have no id"):
        list(open_table(path, Dialect(person="id")).batches(["x"]))
    with pytest.raises(ColumnError, match="no column 'ID'"):
        open_table(path, Dialect(person="ID"))


def test_persons_and_weights_that_are_plainly_there_are_pointed_out(
    visits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = said(capsys, *words(visits, "-p", "town"))
    assert "'id' repeats" in out
    assert "--person id publishes one row of each" in out


def test_several_draws_of_one_value_tell_more_and_more() -> None:
    joint = Joint.from_counts([[30, 10], [10, 30]])
    sealed = seal(randomised_response(joint, LIP(0.3)), LIP(0.3), joint)
    leaks = [composition_leak(joint, LIP(0.3), [sealed.mechanism] * m).epsilon for m in range(1, 7)]
    assert leaks[0] == pytest.approx(0.3)
    assert leaks == sorted(leaks)
    assert leaks[-1] > leaks[0] + 0.05


@pytest.mark.parametrize("kind", ["polars", "pandas", "pandas, shuffled index", "pyarrow"])
def test_each_person_of_a_frame_is_one_row_and_drawn_once(kind: str) -> None:
    jobs, towns = ["cook", "clerk", "cook", "clerk"], ["k", "m", "m", "k"]
    once = pl.DataFrame({"id": range(400), "job": jobs * 100, "town": towns * 100, "k": ["a", "a", "b", "b"] * 100})
    thrice = pl.concat([once, once.reverse(), once.with_columns(pl.col("id").cast(pl.Int64))])
    asked = ReleaseSpec(secret="job", publish="town", epsilon=0.3, prior="table", person="id", keep="k")
    release = sanitise(FRAMES[kind](thrice), asked)
    assert release.rows == 400
    assert sorted(frame_text(release.table)["k"]) == sorted(once["k"])
    protocol = design(FRAMES[kind](thrice), replace(asked, keep=()))
    assert apply(protocol, FRAMES[kind](thrice), ReleaseSpec(person="id")).rows == 400
    changed = thrice.with_columns(job=pl.when(pl.int_range(pl.len()) < 400).then(pl.lit("clerk")).otherwise("job"))
    with pytest.raises(ColumnError, match="must be alike in job, town"):
        apply(protocol, FRAMES[kind](changed), ReleaseSpec(person="id"))
    assert apply(protocol, FRAMES[kind](changed), ReleaseSpec(person="id", person_row="last")).rows == 400


def test_persons_of_a_lazy_frame_are_refused() -> None:
    rows = pl.LazyFrame({"id": [1, 1, 2, 2], "job": ["a", "a", "b", "b"], "town": ["k", "k", "m", "m"]})
    asked = ReleaseSpec(secret="job", publish="town", epsilon=0.3, prior="table", person="id")
    for function in (sanitise, design):
        with pytest.raises(ParameterError, match="Collect it first"):
            function(rows, asked)
