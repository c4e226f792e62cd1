"""`sanitise`: a table or a release.toml in, the folder of its release out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.release_summary import Details, content, format_summary
from privacyfunnel.cli.spec_options import Given, SaveSpec, TableOrSpec, build_spec, fields_of, save_spec, takes_spec
from privacyfunnel.spec import ReleaseSpec

if TYPE_CHECKING:
    from privacyfunnel.release.sanitise import Release


@takes_spec(*fields_of("sanitise"))
def sanitise(
    source: TableOrSpec = None,
    *,
    given: Given,
    save_spec_as: SaveSpec = None,
    details: Details = False,
    as_json: Json = False,
) -> None:
    """Publish columns of a table so that beliefs about the secret that start from the prior move by at most e^ε."""
    spec = build_spec(source, given).require_columns()
    if not spec.try_:
        spec.require_into()
    save_spec(spec, save_spec_as)
    release = run_release(spec)
    text = "" if as_json else format_summary(release, details=details)
    answer(as_json, content(release) if as_json else {}, text)


def run_release(spec: ReleaseSpec, command: Sequence[str] = (), *, trial: bool = False) -> Release:
    """Run the release that the spec asks for; `command` repeats it, if not this process's own."""
    from privacyfunnel.cli.application import show_progress
    from privacyfunnel.release.sanitise import sanitise_file
    from privacyfunnel.tables.databases.drivers import redact_credentials

    repeat = redact_credentials(shlex.join(["privacyfunnel", *(command or sys.argv[1:])]))
    with show_progress() as (progress, watch):
        return sanitise_file(
            None, spec, watch=watch, progress=progress, command=repeat, trial=trial, on_budget=_say_budget
        )


def _say_budget(budget: str) -> None:
    typer.echo(f"Budget       {budget}.", err=True)
