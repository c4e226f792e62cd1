"""A process of the crew: takes tasks, says how far they are, and answers each with a result or one sentence."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

from privacyfunnel.errors import PrivacyFunnelError
from privacyfunnel.studio.task_pool import DONE, ENOUGH, FAILED, ProgressReporter, fault_message
from privacyfunnel.studio.tasks import TASKS


def main(parent: int, file: int) -> None:
    """Do what comes through the pipe until nobody is at its other end."""
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    with Connection(file) as line:
        while True:
            try:
                task = line.recv()
            except (EOFError, OSError):
                return
            if task != ENOUGH:  # which came when all was done already
                line.send(_answer(line, *task))


def _answer(line: Connection, task: str, arguments: Any) -> tuple[str, Any]:
    try:
        return DONE, TASKS[task](ProgressReporter(line), *arguments)
    except PrivacyFunnelError as error:
        return FAILED, error.sentence
    except MemoryError:
        return FAILED, "This needs more memory than there is. Group rare values or publish fewer columns."
    except (BrokenPipeError, KeyboardInterrupt):
        raise SystemExit(1) from None
    except Exception as error:
        return FAILED, fault_message(error)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end_with_parent(parent: int) -> None:
    """Without the studio nobody would hear the answer, and nothing may be published any more."""
    while os.getppid() == parent:
        time.sleep(0.3)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
