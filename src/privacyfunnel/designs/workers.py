"""Worker processes for jobs that need nothing of each other: each gets numbers and gives numbers back.

Workers are forked, so what was imported need not be imported again. They must not touch polars, whose threads do not
survive a fork. Where a system cannot fork, or there is one core, the work is done here.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self, TypeVar

Answer = TypeVar("Answer")
LOOK = 0.2  # seconds between looks for a signal
ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Workers:
    """Processes that live as long as one piece of work; when that fails or is interrupted, they end at once."""

    def __init__(self, most: int | None = None) -> None:
        self._most = (os.cpu_count() or 1) if most is None else most
        self._pool: ProcessPoolExecutor | None = None
        self._processes: set[BaseProcess] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pool is None:
            return
        if error is not None:  # nobody waits for their answers any more
            for process in self._processes:
                process.terminate()
        self._pool.shutdown(cancel_futures=True)

    def run_until(
        self, deadline: float, work: Callable[..., Answer], jobs: Sequence[tuple[Any, ...]]
    ) -> dict[int, Answer]:
        """The answers to the jobs that begin before the clock (`time.monotonic`) shows the deadline, by their number.

        Jobs begin in order, and one that has begun is finished.
        """
        pool = self._open_pool(len(jobs))
        if pool is None:
            found: dict[int, Answer] = {}
            for number, job in enumerate(jobs):
                if time.monotonic() >= deadline:
                    break
                found[number] = work(*job)
            return found
        futures: list[Future[Answer]] = [pool.submit(work, *job) for job in jobs]
        _wait(futures, deadline)
        begun = [number for number, future in enumerate(futures) if not future.cancel()]
        _wait([futures[number] for number in begun], math.inf)
        return {number: futures[number].result() for number in begun}

    def _open_pool(self, jobs: int) -> ProcessPoolExecutor | None:
        if min(jobs, self._most) < 2 or "fork" not in multiprocessing.get_all_start_methods():
            return None
        if self._pool is None:
            here = multiprocessing.get_context("fork")
            before = set(multiprocessing.active_children())
            with _block_signals():  # a worker must not take one for its parent, whose handlers it is born with
                self._pool = ProcessPoolExecutor(self._most, here, initializer=_begin, initargs=(os.getpid(),))
                self._pool.submit(os.getpid)  # the first job forks them all
            self._processes = set(multiprocessing.active_children()) - before
        return self._pool


def _wait(futures: Sequence[Future[Any]], deadline: float) -> None:
    """Wait for all of them, or until the deadline, or until one fails."""
    left = deadline - time.monotonic()
    # A signal that another thread receives does not wake this one: it looks by itself, again and again.
    while left > 0 and wait(futures, min(left, LOOK), FIRST_EXCEPTION).not_done:
        if any(future.done() and not future.cancelled() and future.exception() for future in futures):
            return
        left = deadline - time.monotonic()


@contextmanager
def _block_signals() -> Iterator[None]:
    """Signals that end the program come after the body, not within it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(parent: int) -> None:
    """Ctrl-C reaches every process of the terminal: the parent speaks, and ends its workers."""
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    _watch_parent(parent)


def _watch_parent(parent: int) -> None:
    """A worker waits for work for ever; it must not when whoever would send it was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
