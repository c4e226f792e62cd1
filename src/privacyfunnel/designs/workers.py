"""Worker processes for jobs that need nothing of each other: each gets numbers and gives numbers back.

Workers are forked, so what was imported need not be imported again. They must not touch polars, whose threads do not
survive a fork. Where a system cannot fork, or there is one core, the work is done here.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from types import TracebackType
from typing import Any, Self, TypeVar

Answer = TypeVar("Answer")


class Workers:
    """Processes that live as long as one piece of work."""

    def __init__(self, most: int | None = None) -> None:
        self._most = (os.cpu_count() or 1) if most is None else most
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def all(self, work: Callable[..., Answer], jobs: Sequence[tuple[Any, ...]]) -> list[Answer]:
        """The answer to every job, in order."""
        pool = self._ready(len(jobs))
        if pool is None:
            return [work(*job) for job in jobs]
        return [future.result() for future in [pool.submit(work, *job) for job in jobs]]

    def until(self, deadline: float, work: Callable[..., Answer], jobs: Sequence[tuple[Any, ...]]) -> dict[int, Answer]:
        """The answers to the jobs that begin before the clock (`time.monotonic`) shows the deadline, by their number.

        Jobs begin in order, and one that has begun is finished.
        """
        pool = self._ready(len(jobs))
        if pool is None:
            found: dict[int, Answer] = {}
            for number, job in enumerate(jobs):
                if time.monotonic() >= deadline:
                    break
                found[number] = work(*job)
            return found
        futures: list[Future[Answer]] = [pool.submit(work, *job) for job in jobs]
        left = None if deadline == math.inf else max(deadline - time.monotonic(), 0.0)
        wait(futures, timeout=left)
        begun = [number for number, future in enumerate(futures) if not future.cancel()]
        return {number: futures[number].result() for number in begun}

    def _ready(self, jobs: int) -> ProcessPoolExecutor | None:
        if min(jobs, self._most) < 2 or "fork" not in multiprocessing.get_all_start_methods():
            return None
        if self._pool is None:
            here = multiprocessing.get_context("fork")
            self._pool = ProcessPoolExecutor(self._most, here, initializer=_watch_parent, initargs=(os.getpid(),))
        return self._pool


def _watch_parent(parent: int) -> None:
    """A worker waits for work for ever; it must not when whoever would send it was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
