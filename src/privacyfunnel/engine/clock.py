"""The clock of a run, and the work that it counts.

Work is counted deterministically: linear programmes and their iterations, pivots of batches, boxes, atoms, and numbers
that are read or written besides. Where nobody asked for a time limit, all limits are measured in counted work, at
nominal seconds per piece (settings.py): the same table then gives the same protocol on a slow and on a busy machine.
Under a time limit they are measured by the wall clock.

Whoever works in steps looks at the clock between them. A search that is late returns what it has found, a proof what it
has proved. A master that is late has nothing to return and raises `TimeUpError`: the run that called it ends with what
it has.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from privacyfunnel.engine.settings import SETTINGS


class TimeUpError(Exception):
    """Time is up: caught by the run whose clock it was, and seen by nobody else."""


class Work(threading.local):
    """What this thread has done so far; and whether its clock is this count."""

    def __init__(self) -> None:
        self.programmes = self.iterations = self.pivots = self.boxes = self.atoms = self.entries = 0
        self.is_clock = False

    @property
    def steps(self) -> int:
        """Programmes and their iterations, pivots, boxes."""
        return self.programmes + self.iterations + self.pivots + self.boxes

    @property
    def seconds(self) -> float:
        """Nominal seconds of it."""
        at = SETTINGS.work
        solving = self.programmes * at.programme + self.iterations * at.iteration + self.pivots * at.pivot
        return solving + self.entries * at.entry


WORK = Work()


def now() -> float:
    """Seconds of the wall clock, or nominal seconds of counted work where no time limit was asked for."""
    return WORK.seconds if WORK.is_clock else time.monotonic()


@contextmanager
def clock_for(time_limit: float | None) -> Iterator[None]:
    """Count work in place of seconds within, unless there is a time limit."""
    before, WORK.is_clock = WORK.is_clock, WORK.is_clock or time_limit is None
    try:
        yield
    finally:
        WORK.is_clock = before


@dataclass(frozen=True, slots=True)
class Clock:
    """When a run began and when it must end, by `now`."""

    start: float
    deadline: float

    @classmethod
    def from_limit(cls, time_limit: float | None) -> Clock:
        """A clock that begins now and runs for so many seconds; for ever where there is no limit."""
        begun = now()
        return cls(begun, np.inf if time_limit is None else begun + time_limit)

    @property
    def seconds_left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(self.deadline - now(), 0.0)

    @property
    def time_limit(self) -> float | None:
        """The same as a time limit; None where there is none."""
        return self.seconds_left if np.isfinite(self.deadline) else None

    @property
    def late(self) -> bool:
        return now() >= self.deadline

    def part(self, share: float) -> Clock:
        """A clock that rings after this share of what is left."""
        left = self.seconds_left
        return Clock(self.start, now() + share * left if np.isfinite(left) else np.inf)

    def check(self) -> None:
        """Go on only if there is time."""
        if self.late:
            raise TimeUpError


FOREVER = Clock(-np.inf, np.inf)
