"""One ledger of several runs: no entry is lost, killed runs block nobody, and of two that race one releases."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from privacyfunnel import locks, sanitise_file
from privacyfunnel.errors import LedgerError
from privacyfunnel.release.ledger.ledger_file import BEGUN, FINISHED, SHARED, Ledger
from privacyfunnel.spec import ReleaseSpec
from tests.commands import sanitise

SPEC = ReleaseSpec(prior="table", secret="occupation", publish="sex", epsilon=1, method="randomised-response")

WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from privacyfunnel.release.ledger.ledger_file import Entry, Ledger
book = Ledger(Path(sys.argv[1]))
for i in range(12):
    mine = Entry("2026", i, ("s",), ("x",), {}, f"{sys.argv[2]}{i}", f"{sys.argv[2]}{i}", "", "", None, "", None)
    with book.record(mine, known=(), refuse=lambda _: RuntimeError()):
        pass
"""


def test_runs_that_share_a_ledger_lose_no_entry(tmp_path: Path) -> None:
    runs = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "ledger"), name]) for name in "abc"]
    assert [run.wait(60) for run in runs] == [0, 0, 0]
    entries = Ledger(tmp_path / "ledger").entries()
    assert sorted(entry.table for entry in entries) == sorted(f"{name}{i}" for name in "abc" for i in range(12))
    assert {entry.state for entry in entries} == {FINISHED}
    assert [path.name for path in tmp_path.iterdir()] == ["ledger"]


KILLED = """
import os, signal, sys
from pathlib import Path
from privacyfunnel.release.ledger.ledger_file import Entry, Ledger
book, name, where = Ledger(Path(sys.argv[1])), sys.argv[2], sys.argv[3]
die = lambda: os.kill(os.getpid(), signal.SIGKILL)
for i in range(6):
    out = Path(sys.argv[1]).with_name(f"{name}{i}")
    mine = Entry("2026-01-01T00:00:00+00:00", i, ("s",), ("x",), {}, str(out), str(out), "", "", None, "", None)
    with book.record(mine, known=(), refuse=lambda _: RuntimeError()):
        if i == 5 and where == "before":
            die()
        out.touch()
        if i == 5 and where == "after":
            die()
    if i == 4 and where == "locked":
        with book._lock():
            die()
"""


def test_killed_runs_hold_no_lock_and_their_releases_are_known_if_they_appeared(tmp_path: Path) -> None:
    book = Ledger(tmp_path / "ledger")
    ways = {"a": "before", "b": "after", "c": "locked", "d": "never"}
    runs = [subprocess.Popen([sys.executable, "-c", KILLED, str(book.path), *way]) for way in ways.items()]
    assert [run.wait(60) for run in runs] == [-9, -9, -9, 0]
    mine = replace(book.entries()[0], name="mine", source="mine", table="mine", state=BEGUN)
    with book.record(mine, known=(), refuse=lambda _: RuntimeError()):
        pass
    told = {Path(entry.table).name: entry.state for entry in book.entries()}
    there = {f"{name}{i}" for name in ways for i in range(6)} - {"a5", "c5"}
    assert told == dict.fromkeys(there | {"mine"}, FINISHED)
    assert {path.name for path in tmp_path.iterdir()} == there | {"ledger"}


def test_of_machines_that_release_the_same_rows_at_once_one_does(some: Path, tmp_path: Path) -> None:
    shared, runs = {**os.environ, SHARED: str(tmp_path / "shared.json")}, []
    for machine in ("one", "two", "three"):
        copy = tmp_path / machine / "people.csv"
        copy.parent.mkdir()
        copy.write_bytes(some.read_bytes())
        words = [sys.executable, "-m", "privacyfunnel", *map(str, sanitise(copy, copy.parent / "out", publish="sex"))]
        runs.append(subprocess.Popen(words, env=shared, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    said = [run.communicate(timeout=300)[1] for run in runs]
    assert sorted(run.returncode for run in runs) == [0, 2, 2], said
    assert sum("LedgerError" in text for text in said) == 2, said
    assert len([*tmp_path.glob("*/out")]) == 1


def test_a_ledger_is_locked_where_locks_need_a_file_that_may_be_written_to(
    some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, exclusive = fcntl.flock, []

    def as_nfs(file: int, operation: int) -> None:
        if operation & fcntl.LOCK_EX and stat.S_ISREG(os.fstat(file).st_mode):
            exclusive.append(file)
            if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                raise OSError(errno.EBADF, "Bad file descriptor")
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", as_nfs)
    sanitise_file(some, replace(SPEC, into=tmp_path / "out", ledger=tmp_path / "ledger"))
    assert exclusive


def test_a_ledger_where_nothing_can_be_locked_is_refused(
    some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(file: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", without)
    with pytest.raises(LedgerError, match="must be on storage that locks files; it is not: no locks available"):
        sanitise_file(some, replace(SPEC, into=tmp_path / "out", ledger=tmp_path / "ledger"))
    assert not (tmp_path / "out").exists()


MARKER = """
import sys
from pathlib import Path
from privacyfunnel.locks import mark_run
with mark_run(Path(sys.argv[1])):
    print("begun", flush=True)
    input()
"""


def test_a_process_that_has_ended_and_is_not_reaped_is_not_at_work(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    words = [sys.executable, "-c", MARKER, str(mark)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert locks.is_run_alive(mark)
        assert mark.exists()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended; its entry in /proc is still there
        assert not locks.is_run_alive(mark)
        assert not mark.exists()
