"""Tables as people have them: European exports, gaps as they are written, dates and codes; through the command."""

import codecs
import json
from pathlib import Path

import pytest

from tests.commands import found_by, said, turned_down

TOWNS = ("Köln", "Århus", "Liège")


def export(path: Path, *, encoding: str = "cp1252", delimiter: str = ";", mark: bytes = b"") -> Path:
    """240 people as a program of a country with decimal commas writes them."""
    lines = [delimiter.join(["Straße", "Einkommen", "Besuch", "krank"])]
    for i in range(240):
        income = "k. A." if i % 24 == 5 else f"{i % 7 + 1}.{500 * (i % 2):03},50"
        day = f"{i % 27 + 1:02}.{i % 4 + 1:02}.2024"
        lines.append(delimiter.join([TOWNS[i % 3], income, day, "ja" if i % 5 and i % 3 else "nein"]))
    path.write_bytes(mark + ("\n".join(lines) + "\n").encode(encoding))
    return path


def words(people: Path, into: Path, *more: object) -> list[object]:
    asked = ["--secret", "krank", "--epsilon", 1, "--into", into, "--no-report"]
    return ["sanitise", "--prior=table", people, *asked, *more]


def test_a_european_export_goes_in_and_comes_out_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people, into = export(tmp_path / "people.csv"), tmp_path / "out"
    asked = words(people, into, "--publish", "Straße,Einkommen", "--bin", "Einkommen=3000,5000")
    error = turned_down(capsys, *asked)
    assert "10 of 240 rows hold something else, most often 'k. A.'. --na 'k. A.' reads it as missing" in error
    assert not into.exists()
    found = found_by(capsys, *asked, "--na", "k. A.")
    assert found["read_as"] == ["windows-1252 text", "decimal commas"]
    header, *rows = (into / "public" / "sanitised.csv").read_bytes().decode("cp1252").splitlines()
    assert header == "Straße;Einkommen;outcome"
    assert {row.split(";")[1] for row in rows} == {"under 3000", "3000–4999", "5000+", "(missing)"}
    assert ";0," in (into / "owner" / "codebook.csv").read_bytes().decode("cp1252")
    code, *_ = said(capsys, "audit", into / "owner" / "protocol.json", people, "--na", "k. A.", "--keep-order")
    assert code == 0
    found = found_by(
        capsys,
        "estimate",
        into / "owner" / "protocol.json",
        into / "public" / "sanitised.csv",
        "--into",
        tmp_path / "est",
    )
    assert found["tables"][0]["rows"] == 240
    assert (tmp_path / "est" / "estimates.csv").read_bytes().decode("cp1252").count(";") > 10


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_marks_and_wide_characters_come_out_as_they_went_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], encoding: str
) -> None:
    mark = codecs.BOM_UTF8 if encoding == "utf-8" else b""
    people, into = export(tmp_path / "people.csv", encoding=encoding, mark=mark), tmp_path / "out"
    found_by(capsys, *words(people, into, "--publish", "Straße"))
    written = (into / "public" / "sanitised.csv").read_bytes()
    assert written.startswith(mark or codecs.BOM_UTF16)
    text = written.decode("utf-8-sig" if encoding == "utf-8" else "utf-16")
    assert text.startswith("Straße;outcome\n")
    assert text.count("\ufeff") == 0
    found_by(capsys, "estimate", into / "owner" / "protocol.json", into / "public" / "sanitised.csv")


def test_excel_gets_the_mark_it_needs_and_a_sole_column_of_bins_is_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people, into = export(tmp_path / "people.csv", encoding="utf-8"), tmp_path / "out"
    asked = ["--publish", "Einkommen", "--bin", "Einkommen=3000,5000", "--na", "k. A.", "--as", "values"]
    found_by(capsys, *words(people, into, *asked, "--excel-safe"))
    assert (into / "public" / "sanitised.csv").read_bytes().startswith(codecs.BOM_UTF8)
    found_by(capsys, "estimate", into / "owner" / "protocol.json", into / "public" / "sanitised.csv")


def test_dates_and_codes_are_published_coarser_and_read_again_by_the_file_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people, into = export(tmp_path / "people.csv"), tmp_path / "out"
    asked = ["--publish", "Besuch,Straße", "--bin", "Besuch=month", "--bin", "Straße=prefix:1", "--as", "values"]
    found_by(capsys, *words(people, into, *asked))
    protocol = json.loads((into / "owner" / "protocol.json").read_text())
    assert [column["grouped"] for column in protocol["publish"]] == [{"by": "month"}, {"prefix": 1}]
    assert [len(column["labels"]) for column in protocol["publish"]] == [4, 3]
    found = found_by(
        capsys, "audit", into / "owner" / "protocol.json", people, "--sanitised", into / "public" / "sanitised.csv"
    )
    assert found["draw"]["consistent"]
    original = ["--original", people, "--into", tmp_path / "est"]
    found_by(capsys, "estimate", into / "owner" / "protocol.json", into / "public" / "sanitised.csv", *original)
    scanned = found_by(capsys, "scan", people, "--secret", "krank", "--bin", "Besuch=quarter", "--na", "k. A.")
    assert {look["column"]: look["values"] for look in scanned["columns"]}["Besuch"] == 2
    assert "bins look like" in turned_down(capsys, *words(people, into, "--publish", "Besuch", "--bin", "Besuch=moon"))
