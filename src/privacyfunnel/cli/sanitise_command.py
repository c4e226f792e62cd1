"""`sanitise`: a table or a release.toml in, its sanitised version and the protocol out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.key_commands import prepare_signature
from privacyfunnel.cli.release_summary import content, format_summary
from privacyfunnel.cli.spec_options import Given, SaveSpec, TableOrSpec, build_spec, fields_of, save_spec, takes_spec
from privacyfunnel.spec import ReleaseSpec

if TYPE_CHECKING:
    from privacyfunnel.release.release_files import ReportPage
    from privacyfunnel.release.row_sampler import ProgressCallback
    from privacyfunnel.release.sanitise import Release


@takes_spec(*fields_of("sanitise"))
def sanitise(source: TableOrSpec = None, *, given: Given, save_spec_as: SaveSpec = None, as_json: Json = False) -> None:
    """Publish columns of a table so that nobody's belief about the secret moves by more than a factor of e^ε."""
    spec = build_spec(source, given).require_columns()
    into = spec.require_into()
    save_spec(spec, save_spec_as)
    sign_release = prepare_signature(spec.sign, into, force=spec.force)
    release = run_release(spec)
    signature = sign_release(release)
    more = f"\nsigned by {signature['signed_by']}: {signature['signature']}" if signature else ""
    answer(as_json, {**content(release), **signature}, format_summary(release) + more)


def run_release(spec: ReleaseSpec, command: Sequence[str] = (), *, trial: bool = False) -> Release:
    """Run the release that the spec asks for, and draw its reports; `command` repeats it, if not this process's own."""
    from privacyfunnel.atomic_files import check_target
    from privacyfunnel.cli.application import show_progress
    from privacyfunnel.release.sanitise import sanitise_file
    from privacyfunnel.report import CROISSANT, OWNER_REPORT, PUBLIC_REPORT

    into = spec.require_into()
    asked = ((OWNER_REPORT, spec.report), (PUBLIC_REPORT, spec.public_report), (CROISSANT, spec.croissant))
    for name in (name for name, wanted in asked if wanted and into.exists()):  # before hours are spent
        check_target(into / name, force=spec.force)
    with show_progress() as (progress, watch):
        pages = _page_drawer(spec, command, watch)
        return sanitise_file(None, spec, watch=watch, progress=progress, pages=pages, trial=trial)


def _page_drawer(
    spec: ReleaseSpec, command: Sequence[str], watch: ProgressCallback | None
) -> Callable[[Release], Iterable[ReportPage]] | None:
    """A function that draws the pages that are asked for; nothing is imported where none is."""
    if not (spec.report or spec.public_report or spec.croissant):
        return None
    from privacyfunnel.tables.databases.drivers import redact_credentials

    repeat = redact_credentials(shlex.join(["privacyfunnel", *(command or sys.argv[1:])]))
    show_step = None if watch is None else lambda doing: watch(doing, 0)

    def draw_pages(release: Release) -> Iterable[ReportPage]:
        from datetime import datetime

        from privacyfunnel.report.release_page import Occasion, pages

        occasion = Occasion(datetime.now().astimezone(), str(spec.source), repeat, spec.source.query)
        return pages(
            release,
            occasion,
            owners=spec.report,
            public=spec.public_report,
            croissant=spec.croissant,
            curve=spec.curve,
            watch=show_step,
        )

    return draw_pages
