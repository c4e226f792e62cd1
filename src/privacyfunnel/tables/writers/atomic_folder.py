"""A folder of files that appears whole, or not at all.

Its files get ready in a hidden folder beside it, which only its owner can enter. When all are whole and synced, that
folder gets the final name in one step: wherever the process is killed, no part stands under its final name.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from privacyfunnel.errors import OutputError
from privacyfunnel.tables.writers.atomic_files import StagedFiles, current_umask, hidden_folder, write_error
from privacyfunnel.tables.writers.crash_recovery import recover
from privacyfunnel.tables.writers.locks import defer_signals, lock_folder

EVERYBODYS_FOLDER = 0o777


def check_folder(path: Path, *, force: bool) -> None:
    """Refuse early what could not be written at the end; what a killed run left beside it is put in order."""
    recover(path.parent)
    if path.exists() and not path.is_dir():
        raise OutputError(f"'{path}' must be a folder to write parts to; it is a file. Name a folder.")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise OutputError(f"'{path}' holds files already and was left as it is. Name a new folder, or use --force.")
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
