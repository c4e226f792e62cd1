"""Processes that do the work: each task in one of its own, so that it can be watched, stopped and killed.

A process that is done waits for the next task, since starting one takes longer than most of them do. When the studio is
gone, however it ended, they end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

ENOUGH = "enough"  # the message that accepts the best result so far
WORKING, DONE, FAILED, STOPPED = "working", "done", "failed", "stopped"
MOST_IDLE = 2  # processes that wait for work
PATIENCE = 3.0  # seconds that a process gets to tidy up before it is killed
ENDED = "The work was ended from outside. Begin it again."


@dataclass(slots=True, eq=False)
class Job:
    """A task on its way: what it said last, all that it said by name, and how it ended."""

    state: str = WORKING
    messages: dict[str, Any] = field(default_factory=dict)  # the last of each kind
    heard: int = 0  # how often it said something
    result: Any = None
    sentence: str = ""  # why it failed
    _process: subprocess.Popen[bytes] | None = None
    _line: Connection | None = None

    @property
    def is_over(self) -> bool:
        return self.state != WORKING

    def stop(self) -> None:
        """End it; what it has not published by then it never will."""
        if self.state == WORKING:
            self.state = STOPPED
            if self._process is not None:
                _end_process(self._process)

    def accept_best(self) -> None:
        """Let it go on with the best that it has."""
        if self.state == WORKING and self._line is not None:
            with suppress(OSError):
                self._line.send(ENOUGH)


class TaskPool:
    """The processes of one studio."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[tuple[subprocess.Popen[bytes], Connection]] = []
        self._all: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def warm_up(self) -> None:
        """Have a process ready before there is work for it."""
        self._return_process(*self._start_process())

    def begin(self, task: str, *arguments: Any) -> Job:
        """Begin a task (a name in `tasks.TASKS`) in a process of its own."""
        job = Job()
        threading.Thread(target=self._follow, args=(job, task, arguments), daemon=True).start()
        return job

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            self._closed = True
            everybody, self._all, self._idle = list(self._all), set(), []
        for process in everybody:
            process.terminate()
        for process in everybody:
            _end_process(process)

    def _follow(self, job: Job, task: str, arguments: Sequence[Any]) -> None:
        process, line = self._take_process()
        job._process, job._line = process, line
        if job.state == STOPPED:  # before it began
            self._return_process(process, line)
            return
        try:
            line.send((task, arguments))
            while True:
                kind, *content = line.recv()
                if kind == "said":
                    name, what = content
                    job.messages = {**job.messages, name: what}
                    job.heard += 1
                    continue
                if job.state == WORKING:
                    if kind == DONE:
                        job.result, job.state = content[0], DONE
                    else:
                        job.sentence, job.state = content[0], FAILED
                break
        except Exception as error:  # also of an answer that cannot be read: nobody else would say that the work is over
            if job.state == WORKING:
                outside = isinstance(error, EOFError | OSError)
                job.sentence, job.state = ENDED if outside else fault_message(error), FAILED
            with self._lock:
                self._all.discard(process)
            line.close()
            _end_process(process)
            return
        job._process = job._line = None
        self._return_process(process, line)

    def _take_process(self) -> tuple[subprocess.Popen[bytes], Connection]:
        with self._lock:
            while self._idle:
                process, line = self._idle.pop()
                if process.poll() is None:
                    return process, line
                self._all.discard(process)
                line.close()
        return self._start_process()

    def _start_process(self) -> tuple[subprocess.Popen[bytes], Connection]:
        ours, theirs = Pipe()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "privacyfunnel.studio.worker", str(os.getpid()), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # what a library prints may quote the table
                start_new_session=True,  # Ctrl-C is for the studio, which then ends them
            )
        with self._lock:
            self._all.add(process)
        return process, ours

    def _return_process(self, process: subprocess.Popen[bytes], line: Connection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < MOST_IDLE and process.poll() is None:
                self._idle.append((process, line))
                return
            self._all.discard(process)
        line.close()  # which ends it
        _end_process(process)


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, and make it if it does not."""
    with suppress(OSError):
        process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


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
