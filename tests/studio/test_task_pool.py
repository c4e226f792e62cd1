"""Those who follow the work: however it ends, whoever waits is told."""

import time
from typing import Any

import pytest

from privacyfunnel.studio.task_pool import ENDED, FAILED, TaskPool
from tests.commands import LONGEST


class Line:
    """The line to a process whose answer cannot be read."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def send(self, words: Any) -> None:
        """Nobody is there."""

    def recv(self) -> Any:
        raise self.error

    def close(self) -> None:
        """Nothing is open."""


class Ended:
    """A process that has ended."""

    def terminate(self) -> None:
        """It is over."""

    def wait(self, seconds: float) -> int:
        return 0


@pytest.mark.parametrize(
    ("error", "said"),
    [(EOFError(), ENDED), (AttributeError("a secret"), "AttributeError: this is a fault of privacyfunnel.")],
)
def test_work_whose_answer_cannot_be_read_is_said_to_have_failed(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    crew = TaskPool()
    monkeypatch.setattr(crew, "_take_process", lambda: (Ended(), Line(error)))
    job = crew.begin("scan")
    end = time.monotonic() + LONGEST
    while not job.is_over and time.monotonic() < end:
        time.sleep(0.01)
    assert job.state == FAILED
    assert job.sentence.startswith(said)
    assert "secret" not in job.sentence
