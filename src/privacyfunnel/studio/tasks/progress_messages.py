"""How a task says how far it is, and hears that this is far enough."""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import Any

ENOUGH = "enough"  # what whoever waits may say


def fault_message(error: Exception) -> str:
    """What is said of a foreign error, whose own text may quote the data."""
    return f"{type(error).__name__}: this is a fault of privacyfunnel. Please report it."


class ProgressReporter:
    """A task's side of the line to whoever waits for it."""

    def __init__(self, line: Connection) -> None:
        self._line, self._enough = line, False

    def __call__(self, name: str, what: Any) -> None:
        """Tell something of a kind; the last of each kind counts."""
        self._line.send(("said", name, what))

    @property
    def is_enough(self) -> bool:
        """Whether somebody said that what there is will do."""
        while not self._enough and self._line.poll():
            self._enough = self._line.recv() == ENOUGH
        return self._enough
