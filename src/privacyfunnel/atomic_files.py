r"""Files and folders that appear whole or not at all: staging, one rename, and crash recovery.

What is new is staged in a hidden folder P beside its final name. Only its owner can enter P, and it is locked as long
as the process lives. When everything is complete and synced to disk, one step publishes it: a link (or, to replace, a
rename) for a file, a rename of P itself for a folder. The folder around it is locked meanwhile. A signal that would end
the program is answered before that step, or after it.

*Nothing is removed that this program did not write.* A folder holds a manifest of its files with their SHA-256, and is
replaced only if that lists all that is in it. While it is replaced, the old folder is in an owner-only folder O; a kill
before the new one is in place lets the next run restore it.
"""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import Any, BinaryIO, cast

from privacyfunnel.errors import OutputError, make_retryable
from privacyfunnel.hints import hint
from privacyfunnel.locks import acquire_lock, defer_signals, lock_folder

OWNERS_ONLY, EVERYBODYS = 0o600, 0o666  # modes of files; the umask is taken from the second
OWNERS_FOLDER, EVERYBODYS_FOLDER = 0o700, 0o777
PUBLIC, OWNER = "public", "owner"  # the folders of a release; nobody else may enter the second
NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}  # errors of file systems without hard links
HIDDEN = re.compile(r"\.privacyfunnel\.[0-9a-f]{16}\.(part|old)")
MANIFEST = ".privacyfunnel-files.json"  # the SHA-256 of each file that this program wrote into a folder
RECORD = f"{OWNER}/disclosure-record.json"  # which is the manifest of a release
FILES = "files"  # the key of a manifest under which they are


@contextmanager
def atomic_file(path: str | Path, *, force: bool = False, owner_only: bool = False) -> Iterator[Path]:
    """Where to write the file that appears at `path` when the body is done.

    Until then only its owner can read it, whatever the umask; an `owner_only` file stays so.
    """
    path = Path(path)
    check_target(path, force=force)
    try:
        with _staging_folder(path.parent, "part") as hidden:
            part = begin_file(hidden / path.name)
            yield part
            _sync_file(part, OWNERS_ONLY if owner_only else EVERYBODYS & ~current_umask())
            with lock_folder(path.parent), defer_signals() as pending:
                pending()
                _publish_file(part, path, force=force)
                _sync_folder(path.parent)
    except OSError as error:
        raise _write_error(path, error) from error


@contextmanager
def atomic_folder(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Where to write the files of a folder that appears when the body is done; else there is none.

    Files begin with `begin_file`. Those in its folder `owner` are for their owner alone. With `force` it replaces a
    folder in which this program wrote all files.
    """
    check_folder(path, force=force)
    named, path = path, path.resolve()
    try:
        with _staging_folder(path.parent, "part") as hidden:
            yield hidden
            if not _read_manifest(hidden):
                write_manifest(hidden, MANIFEST)
            _sync_tree(hidden)
            with lock_folder(path.parent), defer_signals() as pending:
                _publish_folder(hidden, path, pending, force=force)
    except OSError as error:
        raise _write_error(named, error) from error


def begin_file(path: Path) -> Path:
    """The path of a staged file, which is made empty, and its folder if there is none; for their owner alone."""
    if not path.parent.exists():
        _make_owner_folder(path.parent)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, OWNERS_ONLY)
    try:
        _set_mode(file, OWNERS_ONLY)  # a umask may have taken it from the owner, too
    finally:
        os.close(file)
    return path


def _publish_file(part: Path, path: Path, *, force: bool) -> None:
    if force:
        if path.is_dir() and not path.is_symlink():
            raise _directory_error(path)
        part.replace(path)
        return
    try:
        os.link(part, path)  # fails if the name was taken meanwhile; a rename would silently replace it
    except FileExistsError:
        raise _exists_error(path) from None
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if os.path.lexists(path):
            raise _exists_error(path) from None
        part.rename(path)


def _publish_folder(hidden: Path, path: Path, pending: Callable[[], None], *, force: bool) -> None:
    if not (force and path.is_dir()):
        pending()
        try:
            hidden.rename(path)  # replaces an empty folder, and nothing else
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                raise
            raise _exists_error(path) from None
    else:
        _refuse_foreign_files(path)
        with _staging_folder(path.parent, "old") as old:
            path.rename(old / path.name)
            try:
                pending()
                hidden.rename(path)
            except BaseException:
                (old / path.name).rename(path)
                raise
            _remove_own_files(old / path.name)
    with suppress(OSError):
        path.chmod(EVERYBODYS_FOLDER & ~current_umask())
    _sync_folder(path.parent)


# -- manifests -------------------------------------------------------------------------------------------------------


def write_manifest(folder: Path, name: str, **facts: Any) -> None:
    """Add a file that lists all others of the folder with their SHA-256, after these facts."""
    path = begin_file(folder / name)
    listed = {
        each.relative_to(folder).as_posix(): file_digest(each)
        for each in sorted(folder.rglob("*"))
        if each != path and not each.is_dir()
    }
    text = json.dumps({**facts, FILES: listed}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def foreign_files(folder: Path) -> list[str]:
    """What is in the folder and not in its manifest, or is not what it lists; a signature belongs to what it signs."""
    written = _read_manifest(folder)
    folders = {str(parent) for name in written for parent in PurePosixPath(name).parents}
    found = []
    for path in sorted(folder.rglob("*")):
        name, mode = path.relative_to(folder).as_posix(), path.lstat().st_mode
        if stat.S_ISDIR(mode) and (name in folders or name == OWNER):
            continue
        signature = stat.S_ISREG(mode) and name.endswith(".sig") and name.removesuffix(".sig") in written
        if name not in {MANIFEST, RECORD} and not signature and not is_written(path, written.get(name)):
            found.append(name)
    return found


def _refuse_foreign_files(path: Path) -> None:
    """Refuse to replace a folder that holds anything but the files that this program wrote there."""
    foreign = foreign_files(path)
    if foreign:
        raise OutputError(
            f"'{path}' must hold only files that privacyfunnel wrote to be replaced; {len(foreign)} are others or were "
            f"changed, such as '{foreign[0]}'. Nothing was written or removed. Name a new folder."
        )


def _read_manifest(path: Path) -> dict[str, str]:
    for name in (RECORD, MANIFEST):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            files = json.loads((path / name).read_text(encoding="utf-8"))[FILES]
            return {str(name): str(digest) for name, digest in files.items()}
    return {}


def is_written(path: Path, digest: str | None) -> bool:
    """Whether the path is a file with this SHA-256."""
    with suppress(OSError):
        return digest is not None and stat.S_ISREG(path.lstat().st_mode) and file_digest(path) == digest
    return False


def _remove_own_files(path: Path) -> None:
    """Remove a folder with the files that its manifest lists; anything else stays, and then the manifest too."""
    foreign = set(foreign_files(path))
    with suppress(OSError):
        for each in sorted(path.rglob("*"), reverse=True):  # what is in a folder before the folder
            if each.relative_to(path).as_posix() not in {*foreign, OWNER, RECORD, MANIFEST}:
                each.rmdir() if stat.S_ISDIR(each.lstat().st_mode) else each.unlink()
        if not foreign:
            for each in (path / RECORD, path / MANIFEST):
                each.unlink(missing_ok=True)
            if (path / OWNER).exists():
                (path / OWNER).rmdir()
            path.rmdir()


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# -- what could not be written, said early ---------------------------------------------------------------------------


def check_target(path: Path, *, force: bool) -> None:
    """Refuse early a file that could not be written at the end, after crash recovery."""
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


def check_folder(path: Path, *, force: bool) -> None:
    """Refuse early a folder that could not be written at the end, after crash recovery."""
    named, path = path, path.resolve()
    recover(path.parent)
    if os.path.lexists(path) and not path.is_dir():
        raise OutputError(f"'{named}' must be a folder to write to; it is a file. Name a folder.")
    if path.is_dir() and (path.is_mount() or path == Path.cwd()):
        what = "a mount point" if path.is_mount() else "the current folder"
        raise OutputError(f"'{named}' is {what} and cannot be replaced as a whole. Name a folder inside it.")
    if path.is_dir() and any(path.iterdir()):
        if not force:
            raise _exists_error(named)
        _refuse_foreign_files(path)
    for place in (each for each in (path, path.parent) if each.exists()):
        if not os.access(place, os.W_OK | os.X_OK):
            raise OutputError(f"'{named}' cannot be written: '{place}' allows no new files. Choose another place.")


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


@contextmanager
def scratch_file(path: Path) -> Iterator[BinaryIO]:
    """A file without a name in the folder of `path`: nobody else can open it, and it ends with the process."""
    try:
        with TemporaryFile(dir=path.parent) as opened:
            yield cast(BinaryIO, opened)
    except OSError as error:
        raise _write_error(path, error) from error


def _write_error(path: Path, error: OSError) -> OutputError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        full = OutputError(f"'{path}' was not written: the disk is full. Free some space or write elsewhere.")
        return make_retryable(full)
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    return OutputError(f"'{path}' was not written: {reason}. Choose another place.")


def _exists_error(path: Path) -> OutputError:
    return OutputError(
        f"'{path}' exists already and was left as it is. Remove it, name another, or use {hint('force')}."
    )


def _directory_error(path: Path) -> OutputError:
    return OutputError(f"'{path}' must be a file to write to; it is a directory. Name a file inside it.")


# -- hidden folders and crash recovery -------------------------------------------------------------------------------


def recover(folder: Path) -> None:
    """Remove what killed runs staged in the folder, and restore what they were about to replace."""
    with suppress(OSError):  # no folder yet, or one that cannot be listed
        for hidden, kind in [(path, found[1]) for path in folder.iterdir() if (found := HIDDEN.fullmatch(path.name))]:
            with suppress(OSError):  # somebody else's, a link, or removed meanwhile
                place = os.open(hidden, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
                try:
                    if os.fstat(place).st_uid == os.geteuid() and acquire_lock(place, wait=False):
                        with lock_folder(folder):
                            _remove_staging(hidden, kind)
                finally:
                    os.close(place)


@contextmanager
def _staging_folder(folder: Path, kind: str) -> Iterator[Path]:
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
        _remove_staging(hidden, kind)
        if place >= 0:
            os.close(place)


def _remove_staging(hidden: Path, kind: str) -> None:
    """Remove a P; or an O, after its folder got its name again or, where the new one is in place, was removed."""
    if kind == "part":
        shutil.rmtree(hidden, ignore_errors=True)
        return
    with suppress(OSError):
        for old in list(hidden.iterdir()):
            if os.path.lexists(hidden.parent / old.name):
                _remove_own_files(old)
            else:
                old.rename(hidden.parent / old.name)
        hidden.rmdir()


def _make_owner_folder(path: Path) -> None:
    path.mkdir(mode=OWNERS_FOLDER)
    with suppress(OSError):  # some file systems have no modes
        path.chmod(OWNERS_FOLDER)  # a umask may have taken it from the owner, too


def _sync_tree(hidden: Path) -> None:
    """Write everything in P through to disk, and give it its modes; P itself still shuts out all but its owner."""
    mask = current_umask()
    for path in sorted(hidden.rglob("*"), reverse=True):  # what is in a folder before the folder
        owners = path.relative_to(hidden).parts[0] == OWNER
        if path.is_dir():
            _sync_folder(path)
            with suppress(OSError):
                path.chmod(OWNERS_FOLDER if owners else EVERYBODYS_FOLDER & ~mask)
        else:
            _sync_file(path, OWNERS_ONLY if owners else EVERYBODYS & ~mask)
    _sync_folder(hidden)


def _sync_file(path: Path, mode: int) -> None:
    file = os.open(path, os.O_RDWR)
    try:
        os.fsync(file)
        _set_mode(file, mode)
    finally:
        os.close(file)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


def _set_mode(file: int, mode: int) -> None:
    with suppress(OSError):  # some file systems have no modes
        os.fchmod(file, mode)


def current_umask() -> int:
    """The umask; it can only be read by setting it, so it is set to the strictest meanwhile."""
    mask = os.umask(0o777 & ~OWNERS_ONLY)
    os.umask(mask)
    return mask
