"""A fault at every place of the work: what stands afterwards is the old release or none, and the next run works."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from privacyfunnel.atomic_files import HIDDEN, recover
from tests.cli.test_bad_input import bound_by_permissions
from tests.commands import LONGEST, begun, files_of

Ask = Callable[..., dict[str, Any]]
CODES = {"kill": -9, "term": 143, "int": 130, "lost": 130, "full": 2, "memory": 2, "changed": 2, "second": 2}
ROWS = [("uv"[i * 7 % 5 % 2], "abc"[i % 3], f"{i}") for i in range(300)]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same table in two formats, and the same rows in reverse."""
    folder = tmp_path_factory.mktemp("faults")
    for name, rows in (("people", ROWS), ("reversed", ROWS[::-1])):
        frame = pl.DataFrame(rows, schema=["s", "x", "id"], orient="row")
        frame.write_csv(folder / f"{name}.csv")
        frame.write_parquet(folder / f"{name}.parquet")
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def words(table: Path, into: Path, *more: str) -> list[str]:
    asked = ["--secret", "s", "--publish", "x", "--keep", "id", "--accept-kept", "--epsilon", "1", "--into", str(into)]
    return [
        "sanitise",
        "--prior=table",
        str(table),
        *asked,
        "--method",
        "randomised-response",
        *(more or ["--no-report"]),
    ]


def content(folder: Path) -> dict[str, bytes]:
    """The files of a release."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def hidden(folder: Path) -> list[Path]:
    """What is staged for the folder, or what it replaces."""
    return [path for path in folder.parent.glob(".privacyfunnel.*") if HIDDEN.fullmatch(path.name)]


PLACES = ("counting", "solving", "drawing", "writing", "report", "renaming")
FAULTS = [(kind, place) for kind in ("kill", "term", "int", "full", "memory") for place in PLACES]
FAULTS = [fault for fault in FAULTS if fault not in {("full", "counting"), ("full", "solving")}]  # nothing is written
FAULTS += [("lost", "solving"), ("lost", "drawing")]


@pytest.mark.parametrize(
    ("kind", "place", "suffix", "forced"),
    [
        (*fault, suffix, forced)
        for fault in FAULTS
        for suffix, forced in (("csv", False), ("parquet", True))
        if forced or fault not in {("term", "renaming"), ("int", "renaming")}
    ],
)
def test_a_fault_leaves_the_old_release_or_none_and_the_next_run_works(
    ask: Ask, tables: Path, out: Path, place: str, kind: str, suffix: str, forced: bool
) -> None:
    before: dict[str, bytes] = {}
    if forced:
        assert ask(words=words(tables / "people.csv", out))["code"] == 0
        before = content(out)
    force = ["--force"] if forced else []
    asked = words(tables / f"people.{suffix}", out, "--report" if place == "report" else "--no-report", *force)
    between = (
        forced and kind in {"kill", "full"} and place == "renaming"
    )  # the old folder is moved away, no new one yet
    done = ask(words=asked, place=place, fault=kind, nth=2 if between and kind in {"kill", "full"} else 1)
    assert done["code"] == CODES[kind], done["err"]
    assert done["out"] == ""
    assert done["err"].count("\n") == (kind != "kill")
    assert "Traceback" not in done["err"]
    if kind == "kill":
        assert all(path.stat().st_mode & 0o077 == 0 for path in hidden(out))
        assert content(out) == ({} if between else before)
        recover(out.parent)
    assert content(out) == before
    assert out.exists() == forced
    assert hidden(out) == []
    again = ask(words=words(tables / f"people.{suffix}", out, "--no-report", *force))
    assert again["code"] == 0, again["err"]
    assert files_of(out) == {f"public/sanitised.{suffix}", "owner/protocol.json"}
    assert hidden(out) == []


@pytest.mark.parametrize("kind", ["term", "int"])
def test_a_signal_that_comes_with_the_rename_is_answered_after_it(ask: Ask, tables: Path, out: Path, kind: str) -> None:
    done = ask(words=words(tables / "people.csv", out), place="renaming", fault=kind)
    assert done["code"] == CODES[kind]
    assert files_of(out) == {"public/sanitised.csv", "owner/protocol.json"}
    assert hidden(out) == []
    assert "released before" in ask(words=words(tables / "people.csv", out.with_name("again")))["err"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("place", ["counting", "solving"])
def test_rows_that_change_their_order_while_they_are_worked_on_are_refused(
    ask: Ask, tables: Path, tmp_path: Path, out: Path, place: str, suffix: str
) -> None:
    table, other = tmp_path / f"people.{suffix}", tmp_path / f"reversed.{suffix}"
    for path in (table, other):
        shutil.copy(tables / path.name, path)
    asked = words(table, out)
    done = ask(words=asked, place=place, fault="changed", table=str(table), other=str(other))
    assert done["code"] == 2
    assert (
        done["err"]
        == f"TableError: '{table}' must not change while it is read; it did. Run again when it is at rest.\n"
    )
    assert not out.exists()
    assert ask(words=asked)["code"] == 0


@pytest.mark.parametrize("place", ["counting", "solving", "drawing", "writing", "report"])
def test_a_run_that_comes_second_says_so_and_leaves_the_first_alone(
    ask: Ask, tables: Path, out: Path, place: str
) -> None:
    out.mkdir()
    asked = words(tables / "people.csv", out, "--report" if place == "report" else "--no-report")
    done = ask(words=asked, place=place, fault="second", into=str(out))
    assert done["code"] == 2
    assert done["err"].startswith("OutputError: ")
    assert "exists already and was left as it is" in done["err"]
    assert content(out)["public/sanitised.csv"] == b"another run's"
    assert hidden(out) == []


def test_of_two_runs_at_once_one_wins_and_the_other_leaves_nothing(tables: Path, out: Path) -> None:
    command = [sys.executable, "-m", "privacyfunnel"]
    started = [
        subprocess.Popen([*command, *words(tables / f"people.{suffix}", out)], stderr=subprocess.PIPE, text=True)
        for suffix in ("csv", "parquet")
    ]
    said = [process.communicate(timeout=LONGEST)[1] for process in started]
    assert sorted(process.returncode for process in started) == [0, 2], said
    refusals = ("exists already", "rows were released before", "another run released them")
    assert any(sentence in "".join(said) for sentence in refusals), said
    won = "csv" if started[0].returncode == 0 else "parquet"
    assert files_of(out) == {f"public/sanitised.{won}", "owner/protocol.json"}
    assert hidden(out) == []


@pytest.mark.parametrize("what", ["a link to nowhere", "a folder", "a file"])
def test_what_is_in_the_folder_is_something_whatever_it_is(ask: Ask, tables: Path, out: Path, what: str) -> None:
    out.mkdir()
    there = out / "public"
    if what == "a folder":
        there.mkdir()
    elif what == "a file":
        there.touch()
    else:
        there.symlink_to("nowhere")
    for more, sentence in ((["--no-report"], "exists already"), (["--no-report", "--force"], "such as 'public'")):
        done = ask(words=words(tables / "people.csv", out, *more))
        assert done["code"] == 2
        assert sentence in done["err"]
    assert [path.name for path in out.iterdir()] == ["public"]


def test_a_raw_table_in_the_folder_of_the_release_is_not_cleared_away(ask: Ask, tables: Path, out: Path) -> None:
    out.mkdir()
    raw = out / "sanitised.parquet"
    shutil.copy(tables / "people.parquet", raw)
    done = ask(words=[*words(raw, out, "--no-report", "--force"), "--format", "csv"])
    assert done["code"] == 2
    assert "must not contain the input" in done["err"]
    assert raw.read_bytes() == (tables / "people.parquet").read_bytes()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_disk_that_is_too_small_for_the_report_gets_nothing(ask: Ask, tables: Path, out: Path, suffix: str) -> None:
    done = ask(words=words(tables / f"people.{suffix}", out, "--report"), size=12_000)
    assert done["code"] == 2, done["err"]
    assert "out' was not written: the disk is full" in done["err"]
    assert not out.exists()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_too_little_memory_leaves_nothing(ask: Ask, tables: Path, out: Path, suffix: str) -> None:
    """A library may then abort the process where it likes: no exit code is promised, but that it is not success."""
    done = ask(words=words(tables / f"people.{suffix}", out), memory=0, longest=20)  # its threads may wait for ever
    assert done["code"] != 0
    assert content(out) == {}
    assert ask(words=words(tables / f"people.{suffix}", out))["code"] == 0
    assert hidden(out) == []


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_read_only_folder_is_refused(tables: Path, tmp_path: Path, suffix: str) -> None:
    there, new = tmp_path / "there", tmp_path / "there" / "new"
    there.mkdir()
    there.chmod(0o555)
    for into in (there, new):
        done = begun(*words(tables / f"people.{suffix}", into), preexec_fn=bound_by_permissions)
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("OutputError: ")
        assert done.stderr.count("\n") == 1
        assert list(there.iterdir()) == []


def test_a_forced_release_replaces_the_old_one_and_nothing_else(ask: Ask, tables: Path, out: Path) -> None:
    first = ask(words=words(tables / "people.csv", out, "--report"))
    assert first["code"] == 0, first["err"]
    assert files_of(out) == {"public/sanitised.csv", "owner/protocol.json", "owner/report.html"}
    (out / "notes.txt").write_text("mine")
    done = ask(words=words(tables / "people.parquet", out, "--no-report", "--force"))
    assert done["code"] == 2
    assert "such as 'notes.txt'" in done["err"]
    (out / "notes.txt").unlink()
    done = ask(words=words(tables / "people.parquet", out, "--no-report", "--force"))
    assert done["code"] == 0, done["err"]
    assert files_of(out) == {"public/sanitised.parquet", "owner/protocol.json"}
