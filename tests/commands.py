"""How tests run the command: in a child, from the very beginning, or within this process, where warnings are errors."""

import atexit
import json
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from privacyfunnel.cli import main
from tests.children import Children

LONGEST = 600  # seconds until a command, or a wait for one, counts as hanging; nothing is judged by it


def run(*words: object, cwd: Path | None = None, umask: int | None = None) -> subprocess.CompletedProcess[str]:
    """`privacyfunnel WORDS …` in a child that need not import again what the command needs, with what it printed."""
    more = {key: value for key, value in (("cwd", cwd and str(cwd)), ("umask", umask)) if value is not None}
    done = _children().run(words=[*map(str, words)], longest=LONGEST, **more)
    return subprocess.CompletedProcess([*map(str, words)], done["code"], done["out"], done["err"])


@cache
def _children() -> Children:
    children = Children()
    atexit.register(children.end)
    return children


def begun(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """`privacyfunnel WORDS …` from the very beginning, as a shell would start it, with what it printed."""
    command = [sys.executable, "-m", "privacyfunnel", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False, **options)


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
    return ["sanitise", people, "--no-report", "--prior=table", *words, *more]


def several(table: Path, into: Path, publish: str, *more: object, secret: str = "occupation", epsilon: Any = 1) -> Any:
    """The words of a sanitise command for several columns, without its report."""
    asked = ["--secret", secret, "--publish", publish, "--epsilon", epsilon, "--into", into]
    return ["sanitise", table, "--no-report", "--prior=table", *asked, *more]


def said(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """The command within this process: its exit code, what it printed, what it told."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    return (code, *capsys.readouterr())


def found_by(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    """The JSON that the command prints, within this process."""
    code, out, err = said(capsys, *words, "--json")
    assert (code, err) == (0, ""), err
    return json.loads(out)


def turned_down(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one sentence with which the command is refused, within this process."""
    code, out, err = said(capsys, *words)
    assert (code, out) == (2, ""), err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


PAGES = {
    *(f"public/{name}" for name in ("README.html", "croissant.json", "dcat.jsonld")),
    *(f"owner/{name}" for name in ("release.toml", "disclosure-record.json")),
}


def files_of(release: Path) -> set[str]:
    """The files of a release, but for those that every one has."""
    found = {path.relative_to(release).as_posix() for path in release.rglob("*") if path.is_file()}
    assert found >= PAGES or not found, PAGES - found
    return found - PAGES
