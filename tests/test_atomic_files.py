"""Files that appear whole or not at all: who can read them, while they are written and afterwards."""

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from privacyfunnel.atomic_files import atomic_file, atomic_files
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


# Each child publishes three files, or puts in order what another left, and kills itself at the k-th call that changes a
# folder: before it, or just after it. What stands then is judged here, where nothing was killed.
KILLED_ANYWHERE = """
import itertools, os, pathlib, shutil, signal, sys
from privacyfunnel.atomic_files import atomic_files, atomic_folder, recover

folder, old = pathlib.Path(sys.argv[1]), sys.argv[2]
CALLS = ("link", "rename", "unlink", "rmdir", "mkdir", "fsync", "fchmod")

def publish(version, force):
    with atomic_files(folder, force=force, also_replace=["table.csv", "table.parquet", "page"]) as parts:
        for name in ("table.csv", "protocol", "page"):
            parts.begin(name).write_text(version)

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
            call(*words, **more)
            if mine:
                os.kill(os.getpid(), signal.SIGKILL)
        return called
    for name in CALLS:
        setattr(os, name, deadly(getattr(os, name)))
    work()
    os._exit(0)

def standing():
    return {path.name: path.read_text() for path in folder.iterdir() if not path.name.startswith(".")}

OLD = {} if not old else {old: "1", "protocol": "1", "page": "1"}
NEW = {"table.csv": "2", "protocol": "2", "page": "2"}

def consistent():
    found = standing()
    tables = [name for name in found if name.startswith("table")]
    assert not tables or found in (OLD, NEW), found
    for path in folder.iterdir():
        assert not path.name.startswith(".") or path.stat().st_mode & 0o077 == 0

def fresh():
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in OLD.items():
        (folder / name).write_text(text)

points = 0
for k, after in ((k // 2, bool(k % 2)) for k in itertools.count()):
    fresh()
    if not killed_at(k, after, lambda: publish("2", force=bool(OLD))):
        break
    points += 1
    consistent()
    for j in itertools.count():  # and the recovery may be killed, too
        reached = killed_at(j, False, lambda: recover(folder))
        consistent()
        if not reached:
            break
    assert standing() in (OLD, NEW), standing()
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    publish("2", force=standing() != {})
    assert standing() == NEW
print(points)
"""


@pytest.mark.parametrize("old", ["", "table.csv", "table.parquet"])
def test_wherever_a_run_is_killed_no_table_stands_beside_what_is_not_its_own(tmp_path: Path, old: str) -> None:
    command = [sys.executable, "-c", KILLED_ANYWHERE, str(tmp_path / "into"), old]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > (20 if not old else 35)


def published(folder: Path, text: str, *, force: bool = False, meanwhile: Callable[[], None] | None = None) -> None:
    with atomic_files(folder, force=force) as parts:
        for name in ("table", "protocol", "page"):
            parts.begin(name).write_text(text)
        if meanwhile:
            meanwhile()


def standing(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_name_that_was_taken_meanwhile_takes_everything_back(tmp_path: Path) -> None:
    def taken() -> None:
        (tmp_path / "table").symlink_to(tmp_path / "nowhere")  # a link to nowhere is something, too

    with pytest.raises(OutputError, match="table' exists already"):
        published(tmp_path, "new", meanwhile=taken)
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


def test_what_cannot_be_replaced_takes_everything_back(tmp_path: Path) -> None:
    published(tmp_path, "old")
    (tmp_path / "page").unlink()
    with pytest.raises(OutputError, match="it is a directory"):
        published(tmp_path, "new", force=True, meanwhile=(tmp_path / "page").mkdir)
    (tmp_path / "page").rmdir()
    assert standing(tmp_path) == {"table": "old", "protocol": "old"}


@pytest.mark.parametrize("force", [False, True])
def test_a_signal_between_two_names_is_heard_before_the_last_and_takes_everything_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    if force:
        published(tmp_path, "old")
    before, link = standing(tmp_path), os.link

    def interrupted(source: Path, target: Path) -> None:
        link(source, target)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(os, "link", interrupted)
    with pytest.raises(KeyboardInterrupt):
        published(tmp_path, "new", force=force)
    assert standing(tmp_path) == before


def test_a_file_system_without_links_serves_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", unknown)
    published(tmp_path, "old")
    with pytest.raises(OutputError, match="exists already"):
        published(tmp_path, "new")
    published(tmp_path, "new", force=True)
    assert standing(tmp_path) == dict.fromkeys(("table", "protocol", "page"), "new")


# A folder of parts replaces an older one, and the child kills itself at the k-th call that changes a folder.
KILLED_FOLDER = """
import itertools, os, pathlib, shutil, signal, sys
from privacyfunnel.atomic_files import MANIFEST, atomic_folder, recover

base = pathlib.Path(sys.argv[1])
folder = base / "parts"

def publish(version, force):
    with atomic_folder(folder, force=force) as parts:
        for name in ("a.csv", "b.csv"):
            parts.begin(name).write_text(version)

def killed_at(k, after, work):
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    calls = itertools.count()
    def deadly(call):
        def called(*words, **more):
            mine = next(calls) == k
            if mine and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            call(*words, **more)
            if mine:
                os.kill(os.getpid(), signal.SIGKILL)
        return called
    for name in ("rename", "unlink", "rmdir", "mkdir", "fsync", "fchmod", "chmod"):
        setattr(os, name, deadly(getattr(os, name)))
    work()
    os._exit(0)

def parts():
    there = folder.iterdir() if folder.exists() else ()
    return {path.name: path.read_text() for path in there if path.name != MANIFEST}

def whole(version):
    return {"a.csv": version, "b.csv": version}

def private():
    for path in base.iterdir():
        assert not path.name.startswith(".") or path.stat().st_mode & 0o077 == 0, path

points = 0
for k, after in ((k // 2, bool(k % 2)) for k in itertools.count()):
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir()
    publish("1", force=False)
    if not killed_at(k, after, lambda: publish("2", force=True)):
        break
    points += 1
    assert parts() in ({}, whole("1"), whole("2")), parts()
    private()
    for j in itertools.count():
        reached = killed_at(j, False, lambda: recover(base))
        private()
        if not reached:
            break
    assert parts() in (whole("1"), whole("2")), parts()
    assert [path.name for path in base.iterdir()] == ["parts"], list(base.iterdir())
print(points)
"""


def test_wherever_a_run_is_killed_a_folder_of_parts_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_FOLDER, str(tmp_path / "base")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
