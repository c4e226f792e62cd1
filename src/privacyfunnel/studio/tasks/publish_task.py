"""Publish: the same files as the command line writes, whole or not at all."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privacyfunnel.atomic_files import OWNER, PUBLIC
from privacyfunnel.release.release_files import REPORT
from privacyfunnel.release.sanitise import sanitise_file
from privacyfunnel.report.summary_lines import summary_lines
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.text_forms import command_words, python_lines
from privacyfunnel.studio.choices import SECRET, Choices
from privacyfunnel.studio.task_pool import ProgressReporter


def format_command(spec: ReleaseSpec) -> str:
    r"""The command that makes this release, for a shell; what cannot be seen is spelled out.

    >>> _quote("a b"), _quote("a\u202eb'")
    ("'a b'", "$'a\\u202eb\\''")
    """
    return " ".join(_quote(word) for word in ["privacyfunnel", *command_words(spec)])


def _quote(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    spelled = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in spelled) + "'"


def script(choices: Choices) -> str:
    """A Python script that makes this release."""
    return "\n".join(
        [
            *_IMPORTS,
            "",
            *python_lines(choices.to_spec()),
            "",
            *_RELEASE,
            "",
        ]
    )


def notebook(choices: Choices) -> str:
    """A notebook (nbformat 4) that makes this release, a step in each cell."""
    name, secret = choices.table.name, " & ".join(choices.columns(SECRET))
    cells = [
        _prose(f"# Publishing {name} without giving away {secret}", "Made by the studio of privacyfunnel."),
        _code(_IMPORTS),
        _prose("What is asked for: the promise, the columns, and how they are read."),
        _code(python_lines(choices.to_spec())),
        _prose("The release. A second one of the same rows can give away more than both promise; it is refused."),
        _code(_RELEASE),
        _prose("What an analyst gets back from the published files alone."),
        _code(["from privacyfunnel import estimate", "", "estimate(release.sealed, release.table).to_frame()"]),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return json.dumps(content, ensure_ascii=False, indent=1)


_IMPORTS = ["from privacyfunnel import ReleaseSpec, sanitise_file"]
_RELEASE = [
    "release = sanitise_file(None, spec)  # the table that the spec names",
    'print(release.table, f"certified: ε = {release.sealed.epsilon:.6g}")',
    'print(*release.not_promised_to_owner, sep="\\n")',
]


def _prose(*lines: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": "\n\n".join(lines)}


def _code(lines: list[str]) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": "\n".join(lines)}


@dataclass(frozen=True, slots=True)
class PublishedFiles:
    """What was written, and what is to be said of it."""

    lines: tuple[tuple[str, str], ...]  # the five of the command line
    files: tuple[tuple[str, str], ...]  # in the folder, and for whom each is
    table: Path
    protocol: Path
    report: Path
    not_promised: tuple[str, ...]


def publish(
    say: ProgressReporter, choices: Choices, again: bool = False, force: bool = False, anyway: bool = False
) -> PublishedFiles:
    """Sanitise the table into the folder that was chosen, with its reports."""
    into = choices.folder
    spec = replace(choices.to_spec(), again=again, force=force, anyway=anyway)
    release = sanitise_file(
        choices.table.path,
        spec,
        progress=lambda value, bound: say("proof", (value, bound, 0.0)),
        watch=lambda doing, rows: say("doing", doing),
        command=format_command(spec),
    )
    return PublishedFiles(
        lines=tuple(summary_lines(release)),
        files=tuple(_files(into)),
        table=Path(release.table),
        protocol=Path(release.protocol_file or into),
        report=into / OWNER / REPORT,
        not_promised=release.not_promised_to_owner,
    )


def _files(into: Path) -> Iterator[tuple[str, str]]:
    for name, readers in ((PUBLIC, "everybody: publish it"), (OWNER, "you only")):
        for path in sorted((into / name).iterdir()):
            yield f"{name}/{path.name}", readers
