"""Files that appear whole or not at all: who can read them, while they are written and afterwards."""

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from privacyfunnel import atomic_files
from privacyfunnel.atomic_files import HIDDEN, MANIFEST, atomic_file, atomic_folder, begin_file
from privacyfunnel.errors import OutputError
from privacyfunnel.tables.readers.formats import SUFFIXES
from privacyfunnel.tables.readers.table_files import write_table
from tests.commands import LONGEST


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_an_owners_file_is_readable_by_its_owner_only_whatever_the_umask(
    tmp_path: Path, mask: int, force: bool
) -> None:
    path = tmp_path / "report.html"
    if force:
        path.write_text("an old one that everybody can read")
        path.chmod(0o666)
    with umask(mask), atomic_file(path, force=force, owner_only=True) as beside:
        beside.write_text("exact shares")
        assert mode(beside) == 0o600
    assert mode(path) == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("mask", "ordinary"), [(0o000, 0o666), (0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_is_for_everybody_once_it_is_whole_and_for_its_owner_while_it_is_written(
    tmp_path: Path, suffix: str, mask: int, ordinary: int
) -> None:
    path = tmp_path / f"sanitised{suffix}"
    meanwhile: list[tuple[bool, int]] = []

    def batches() -> Iterator[pl.DataFrame]:
        for _ in range(3):
            yield pl.DataFrame({"a": ["x"] * 1000})
            meanwhile.extend((part.is_dir(), mode(part)) for part in tmp_path.rglob("*"))

    with umask(mask):
        write_table(path, batches())
        assert os.umask(mask) == mask
    assert set(meanwhile) == {(True, 0o700), (False, 0o600)}
    assert mode(path) == ordinary


def test_a_run_does_not_disturb_another_that_is_not_done(tmp_path: Path) -> None:
    path = tmp_path / "sanitised.csv"
    (tmp_path / ".privacyfunnel.0123456789ABCDEF.part").write_text("not ours")
    with atomic_file(path, force=True) as first:
        first.write_text("the one that is not done yet")
        with atomic_file(path, force=True) as second:
            second.write_text("the one that is done before")
        assert first.exists()
    assert path.read_text() == "the one that is not done yet"
    assert {file.name for file in tmp_path.iterdir()} == {"sanitised.csv", ".privacyfunnel.0123456789ABCDEF.part"}


def published(folder: Path, text: str, *, force: bool = False, meanwhile: Callable[[], None] | None = None) -> None:
    with atomic_folder(folder, force=force) as staged:
        for name in ("public/table", "owner/page"):
            begin_file(staged / name).write_text(text)
        if meanwhile:
            meanwhile()


def standing(folder: Path) -> dict[str, str]:
    """The files of a folder, but for its manifest."""
    inside = (path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(folder).as_posix(): path.read_text() for path in inside}


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_folder_is_for_everybody_but_for_what_is_the_owners(tmp_path: Path, mask: int) -> None:
    out = tmp_path / "out"
    meanwhile: list[int] = []
    with umask(mask):
        published(out, "new", meanwhile=lambda: meanwhile.extend(mode(path) for path in tmp_path.rglob("*")))
    assert set(meanwhile) == {0o700, 0o600}
    assert {mode(out), mode(out / "public")} == {0o777 & ~mask}
    assert mode(out / "owner") == 0o700
    assert mode(out / "public" / "table") == 0o666 & ~mask
    assert mode(out / "owner" / "page") == 0o600


def test_a_folder_that_appeared_meanwhile_stays_and_the_new_one_does_not_appear(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(OutputError, match="out' exists already"):
        published(out, "second", meanwhile=lambda: published(out, "first"))
    assert set(standing(out).values()) == {"first"}
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("mine", ["notes.txt", "public/notes.txt", "owner/notes.txt", "more/notes.txt", "empty/"])
def test_a_folder_with_what_this_program_did_not_write_is_not_replaced(tmp_path: Path, mine: str) -> None:
    out = tmp_path / "out"
    published(out, "old")
    if mine.endswith("/"):
        (out / mine).mkdir()
    else:
        (out / mine).parent.mkdir(exist_ok=True)
        (out / mine).write_text("mine")
    before = standing(out)
    with pytest.raises(OutputError, match=f"such as '{mine.split('/', maxsplit=1)[0]}"):
        published(out, "new", force=True)
    assert standing(out) == before
    assert list(tmp_path.iterdir()) == [out]


def test_a_file_that_was_changed_or_became_a_link_is_not_removed(tmp_path: Path) -> None:
    for change in (lambda path: path.write_text("edited"), replace_by_link):
        out = tmp_path / change.__name__
        published(out, "old")
        change(out / "public" / "table")
        with pytest.raises(OutputError, match="such as 'public/"):
            published(out, "new", force=True)
        assert (out / "owner" / "page").read_text() == "old"


def replace_by_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def test_what_is_added_to_the_old_folder_while_it_is_replaced_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, remove = tmp_path / "out", atomic_files._remove_own_files
    published(out, "old")

    def late(path: Path) -> None:
        (path / "public" / "late.txt").write_text("mine")
        remove(path)

    monkeypatch.setattr(atomic_files, "_remove_own_files", late)
    published(out, "new", force=True)
    assert set(standing(out).values()) == {"new"}
    (kept,) = tmp_path.rglob("late.txt")
    assert HIDDEN.fullmatch(kept.relative_to(tmp_path).parts[0])


def test_a_signature_that_was_added_later_goes_with_what_it_signs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    published(out, "old")
    (out / "public" / "table.sig").write_text("signed")
    published(out, "new", force=True)
    assert standing(out) == {"public/table": "new", "owner/page": "new"}


def test_the_current_folder_and_a_mount_point_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place, what in ((Path(), "the current folder"), (Path("/proc"), "a mount point")):
        with pytest.raises(OutputError, match=f"is {what}"):
            published(place, "new", force=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("call", ["rename", "fsync"])
def test_a_signal_is_answered_before_the_folder_appears_or_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, force: bool
) -> None:
    out, work = tmp_path / "out", getattr(os, call)
    if force:
        published(out, "old")

    def interrupted(*given: Any) -> None:
        work(*given)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(os, call, interrupted)
    with pytest.raises(KeyboardInterrupt):
        published(out, "new", force=force)
    left = {"old"} if force else {"new"} if call == "rename" else set()  # the last rename publishes
    assert set(standing(out).values()) == left
    assert list(tmp_path.iterdir()) == ([out] if left else [])


def test_a_file_system_without_links_serves_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", unknown)
    for text, force, stays in (("old", False, "old"), ("new", False, "old"), ("new", True, "new")):
        refused = pytest.raises(OutputError, match="exists already") if text != stays else nullcontext()
        with refused, atomic_file(tmp_path / "table", force=force) as beside:
            beside.write_text(text)
        assert (tmp_path / "table").read_text() == stays


def test_a_name_that_was_taken_meanwhile_is_left_as_it_is(tmp_path: Path) -> None:
    table = tmp_path / "table"
    with pytest.raises(OutputError, match="table' exists already"), atomic_file(table):
        table.symlink_to(tmp_path / "nowhere")  # a link to nowhere is something, too
    assert list(tmp_path.iterdir()) == [table]


# A file or a folder appears, or replaces an older one, and the child kills itself at the k-th call that changes a
# folder: before it, or just after it. What stands then is judged here, where nothing was killed.
KILLED_ANYWHERE = """
import itertools, os, pathlib, shutil, signal, sys
from privacyfunnel.atomic_files import MANIFEST, atomic_file, atomic_folder, begin_file, recover

base, kind, old = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "old"
out = base / "out"

def publish(version, force):
    if kind == "file":
        with atomic_file(out, force=force) as beside:
            beside.write_text(version)
        return
    with atomic_folder(out, force=force) as staged:
        for name in ("public/a.csv", "public/b.csv", "owner/page"):
            begin_file(staged / name).write_text(version)

def killed_at(k, after, work):
    "Whether the k-th call was reached."
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    calls = itertools.count()
    def deadly(call):
        def called(*words, **more):
            mine = next(calls) == k
            if mine and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            found = call(*words, **more)
            if mine:
                os.kill(os.getpid(), signal.SIGKILL)
            return found
        return called
    for name in ("link", "rename", "unlink", "rmdir", "mkdir", "fsync", "fchmod", "chmod"):
        setattr(os, name, deadly(getattr(os, name)))
    work()
    os._exit(0)

def standing():
    if kind == "file":
        return {"out": out.read_text()} if out.exists() else {}
    inside = (path for path in out.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(out).as_posix(): path.read_text() for path in inside}

def whole(version):
    names = ("out",) if kind == "file" else ("public/a.csv", "public/b.csv", "owner/page")
    return dict.fromkeys(names, version)

def private():
    for path in base.iterdir():
        assert not path.name.startswith(".") or path.stat().st_mode & 0o077 == 0, path

OLD = whole("1") if old else {}
points = 0
for k, after in ((k // 2, bool(k % 2)) for k in itertools.count()):
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir()
    if old:
        publish("1", force=False)
    if not killed_at(k, after, lambda: publish("2", force=old)):
        break
    points += 1
    assert standing() in ({}, OLD, whole("2")), standing()
    private()
    for j in itertools.count():  # and the recovery may be killed, too
        reached = killed_at(j, False, lambda: recover(base))
        private()
        if not reached:
            break
    assert standing() in (OLD, whole("2")), standing()
    assert [path.name for path in base.iterdir()] == (["out"] if standing() else []), list(base.iterdir())
    publish("2", force=bool(standing()))
    assert standing() == whole("2")
print(points)
"""


@pytest.mark.parametrize("old", ["old", "none"])
@pytest.mark.parametrize(("kind", "fewest"), [("file", 10), ("folder", 20)])
def test_wherever_a_run_is_killed_the_old_one_stands_or_the_new_one(
    tmp_path: Path, kind: str, fewest: int, old: str
) -> None:
    command = [sys.executable, "-c", KILLED_ANYWHERE, str(tmp_path / "base"), kind, old]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > fewest
