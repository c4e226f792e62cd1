"""`sanitise`: a table in, its sanitised version and the public protocol out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli import owners, words
from privacyfunnel.cli.frame import Json, answer
from privacyfunnel.cli.keys import signing
from privacyfunnel.cli.options import (
    Again,
    AverageOption,
    BinOption,
    Delimiter,
    Encoding,
    For,
    Force,
    Gap,
    KeepOrder,
    LedgerFile,
    MergeRareOption,
    MergeSecretsOption,
    OptionalEpsilon,
    Ordered,
    Population,
    PromiseName,
    PromiseOption,
    Publish,
    Secret,
    SeesSecret,
    Table,
    TimeLimit,
    listed,
    merges,
)
from privacyfunnel.errors import ParameterError
from privacyfunnel.tables.names import listing

if TYPE_CHECKING:
    from privacyfunnel.model.promises import Population as PopulationPromised
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


EXCEL_SAFE = (
    "text that begins with = + - @ and is no number has an apostrophe in front; estimate and audit read it either way"
)


CODEBOOK = "{}: what each outcome code stands for; the table shows the most likely value beside it"


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
    into: Annotated[Path, typer.Option("--into", help="The folder for sanitised.csv and protocol.json.")],
    promise: PromiseOption = PromiseName.LIP,
    population: Population = None,
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
        epsilon=epsilon,
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
        delimiter=delimiter,
        encoding=encoding,
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
    population: float | None = None,
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
    from privacyfunnel.report import OWNERS, PUBLIC
    from privacyfunnel.tables.bins import parse_bin
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
            population=population,
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


def content(release: Release) -> dict[str, Any]:
    """The release as one object."""
    sealed = release.sealed
    return {
        "rows": release.rows,
        "secret": sealed.domain.secret_columns,
        "publish": [at.name for at in sealed.domain.attributes],
        "kept": release.kept,
        "dropped": release.dropped,
        "promise": sealed.promise.name,
        "epsilon": sealed.promise.epsilon,
        "certified": sealed.epsilon,
        "population": None if sealed.promise.population is None else sealed.promise.population.confidence,
        "method": release.method,
        "reason": release.reason,
        "seconds": release.seconds,
        "sparse": release.sparse,
        "rare": release.rare,
        "sees_secret": sealed.sees_secret,
        "information_nats": sealed.information,
        "information_error_nats": sealed.information_error,
        "entropy_nats": sealed.entropy,
        "share_kept": release.share_kept,
        "bound_nats": sealed.bound,
        "use": release.worth.use.called,
        "value": release.worth.value,
        "bound": release.worth.bound,
        "unit": release.worth.use.unit,
        "average": release.average,
        "unchanged": release.unchanged,
        "unchanged_expected": release.unchanged_expected,
        "for_publication": sealed.for_publication,
        "excel_safe": release.excel_safe,
        "order": owners.order(release),
        "ledger": owners.ledger(release),
        "people": None if release.people is None else release.people.to_dict(),
        "not_promised": release.not_promised_to_owner,
        "table": str(release.table),
        "protocol": str(release.protocol_file),
        "codebook": None if release.codebook is None else str(release.codebook),
        "reports": [str(page) for page in release.pages],
    }


def told(release: Release) -> str:
    """The release as a short summary."""
    sealed = release.sealed
    epsilon = sealed.promise.epsilon
    columns, secret = " & ".join(at.name for at in sealed.domain.attributes), " & ".join(sealed.domain.secret_columns)
    kept = words.nats(sealed.information, sealed.information_error)
    kept += f", {words.share(sealed.information, sealed.entropy)} of H({columns})"
    if sealed.bound is not None:
        seen = f"{secret} and {columns}" if sealed.sees_secret else f"only {columns}"
        kept += f"; no protocol that sees {seen} keeps more than {sealed.bound:.4f}"
    just = "" if sealed.outcomes else "just "
    lines = words.facts(
        [
            ("rows", f"{release.rows:,}, published as {release.table}, protocol in {release.protocol_file}"),
            (
                "promise",
                f"{sealed.promise.name} about {secret}: asked ε = {words.epsilon(epsilon)}, {certified(sealed)}",
            ),
            *([("population", _people(sealed.promise.population))] if sealed.promise.population else []),
            ("method", release.method + (", which looks at the secret" if sealed.sees_secret else "") + _why(release)),
            *_served(release),
            ("information", kept),
            (
                "unchanged",
                f"{words.share(release.unchanged, 1)} of rows show {just}the value they had, "
                f"{words.share(release.unchanged_expected, 1)} expected",
            ),
            *([] if release.codebook is None else [("codebook", CODEBOOK.format(release.codebook))]),
            ("order", owners.order_words(release)),
            *([("sparse", release.sparse)] if release.sparse else []),
            *(("rare", sentence) for sentence in release.rare),
            *owners.rare_alone(release),
            *([("unprotected", listing(release.kept))] if release.kept else []),
            *([("excel-safe", EXCEL_SAFE)] if release.excel_safe else []),
            *([("reports", ", ".join(map(str, release.pages)))] if release.pages else []),
            *([("dropped", listing(release.dropped))] if release.dropped else []),
            *owners.ledger_words(release),
        ]
    )
    return "\n".join([lines, "not promised", *(f"  - {sentence}" for sentence in release.not_promised_to_owner)])


def _served(release: Release) -> list[tuple[str, str]]:
    """How good it is for the use it was made for; information has a line of its own."""
    worth = release.worth
    if release.average is not None:
        most = f"{worth.bound:.4f} nats" if worth.bound is not None else "what is known"
        asked = f"I(S;Y) of at most {release.average:g} nats; with that no protocol keeps more than {most}"
        return [("average", asked)]
    if worth.use.name == "information":
        return []
    than = "less" if worth.use.less_is_better else "more"
    proved = "" if worth.bound is None else f"; {than} than {worth.bound:.4f} is not possible"
    return [("use", f"{worth.use.called}: {worth.value:.4f}, {worth.use.unit}{proved}")]


def _people(population: PopulationPromised) -> str:
    return (
        f"the same for the people whom the {population.rows:,} rows are an independent sample of, with "
        f"{100 * population.confidence:g} % confidence; secrets of fewer than {population.rule.rare} rows "
        "together"
    )


def _why(release: Release) -> str:
    """Why it was chosen, and what it cost, where there was a choice."""
    return f": {release.reason}; made and certified in {release.seconds:.0f} s" if release.reason else ""


def certified(sealed: Any) -> str:
    """What was certified, in words."""
    asked = sealed.promise.epsilon
    if sealed.epsilon > asked:
        return f"certified ε = {sealed.epsilon:.1e}, the least that 64-bit integers can show"
    return f"certified ε = {words.epsilon(sealed.epsilon)} {sealed.law.checked}"
