r"""Files and folders that appear whole or not at all: staging, publication and crash recovery.

New files are staged in a hidden folder P beside their final names. Only its owner can enter P. When all files are
complete and synced to disk, they are published:

1. the files that they replace move into P, in the order of their names (the old table first);
2. each new file is linked to its final name, in the *reverse* of the order in which they were begun. The file begun
   first, the table, is linked last: that is the commit;
3. P is removed.

*At any moment a table is beside the files that it was written with, and beside no other.* Before the first move it is
the old table. From the first move to the commit there is no table. After the commit it is the new one, and its other
files are there already. A move and a link are atomic, so this holds wherever the process is killed. The folder is
locked meanwhile, so that no other run interferes. A signal that would end the program is deferred; it is answered
before the commit, and then everything is restored.

*Nothing is lost.* P shows how far a killed run came. If every file in it is linked, the run was complete and P is
removed; otherwise the linked files are removed, and the moved ones are restored in reverse order (the old table last).
The next run into the folder does both.

A folder of parts is published by one rename of P. It holds a manifest of the files that were written, with their
SHA-256. Another folder is replaced only if the manifest lists all that is in it: nothing else is ever removed. While
it is replaced, the old folder is in an owner-only folder O; a kill before the new folder is in place restores it.
"""

import errno
import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, cast

from privacyfunnel.errors import OutputError
from privacyfunnel.hints import hint
from privacyfunnel.locks import acquire_lock, defer_signals, lock_folder

OWNERS_ONLY, EVERYBODYS = 0o600, 0o666  # modes of files; the umask is taken from the second
OWNERS_FOLDER, EVERYBODYS_FOLDER = 0o700, 0o777
NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}  # errors of file systems without hard links
HIDDEN = re.compile(r"\.privacyfunnel\.[0-9a-f]{16}\.(part|old)")
REPLACED = ".replaced"  # the folder in P of what new files replace, numbered in the order of the moves
MANIFEST = ".privacyfunnel-files.json"  # in a folder of parts: the SHA-256 of each file that this program wrote there


class StagedFiles:
    """Files on their way into one folder, in the order in which they were begun."""

    def __init__(self, hidden: Path, folder: Path) -> None:
        self._hidden, self._folder = hidden, folder
        self._modes: dict[str, int] = {}

    def begin(self, name: str, *, owner_only: bool = False) -> Path:
        """Where to write the file that will have this name; an `owner_only` file has mode 600."""
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
        """The final path of the file that was begun last."""
        return self._folder / next(reversed(self._modes), "")

    def sync(self) -> None:
        """Write all files through to disk, and set their modes."""
        for name, mode in self._modes.items():
            file = os.open(self._hidden / name, os.O_RDWR)
            try:
                os.fsync(file)
                _set_mode(file, mode)  # P itself still shuts out everybody but its owner
            finally:
                os.close(file)

    def write_manifest(self) -> None:
        """Add the list of all files and their SHA-256."""
        digests = {name: _file_digest(self._hidden / name) for name in self._modes}
        self.begin(MANIFEST).write_text(json.dumps({"files": digests}, indent=1) + "\n", encoding="utf-8")

    def publish(self, *, force: bool, also_replace: Sequence[str] = ()) -> None:
        """Publish all files; `also_replace` are other names that must not be beside them."""
        self.sync()
        replaced = list(dict.fromkeys([*also_replace, *self._modes]))
        *first, last = reversed(self._modes)
        alone = force and replaced == [last]  # a rename replaces one file in one step
        with lock_folder(self._folder), defer_signals() as pending:
            linked: list[str] = []
            try:
                if not alone:
                    self._move_old_files(replaced, force=force)
                for name in first:
                    self._link(name)
                    linked.append(name)
                _sync_folder(self._folder)
                pending()
                self._link(last, replace=alone)
            except BaseException:
                for name in reversed(linked):
                    with suppress(OSError):
                        (self._folder / name).unlink()
                _restore_files(self._hidden, self._folder)
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

    def _link(self, name: str, *, replace: bool = False) -> None:
        # A link fails if the name was taken meanwhile; a rename would silently replace it.
        part, path = self._hidden / name, self._folder / name
        if replace:
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

    With `force` they replace files of their names, and those of `also_replace`; without it there may be none.
    """
    parts: StagedFiles | None = None
    try:
        with _hidden_folder(folder, "part") as hidden:
            parts = StagedFiles(hidden, folder)
            yield parts
            parts.publish(force=force, also_replace=also_replace)
    except OSError as error:
        raise _write_error(parts.last_path if parts else folder, error) from error


@contextmanager
def atomic_file(path: str | Path, *, force: bool = False, owner_only: bool = False) -> Iterator[Path]:
    """Where to write the file that appears at `path` when the body is done.

    Until then only its owner can read it, whatever the umask; an `owner_only` file stays so.
    """
    path = Path(path)
    check_target(path, force=force)
    try:
        with atomic_files(path.parent, force=force) as parts:
            yield parts.begin(path.name, owner_only=owner_only)
    except OSError as error:
        raise _write_error(path, error) from error


@contextmanager
def atomic_folder(path: Path, *, force: bool = False) -> Iterator[StagedFiles]:
    """Files that appear in a new folder when the body is done; if it raises, or the process dies, there is none.

    With `force` it replaces a folder in which this program wrote all files.
    """
    check_folder(path, force=force)
    try:
        with _hidden_folder(path.parent, "part") as hidden:
            parts = StagedFiles(hidden, path)
            yield parts
            parts.write_manifest()
            parts.sync()
            with lock_folder(path.parent), defer_signals() as pending:
                pending()
                _publish_folder(hidden, path, force=force)
    except OSError as error:
        raise _write_error(path, error) from error


def _publish_folder(hidden: Path, path: Path, *, force: bool) -> None:
    if not (force and path.is_dir()):
        hidden.rename(path)  # replaces an empty folder, and nothing else
    else:
        _refuse_foreign_files(path)
        with _hidden_folder(path.parent, "old") as old:
            path.rename(old / path.name)
            try:
                hidden.rename(path)
            except OSError:
                (old / path.name).rename(path)
                raise
            _remove_written(old / path.name)
    with suppress(OSError):
        path.chmod(EVERYBODYS_FOLDER & ~current_umask())
    _sync_folder(path.parent)


def check_folder(path: Path, *, force: bool) -> None:
    """Refuse early what could not be written at the end, after crash recovery."""
    recover(path.parent)
    if path.exists() and not path.is_dir():
        raise OutputError(f"'{path}' must be a folder to write parts to; it is a file. Name a folder.")
    if path.is_dir() and any(path.iterdir()):
        if not force:
            raise OutputError(
                f"'{path}' holds files already and was left as it is. Name a new folder, or use {hint('force')}."
            )
        _refuse_foreign_files(path)
    if path.parent.exists() and not os.access(path.parent, os.W_OK | os.X_OK):
        raise OutputError(f"'{path}' cannot be written: its folder allows no new ones. Choose another place.")


def _refuse_foreign_files(path: Path) -> None:
    """Refuse to replace a folder that holds anything but the files that this program wrote there."""
    written = _read_manifest(path)
    foreign = [
        entry.name
        for entry in sorted(path.iterdir())
        if entry.name != MANIFEST and not (entry.name in written and _is_written(entry, written[entry.name]))
    ]
    if foreign:
        raise OutputError(
            f"'{path}' must hold only files that privacyfunnel wrote to be replaced; {len(foreign)} are others or were "
            f"changed, such as '{foreign[0]}'. Nothing was written or removed. Name a new folder."
        )


def _read_manifest(path: Path) -> dict[str, str]:
    try:
        files = json.loads((path / MANIFEST).read_text(encoding="utf-8"))["files"]
        return {str(name): str(digest) for name, digest in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _is_written(path: Path, digest: str) -> bool:
    return stat.S_ISREG(path.lstat().st_mode) and _file_digest(path) == digest


def _remove_written(path: Path) -> None:
    """Remove a folder with the files that its manifest lists; with any other file in it, the folder stays."""
    with suppress(OSError):
        for name, digest in _read_manifest(path).items():
            if (path / name).parent == path and os.path.lexists(path / name) and _is_written(path / name, digest):
                (path / name).unlink()
        if [entry.name for entry in path.iterdir()] == [MANIFEST]:
            (path / MANIFEST).unlink()
        path.rmdir()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def scratch_file(path: Path) -> Iterator[BinaryIO]:
    """A file without a name in the folder of `path`: nobody else can open it, and it ends with the process."""
    try:
        with TemporaryFile(dir=path.parent) as opened:
            yield cast(BinaryIO, opened)
    except OSError as error:
        raise _write_error(path, error) from error


@contextmanager
def ensure_folder(path: Path) -> Iterator[None]:
    """Make the folder if there is none; if the body fails, a folder that was made is removed."""
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


def check_target(path: Path, *, force: bool) -> None:
    """Refuse early what could not be written at the end, after crash recovery."""
    recover(path.parent)
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


def _write_error(path: Path, error: OSError) -> OutputError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return OutputError(f"'{path}' was not written: the disk is full. Free some space or write elsewhere.")
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    return OutputError(f"'{path}' was not written: {reason}. Choose another place.")


def _exists_error(path: Path) -> OutputError:
    return OutputError(
        f"'{path}' exists already and was left as it is. Remove it, name another, or use {hint('force')}."
    )


def _directory_error(path: Path) -> OutputError:
    return OutputError(f"'{path}' must be a file to write to; it is a directory. Name a file inside it.")


# -- crash recovery --------------------------------------------------------------------------------------------------


def recover(folder: Path) -> None:
    """Complete or undo what killed runs left in the folder."""
    with suppress(OSError):  # no folder yet, or one that cannot be listed
        for hidden, kind in [(path, found[1]) for path in folder.iterdir() if (found := HIDDEN.fullmatch(path.name))]:
            with suppress(OSError):  # somebody else's, a link, or removed meanwhile
                place = os.open(hidden, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
                try:
                    if os.fstat(place).st_uid == os.geteuid() and acquire_lock(place, wait=False):
                        with lock_folder(folder):
                            (_restore_folder if kind == "old" else _undo)(hidden, folder)
                            _remove_hidden(hidden)
                finally:
                    os.close(place)


def _undo(hidden: Path, folder: Path) -> None:
    """Unless all files of P are linked, remove the linked ones and restore those that they replaced."""
    files = [path for path in hidden.iterdir() if path.name != REPLACED]
    linked = [path for path in files if _is_same_file(path, folder / path.name)]
    if len(linked) < len(files):
        for path in linked:
            (folder / path.name).unlink()
        _restore_files(hidden, folder)


def _restore_files(hidden: Path, folder: Path) -> None:
    """Give replaced files their names again, the last first, up to one whose name is taken."""
    with suppress(FileNotFoundError):
        for old in sorted((hidden / REPLACED).iterdir(), reverse=True):
            path = folder / old.name.split(" ", 1)[1]
            if os.path.lexists(path):  # the files before it do not belong to what is there now
                return
            old.rename(path)


def _restore_folder(hidden: Path, folder: Path) -> None:
    """Give the old folder in O its name again, or remove it where the new one is in place."""
    for old in list(hidden.iterdir()):
        if os.path.lexists(folder / old.name):
            _remove_written(old)
        else:
            old.rename(folder / old.name)


def _remove_hidden(hidden: Path) -> None:
    """Remove a hidden folder, replaced files first: while one is there, the new ones show whether it is needed."""
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


# -- hidden folders and modes ----------------------------------------------------------------------------------------


@contextmanager
def _hidden_folder(folder: Path, kind: str) -> Iterator[Path]:
    """A new folder that only its owner can enter, locked as long as this process lives."""
    hidden = folder / f".privacyfunnel.{secrets.token_hex(8)}.{kind}"
    place = -1
    try:
        while place < 0:
            _make_owner_folder(hidden)
            place = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY)
            if not (acquire_lock(place, wait=True) and os.fstat(place).st_nlink):  # another run's recovery took it
                os.close(place)
                place = -1
        yield hidden
    finally:
        _remove_hidden(hidden)
        if place >= 0:
            os.close(place)


def _make_owner_folder(path: Path) -> None:
    path.mkdir(mode=OWNERS_FOLDER)
    with suppress(OSError):  # some file systems have no modes
        path.chmod(OWNERS_FOLDER)  # a umask may have taken it from the owner, too


def _set_mode(file: int, mode: int) -> None:
    with suppress(OSError):  # some file systems have no modes
        os.fchmod(file, mode)


def current_umask() -> int:
    """The umask; it can only be read by setting it, so it is set to the strictest meanwhile."""
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
