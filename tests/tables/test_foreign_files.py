"""Files of other programs: what they show is what is read."""

import json
import zipfile
from html import escape
from pathlib import Path

import pandas as pd
import polars as pl
import pyreadstat
import pytest

from privacyfunnel.errors import ColumnError, ParameterError, TableError
from privacyfunnel.release.sanitise import sanitise_file
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.readers.formats import Dialect
from privacyfunnel.tables.readers.table_files import open_table
from tests.commands import found_by

CODED = pd.DataFrame({"sex": [1.0, 2.0, 2.0, None], "age": [30.0, 41.5, 20.0, 7.0], "kids": [0.0, 2.0, None, 1.0]})
LABELS = {"sex": {1: "female", 2: "male"}}
READ = [("female", "30.0", "0"), ("male", "41.5", "2"), ("male", "20.0", None), (None, "7.0", "1")]


def workbook(path: Path, sheets: dict[str, list[list[str | int]]], merged: str = "") -> Path:
    """The least that Excel takes for a workbook; cells of every sheet may be merged."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    packed = "http://schemas.openxmlformats.org/package/2006"
    names = "".join(f'<sheet name="{escape(n)}" sheetId="{i}" r:id="r{i}"/>' for i, n in enumerate(sheets, 1))
    links = "".join(
        f'<Relationship Id="r{i}" Type="{office}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in range(1, len(sheets) + 1)
    )
    root = f'<Relationship Id="r0" Type="{office}/officeDocument" Target="xl/workbook.xml"/>'
    kinds = '<Default Extension="xml" ContentType="application/xml"/>'
    related = f'<Relationships xmlns="{packed}/relationships">'
    files = {
        "[Content_Types].xml": f'<Types xmlns="{packed}/content-types">{kinds}</Types>',
        "_rels/.rels": f"{related}{root}</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f"{related}{links}</Relationships>",
    }
    merges = f'<mergeCells><mergeCell ref="{merged}"/></mergeCells>' if merged else ""
    with zipfile.ZipFile(path, "w") as book:
        for name, text in files.items():
            book.writestr(name, text)
        for number, rows in enumerate(sheets.values(), 1):
            cells = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
            book.writestr(
                f"xl/worksheets/sheet{number}.xml",
                f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData>{merges}</worksheet>',
            )
    return path


def cell(value: str | int) -> str:
    if isinstance(value, int):
        return f"<c><v>{value}</v></c>"
    return f'<c t="inlineStr"><is><t>{value}</t></is></c>'


def rows(path: Path, *columns: str, dialect: Dialect | None = None) -> list[tuple[str | None, ...]]:
    table = open_table(path, dialect or Dialect())
    return pl.concat(list(table.batches(columns or table.columns))).cast(pl.String).rows()


@pytest.mark.parametrize("end", ["dta", "sav"])
def test_codes_come_as_their_labels_and_whole_numbers_whole(tmp_path: Path, end: str) -> None:
    path = tmp_path / f"people.{end}"
    getattr(pyreadstat, f"write_{end}")(CODED, path, variable_value_labels=LABELS)
    assert rows(path) == READ
    assert open_table(path).text_format.detection_notes == ("labels of sex",)


def test_a_sheet_is_read_and_the_first_unless_another_is_named(tmp_path: Path) -> None:
    first, second = [["town", "ill"], ["Köln", 1], ["Århus", 0]], [["town"], ["Liège"]]
    path = workbook(tmp_path / "people.xlsx", {"2024": first, "2023": second})  # type: ignore[dict-item]
    assert rows(path) == [("Köln", "1"), ("Århus", "0")]
    assert open_table(path).text_format.detection_notes == ("the sheet 2024",)
    assert rows(path, dialect=Dialect(sheet="2023")) == [("Liège",)]
    with pytest.raises(ParameterError, match="no sheet 'x'; it has 2024, 2023"):
        open_table(path, Dialect(sheet="x"))


def test_the_way_through_the_command_from_a_workbook_to_estimates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = [["town", "ill"], *([["Köln", "Århus", "Liège"][i % 3], i % 2 * (i % 3)] for i in range(120))]
    path, into = workbook(tmp_path / "people.xlsx", {"all": people}), tmp_path / "out"  # type: ignore[dict-item]
    found_by(
        capsys, "sanitise", "--prior=table", path, "-s", "ill", "-p", "town", "-e", 1, "--into", into, "--no-report"
    )
    assert (into / "public" / "sanitised.csv").read_bytes().startswith(b"\xef\xbb\xbftown,")
    assert found_by(
        capsys, "audit", into / "owner" / "protocol.json", path, "--sanitised", into / "public" / "sanitised.csv"
    )["holds"]
    found_by(capsys, "estimate", into / "owner" / "protocol.json", into / "public" / "sanitised.csv")


def test_json_by_lines_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text("".join(json.dumps({"a": i, "b": "x" if i else None}) + "\n" for i in range(2)))
    assert rows(path) == [("0", None), ("1", "x")]


@pytest.mark.parametrize(
    ("name", "said"),
    [("t.xls", "save it as .xlsx or CSV"), ("t.txt", "the end .csv"), ("t.rds", "In R"), ("t.what", "in one of these")],
)
def test_a_name_that_says_no_format_is_answered_with_what_to_do(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match=said):
        open_table(tmp_path / name)


@pytest.mark.parametrize("name", ["t.xlsx", "t.dta", "t.sav", "t.sas7bdat", "t.jsonl"])
def test_a_damaged_file_gets_one_sentence_that_quotes_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("secret,secret\n1,2\n")
    with pytest.raises(TableError, match="damaged or something else") as caught:
        open_table(tmp_path / name)
    assert "secret" not in str(caught.value)


TITLED: list[list[str | int]] = [["School register 2026"], [""], ["town", "sex", "meal"], ["k", "f", 1], ["l", "m", 0]]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
@pytest.mark.parametrize("blank", ["", ";;"])
def test_titles_above_the_names_of_a_text_file_are_found_and_skipped(tmp_path: Path, encoding: str, blank: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"Übersicht, Jahr 2026{blank}\n{blank}\ntown;sex;meal\nk;f;1\nl;m;0\n", encoding=encoding)
    table = open_table(path)
    assert table.columns == ("town", "sex", "meal")
    assert "names in row 3" in table.text_format.detection_notes
    assert rows(path, "town", "meal") == [("k", "1"), ("l", "0")]
    assert rows(path, "meal", dialect=Dialect(header_row=3)) == [("1",), ("0",)]


def test_titles_above_the_names_of_a_sheet_are_found_and_skipped(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", {"all": TITLED})
    assert open_table(path).columns == ("town", "sex", "meal")
    assert rows(path, "town", "meal") == [("k", "1"), ("l", "0")]
    assert rows(path, "sex", dialect=Dialect(header_row=3)) == [("f",), ("m",)]


def test_of_several_sheets_the_first_with_a_table_is_read(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", {"cover": [["Pupils 2026"], ["secret"]], "a & b": TITLED})
    assert open_table(path).columns == ("town", "sex", "meal")
    assert "the sheet a & b" in open_table(path).text_format.detection_notes


@pytest.mark.parametrize(("merged", "refused"), [("A1:C1", False), ("A1:A2", False), ("A4:A5", True), ("C3:C5", True)])
def test_cells_merged_over_rows_of_a_table_are_refused_and_titles_are_not(
    tmp_path: Path, merged: str, refused: bool
) -> None:
    path = workbook(tmp_path / "t.xlsx", {"a & b": TITLED}, merged)
    if not refused:
        assert open_table(path).columns == ("town", "sex", "meal")
        return
    with pytest.raises(TableError, match=r"'a & b' has merged cells in column [AC], rows [34] to 5: .* fill the value"):
        open_table(path)


def test_a_column_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ColumnError, match=r"no column 'zzz' among 2\. They are a, b\."):
        sanitise_file(tmp_path / "t.csv", ReleaseSpec(prior="table", secret="zzz", publish="a", into=tmp_path / "out"))
    (tmp_path / "bare.csv").write_text("Ann,1965\nBob,1970\n")  # names are a person's record
    with pytest.raises(ColumnError, match=r"no column 'zzz' among 2\.$"):
        sanitise_file(
            tmp_path / "bare.csv", ReleaseSpec(prior="table", secret="zzz", publish="a", into=tmp_path / "out")
        )
