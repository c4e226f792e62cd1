"""A process that runs the command again and again, each time in a child of its own.

It has imported what the command needs, so that a child costs a fraction of a command, but has used nothing of it: no
thread runs that a fork would lose. A line of JSON in asks for a run, a line of JSON out tells how it ended.
"""

import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, TextIO, cast

import privacyfunnel
from privacyfunnel.audits import draw_agreement

# Packages that few commands import.
SELDOM = ("privacyfunnel.__main__", "privacyfunnel.experiments", "privacyfunnel.studio", "privacyfunnel.spark")
Prepare = Callable[[dict[str, Any]], None]

FEW_SEEDS = 100  # that an audit in tests tries; those of tests are below


def try_few_seeds() -> None:
    """Let audits in this process try few seeds: trying all takes most of the time of an audit of a small table."""
    draw_agreement.TRIED = FEW_SEEDS


class Children:
    """The same from outside: made when first asked, it ends with whoever asks."""

    def __init__(self, module: str = __name__) -> None:
        command = [sys.executable, "-m", module]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._one_at_a_time = Lock()

    def run(self, **asked: Any) -> dict[str, Any]:
        """How the command ended that has these `words`: its `code`, and what it printed, `out` and `err`."""
        told, heard = cast("TextIO", self._process.stdin), cast("TextIO", self._process.stdout)
        with self._one_at_a_time:
            print(json.dumps({"environment": dict(os.environ), **asked}), file=told, flush=True)
            answer: dict[str, Any] = json.loads(heard.readline())
        return answer

    def end(self) -> None:
        """No more is asked."""
        cast("TextIO", self._process.stdin).close()
        cast("TextIO", self._process.stdout).close()
        self._process.wait()


def serve(prepare: Prepare = lambda asked: None) -> None:
    """Answer until nobody asks; `prepare` is called in each child before its command."""
    for module in pkgutil.walk_packages(privacyfunnel.__path__, "privacyfunnel.", onerror=lambda name: None):
        if not module.name.startswith(SELDOM):
            with suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)
    try_few_seeds()
    # Children have standard streams of their own, of which nothing is buffered here.
    with os.fdopen(os.dup(0), encoding="utf-8") as asked, os.fdopen(os.dup(1), "w", encoding="utf-8") as told:
        for line in asked:
            print(json.dumps(_run(json.loads(line), prepare)), file=told, flush=True)


def _run(asked: dict[str, Any], prepare: Prepare) -> dict[str, Any]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            from privacyfunnel.cli import program

            os.environ.clear()
            os.environ.update(asked["environment"])
            os.chdir(asked.get("cwd", "."))
            if "umask" in asked:
                os.umask(asked["umask"])
            prepare(asked)
            sys.argv[:] = [str(Path(privacyfunnel.__file__).with_name("__main__.py")), *asked["words"]]
            program()
        # A library whose threads find no memory may wait for ever.
        signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
        signal.alarm(asked["longest"])
        status = os.waitpid(child, 0)[1]
        signal.alarm(0)
        out.seek(0)
        err.seek(0)
        told = {"out": out.read().decode(), "err": err.read().decode()}
    return {"code": os.waitstatus_to_exitcode(status), **told}


if __name__ == "__main__":
    serve()
