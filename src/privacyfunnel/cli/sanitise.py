"""`sanitise`: a table in, its sanitised version and the public protocol out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli.asked import order_asked, source_asked
from privacyfunnel.cli.beliefs import size
from privacyfunnel.cli.frame import Json, answer
from privacyfunnel.cli.keys import signing
from privacyfunnel.cli.options import (
    Again,
    AverageOption,
    BinOption,
    Decimal,
    Delimiter,
    Encoding,
    Factor,
    Force,
    ForOrDefault,
    Gap,
    KeepOrder,
    LedgerFile,
    MergeRareOption,
    MergeSecretsOption,
    Na,
    OptionalEpsilon,
    Ordered,
    Person,
    PersonRow,
    PopulationOrNone,
    PromiseName,
    PromiseOption,
    Publish,
    QueryOption,
    Secret,
    SeesSecret,
    Sheet,
    TableOrDatabase,
    TimeLimit,
    dialect,
)
from privacyfunnel.cli.release_options import (
    AnyMethod,
    As,
    AsOption,
    AverageOnly,
    Budgets,
    ChainOrder,
    DesignEpsilon,
    DesignNoise,
    DomainOption,
    ExcelSafe,
    Keep,
    KeyFile,
    Noise,
    RowId,
    Seed,
    Sets,
    SetsOption,
    WithShares,
)
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


def sanitise(
    table: TableOrDatabase,
    *,
    secret: Secret,
    publish: Publish,
    epsilon: OptionalEpsilon = None,
    factor: Factor = None,
    into: Annotated[Path, typer.Option("--into", help="The folder for sanitised.csv and protocol.json.")],
    promise: PromiseOption = PromiseName.LIP,
    population: PopulationOrNone = "none",
    method: AnyMethod = "auto",
    order: ChainOrder = None,
    budgets: Budgets = None,
    for_: ForOrDefault = None,
    ordered: Ordered = None,
    average: AverageOption = None,
    average_only: AverageOnly = False,
    sees_secret: SeesSecret = False,
    with_shares: WithShares = False,
    keep: Keep = None,
    bin_: BinOption = None,
    merge_rare: MergeRareOption = None,
    merge_secrets: MergeSecretsOption = None,
    as_: AsOption = As.OUTCOMES,
    sets: SetsOption = Sets.COLUMN,
    keep_order: KeepOrder = False,
    row_id: RowId = None,
    key_file: KeyFile = None,
    gap: Gap = 1e-6,
    time_limit: TimeLimit = None,
    format_: Annotated[Format | None, typer.Option("--format", help="The output's format, if not the input's.")] = None,
    query: QueryOption = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    na: Na = None,
    sheet: Sheet = None,
    person: Person = None,
    person_row: PersonRow = None,
    excel_safe: ExcelSafe = False,
    seed: Seed = None,
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
    design_epsilon: DesignEpsilon = None,
    domain: DomainOption = None,
    design_noise: DesignNoise = Noise.OWN,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Publish columns of a table so that nobody's belief about the secret moves by more than a factor of e^ε."""
    signed = signing(sign, into, force=force)
    release = sanitised(
        source_asked(table, query),
        into,
        secret=secret,
        publish=publish,
        epsilon=size(epsilon, factor),
        promise=promise.value,
        population=population,
        method=method,
        order=order,
        budgets=budgets,
        for_=for_,
        ordered=ordered,
        average=average,
        average_only=average_only,
        sees_secret=sees_secret,
        with_shares=with_shares,
        keep=keep,
        bins=bin_,
        merge_rare=merge_rare,
        merge_secrets=merge_secrets,
        as_=as_.value,
        sets=sets.value,
        keep_order=keep_order,
        gap=gap,
        time_limit=time_limit,
        seed=seed,
        row_id=row_id,
        key_file=key_file,
        report=report,
        public_report=public_report,
        croissant=croissant,
        design_epsilon=design_epsilon,
        domain=domain,
        design_noise=design_noise.value,
        force=force,
        where={
            "suffix": f".{format_.value}" if format_ else None,
            "dialect": dialect(delimiter, encoding, decimal, na, sheet, person, person_row),
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
    *,
    report: bool = True,
    public_report: bool = False,
    croissant: bool = False,
    command: Sequence[str] = (),
    force: bool = False,
    where: Mapping[str, Any] | None = None,
    **asked: Any,
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
        order = order_asked(**asked, progress=proof)
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
