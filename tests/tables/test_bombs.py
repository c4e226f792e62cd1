"""Small files that ask for much: each is refused in a sentence, before memory or time is spent."""

import gzip
import zipfile
from pathlib import Path

import pytest
import zstandard

from privacyfunnel.errors import TableError
from privacyfunnel.tables.readers import delimited, formats
from privacyfunnel.tables.readers.foreign_files import _sheet_extent
from privacyfunnel.tables.readers.formats import Dialect
from privacyfunnel.tables.readers.table_files import open_table

NAMES = "http://schemas.openxmlformats.org"
RELATION = f"{NAMES}/officeDocument/2006/relationships"
BOOK = {
    "[Content_Types].xml": f"""<Types xmlns="{NAMES}/package/2006/content-types">
        <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
        <Default Extension="xml" ContentType="application/xml"/></Types>""",
    "_rels/.rels": f"""<Relationships xmlns="{NAMES}/package/2006/relationships">
        <Relationship Id="r1" Type="{RELATION}/officeDocument" Target="xl/workbook.xml"/></Relationships>""",
    "xl/workbook.xml": f"""<workbook xmlns="{NAMES}/spreadsheetml/2006/main" xmlns:r="{RELATION}">
        <sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>""",
    "xl/_rels/workbook.xml.rels": f"""<Relationships xmlns="{NAMES}/package/2006/relationships">
        <Relationship Id="r1" Type="{RELATION}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>""",
}


def workbook(path: Path, rows: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in BOOK.items():
            book.writestr(name, f'<?xml version="1.0"?>{text}')
        sheet = f'<worksheet xmlns="{NAMES}/spreadsheetml/2006/main"><sheetData>{rows}</sheetData></worksheet>'
        book.writestr("xl/worksheets/sheet1.xml", f'<?xml version="1.0"?>{sheet}')
    return path


def cells(row: int, *values: str) -> str:
    texts = "".join(
        f'<c r="{chr(65 + j)}{row}" t="inlineStr"><is><t>{value}</t></is></c>' for j, value in enumerate(values)
    )
    return f'<row r="{row}">{texts}</row>'


def test_a_workbook_of_a_few_cells_is_read(tmp_path: Path) -> None:
    table = open_table(workbook(tmp_path / "small.xlsx", cells(1, "a", "b") + cells(2, "x", "y")))
    assert [batch.rows() for batch in table.batches(["a", "b"])] == [[("x", "y")]]


@pytest.mark.parametrize(
    "rows",
    [
        cells(1, "a") + '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
        "<row>" + "<c/>" * 16384 + "</row>" + "<row/>" * 10_000 + "<row><c><v>1</v></c></row>",
    ],
    ids=["a far cell", "cells without an address"],
)
def test_a_workbook_that_asks_for_hundreds_of_gigabytes_is_refused(tmp_path: Path, rows: str) -> None:
    path = workbook(tmp_path / "bomb.xlsx", rows)
    assert path.stat().st_size < 10_000
    with pytest.raises(TableError, match=r"must have at most 134,217,728 cells .* Remove far cells"):
        open_table(path)


def test_the_extent_of_a_sheet_does_not_depend_on_where_it_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sheet.xml"
    path.write_text(cells(1, "a", "b", "c") + cells(70, "x"))
    for piece in (7, 64, 1 << 20):
        monkeypatch.setattr("privacyfunnel.tables.readers.foreign_files.SHEET_PIECE", piece)
        with path.open("rb") as file:
            assert _sheet_extent(file) == (70, 3), piece


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("encoding", [None, "utf-8"])
@pytest.mark.parametrize("field", ["x" * 5000, "1,2\n" * 1250], ids=["one line", "many lines"])
def test_a_record_that_is_too_long_is_refused_before_it_is_read(
    field: str, encoding: str | None, zipped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "LONGEST_RECORD", 2000)
    monkeypatch.setattr(delimited, "CHUNK", 500)
    monkeypatch.setattr(delimited, "BLOCK", 500)
    monkeypatch.setattr(formats, "PIECE", 500)
    monkeypatch.setattr(formats, "HEAD", 500)
    path = tmp_path / ("long.csv.gz" if zipped else "long.csv")
    text = f'a,b\n1,2\n1,"{field}"\n3,4\n'.encode()
    path.write_bytes(gzip.compress(text) if zipped else text)
    with pytest.raises(TableError, match=r"must have at most 2,000 characters; one has more.*close it"):
        list(open_table(path, Dialect(encoding=encoding)).batches(["a", "b"]))


def test_a_stray_quote_in_a_small_zipped_file_is_found_in_work_that_grows_with_the_limit_only(tmp_path: Path) -> None:
    path = tmp_path / "stray.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write('a,b\n1,"2\n')
        for _ in range(500):
            file.write("1,2\n" * 40_000)
    with pytest.raises(TableError, match="close"):
        list(open_table(path).batches(["a", "b"]))


def test_a_zstandard_file_with_one_huge_line_is_refused_when_a_little_of_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "line.csv.zst"
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    with path.open("wb") as file:
        file.write(packer.compress(b"a,b\n1,"))
        for _ in range(64):
            file.write(packer.compress(bytes([120]) * (1 << 20)))
        file.write(packer.flush())
    assert path.stat().st_size < 10_000
    with pytest.raises(TableError, match="must have at most 33,554,432 characters"):
        list(open_table(path).batches(["a", "b"]))


def test_zstandard_files_of_several_frames_and_any_encoding_are_read_whole(tmp_path: Path) -> None:
    path, packer = tmp_path / "frames.csv.zst", zstandard.ZstdCompressor(write_checksum=True)
    nothing = bytes.fromhex("502a4d18") + (3).to_bytes(4, "little") + b"xyz"
    path.write_bytes(packer.compress(b"a,b\n1,") + nothing + packer.compress("\u00e4\n3,4\n".encode("latin-1")))
    assert [batch.rows() for batch in open_table(path).batches(["a", "b"])] == [[("1", "\u00e4"), ("3", "4")]]
    for lost in (1, 4, 9):
        path.write_bytes(path.read_bytes()[:-lost])
        with pytest.raises(TableError, match="must be a whole Zstandard file; it is damaged"):
            open_table(path)
