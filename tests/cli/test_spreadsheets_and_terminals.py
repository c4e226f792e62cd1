"""What others make of labels: a spreadsheet takes some for formulas, a terminal obeys some."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from privacyfunnel.cli.text_format import make_printable
from tests.commands import LONGEST, found_by, said, turned_down

LABELS = ["=cmd|' /C calc'!A0", "+x", "-x", "-5", "@SUM(1)", "\ttab", "plain", "'quoted"]


def table(folder: Path, labels: list[str] = LABELS, column: str = "x") -> Path:
    rows = 60 * len(labels)
    frame = pl.DataFrame(
        {
            "s": ["uv"[i // 7 % 2] for i in range(rows)],
            column: [labels[i % len(labels)] for i in range(rows)],
            "note": ["=1+1" if i % 2 else "-3.5e1" for i in range(rows)],
        }
    )
    path = folder / "people.csv"
    frame.write_csv(path)
    return path


def words(path: Path, into: Path, *more: object) -> list[object]:
    asked = [
        "--secret",
        "s",
        "--publish",
        "x",
        "--keep",
        "note",
        "--accept-kept",
        "--epsilon",
        1,
        "--into",
        into,
        "--seed",
        1,
    ]
    return ["sanitise", "--prior=table", path, *asked, "--no-report", *more]


@pytest.mark.parametrize("method", ["randomised-response", "optimal"])
@pytest.mark.parametrize("suffix", ["csv", "tsv.gz"])
def test_no_cell_is_a_formula_and_what_is_estimated_from_them_is_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str, suffix: str
) -> None:
    path = table(tmp_path)
    for folder, more in (("safe", ["--excel-safe"]), ("plain", [])):
        code, out, err = said(
            capsys, *words(path, tmp_path / folder, "--method", method, "--format", suffix, "--details", *more)
        )
        assert (code, err) == (0, "")
        assert ("excel-safe" in out) == bool(more)
    separator = "," if suffix == "csv" else "\t"
    kinds = {
        folder: pl.read_csv(
            tmp_path / folder / "public" / f"sanitised.{suffix}", separator=separator, infer_schema=False
        )
        for folder in ("safe", "plain")
    }
    cells = {str(cell) for column in kinds["safe"].get_columns() for cell in column}
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "-")) and cell not in {"-5", "-3.5e1"}]
    assert {"'=1+1", "-3.5e1"} <= cells
    assert {"=1+1", "-3.5e1"} <= set(kinds["plain"]["note"])
    found = [
        found_by(
            capsys,
            "estimate",
            tmp_path / folder / "owner" / "protocol.json",
            tmp_path / folder / "public" / f"sanitised.{suffix}",
        )
        for folder in kinds
    ]
    assert {**found[0], "run": None} == {**found[1], "run": None}


def test_a_table_that_cannot_be_made_safe_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, rr = tmp_path / "out", ["--method", "randomised-response", "--excel-safe"]
    path = table(tmp_path)
    assert "needs a text format; the table is written as .parquet" in turned_down(
        capsys, *words(path, out, *rr, "--format", "parquet")
    )
    path = table(tmp_path, ["=a", "'=a", "b"])
    assert "more than an apostrophe in front" in turned_down(capsys, *words(path, out, *rr))
    path = table(tmp_path, column="=x")
    told = turned_down(capsys, *[word if word != "x" else "=x" for word in words(path, out, *rr)])
    assert "must not begin with = + - @" in told
    assert not out.exists()


def test_labels_that_excel_takes_for_days_are_guarded_and_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, rr = table(tmp_path, ["7-8", "3/5", "10-12", "MARCH1"]), ["--method", "randomised-response", "--excel-safe"]
    assert said(capsys, *words(path, tmp_path / "out", *rr))[0] == 0
    cells = pl.read_csv(tmp_path / "out" / "public" / "sanitised.csv", infer_schema=False)["x"]
    assert set(cells) == {"'7-8", "'3/5", "'10-12", "'MARCH1"}
    found = found_by(capsys, "estimate", tmp_path / "out")
    assert {cell["labels"][0] for cell in found["tables"][0]["cells"]} == {"7-8", "3/5", "10-12", "MARCH1"}


NASTY = "\x1b[2J\x9b31m\u202egnihton\u2066\x7f\u2028"


def test_no_label_or_name_reaches_the_terminal_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, labels = f"x{NASTY}", ["a", f"b{NASTY}", "c\nd"]
    path = table(tmp_path, labels, name)
    asked = ["--secret", "s", "--publish", name, "--epsilon", 1, "--method", "randomised-response", "--no-report"]
    told = [said(capsys, "sanitise", "--prior=table", path, *asked, "--into", tmp_path / "out")]
    public = [tmp_path / "out" / "owner" / "protocol.json", tmp_path / "out" / "public" / "sanitised.csv"]
    told.append(said(capsys, "estimate", *public))
    told.append(said(capsys, "scan", path, "--secret", "s"))
    told.append(said(capsys, "audit", public[0], path))
    told.append(said(capsys, "sanitise", "--prior=table", path, *asked, "--into", tmp_path / "out"))  # exists already
    told.append(said(capsys, "scan", path, "--secret", f"no{NASTY}\nExit 0"))
    told.append(said(capsys, "scan", path, f"--{NASTY}"))
    assert [code for code, _, _ in told] == [0, 0, 0, 0, 2, 2, 2], told
    for code, out, err in told:
        assert not [char for char in out + err if not char.isprintable() and char != "\n"]
        assert err.count("\n") == (code != 0)
    assert "c\\nd" in told[1][1]
    with (tmp_path / "out" / "public" / "sanitised.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [name]
    assert {row[0] for row in rows} == set(labels)


def test_json_holds_the_labels_as_they_are_and_a_terminal_sees_none_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = ["a", f"b{NASTY}\U000e0001"]
    path = table(tmp_path, labels)
    released = [*words(path, tmp_path / "out", "--method", "randomised-response")]
    assert said(capsys, *released)[0] == 0
    code, out, _ = said(
        capsys, "estimate", tmp_path / "out/owner/protocol.json", tmp_path / "out/public/sanitised.csv", "--json"
    )
    assert code == 0
    assert out.rstrip("\n").isprintable()
    assert any(labels[1] in text for text in _texts(json.loads(out)))


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for pair in value.items() for item in pair for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


def test_joiners_that_spell_words_stay() -> None:
    assert make_printable("می\u200cخواهم é \u3000 \U0001f600") == "می\u200cخواهم é \u3000 \U0001f600"


@pytest.mark.parametrize(
    ("words", "closed", "code"),
    [
        ("--version", ">/dev/full", 2),
        ("sanitise --help", ">/dev/full", 2),
        ("sanitise --help", ">&-", 0),
        ("solve nowhere.csv --epsilon 1", "2>/dev/full", 2),
        ("solve nowhere.csv --epsilon 1", "2>&-", 2),
        ("solve nowhere.csv --epsilon 1", "<&- >&- 2>&-", 2),
        ("sanitise --help", "| head -1", 0),
    ],
)
def test_a_stream_that_is_closed_or_full_is_no_fault_of_ours(words: str, closed: str, code: int) -> None:
    command = f"set -o pipefail; {sys.executable} -m privacyfunnel {words} {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=LONGEST, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.stderr.count("\n") == (">/dev/full" in closed and "2>" not in closed)


def test_a_library_that_prints_does_not_write_into_the_table(tmp_path: Path) -> None:
    path = table(tmp_path)
    printing = (
        "import os, privacyfunnel.release.output_layout as w; from privacyfunnel.cli import program\n"
        "def loud(self, drawn, columns=w.OutputLayout.columns): os.write(1, b'LOUD'); return columns(self, drawn)\n"
        "w.OutputLayout.columns = loud; program()"
    )
    asked = " ".join(map(str, words(path, tmp_path / "out", "--method", "randomised-response")))
    command = f'exec "$0" -c "$1" {asked} >&-'
    done = subprocess.run(["bash", "-c", command, sys.executable, printing], timeout=LONGEST, check=False)
    assert done.returncode == 0
    assert b"LOUD" not in (tmp_path / "out" / "public" / "sanitised.csv").read_bytes()
