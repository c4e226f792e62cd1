"""How tests run the real command, in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def run(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """`privacyfunnel WORDS …`, with what it printed."""
    command = [sys.executable, "-m", "privacyfunnel", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def told(*words: object) -> Any:
    """The JSON that the command prints."""
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(words: Sequence[object], kind: str, *parts: str) -> None:
    """The command exits with 2 and prints one sentence of that kind, which has these parts, and no traceback."""
    done = run(*words)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"{kind}: ")
    for part in parts:
        assert part in done.stderr


def sanitise(people: Path, into: Path, *more: object, **changed: object) -> list[object]:
    """The words of a sanitise command without its report, some of them changed."""
    options: dict[str, object] = {
        "secret": "occupation",
        "publish": "education",
        "epsilon": 1,
        "method": "randomised-response",
        "into": into,
        **changed,
    }
    words = [word for key, value in options.items() for word in (f"--{key}", value)]
    return ["sanitise", people, "--no-report", *words, *more]
