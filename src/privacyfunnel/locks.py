"""Locks on files and folders, and signals that wait until a change is complete."""

import fcntl
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def acquire_lock(file: int, *, wait: bool) -> bool:
    """Lock the file until it is closed or the process ends; False where another process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # locked; or a file system without locks, where recovery never takes a folder
        return wait
    return True


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Keep other runs from publishing into the folder meanwhile."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        acquire_lock(place, wait=True)
        yield
    finally:
        os.close(place)


class DeferredSignals:
    """Signals that came while they were deferred."""

    def __init__(self) -> None:
        self.handlers: dict[int, Any] = {}
        self.came: list[int] = []

    def note(self, number: int, frame: FrameType | None) -> None:
        self.came.append(number)

    def __call__(self) -> None:
        """Answer pending signals now, while everything can still be restored.

        This includes a signal that came before and whose exception was lost on its way: a handler may remember it.
        """
        if any(getattr(answer, "came", ()) for answer in self.handlers.values()):
            raise KeyboardInterrupt
        for number in list(self.came):
            answer = self.handlers[number]
            if not callable(answer):  # the process would just end; it does, once everything is restored
                raise KeyboardInterrupt
            self.came.remove(number)
            answer(number, None)


@contextmanager
def defer_signals() -> Iterator[DeferredSignals]:
    """Defer signals that would end the program until the body is done, or until it asks for them.

    Blocking them would not do: another thread of the process would get them, and Python would still answer in this one.
    """
    pending = DeferredSignals()
    if threading.current_thread() is not threading.main_thread():  # Python answers signals in the main thread only
        yield pending
        return
    answers = {number: signal.getsignal(number) for number in ENDING}
    pending.handlers = {n: answer for n, answer in answers.items() if answer not in (None, signal.SIG_IGN)}
    for number in pending.handlers:
        signal.signal(number, pending.note)
    try:
        yield pending
    finally:
        for number in pending.handlers:
            signal.signal(number, answers[number])
        for number in pending.came:
            signal.raise_signal(number)


@contextmanager
def mark_run(path: Path) -> Iterator[None]:
    """A locked file that says that a run is at work, on all machines that see it. The lock ends with the process."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        acquire_lock(file, wait=True)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(file)


def is_run_alive(path: Path) -> bool:
    """Whether the run with that mark may still be at work; of one that is gone the mark goes, too."""
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # two that look do not take each other for the run
        path.unlink(missing_ok=True)
    except OSError:
        return True
    finally:
        os.close(file)
    return False
