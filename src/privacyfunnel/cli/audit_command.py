"""`audit`: the promise checked again from the files alone."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer, show
from privacyfunnel.cli.epsilon_meaning import resolve_epsilon
from privacyfunnel.cli.option_groups import expand_groups
from privacyfunnel.cli.options import Factor, LedgerFile, PromiseName, PromiseOption, QueryOption, SignedBy
from privacyfunnel.cli.table_options import RecodingOptions, TableOptions
from privacyfunnel.cli.transition_matrix import audit_matrix_file
from privacyfunnel.errors import check_epsilon
from privacyfunnel.spec.checks import find_source
from privacyfunnel.spec.kinds import parse_names

if TYPE_CHECKING:
    from privacyfunnel.audits.black_box_audit import BlackBoxAudit
    from privacyfunnel.audits.draw_agreement import DrawAgreement
    from privacyfunnel.audits.protocol_audit import Audit
    from privacyfunnel.mechanisms.signatures import Signer
    from privacyfunnel.tables.coding.bins import Bins
    from privacyfunnel.tables.readers.formats import Dialect
    from privacyfunnel.tables.readers.table_files import TableSource


def _print_schema(wanted: bool) -> None:
    if wanted:
        from privacyfunnel.mechanisms.protocol_schema import schema_text

        show(schema_text().rstrip())
        raise typer.Exit


@expand_groups
def audit(
    protocol: Annotated[
        Path,
        typer.Argument(
            readable=False, help="The folder that sanitise wrote, or its protocol.json. With --matrix: the table."
        ),
    ],
    table: Annotated[
        str | None, typer.Argument(help="The original table that the protocol was made for; a database with --query.")
    ] = None,
    *,
    secret: Annotated[
        list[str] | None, typer.Option("--secret", "-s", help="The secret column; with a protocol, checked by name.")
    ] = None,
    sanitised: Annotated[
        Path | None, typer.Option("--sanitised", help="The sanitised table: test that it was drawn from the protocol.")
    ] = None,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="The sanitised table is in the order of the original.")
    ] = False,
    ledger: LedgerFile = None,
    with_: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            readable=False,
            help="Another protocol.json of the same rows: what both say together. May be repeated; the same file again "
            "is a second draw from it.",
        ),
    ] = None,
    matrix: Annotated[
        Path | None, typer.Option("--matrix", help="Measure this PRAM transition matrix (CSV) instead of a protocol.")
    ] = None,
    publish: Annotated[
        list[str] | None,
        typer.Option("--publish", "-p", help="The matrix's columns, if its corner does not name them."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", "-e", help="Fail unless the matrix keeps this ε.", parser=check_epsilon, metavar="ε"),
    ] = None,
    factor: Factor = None,
    promise: PromiseOption = PromiseName.LIP,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="A column of the sanitised table that was kept on purpose.")
    ] = None,
    signed_by: SignedBy = None,
    domain: Annotated[
        Path | None,
        typer.Option("--domain", help="The domain.json of a private design, which says how its secrets are called."),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            "--draws",
            help="Also run sanitise itself until so many rows are drawn, and look from outside whether they keep it.",
            min=1,
            metavar="N",
        ),
    ] = None,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema", help="Print the JSON Schema of protocol files and leave.", is_eager=True, callback=_print_schema
        ),
    ] = False,
    recoding: RecodingOptions,
    query: QueryOption = None,
    reading: TableOptions,
    as_json: Json = False,
) -> None:
    """Check from the files alone that the promise holds and that the sanitised table was drawn as stated.

    With --matrix: measure what a transition matrix from other software says about the secret.
    """
    from privacyfunnel.errors import ParameterError
    from privacyfunnel.model.promises import find_promise as promise_called
    from privacyfunnel.release.release_files import find_table
    from privacyfunnel.tables.coding.domain_file import read_domain

    epsilon = resolve_epsilon(epsilon, factor)
    bins, written = recoding.bins, reading.dialect
    if matrix is None:
        if table is None or publish or epsilon is not None:
            raise ParameterError(
                "An audit takes a protocol file and the original table; --publish and --epsilon are for --matrix. "
                "Name both files, or a matrix."
            )
        others = tuple(with_ or ())
        more: dict[str, Any] = {"keep": parse_names(keep), "signed_by": signed_by, "merges": recoding.merges}
        more |= {"keep_order": keep_order, "ledger": ledger}
        more |= {"domain": None if domain is None else read_domain(domain)}
        rows = find_source(table, query)
        if protocol.is_dir():
            sanitised = sanitised or find_table(protocol)
        _audit_protocol(
            protocol,
            rows,
            parse_names(secret),
            sanitised,
            others,
            bins,
            written,
            draws,
            more,
            as_json=as_json,
        )
        return
    if table is not None or sanitised is not None or with_ or keep or signed_by or draws or domain:
        raise ParameterError(
            "With --matrix an audit takes the original table alone, no protocol and no sanitised table. Leave them out."
        )
    wanted = None if epsilon is None else promise_called(promise.value, epsilon)
    audit_matrix_file(
        matrix, protocol, parse_names(secret), parse_names(publish), wanted, bins, written, as_json=as_json
    )


def _audit_protocol(
    protocol: Path,
    table: TableSource,
    secret: tuple[str, ...],
    sanitised: Path | None,
    others: tuple[Path, ...],
    bins: tuple[Bins, ...],
    written: Dialect,
    draws: int | None,
    more: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    from privacyfunnel.audits import protocol_audit as room
    from privacyfunnel.audits.draw_agreement import FALSE_ALARM
    from privacyfunnel.audits.noise_audit import FALSE_ALARM as NOISE_FALSE_ALARM
    from privacyfunnel.audits.protocol_audit import audit_composition
    from privacyfunnel.audits.side_channel_audit import format_side_channel

    found = room.audit(protocol, table, secret=secret, sanitised=sanitised, bins=bins, dialect=written, **more)
    sealed, draw, side, signer, claims = found.sealed, found.draw, found.side_channel, found.signer, found.claims
    together = None
    if others:
        together = audit_composition(
            [protocol, *others],
            table,
            secret=secret,
            bins=bins,
            merges=more["merges"],
            dialect=written,
        )
    outside = None if draws is None else _run_black_box_test(found, table, draws, bins, written)
    content = {
        "holds": True,
        "rows": found.rows,
        "secret": sealed.domain.secret_columns,
        "secret_named_by": "the auditor" if found.secret_named else "the protocol file alone",
        "promise": sealed.promise.name,
        "epsilon": sealed.promise.epsilon,
        "stated": sealed.epsilon,
        "certified": found.certified,
        "people": None if found.people is None else found.people.to_dict(),
        "side_channel": None
        if side is None
        else {"epsilon": side.epsilon, "bound": side.bound if math.isfinite(side.bound) else None, "worst": side.text},
        "for_publication": sealed.for_publication,
        "draw": None
        if draw is None
        else {
            "consistent": True,
            "chi_square": draw.statistic,
            "degrees": draw.degrees,
            "p_value": draw.p_value,
            "false_alarm": FALSE_ALARM,
            "row_by_row": draw.paired,
            "untested": draw.untested,
            "follows_secret": None
            if draw.secret_dependence is None
            else {"found": False, "p_value": draw.secret_dependence.p_value, "false_alarm": FALSE_ALARM},
            "no_guessed_seed": draw.unseeded,
            "kept": draw.kept_columns,
            "kept_epsilon": None if found.kept is None else found.kept.epsilon,
            "file": None if found.file is None else found.file.compared,
        },
        "design_noise": None
        if found.noise is None
        else {"p_value": found.noise.p_value, "false_alarm": NOISE_FALSE_ALARM, "by_label": found.noise.by_label},
        "claims": None
        if claims is None
        else {
            "information_nats": claims.information,
            "information_measured": claims.is_measured,
            "bound_nats": claims.bound,
            "bound_proved_now": claims.proved_bound,
            "bound_confirmed": claims.is_confirmed,
        },
        "signed_by": None
        if signer is None
        else {"fingerprint": signer.fingerprint, "asked_for": signer.asked_for, "with_table": signer.with_table},
        "draws": None if outside is None else outside.to_dict(),
        "together": None
        if together is None
        else {
            "releases": len(together.alone),
            "epsilon": _finite_or_none(together.composed.epsilon),
            "bounded": math.isfinite(together.composed.epsilon),
            "worst": together.composed.description,
            "alone": [_finite_or_none(one.epsilon) for one in together.alone],
        },
    }
    secrets = " & ".join(sealed.domain.secret_columns)
    told = [
        ("rows", f"{found.rows:,}"),
        ("secret", secrets if found.secret_named else f"{secrets}, {_NOT_NAMED}"),
        (
            "promise",
            f"{sealed.promise.name} ε = {text_format.format_epsilon(sealed.promise.epsilon)} about {secrets} holds",
        ),
        ("certified", f"ε = {found.certified:.6g} now, {sealed.epsilon:.6g} stated, {sealed.mechanism.check_method}"),
    ]
    told += _population_facts(found, named=more["domain"] is not None)
    if side is not None:
        told.append(("side channels", format_side_channel(side)))
    if draw is not None:
        how = "row by row" if draw.paired else "in the counts of outputs"
        told.append(
            (
                "draw",
                f"consistent {how}: chi-square {draw.statistic:.1f} on {draw.degrees} degrees of freedom, "
                f"p = {draw.p_value:.3f} (refused below {FALSE_ALARM:g}, which is exact in the limit of many rows)",
            )
        )
        if not draw.paired:
            told.append(("order", _ORDER_UNKNOWN))
        if draw.untested:
            told.append(("not tested", ", ".join(draw.untested)))
        told += _draw_facts(draw, secrets, FALSE_ALARM)
    told += found.file_facts
    if claims is not None:
        told.append(("information", str(claims)))
    told.append(("signed by", _format_signer(signer)))
    if outside is not None:
        told += outside.facts()
    if together is not None:
        told.append(("alone", ", ".join(f"ε = {text_format.format_epsilon(one.epsilon)}" for one in together.alone)))
        told.append(
            (
                "together",
                f"{together.promise.name} ε = {text_format.format_epsilon(together.composed.epsilon)} for "
                f"{len(together.alone)} "
                f"releases, worst for {together.composed.description}",
            )
        )
    if not sealed.for_publication:
        told.append(("beware", "drawn from a seed: not for publication"))
    answer(as_json, content, text_format.format_facts(told))


_ORDER_UNKNOWN = (
    "not known: no ledger tells which row became which, so outputs handed to other rows would not be found out. Name "
    "the owner's --ledger, or say --keep-order if the rows are in the order of the table"
)
_NOT_NAMED = "as the protocol file alone says: name the column that must stay secret with --secret to have it checked"


def _population_facts(found: Audit, *, named: bool) -> list[tuple[str, str]]:
    """What holds for those whom the rows stand for."""
    if found.people is None:
        return [
            ("people", "for the people whom these rows stand for ε was not computed: the table is too large for it")
        ]
    told = [("people", found.people.describe_with_table(found.certified))]
    alone = found.people.rare_alone
    told += [("rare", f"for the people, {alone}")] if alone else []
    if found.people.private and not named:
        told.append(
            ("called", "secrets go by their numbers here, for the file names none; --domain domain.json names them")
        )
    return told


def _draw_facts(draw: DrawAgreement, secret: str, false_alarm: float) -> list[tuple[str, str]]:
    """What else was found about a draw."""
    told = []
    if draw.secret_dependence is not None:
        told.append(
            (
                "independence",
                f"outputs follow {secret} no more than the protocol lets them, p = "
                f"{draw.secret_dependence.p_value:.3f} "
                f"(refused below {false_alarm:g}; its chi-squares are exact in the limit of many rows)",
            )
        )
    if draw.unseeded:
        told.append(("seed", "none that anybody would try first draws these rows; a better hidden one is not found"))
    return told


def _format_signer(signer: Signer | None) -> str:
    if signer is None:
        return "nobody"
    whose = "the key asked for" if signer.asked_for else "a key that was not asked for: name the owner's --signed-by"
    what = "both files" if signer.with_table else "the protocol file; the table was not named"
    return f"{signer.fingerprint}, {whose} ({what})"


def _run_black_box_test(
    found: Audit, table: TableSource, draws: int, bins: tuple[Bins, ...], written: Dialect
) -> BlackBoxAudit:
    from privacyfunnel.audits.black_box_audit import audit_black_box

    return audit_black_box(found.sealed, table, draws, bins=bins, dialect=written)


def _finite_or_none(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None
