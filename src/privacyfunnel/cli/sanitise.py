"""`sanitise`: a table in, its sanitised version and the public protocol out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    For,
    Force,
    Gap,
    KeepOrder,
    LedgerFile,
    MergeRareOption,
    MergeSecretsOption,
    Na,
    OptionalEpsilon,
    Ordered,
    PopulationOrNone,
    PromiseName,
    PromiseOption,
    Publish,
    Secret,
    SeesSecret,
    Sheet,
    Table,
    TimeLimit,
    dialect,
    listed,
    merges,
)
from privacyfunnel.cli.summary import content, told
from privacyfunnel.errors import ParameterError

if TYPE_CHECKING:
    from privacyfunnel.release.files import Page
    from privacyfunnel.release.order import Watch
    from privacyfunnel.release.sanitise import Release


METHOD_HELP = (
    "auto (the optimum, or a chain where too many combinations occur), optimal, chain, product, randomised-response, "
    "unary-encoding or conditional-reporting."
)


AS_HELP = (
    "outcomes: the most likely value and a code, and a codebook; labels: groups of values in words; values: original "
    "categories."
)


class As(StrEnum):
    """What an output is published as."""

    OUTCOMES = "outcomes"
    LABELS = "labels"
    VALUES = "values"


class Sets(StrEnum):
    """How the sets of unary encoding are written."""

    COLUMN = "column"
    INDICATORS = "indicators"


class Noise(StrEnum):
    """Where the noise of a private design comes from."""

    OWN = "own"
    OPENDP = "opendp"


class Format(StrEnum):
    """The format of the sanitised table."""

    CSV = "csv"
    CSV_GZ = "csv.gz"
    TSV = "tsv"
    TSV_GZ = "tsv.gz"
    PARQUET = "parquet"
    ARROW = "arrow"


def sanitise(
    table: Table,
    *,
    secret: Secret,
    publish: Publish,
    epsilon: OptionalEpsilon = None,
    factor: Factor = None,
    into: Annotated[Path, typer.Option("--into", help="The folder for sanitised.csv and protocol.json.")],
    promise: PromiseOption = PromiseName.LIP,
    population: PopulationOrNone = "none",
    method: Annotated[str, typer.Option("--method", help=METHOD_HELP)] = "auto",
    order: Annotated[
        list[str] | None, typer.Option("--order", help="For chain: the columns in the order they are published in.")
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option(
            "--budgets", help="For product: sound, paper, or an ε per column (0.2,0.3); searched if not given."
        ),
    ] = None,
    for_: For = "information",
    ordered: Ordered = None,
    average: AverageOption = None,
    average_only: Annotated[
        bool, typer.Option("--average-only", help="Promise nothing but the average; the ε that results is stated.")
    ] = False,
    sees_secret: SeesSecret = False,
    keep: Annotated[list[str] | None, typer.Option("--keep", help="A column to pass through, unprotected.")] = None,
    bin_: BinOption = None,
    merge_rare: MergeRareOption = None,
    merge_secrets: MergeSecretsOption = None,
    as_: Annotated[As, typer.Option("--as", help=AS_HELP)] = As.OUTCOMES,
    sets: Annotated[Sets, typer.Option("--sets", help="Write sets as one column or 0/1 columns.")] = Sets.COLUMN,
    keep_order: KeepOrder = False,
    gap: Gap = 1e-6,
    time_limit: TimeLimit = None,
    format_: Annotated[Format | None, typer.Option("--format", help="The output's format, if not the input's.")] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    na: Na = None,
    sheet: Sheet = None,
    excel_safe: Annotated[
        bool, typer.Option("--excel-safe", help="Put an apostrophe before text that begins like a formula.")
    ] = False,
    seed: Annotated[int | None, typer.Option("--seed", help="For tests only: not for publication.")] = None,
    report: Annotated[bool, typer.Option(help="Write report.html, for the owner only.")] = True,
    public_report: Annotated[bool, typer.Option("--public-report", help="Write a page for everybody too.")] = False,
    ledger: LedgerFile = None,
    again: Again = False,
    sign: Annotated[
        Path | None, typer.Option("--sign", readable=False, help="Sign both files with this private key (keygen).")
    ] = None,
    design_epsilon: Annotated[
        str | None,
        typer.Option("--design-epsilon", help="Make the protocol from counts with noise of this ε.", metavar="ε"),
    ] = None,
    domain: Annotated[
        Path | None, typer.Option("--domain", help="For a private design: the public labels and bins, as scan drafts.")
    ] = None,
    design_noise: Annotated[
        Noise, typer.Option("--design-noise", help="own, or opendp (an extra package).")
    ] = Noise.OWN,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Publish columns of a table so that nobody's belief about the secret moves by more than a factor of e^ε."""
    signed = signing(sign, into, force=force)
    release = sanitised(
        table,
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
        keep=keep,
        bins=bin_,
        merge_rare=merge_rare,
        merge_secrets=merge_secrets,
        as_=as_.value,
        sets=sets.value,
        keep_order=keep_order,
        gap=gap,
        time_limit=time_limit,
        suffix=f".{format_.value}" if format_ else None,
        dialect=dialect(delimiter, encoding, decimal, na, sheet),
        excel_safe=excel_safe,
        seed=seed,
        report=report,
        public_report=public_report,
        ledger=ledger,
        again=again,
        design_epsilon=design_epsilon,
        domain=domain,
        design_noise=design_noise.value,
        force=force,
    )
    signature = signed(release)
    more = f"\nsigned by {signature['signed_by']}: {signature['signature']}" if signature else ""
    answer(as_json, {**content(release), **signature}, told(release) + more)


def sanitised(
    table: Path,
    into: Path,
    *,
    secret: list[str],
    publish: list[str],
    epsilon: float | None,
    promise: str = "lip",
    population: float | str | None = None,
    method: str = "auto",
    order: list[str] | None = None,
    budgets: str | None = None,
    for_: str = "information",
    ordered: list[str] | None = None,
    average: float | None = None,
    average_only: bool = False,
    sees_secret: bool = False,
    keep: list[str] | None = None,
    bins: list[str] | None = None,
    merge_rare: list[str] | None = None,
    merge_secrets: list[str] | None = None,
    as_: str = "outcomes",
    sets: str = "column",
    keep_order: bool = False,
    gap: float = 1e-6,
    time_limit: float | None = None,
    seed: int | None = None,
    report: bool = True,
    public_report: bool = False,
    command: Sequence[str] = (),
    design_epsilon: str | None = None,
    domain: Path | None = None,
    design_noise: str = "own",
    force: bool = False,
    **where: Any,
) -> Release:
    """Run the release with what the command line says, and draw its reports."""
    from privacyfunnel.cli.progress import work_shown
    from privacyfunnel.designs.methods import Effort
    from privacyfunnel.model.promises import promise as promise_called
    from privacyfunnel.model.uses.called import use_called
    from privacyfunnel.model.uses.order import parse_order
    from privacyfunnel.release.order import Order
    from privacyfunnel.release.private import private_design
    from privacyfunnel.release.sanitise import sanitise_file
    from privacyfunnel.release.whom import whom
    from privacyfunnel.report import OWNERS, PUBLIC
    from privacyfunnel.tables.asking import parse_bin
    from privacyfunnel.tables.domain_file import read_domain
    from privacyfunnel.tables.whole import checked_target

    if into.exists():  # before hours are spent
        for name in ([OWNERS] if report else []) + ([PUBLIC] if public_report else []):
            checked_target(into / name, force=force)
    with work_shown() as (proof, rows):
        asked = Order(
            secret=listed(secret),
            publish=listed(publish),
            promise=promise_called(promise, _size(epsilon, average, average_only)),
            population=whom(population).confidence,
            population_if_possible=whom(population).if_possible,
            method=method,
            chain_order=listed(order),
            budgets=_budgets(budgets),
            use=use_called(for_),
            orders=tuple(map(parse_order, ordered or [])),
            average=average,
            average_only=average_only,
            keep=listed(keep),
            bins=tuple(map(parse_bin, bins or [])),
            merges=merges(merge_rare, merge_secrets),
            as_=as_,
            sets=sets,
            sees_secret=sees_secret,
            keep_order=keep_order,
            seed=seed,
            effort=Effort(gap, time_limit, proof),
            private=private_design(design_epsilon, design_noise),
            domain=None if domain is None else read_domain(domain),
        )
        drawn = _reports(table, command, owners=report, public=public_report, watch=rows)
        return sanitise_file(table, into, asked, watch=rows, force=force, pages=drawn, **where)


def _size(epsilon: float | None, average: float | None, average_only: bool) -> float:
    """The ε to promise; with an average alone, the largest there is, and what comes of it is stated."""
    if average_only and (average is None or epsilon is not None):
        raise ParameterError("--average-only needs --average and takes no --epsilon; give both for both. Mend one.")
    if average_only:
        from privacyfunnel.designs.splitting import LARGEST_EPSILON

        return LARGEST_EPSILON
    if epsilon is None:
        also = " An average alone promises nothing about the worst record: add --average-only to have it all the same."
        raise ParameterError(f"Missing option '--epsilon'.{also if average is not None else ''}")
    return epsilon


def _budgets(text: str | None) -> str | tuple[float, ...] | None:
    if text is None:  # as nearly always: then the room of products is not needed
        return None
    from privacyfunnel.designs.product.budgets import parse_budgets

    return parse_budgets(text)


def _reports(
    table: Path, command: Sequence[str], *, watch: Watch | None, owners: bool, public: bool
) -> Callable[[Release], Iterable[Page]] | None:
    """What draws the pages that are asked for; nothing is imported where none is."""
    if not (owners or public):
        return None
    import shlex
    import sys

    repeat = shlex.join(["privacyfunnel", *(command or sys.argv[1:])])
    say = None if watch is None else lambda doing: watch(doing, 0)

    def drawn(release: Release) -> Iterable[Page]:
        from datetime import datetime

        from privacyfunnel.report.page import Occasion, pages

        occasion = Occasion(datetime.now().astimezone(), str(table), repeat)
        return pages(release, occasion, owners=owners, public=public, watch=say)

    return drawn
