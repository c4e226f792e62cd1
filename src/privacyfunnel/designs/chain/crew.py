"""Solving the contexts of a step on all cores: each worker gets tables of numbers and gives back integers."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from types import TracebackType
from typing import Self

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.chain.band import Band
from privacyfunnel.designs.chain.channel import Channel
from privacyfunnel.designs.chain.contexts import context_channels

BATCH = 96  # contexts per job: enough to amortise the calls, few enough to stay in the cache


class Crew:
    """Worker processes that live as long as one growth. Nothing but tables of the joint is sent to them."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def channels(self, tables: Sequence[FloatArray], band: Band, rounds: int) -> list[Channel]:
        """The channel of every context; tables are (1 + c) × d and may differ in d."""
        order = sorted(range(len(tables)), key=lambda i: tables[i].shape[1])
        jobs = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
        padded = [_padded([tables[i] for i in job]) for job in jobs]
        found: dict[int, Channel] = {}
        for job, channels in zip(jobs, self._map(padded, band, rounds), strict=True):
            found |= dict(zip(job, channels, strict=True))
        return [found[i] for i in range(len(tables))]

    def _map(self, jobs: Sequence[FloatArray], band: Band, rounds: int) -> list[list[Channel]]:
        workers = min(len(jobs), os.cpu_count() or 1)
        if workers < 2 or "fork" not in multiprocessing.get_all_start_methods():
            return [context_channels(job, band, rounds) for job in jobs]
        if self._pool is None:
            here = multiprocessing.get_context("fork")
            self._pool = ProcessPoolExecutor(os.cpu_count(), here, initializer=_watch_parent, initargs=(os.getpid(),))
        n = len(jobs)
        return list(self._pool.map(context_channels, jobs, [band] * n, [rounds] * n))


def _watch_parent(parent: int) -> None:
    """A worker waits for work for ever; it must not when whoever would send it was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _padded(tables: Sequence[FloatArray]) -> FloatArray:
    widest = max(table.shape[1] for table in tables)
    out = np.zeros((len(tables), tables[0].shape[0], widest))
    for i, table in enumerate(tables):
        out[i, :, : table.shape[1]] = table
    return out
