"""Rows are drawn ahead of those that are written, and nobody waits for them when the work ends early."""

import os
import signal
import threading
from collections.abc import Iterator

import polars as pl
import pytest

from privacyfunnel.release.publish import prefetch

BATCHES = [pl.DataFrame({"x": [number]}) for number in range(4)]


def test_all_batches_come_in_their_order() -> None:
    assert [batch["x"][0] for batch in prefetch(iter(BATCHES))] == [0, 1, 2, 3]


def test_an_interrupt_does_not_wait_for_the_batch_that_is_being_drawn() -> None:
    ended, drawn = threading.Event(), threading.Event()

    def batches() -> Iterator[pl.DataFrame]:
        os.kill(os.getpid(), signal.SIGUSR1)
        ended.wait()
        drawn.set()
        yield BATCHES[0]

    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)  # as Ctrl-C is answered
    try:
        with pytest.raises(KeyboardInterrupt):
            next(prefetch(batches()))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not drawn.is_set()
    ended.set()


def test_what_fails_while_rows_are_drawn_fails_here() -> None:
    def batches() -> Iterator[pl.DataFrame]:
        yield BATCHES[0]
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        list(prefetch(batches()))
