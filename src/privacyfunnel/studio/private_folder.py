"""Where uploads and answers wait: a folder that only its owner can enter, gone when the studio ends.

A studio that was killed cannot tidy up. Each folder is held by a lock as long as its process lives, so the next studio
tells apart what is in use and what was left, and removes the latter.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from privacyfunnel.locks import acquire_lock

PREFIX = "privacyfunnel-studio-"
OWNERS_FOLDER, OWNERS_FILE = 0o700, 0o600


class PrivateFolder:
    """A folder for what must wait on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def new_folder(self) -> Path:
        """An empty folder within, which only its owner can enter."""
        path = self.folder / secrets.token_hex(8)
        path.mkdir(mode=OWNERS_FOLDER)
        return path

    def new_file(self, name: str) -> tuple[Path, int]:
        """A file of that name in a folder of its own, open to be written; only its owner can read it."""
        path = self.new_folder() / name
        return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNERS_FILE)


@contextmanager
def open_private_folder(within: Path | None = None) -> Iterator[PrivateFolder]:
    """A place that is there inside; what killed studios left is removed first."""
    root = Path(tempfile.gettempdir()) if within is None else within
    remove_leftovers(root)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
    folder.chmod(OWNERS_FOLDER)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        acquire_lock(lock, wait=True)
        yield PrivateFolder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_leftovers(root: Path) -> None:
    """Remove the folders of studios that are no more: our own ones, which nobody holds."""
    for folder in root.glob(f"{PREFIX}*"):
        with suppress(OSError):  # somebody else's, a link, or removed meanwhile
            file = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                found = os.fstat(file)
                if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and acquire_lock(file, wait=False):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(file)
