"""What waits while files appear: other runs, and signals."""

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
