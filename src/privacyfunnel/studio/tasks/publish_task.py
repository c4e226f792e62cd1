"""Publish: the same files as the command line writes, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from privacyfunnel.atomic_files import OWNER
from privacyfunnel.release.release import Release
from privacyfunnel.release.release_files import REPORT
from privacyfunnel.release.sanitise import sanitise_file
from privacyfunnel.report.summary_lines import summary_lines
from privacyfunnel.studio.choices import Choices
from privacyfunnel.studio.repeat_scripts import format_command
from privacyfunnel.studio.task_pool import ProgressReporter


@dataclass(frozen=True, slots=True)
class PublishedFiles:
    """What was written, and what is to be said of it."""

    rows: int
    promise: str
    epsilon: float
    certified: float
    kept: float
    unchanged: float
    lines: tuple[tuple[str, str], ...]  # the five of the command line
    files: tuple[tuple[Path, str], ...]  # and for whom each is; the table first
    report: Path
    not_promised: tuple[str, ...]
    command: str


def publish(
    say: ProgressReporter, choices: Choices, again: bool = False, force: bool = False, anyway: bool = False
) -> PublishedFiles:
    """Sanitise the table into the folder that was chosen, with its reports."""
    into = choices.folder
    spec = replace(choices.to_spec(), again=again, force=force, anyway=anyway)
    repeat = format_command(spec)
    release = sanitise_file(
        choices.table.path,
        spec,
        progress=lambda value, bound: say("proof", (value, bound, 0.0)),
        watch=lambda doing, rows: say("doing", doing),
        command=repeat,
    )
    return PublishedFiles(
        rows=release.rows,
        promise=release.sealed.promise.name,
        epsilon=release.sealed.total_epsilon,
        certified=release.sealed.epsilon,
        kept=release.share_kept,
        unchanged=release.unchanged,
        lines=tuple(summary_lines(release)),
        files=tuple(_files(release)),
        report=into / OWNER / REPORT,
        not_promised=release.not_promised_to_owner,
        command=repeat,
    )


def _files(release: Release) -> Iterator[tuple[Path, str]]:
    for path in (Path(release.table), release.codebook, release.protocol_file, *release.pages):
        if path is not None:
            yield path, "you only" if path.parent.name == OWNER else "everybody: publish it"
