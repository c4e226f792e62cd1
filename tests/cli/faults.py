"""A process that runs the command again and again, each time in a child that has a fault at a chosen place."""

import errno
import importlib
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.children import serve

# Where each part of the work can be interrupted: a function that it calls.
PLACES = {
    "counting": "privacyfunnel.tables.coding.contingency:CellCounter.add",
    "solving": "privacyfunnel.release.design:check_joint",
    "drawing": "privacyfunnel.release.output_layout:OutputLayout.columns",
    "writing": "pathlib:Path.write_text",
    "report": "privacyfunnel.report.release_page:owner_page",
    "linking": "os:link",
    "renaming": "os:rename",
}
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "int": signal.SIGINT}


def fault(kind: str, asked: dict[str, Any]) -> None:
    """What happens there."""
    if kind in SIGNALS:
        os.kill(os.getpid(), SIGNALS[kind])
        time.sleep(0.001)  # Python answers in between
    elif kind == "lost":  # as where Python ignores exceptions, in a destructor or a callback
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.001)
    elif kind == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    elif kind == "memory":
        raise MemoryError
    elif kind == "changed":
        Path(asked["other"]).replace(asked["table"])
    elif kind == "second":
        from privacyfunnel.atomic_files import atomic_folder, begin_file

        with atomic_folder(Path(asked["into"])) as staged:
            begin_file(staged / "public" / "sanitised.csv").write_text("another run's")


def faulty(place: str, kind: str, nth: int, asked: dict[str, Any]) -> None:
    """Let the n-th call of what is done at the place begin with the fault."""
    module, _, path = PLACES[place].partition(":")
    *outer, name = path.split(".")
    owner: Any = importlib.import_module(module)
    for step in outer:
        owner = getattr(owner, step)
    work: Callable[..., Any] = getattr(owner, name)
    calls, into = 0, Path(asked["words"][asked["words"].index("--into") + 1])

    def mine(place: str, words: tuple[Any, ...]) -> bool:
        """The owner's ledger is a file that gets written too, before and after."""
        if place == "writing":
            return bool(words[0].name == "protocol.json")
        return place not in {"linking", "renaming"} or into in (Path(words[0]), Path(words[1]))

    def called(*words: Any, **more: Any) -> Any:
        nonlocal calls
        calls += mine(place, words)
        if calls == nth and mine(place, words):
            fault(kind, asked)
        return work(*words, **more)

    setattr(owner, name, called)


def prepare(asked: dict[str, Any]) -> None:
    """What there is less of, or what goes wrong, in the child that runs the command."""
    if "memory" in asked:  # so much more than there is in use
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + asked["memory"], used + asked["memory"]))
    if asked.get("size"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["size"], asked["size"]))
    if asked.get("fault"):
        faulty(asked["place"], asked["fault"], asked.get("nth", 1), asked)


if __name__ == "__main__":
    serve(prepare)
