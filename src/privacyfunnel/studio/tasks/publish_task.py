"""Publish: the same files as the command line writes, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from privacyfunnel.atomic_files import check_target
from privacyfunnel.release.release import Release
from privacyfunnel.release.release_files import ReportPage
from privacyfunnel.release.sanitise import sanitise_file
from privacyfunnel.report import OWNER_REPORT, PUBLIC_REPORT
from privacyfunnel.report.release_page import Occasion, pages
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
    files: tuple[tuple[Path, str], ...]  # and for whom each is
    report: Path
    not_promised: tuple[str, ...]
    command: str


def publish(say: ProgressReporter, choices: Choices, again: bool = False, force: bool = False) -> PublishedFiles:
    """Sanitise the table into the folder that was chosen, with its reports."""
    source, into = choices.table, choices.folder
    spec = replace(choices.to_spec(), again=again, force=force)
    repeat = format_command(spec)
    if into.exists():  # before it takes long
        for name in [OWNER_REPORT, *([PUBLIC_REPORT] if choices.public_report else [])]:
            check_target(into / name, force=force)

    def draw_pages(release: Release) -> Iterable[ReportPage]:
        occasion = Occasion(datetime.now().astimezone(), source.name, repeat)
        return pages(release, occasion, public=choices.public_report, watch=lambda doing: say("doing", doing))

    release = sanitise_file(
        source.path,
        spec,
        progress=lambda value, bound: say("proof", (value, bound, 0.0)),
        watch=lambda doing, rows: say("doing", doing),
        pages=draw_pages,
    )
    return PublishedFiles(
        rows=release.rows,
        promise=release.sealed.promise.name,
        epsilon=release.sealed.total_epsilon,
        certified=release.sealed.epsilon,
        kept=release.share_kept,
        unchanged=release.unchanged,
        files=tuple(_files(release, into)),
        report=into / OWNER_REPORT,
        not_promised=release.not_promised_to_owner,
        command=repeat,
    )


def _files(release: Release, into: Path) -> Iterable[tuple[Path, str]]:
    yield Path(release.table), "everybody: publish it"
    if release.codebook is not None:
        yield Path(release.codebook), "whoever gets the protocol: the meaning of outcome codes"
    if release.protocol_file is not None:
        yield (
            release.protocol_file,
            "you, and analysts you trust: with the other rows it can reveal a secret",
        )
    for page in release.pages:
        yield page, "you only" if page.name == OWNER_REPORT else "everybody: publish it"
