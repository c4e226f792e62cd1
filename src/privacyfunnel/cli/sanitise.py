"""`sanitise`: a table in, its sanitised version and the public protocol out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli.asked import Asked, AskedOfTable, SentFromHere, source_asked
from privacyfunnel.cli.frame import Json, answer
from privacyfunnel.cli.keys import signing
from privacyfunnel.cli.options import Again, Force, LedgerFile, QueryOption, TableOrDatabase
from privacyfunnel.cli.reading import Coarsening, Reading
from privacyfunnel.cli.release_options import ExcelSafe
from privacyfunnel.cli.spread import spread
from privacyfunnel.cli.summary import content, told

if TYPE_CHECKING:
    from privacyfunnel.release.files import Page
    from privacyfunnel.release.sanitise import Release
    from privacyfunnel.release.sending import Watch
    from privacyfunnel.tables.sources import Source


class Format(StrEnum):
    """The format of the sanitised table."""

    CSV = "csv"
    CSV_GZ = "csv.gz"
    CSV_ZST = "csv.zst"
    TSV = "tsv"
    TSV_GZ = "tsv.gz"
    TSV_ZST = "tsv.zst"
    PARQUET = "parquet"
    ARROW = "arrow"


@spread
def sanitise(
    table: TableOrDatabase,
    *,
    into: Annotated[Path, typer.Option("--into", help="The folder for sanitised.csv and protocol.json.")],
    asked: AskedOfTable,
    coarsening: Coarsening,
    sent: SentFromHere,
    format_: Annotated[Format | None, typer.Option("--format", help="The output's format, if not the input's.")] = None,
    query: QueryOption = None,
    reading: Reading,
    excel_safe: ExcelSafe = False,
    report: Annotated[bool, typer.Option(help="Write report.html, for the owner only.")] = True,
    public_report: Annotated[bool, typer.Option("--public-report", help="Write a page for everybody too.")] = False,
    croissant: Annotated[
        bool, typer.Option("--croissant", help="Write croissant.json, which describes the release for catalogues.")
    ] = False,
    ledger: LedgerFile = None,
    again: Again = False,
    sign: Annotated[
        Path | None, typer.Option("--sign", readable=False, help="Sign both files with this private key (keygen).")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Publish columns of a table so that nobody's belief about the secret moves by more than a factor of e^ε."""
    signed = signing(sign, into, force=force)
    release = sanitised(
        source_asked(table, query),
        into,
        asked,
        coarsening,
        sent,
        report=report,
        public_report=public_report,
        croissant=croissant,
        force=force,
        where={
            "suffix": f".{format_.value}" if format_ else None,
            "dialect": reading.dialect,
            "excel_safe": excel_safe,
            "ledger": ledger,
            "again": again,
        },
    )
    signature = signed(release)
    more = f"\nsigned by {signature['signed_by']}: {signature['signature']}" if signature else ""
    answer(as_json, {**content(release), **signature}, told(release) + more)


def sanitised(
    table: Path | Source,
    into: Path,
    asked: Asked,
    coarsening: Coarsening | None = None,
    sent: SentFromHere | None = None,
    *,
    report: bool = True,
    public_report: bool = False,
    croissant: bool = False,
    command: Sequence[str] = (),
    force: bool = False,
    where: Mapping[str, Any] | None = None,
) -> Release:
    """Run the release with what the command line asks for, and draw its reports."""
    from privacyfunnel.cli.progress import work_shown
    from privacyfunnel.release.sanitise import sanitise_file
    from privacyfunnel.report import CROISSANT, OWNERS, PUBLIC
    from privacyfunnel.tables.whole import checked_target

    if into.exists():  # before hours are spent
        for name, asked_for in ((OWNERS, report), (PUBLIC, public_report), (CROISSANT, croissant)):
            if asked_for:
                checked_target(into / name, force=force)
    with work_shown() as (proof, rows):
        order = asked.placed(coarsening or Coarsening(), (sent or SentFromHere()).sending(), proof)
        drawn = _reports(table, command, owners=report, public=public_report, croissant=croissant, watch=rows)
        return sanitise_file(table, into, order, watch=rows, force=force, pages=drawn, **(where or {}))


def _reports(
    table: Path | Source,
    command: Sequence[str],
    *,
    watch: Watch | None,
    owners: bool,
    public: bool,
    croissant: bool,
) -> Callable[[Release], Iterable[Page]] | None:
    """What draws the pages that are asked for; nothing is imported where none is."""
    if not (owners or public or croissant):
        return None
    import shlex
    import sys

    from privacyfunnel.tables.databases.address import discreet

    repeat = discreet(shlex.join(["privacyfunnel", *(command or sys.argv[1:])]))
    say = None if watch is None else lambda doing: watch(doing, 0)

    def drawn(release: Release) -> Iterable[Page]:
        from datetime import datetime

        from privacyfunnel.report.page import Occasion, pages
        from privacyfunnel.tables.sources import source_of

        occasion = Occasion(datetime.now().astimezone(), str(table), repeat, source_of(table).query)
        return pages(release, occasion, owners=owners, public=public, croissant=croissant, watch=say)

    return drawn
