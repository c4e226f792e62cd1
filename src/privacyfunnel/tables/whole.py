"""Files that appear whole or not at all."""

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from privacyfunnel.errors import OutputError

OWNERS_ONLY, EVERYBODYS = 0o600, 0o666  # modes; the umask takes from the second what the owner gives nobody


@contextmanager
def whole_file(path: str | Path, *, force: bool = False, owners: bool = False) -> Iterator[Path]:
    """A hidden name beside `path` to write to; on leaving it is synced to disk and renamed to `path`.

    If the body raises, or the process dies, nothing stands under `path` that was not there before. Until it is whole
    only its owner can read it, whatever the umask; `owners` files stay so.
    """
    path = Path(path)
    checked_target(path, force=force)
    beside = _beside(path)
    try:
        with _owners_only(beside) as file:
            yield beside
            _settle(file, beside, path, force=force)
            if not owners:  # only now: under its hidden name nobody else ever reads it
                _give(file, EVERYBODYS & ~_umask())
    except OSError as error:
        raise write_failure(path, error) from error
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def nameless_file(path: Path) -> Iterator[BinaryIO]:
    """A file in the folder of `path` for what must wait on disk: without a name, so nobody else can open it.

    Its space is free again when it is closed, or when the process is gone, however that ends.
    """
    beside = _beside(path)
    try:
        with _owners_only(beside) as file:
            beside.unlink()
            with os.fdopen(os.dup(file), "w+b") as opened:
                yield opened
    except OSError as error:
        raise write_failure(path, error) from error
    finally:
        beside.unlink(missing_ok=True)


def checked_target(path: Path, *, force: bool) -> None:
    """Refuse early what could not be renamed to at the end; what a killed run left half-written there is removed."""
    _remove_leftovers(path)
    if path.is_dir():
        raise OutputError(f"'{path}' must be a file to write to; it is a directory. Name a file inside it.")
    if path.parent.exists() and not path.parent.is_dir():
        raise OutputError(f"'{path.parent}' must be a folder to write to; it is a file. Name a folder.")
    if not path.parent.is_dir():
        raise OutputError(
            f"the folder '{path.parent}' must exist to write '{path.name}'; it does not. Create it first."
        )
    if not force and path.exists():
        raise _exists(path)


def write_failure(path: Path, error: OSError) -> OutputError:
    """One sentence for what the operating system said."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return OutputError(f"'{path}' was not written: the disk is full. Free some space or write elsewhere.")
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    return OutputError(f"'{path}' was not written: {reason}. Choose another place.")


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")


@contextmanager
def _owners_only(beside: Path) -> Iterator[int]:
    """A new file that nobody but its owner can read, held as long as this process lives."""
    file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNERS_ONLY)
    try:
        while not (_held(file, wait=True) and os.fstat(file).st_nlink):  # another run took it for a leftover
            os.close(file)
            file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNERS_ONLY)
        _give(file, OWNERS_ONLY)  # a umask may have taken it from the owner, too
        yield file
    finally:
        os.close(file)


def _remove_leftovers(path: Path) -> None:
    """Remove the parts of `path` that no process holds any more: they are rows of a draw that was never published."""
    ours = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{16}\.part")
    with suppress(OSError):  # no folder yet, or one that cannot be listed
        for part in [beside for beside in path.parent.iterdir() if ours.fullmatch(beside.name)]:
            with suppress(OSError):  # somebody else's, a link, or removed meanwhile
                file = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if (
                        stat.S_ISREG(os.fstat(file).st_mode)
                        and os.fstat(file).st_uid == os.geteuid()
                        and _held(file, wait=False)
                    ):
                        part.unlink()
                finally:
                    os.close(file)


def _held(file: int, *, wait: bool) -> bool:
    """Hold the file until it is closed or the process is gone; False where another process holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # held; or a file system without locks, where nothing is ever taken for a leftover
        return wait
    return True


def _give(file: int, mode: int) -> None:
    with suppress(OSError):  # some file systems know no modes
        os.fchmod(file, mode)


def _umask() -> int:
    """What the owner gives nobody; it can only be read by setting it, so it is set to the strictest meanwhile."""
    mask = os.umask(0o777 & ~OWNERS_ONLY)
    os.umask(mask)
    return mask


def _settle(file: int, beside: Path, path: Path, *, force: bool) -> None:
    os.fsync(file)
    if force:
        beside.replace(path)
    else:
        # A link fails if the name was taken meanwhile, a rename would silently replace it.
        try:
            os.link(beside, path)
        except FileExistsError:
            raise _exists(path) from None
        except OSError:  # some file systems know no links
            if path.exists():
                raise _exists(path) from None
            beside.replace(path)
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _exists(path: Path) -> OutputError:
    return OutputError(f"'{path}' exists already and was left as it is. Remove it, name another, or use --force.")


@contextmanager
def folder(path: Path) -> Iterator[None]:
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
