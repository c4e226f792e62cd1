"""Sessions: a tab of the browser with its choices and jobs; and the private folder for uploaded files.

A job is remembered by its arguments. Unchanged choices find it done; changed choices stop it and start another.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from privacyfunnel.locks import acquire_lock
from privacyfunnel.studio.choices import Choices
from privacyfunnel.studio.task_pool import DONE, WORKING, Job, TaskPool

MOST_SESSIONS = 64  # the oldest is forgotten; nobody has so many tabs


@dataclass(slots=True, eq=False)
class Session:
    """One tab."""

    crew: TaskPool
    name: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    choices: Choices = field(default_factory=Choices)
    beside: dict[str, Any] = field(default_factory=dict)  # what pages for others than the owner remember
    _work: dict[str, tuple[Any, Job]] = field(default_factory=dict)  # by the kind of work: what for, and the job

    def change(self, **changed: Any) -> None:
        """Other choices. What was taken because its search was long is not taken for others."""
        before = self.choices
        self.choices = replace(before, **changed)
        if self.choices != before and "time_limit" not in changed:
            self.choices = replace(self.choices, time_limit=None)

    def work(self, task: str, *arguments: Any, about: Any = None) -> Job:
        """The task with these words: as it stands, or begun now. `about` tells it from another where words do not."""
        key = arguments if about is None else about
        known = self._work.get(task)
        if known is not None:
            if known[0] == key:
                return known[1]
            known[1].stop()
        job = self.crew.begin(task, *arguments)
        self._work[task] = (key, job)
        return job

    def last_job(self, task: str) -> Job | None:
        """The work of that kind that was begun last, whatever it was for."""
        found = self._work.get(task)
        return None if found is None else found[1]

    def forget(self, task: str) -> None:
        """Have it done anew when it is next asked for."""
        found = self._work.pop(task, None)
        if found is not None:
            found[1].stop()

    def copy(self) -> Session:
        """Another tab with the same choices, and what was found out about them already."""
        done = {task: (key, job) for task, (key, job) in self._work.items() if job.state == DONE and task != "publish"}
        return Session(self.crew, choices=self.choices, beside=dict(self.beside), _work=done)

    def close(self) -> None:
        for _, job in self._work.values():
            if job.state == WORKING:
                job.stop()


class Sessions:
    """The tabs that are open, by their names."""

    def __init__(self, crew: TaskPool, first: Callable[[], Choices] = Choices) -> None:
        self._crew, self._first = crew, first
        self._open: dict[str, Session] = {}

    def new(self) -> Session:
        return self._add(Session(self._crew, choices=self._first()))

    def duplicate(self, session: Session) -> Session:
        return self._add(session.copy())

    def get(self, name: str) -> Session | None:
        return self._open.get(name)

    def _add(self, session: Session) -> Session:
        while len(self._open) >= MOST_SESSIONS:
            self._open.pop(next(iter(self._open))).close()
        self._open[session.name] = session
        return session


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
