"""The clock of a run: when it began and when it must end.

Whoever works in steps looks at the clock between them. A search that is late hands back what it has met, and a proof
what it has proved. A master that is late has nothing to hand back, and raises `TimeUpError`: the run that asked for it
ends with what it has.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np


class TimeUpError(Exception):
    """Time is up: caught by the run whose clock it was, and seen by nobody else."""


@dataclass(frozen=True, slots=True)
class Clock:
    """When a run began and when it must end (time.monotonic)."""

    start: float
    deadline: float

    @classmethod
    def from_limit(cls, time_limit: float | None) -> Clock:
        """A clock that begins now and runs for so many seconds; for ever where there is no limit."""
        now = time.monotonic()
        return cls(now, np.inf if time_limit is None else now + time_limit)

    @property
    def seconds_left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(self.deadline - time.monotonic(), 0.0)

    @property
    def time_limit(self) -> float | None:
        """The same as a time limit; None where there is none."""
        return self.seconds_left if np.isfinite(self.deadline) else None

    @property
    def late(self) -> bool:
        """Whether time is up."""
        return time.monotonic() >= self.deadline

    def part(self, share: float) -> Clock:
        """A clock that rings after this share of what is left."""
        left = self.seconds_left
        return Clock(self.start, time.monotonic() + share * left if np.isfinite(left) else np.inf)

    def check(self) -> None:
        """Go on only if there is time."""
        if self.late:
            raise TimeUpError


FOREVER = Clock(-np.inf, np.inf)
