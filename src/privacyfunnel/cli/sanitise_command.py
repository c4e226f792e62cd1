"""`sanitise`: a table in, its sanitised version and the public protocol out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.key_commands import prepare_signature
from privacyfunnel.cli.option_groups import expand_groups
from privacyfunnel.cli.options import Again, Force, LedgerFile, QueryOption, TableOrDatabase
from privacyfunnel.cli.release_options import ExcelSafe
from privacyfunnel.cli.release_summary import content, format_summary
from privacyfunnel.cli.request_options import DesignRequest, LocalOutputRequest, TableDesignRequest, parse_source
from privacyfunnel.cli.table_options import CoarseningOptions, TableOptions

if TYPE_CHECKING:
    from privacyfunnel.release.release_files import ReportPage
    from privacyfunnel.release.sanitise import Release
    from privacyfunnel.release.sending import ProgressCallback
    from privacyfunnel.tables.readers.table_files import TableSource


class TableFormat(StrEnum):
    """The format of the sanitised table."""

    CSV = "csv"
    CSV_GZ = "csv.gz"
    CSV_ZST = "csv.zst"
    TSV = "tsv"
    TSV_GZ = "tsv.gz"
    TSV_ZST = "tsv.zst"
    PARQUET = "parquet"
    ARROW = "arrow"


@expand_groups
def sanitise(
    table: TableOrDatabase,
    *,
    into: Annotated[Path, typer.Option("--into", help="The folder for sanitised.csv and protocol.json.")],
    asked: TableDesignRequest,
    coarsening: CoarseningOptions,
    sent: LocalOutputRequest,
    format_: Annotated[
        TableFormat | None, typer.Option("--format", help="The output's format, if not the input's.")
    ] = None,
    query: QueryOption = None,
    reading: TableOptions,
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
    signed = prepare_signature(sign, into, force=force)
    release = run_release(
        parse_source(table, query),
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
    answer(as_json, {**content(release), **signature}, format_summary(release) + more)


def run_release(
    table: Path | TableSource,
    into: Path,
    asked: DesignRequest,
    coarsening: CoarseningOptions | None = None,
    sent: LocalOutputRequest | None = None,
    *,
    report: bool = True,
    public_report: bool = False,
    croissant: bool = False,
    command: Sequence[str] = (),
    force: bool = False,
    where: Mapping[str, Any] | None = None,
) -> Release:
    """Run the release with what the command line asks for, and draw its reports."""
    from privacyfunnel.atomic_files import check_target
    from privacyfunnel.cli.progress import show_progress
    from privacyfunnel.release.sanitise import sanitise_file
    from privacyfunnel.report import CROISSANT, OWNER_REPORT, PUBLIC_REPORT

    if into.exists():  # before hours are spent
        for name, asked_for in ((OWNER_REPORT, report), (PUBLIC_REPORT, public_report), (CROISSANT, croissant)):
            if asked_for:
                check_target(into / name, force=force)
    with show_progress() as (proof, rows):
        order = asked.to_spec(coarsening or CoarseningOptions(), (sent or LocalOutputRequest()).to_output_spec(), proof)
        drawn = _page_drawer(table, command, owners=report, public=public_report, croissant=croissant, watch=rows)
        return sanitise_file(table, into, order, watch=rows, force=force, pages=drawn, **(where or {}))


def _page_drawer(
    table: Path | TableSource,
    command: Sequence[str],
    *,
    watch: ProgressCallback | None,
    owners: bool,
    public: bool,
    croissant: bool,
) -> Callable[[Release], Iterable[ReportPage]] | None:
    """What draws the pages that are asked for; nothing is imported where none is."""
    if not (owners or public or croissant):
        return None
    import shlex
    import sys

    from privacyfunnel.tables.databases.drivers import redact_credentials

    repeat = redact_credentials(shlex.join(["privacyfunnel", *(command or sys.argv[1:])]))
    say = None if watch is None else lambda doing: watch(doing, 0)

    def draw_pages(release: Release) -> Iterable[ReportPage]:
        from datetime import datetime

        from privacyfunnel.report.release_page import Occasion, pages
        from privacyfunnel.tables.readers.table_files import resolve_source

        occasion = Occasion(datetime.now().astimezone(), str(table), repeat, resolve_source(table).query)
        return pages(release, occasion, owners=owners, public=public, croissant=croissant, watch=say)

    return draw_pages
