"""Publish: the same files as the command line writes, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from privacyfunnel.atomic_files import OWNER, PUBLIC
from privacyfunnel.release.release_files import REPORT
from privacyfunnel.release.sanitise import sanitise_file
from privacyfunnel.report.summary_lines import summary_lines
from privacyfunnel.studio.choices import Choices
from privacyfunnel.studio.repeat_scripts import format_command
from privacyfunnel.studio.task_pool import ProgressReporter


@dataclass(frozen=True, slots=True)
class PublishedFiles:
    """What was written, and what is to be said of it."""

    lines: tuple[tuple[str, str], ...]  # the five of the command line
    files: tuple[tuple[str, str], ...]  # in the folder, and for whom each is
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
        report=into / OWNER / REPORT,
        not_promised=release.not_promised_to_owner,
    )


def _files(into: Path) -> Iterator[tuple[str, str]]:
    for name, readers in ((PUBLIC, "everybody: publish it"), (OWNER, "you only")):
        for path in sorted((into / name).iterdir()):
            yield f"{name}/{path.name}", readers
