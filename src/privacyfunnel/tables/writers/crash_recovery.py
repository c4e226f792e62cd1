"""What runs leave in a hidden folder when they are killed, and how the next run puts it in order.

`tables/writers/atomic_files.py` says what such a folder holds, and why this is enough.
"""

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from privacyfunnel.tables.writers.locks import acquire_lock, lock_folder

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
