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
from privacyfunnel.tables.holding import alone_in, signals_waiting
from privacyfunnel.tables.leftovers import recover
from privacyfunnel.tables.whole import Parts, hidden_folder, umask, write_failure

EVERYBODYS_FOLDER = 0o777


def checked_folder(path: Path, *, force: bool) -> None:
    """Refuse early what could not be written at the end; what a killed run left beside it is put in order."""
    recover(path.parent)
    if path.exists() and not path.is_dir():
        raise OutputError(f"'{path}' must be a folder to write parts to; it is a file. Name a folder.")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise OutputError(f"'{path}' holds files already and was left as it is. Name a new folder, or use --force.")
    if path.parent.exists() and not os.access(path.parent, os.W_OK | os.X_OK):
        raise OutputError(f"'{path}' cannot be written: its folder allows no new ones. Choose another place.")


@contextmanager
def whole_folder(path: Path, *, force: bool = False) -> Iterator[Parts]:
    """Files that appear in a new folder when the body is done; if it raises, or the process dies, there is none.

    With `force` it takes the place of the folder that is there, and of all that is in it.
    """
    checked_folder(path, force=force)
    try:
        with hidden_folder(path.parent) as hidden:
            parts = Parts(hidden, path)
            yield parts
            parts.settle()
            with alone_in(path.parent), signals_waiting() as heard:
                heard()
                _appear(hidden, path, force=force)
    except OSError as error:
        raise write_failure(path, error) from error


def _appear(hidden: Path, path: Path, *, force: bool) -> None:
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
        path.chmod(EVERYBODYS_FOLDER & ~umask())
    if replaced:
        import shutil

        shutil.rmtree(old, ignore_errors=True)
