"""What waits while files appear: other runs, and signals.

What runs leave in a hidden folder when they are killed, and how the next run puts it in order.

`atomic_files.py` says what such a folder holds, and why this is enough.

Files that appear together, whole, or not at all.

New files get ready in a hidden folder P beside their final names, which only its owner can enter, under the names that
they will have. When all of them are whole and synced to disk, and not before, they appear:

1. what they replace moves into P, in the order in which it is named (the old table first);
2. each new file is linked to its final name, in the *reverse* of the order in which they were begun: what describes a
   file is written after it and appears before it. The file begun first, the table, appears last: that is the commit;
3. P is removed.

*At any moment a table that stands is beside the files it was written with, and beside no other.* Before the first move
it is the old table with its own. From the first move to the commit no table stands. From the commit on it is the new
one, and all that belongs to it stands already. A move and a link are atomic, so this holds wherever the process is
killed; the folder is locked meanwhile, so no other run comes between. A signal that would end the program waits: it is
heard before the commit, and then everything is put back.

*Nothing is lost either.* As long as P stands, it says how far a killed run came: if every file in it is linked, that
run was done, and P goes; else what it linked is removed, and what it moved comes back in reverse order (the old table
last). Both are done by the next run into this folder.

A folder of files that appears whole, or not at all.

Its files get ready in a hidden folder beside it, which only its owner can enter. When all are whole and synced, that
folder gets the final name in one step: wherever the process is killed, no part stands under its final name.
"""

import errno
import fcntl
import os
import re
import secrets
import signal
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from types import FrameType
from typing import Any, BinaryIO, cast

from privacyfunnel.errors import OutputError
from privacyfunnel.hints import hint

ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def acquire_lock(file: int, *, wait: bool) -> bool:
    """Hold the file until it is closed or the process is gone; False where another process holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # held; or a file system without locks, where nothing is ever taken for a leftover
        return wait
    return True


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """No other run makes files appear in the folder meanwhile."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        acquire_lock(place, wait=True)
        yield
    finally:
        os.close(place)


class DeferredSignals:
    """Signals that came while they had to wait."""

    def __init__(self) -> None:
        self.handlers: dict[int, Any] = {}
        self.came: list[int] = []

    def note(self, number: int, frame: FrameType | None) -> None:
        self.came.append(number)

    def __call__(self) -> None:
        """Let what came be answered now, while all can still be taken back.

        Also what came before and was answered by an exception that got lost on its way: a handler may remember it.
        """
        if any(getattr(answer, "came", ()) for answer in self.handlers.values()):
            raise KeyboardInterrupt
        for number in list(self.came):
            answer = self.handlers[number]
            if not callable(answer):  # the process would just end; it does, when all is taken back
                raise KeyboardInterrupt
            self.came.remove(number)
            answer(number, None)


@contextmanager
def defer_signals() -> Iterator[DeferredSignals]:
    """A signal that would end the program waits until the body is done, or until the body asks for it.

    Blocking it would not do: another thread of the process would get it, and Python would still answer in this one.
    """
    heard = DeferredSignals()
    if threading.current_thread() is not threading.main_thread():  # Python answers signals in the main thread only
        yield heard
        return
    answers = {number: signal.getsignal(number) for number in ENDING}
    heard.handlers = {n: answer for n, answer in answers.items() if answer not in (None, signal.SIG_IGN)}
    for number in heard.handlers:
        signal.signal(number, heard.note)
    try:
        yield heard
    finally:
        for number in heard.handlers:
            signal.signal(number, answers[number])
        for number in heard.came:
            signal.raise_signal(number)


PARTS = re.compile(r"\.privacyfunnel\.[0-9a-f]{16}\.part")
REPLACED = ".replaced"  # the folder within of what new files replace, numbered in the order in which it went


def recover(folder: Path) -> None:
    """Put in order what killed runs left in the folder: the rows they drew were never published."""
    with suppress(OSError):  # no folder yet, or one that cannot be listed
        for hidden in [path for path in folder.iterdir() if PARTS.fullmatch(path.name)]:
            with suppress(OSError):  # somebody else's, a link, or removed meanwhile
                place = os.open(hidden, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
                try:
                    if os.fstat(place).st_uid == os.geteuid() and acquire_lock(place, wait=False):
                        with lock_folder(folder):
                            _undo(hidden, folder)
                            remove(hidden)
                finally:
                    os.close(place)


def _undo(hidden: Path, folder: Path) -> None:
    """Unless all of its files appeared, take back those that did, and put back what they replaced."""
    files = [path for path in hidden.iterdir() if path.name != REPLACED]
    linked = [path for path in files if _is_same_file(path, folder / path.name)]
    if len(linked) < len(files):
        for path in linked:
            (folder / path.name).unlink()
        restore_files(hidden, folder)


def restore_files(hidden: Path, folder: Path) -> None:
    """What was replaced gets its names again, the last first, up to one whose name is taken."""
    with suppress(FileNotFoundError):
        for old in sorted((hidden / REPLACED).iterdir(), reverse=True):
            path = folder / old.name.split(" ", 1)[1]
            if os.path.lexists(path):  # what stood before it does not belong to what stands there now
                return
            old.rename(path)


def remove(hidden: Path) -> None:
    """The old files first: as long as one is there, the new ones say whether it is still needed."""
    with suppress(OSError):
        for place in (hidden / REPLACED, hidden):
            if place.exists():
                for path in place.iterdir():
                    path.unlink()
                place.rmdir()


def _is_same_file(one: Path, other: Path) -> bool:
    with suppress(OSError):
        return os.path.samestat(one.lstat(), other.lstat())
    return False


def remove_old_parts(path: Path) -> None:
    """Remove the parts of `path` that a killed run of an earlier version left, and that no process holds any more."""
    ours = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{16}\.part")
    with suppress(OSError):  # no folder yet, or one that cannot be listed
        for part in [beside for beside in path.parent.iterdir() if ours.fullmatch(beside.name)]:
            with suppress(OSError):  # somebody else's, a link, or removed meanwhile
                file = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    found = os.fstat(file)
                    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and acquire_lock(file, wait=False):
                        part.unlink()
                finally:
                    os.close(file)


OWNERS_ONLY, EVERYBODYS = 0o600, 0o666  # modes; the umask takes from the second what the owner gives nobody
OWNERS_FOLDER = 0o700
NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}  # what file systems say that know no links


class StagedFiles:
    """Files on their way into one folder, in the order in which they were begun."""

    def __init__(self, hidden: Path, folder: Path) -> None:
        self._hidden, self._folder = hidden, folder
        self._modes: dict[str, int] = {}  # the mode of each by its name

    def begin(self, name: str, *, owner_only: bool = False) -> Path:
        """Where to write the file that will be called `name`; the mode of an `owners` file shuts out everybody else."""
        path = self._hidden / name
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNERS_ONLY)
        try:
            _set_mode(file, OWNERS_ONLY)  # a umask may have taken it from the owner, too
        finally:
            os.close(file)
        self._modes[name] = OWNERS_ONLY if owner_only else EVERYBODYS & ~current_umask()
        return path

    @property
    def last_path(self) -> Path:
        """The final name of the file that was begun last."""
        return self._folder / next(reversed(self._modes), "")

    def sync(self) -> None:
        """Whatever was begun is on disk, and has its mode."""
        for name, mode in self._modes.items():
            file = os.open(self._hidden / name, os.O_RDWR)
            try:
                os.fsync(file)
                _set_mode(file, mode)  # P itself still shuts out everybody but its owner
            finally:
                os.close(file)

    def publish(self, *, force: bool, also_replace: Sequence[str] = ()) -> None:
        """Publish what was begun; `instead_of` are other names that must not stand beside it."""
        self.sync()
        replaced = list(dict.fromkeys([*also_replace, *self._modes]))
        *first, last = reversed(self._modes)
        alone = force and replaced == [last]  # a rename replaces one file in one step
        with lock_folder(self._folder), defer_signals() as heard:
            shown: list[str] = []
            try:
                if not alone:
                    self._move_old_files(replaced, force=force)
                for name in first:
                    self._link(name)
                    shown.append(name)
                _sync_folder(self._folder)
                heard()
                self._link(last, instead=alone)
            except BaseException:
                for name in reversed(shown):
                    with suppress(OSError):
                        (self._folder / name).unlink()
                restore_files(self._hidden, self._folder)
                raise
            _sync_folder(self._folder)

    def _move_old_files(self, names: Sequence[str], *, force: bool) -> None:
        there = [name for name in names if os.path.lexists(self._folder / name)]
        if there and not force:
            raise _exists_error(self._folder / there[0])
        if not there:
            return
        _make_owner_folder(self._hidden / REPLACED)
        for number, name in enumerate(there):
            if stat.S_ISDIR((self._folder / name).lstat().st_mode):
                raise _directory_error(self._folder / name)
            (self._folder / name).rename(self._hidden / REPLACED / f"{number:03d} {name}")

    def _link(self, name: str, *, instead: bool = False) -> None:
        # A link fails if the name was taken meanwhile, a rename would silently replace it.
        part, path = self._hidden / name, self._folder / name
        if instead:
            if path.is_dir() and not path.is_symlink():
                raise _directory_error(path)
            part.replace(path)
            return
        try:
            os.link(part, path)
        except FileExistsError:
            raise _exists_error(path) from None
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            if os.path.lexists(path):
                raise _exists_error(path) from None
            part.rename(path)


@contextmanager
def atomic_files(folder: Path, *, force: bool = False, also_replace: Sequence[str] = ()) -> Iterator[StagedFiles]:
    """Files that appear in `folder` together when the body is done; if it raises, or the process dies, none does.

    With `force` they take the place of what has their names, and the names `instead_of` are cleared as well; without it
    nothing may stand there.
    """
    parts: StagedFiles | None = None
    try:
        with hidden_folder(folder) as hidden:
            parts = StagedFiles(hidden, folder)
            yield parts
            parts.publish(force=force, also_replace=also_replace)
    except OSError as error:
        raise write_error(parts.last_path if parts else folder, error) from error


@contextmanager
def atomic_file(path: str | Path, *, force: bool = False, owner_only: bool = False) -> Iterator[Path]:
    """Where to write what appears at `path` when the body is done, whole.

    Until then only its owner can read it, whatever the umask; `owners` files stay so.
    """
    path = Path(path)
    check_target(path, force=force)
    try:
        with atomic_files(path.parent, force=force) as parts:
            yield parts.begin(path.name, owner_only=owner_only)
    except OSError as error:
        raise write_error(path, error) from error


@contextmanager
def scratch_file(path: Path) -> Iterator[BinaryIO]:
    """A file in the folder of `path` for what must wait on disk: without a name, so nobody else can open it.

    Its space is free again when it is closed, or when the process is gone, however that ends.
    """
    try:
        with TemporaryFile(dir=path.parent) as opened:
            yield cast(BinaryIO, opened)
    except OSError as error:
        raise write_error(path, error) from error


def check_target(path: Path, *, force: bool) -> None:
    """Refuse early what could not be written at the end; what a killed run left there is put in order."""
    recover(path.parent)
    remove_old_parts(path)
    if path.is_dir():
        raise _directory_error(path)
    if path.parent.exists() and not path.parent.is_dir():
        raise OutputError(f"'{path.parent}' must be a folder to write to; it is a file. Name a folder.")
    if not path.parent.is_dir():
        raise OutputError(
            f"the folder '{path.parent}' must exist to write '{path.name}'; it does not. Create it first."
        )
    if not force and os.path.lexists(path):  # also a link to nowhere
        raise _exists_error(path)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise OutputError(f"'{path}' cannot be written: its folder allows no new files. Choose another place.")


def write_error(path: Path, error: OSError) -> OutputError:
    """One sentence for what the operating system said."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return OutputError(f"'{path}' was not written: the disk is full. Free some space or write elsewhere.")
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    return OutputError(f"'{path}' was not written: {reason}. Choose another place.")


@contextmanager
def hidden_folder(folder: Path) -> Iterator[Path]:
    """A new folder that nobody but its owner can enter, held as long as this process lives."""
    hidden = folder / f".privacyfunnel.{secrets.token_hex(8)}.part"
    place = -1
    try:
        while place < 0:
            _make_owner_folder(hidden)
            place = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY)
            if not (acquire_lock(place, wait=True) and os.fstat(place).st_nlink):  # another run took it for a leftover
                os.close(place)
                place = -1
        yield hidden
    finally:
        remove(hidden)
        if place >= 0:
            os.close(place)


def _make_owner_folder(path: Path) -> None:
    path.mkdir(mode=OWNERS_FOLDER)
    with suppress(OSError):  # some file systems know no modes
        path.chmod(OWNERS_FOLDER)  # a umask may have taken it from the owner, too


def _set_mode(file: int, mode: int) -> None:
    with suppress(OSError):  # some file systems know no modes
        os.fchmod(file, mode)


def current_umask() -> int:
    """What the owner gives nobody; it can only be read by setting it, so it is set to the strictest meanwhile."""
    mask = os.umask(0o777 & ~OWNERS_ONLY)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


def _exists_error(path: Path) -> OutputError:
    return OutputError(
        f"'{path}' exists already and was left as it is. Remove it, name another, or use {hint('force')}."
    )


def _directory_error(path: Path) -> OutputError:
    return OutputError(f"'{path}' must be a file to write to; it is a directory. Name a file inside it.")


@contextmanager
def ensure_folder(path: Path) -> Iterator[None]:
    """The folder exists inside; if it had to be made and the work fails, it is gone again."""
    new = [p for p in (path, *path.parents) if not p.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"the folder '{path}' could not be made: {reason}. Choose another place.") from None
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for made in new:
                made.rmdir()
        raise


EVERYBODYS_FOLDER = 0o777


def check_folder(path: Path, *, force: bool) -> None:
    """Refuse early what could not be written at the end; what a killed run left beside it is put in order."""
    recover(path.parent)
    if path.exists() and not path.is_dir():
        raise OutputError(f"'{path}' must be a folder to write parts to; it is a file. Name a folder.")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise OutputError(
            f"'{path}' holds files already and was left as it is. Name a new folder, or use {hint('force')}."
        )
    if path.parent.exists() and not os.access(path.parent, os.W_OK | os.X_OK):
        raise OutputError(f"'{path}' cannot be written: its folder allows no new ones. Choose another place.")


@contextmanager
def atomic_folder(path: Path, *, force: bool = False) -> Iterator[StagedFiles]:
    """Files that appear in a new folder when the body is done; if it raises, or the process dies, there is none.

    With `force` it takes the place of the folder that is there, and of all that is in it.
    """
    check_folder(path, force=force)
    try:
        with hidden_folder(path.parent) as hidden:
            parts = StagedFiles(hidden, path)
            yield parts
            parts.sync()
            with lock_folder(path.parent), defer_signals() as heard:
                heard()
                _publish_folder(hidden, path, force=force)
    except OSError as error:
        raise write_error(path, error) from error


def _publish_folder(hidden: Path, path: Path, *, force: bool) -> None:
    old = path.with_name(f".privacyfunnel.{secrets.token_hex(8)}.old")
    replaced = force and path.is_dir() and any(path.iterdir())
    if replaced:
        path.rename(old)
    try:
        hidden.rename(path)  # takes the place of an empty folder, and of nothing else
    except OSError:
        if replaced:
            old.rename(path)
        raise
    with suppress(OSError):
        path.chmod(EVERYBODYS_FOLDER & ~current_umask())
    if replaced:
        import shutil

        shutil.rmtree(old, ignore_errors=True)
