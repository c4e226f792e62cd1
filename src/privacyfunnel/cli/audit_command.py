"""`audit`: the promise checked again from the files alone."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer, show
from privacyfunnel.cli.release_summary import Details, format_signer
from privacyfunnel.cli.spec_options import READING, Given, build_spec, takes_spec
from privacyfunnel.cli.transition_matrix import audit_matrix_file
from privacyfunnel.formatting import finite_or_none, format_factor
from privacyfunnel.names import format_names

if TYPE_CHECKING:
    from privacyfunnel.audits.draw_agreement import DrawAgreement
    from privacyfunnel.audits.protocol_audit import Audit
    from privacyfunnel.mechanisms.sealing import SealedProtocol
    from privacyfunnel.spec import ReleaseSpec

HIDDEN = (
    "leak",
    "shared",
    "certified",
    "people",
    "rare",
    "names",
    "test",
    "independence",
    "seed",
    "noise",
    "information",
    "alone",
)


def _print_schema(wanted: bool) -> None:
    if wanted:
        from privacyfunnel.mechanisms.protocol_schema import schema_text

        show(schema_text().rstrip())
        raise typer.Exit


@takes_spec(
    *("secret", "publish", "keep", "epsilon", "factor", "promise", "bins", "merge_secrets", "keep_order"),
    *(*READING, "ledger", "signed_by"),
    secret="The secret column; with a protocol, checked by name.",
    publish="The matrix's columns, if its corner does not name them.",
    keep="A column of the sanitised table that was kept on purpose.",
    epsilon="Fail unless the matrix keeps this ε.",
    keep_order="The sanitised table is in the order of the original.",
)
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
    sanitised: Annotated[
        Path | None, typer.Option("--sanitised", help="The sanitised table: test that it was drawn from the protocol.")
    ] = None,
    with_: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            readable=False,
            help="Another protocol.json of the same rows: the leakage of both together. May be repeated; the same file "
            "again is a second draw from it.",
        ),
    ] = None,
    matrix: Annotated[
        Path | None, typer.Option("--matrix", help="Measure this PRAM transition matrix (CSV) instead of a protocol.")
    ] = None,
    given: Given,
    domain: Annotated[
        Path | None,
        typer.Option("--domain", help="The domain.json of the design: the labels of its secrets."),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            "--draws",
            help="Also run sanitise until so many rows are drawn, and test the promise on them as a black box.",
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
    details: Details = False,
    as_json: Json = False,
) -> None:
    """Check from the files alone that the promise holds and that the sanitised table was drawn as stated.

    With --matrix: measure what a transition matrix from other software says about the secret.
    """
    from privacyfunnel.audits.public_audit import refuse_altered
    from privacyfunnel.errors import ParameterError
    from privacyfunnel.tables.readers.table_files import find_table

    spec = build_spec(str(protocol) if matrix else table, given)
    if matrix is None:
        from privacyfunnel.mechanisms.protocol_file import find_protocol
        from privacyfunnel.mechanisms.sealing import SealedProtocol

        alone = not (with_ or domain or draws)
        if alone and table is not None:  # real or synthetic records need no table, and have no use for one
            alone = not SealedProtocol.load(find_protocol(protocol)).mechanism.lists_inputs
        if alone and not {"publish", "epsilon", "factor", "keep", "keep_order", "ledger", "query"} & given.keys():
            _audit_public(protocol, spec, sanitised, details=details, as_json=as_json)
            return
        if table is None or {"publish", "epsilon", "factor"} & given.keys():
            raise ParameterError(
                "An audit takes a protocol file and the original table; --publish and --epsilon are for --matrix. "
                "Name both files, or a matrix."
            )
        if protocol.is_dir():
            sanitised = sanitised or find_table(protocol)
            refuse_altered(sanitised.parent)
        _audit_protocol(protocol, spec, sanitised, tuple(with_ or ()), domain, draws, details=details, as_json=as_json)
        return
    if table is not None or sanitised is not None or with_ or spec.keep or spec.signed_by or draws or domain:
        raise ParameterError(
            "With --matrix an audit takes the original table alone, no protocol and no sanitised table. Leave them out."
        )
    sized = spec.epsilon is not None or spec.factor is not None
    audit_matrix_file(matrix, spec, spec.promise_value if sized else None, as_json=as_json)


def _format_verdict(sealed: SealedProtocol) -> tuple[str, str]:
    size, secret = sealed.total_epsilon, sealed.secret_text
    people = sealed.promise.population
    audience = "" if sealed.model is None else " for whoever believes the published model"
    if people is not None:
        audience = f" for the population, with {100 * people.confidence:g} % confidence"
    elif sealed.promise.known_columns:
        audience += f", also if they know {format_names(sealed.promise.known_columns)} of a person"
    if sealed.promise.odds is not None:
        audience += f"{'' if sealed.model is None else ', and'} for {sealed.promise.odds.people('it')}"
    epsilon = f"ε = {text_format.format_epsilon(size)} (×{format_factor(size)})"
    own = [f"{at} ε = {text_format.format_epsilon(total)}" for at, total in sealed.secret_sizes.items()]
    return ("verdict", f"{sealed.promise.name} {epsilon} about {secret} holds{audience}{'; '.join(['', *own])}")


def _format_audit(facts: list[tuple[str, str]], *, details: bool) -> str:
    """The verdict and what an auditor must know; with details, every test and its figures."""
    return text_format.format_facts([fact for fact in facts if details or fact[0] not in HIDDEN])


def _audit_public(protocol: Path, spec: ReleaseSpec, sanitised: Path | None, *, details: bool, as_json: bool) -> None:
    from privacyfunnel.audits.public_audit import audit_public

    found = audit_public(protocol, secret=spec.secret, sanitised=sanitised, signed_by=spec.signed_by)
    sealed, model = found.sealed, found.model
    content = {
        "holds": True,
        "secret": sealed.domain.secret_columns,
        "secret_named_by": "the auditor" if spec.secret else "the protocol file alone",
        "promise": sealed.promise.name,
        "epsilon": sealed.total_epsilon,
        "model_epsilon": float(model.epsilon),
        "delta": float(model.delta),
        "stated": sealed.epsilon,
        "certified": found.certified,
        "for_publication": sealed.for_publication,
        "rows": found.rows,
        "codebook": None if found.codebook is None else str(found.codebook),
        "signed_by": None if found.signer is None else found.signer.fingerprint,
        "leaks": [leak.to_dict() for leak in found.leaks],
    }
    secrets = sealed.secret_text
    parts = f"{text_format.format_epsilon(float(model.epsilon))} for the model, the rest for the records"
    facts = [
        _format_verdict(sealed),
        ("secret", secrets if spec.secret else f"{secrets}, {_NOT_NAMED}"),
        ("shared", f"{parts}; a label is named because of one person with a chance of {float(model.delta):g} at most"),
        (
            "certified",
            f"ε = {found.certified:.6g} now, {sealed.epsilon:.6g} stated, {sealed.mechanism.describe_check()}",
        ),
        *([] if found.codebook is None else [("codebook", f"{found.codebook} follows from the protocol")]),
        *([] if found.rows is None else [("table", f"{found.rows:,} rows, each of which the mechanism can publish")]),
        ("information", str(found.claims)),
        *(("leak", leak.text) for leak in found.leaks),
        (
            "not checked",
            "how the model was made: that it has the stated noise is for its owner to show, with the table",
        ),
        ("signed by", format_signer(found.signer)),
    ]
    if not sealed.for_publication:
        facts.append(("beware", "drawn from a seed: not for publication"))
    answer(as_json, content, _format_audit(facts, details=details))


def _audit_protocol(
    protocol: Path,
    spec: ReleaseSpec,
    sanitised: Path | None,
    others: tuple[Path, ...],
    domain: Path | None,
    draws: int | None,
    *,
    details: bool,
    as_json: bool,
) -> None:
    from privacyfunnel.audits import protocol_audit as room
    from privacyfunnel.audits.black_box_audit import audit_black_box
    from privacyfunnel.audits.draw_agreement import FALSE_ALARM
    from privacyfunnel.audits.noise_audit import FALSE_ALARM as NOISE_FALSE_ALARM
    from privacyfunnel.release.findings.attacker_leaks import format_side_channel
    from privacyfunnel.tables.coding.domain_file import read_domain

    reading: dict[str, Any] = {"secret": spec.secret, "bins": spec.bin_rules}
    reading["merges"] = replace(spec, merge_rare=None).merges
    reading["dialect"] = spec.dialect
    found = room.audit(
        protocol,
        spec.source,
        **reading,
        sanitised=sanitised,
        keep=spec.keep,
        signed_by=spec.signed_by,
        keep_order=spec.keep_order,
        ledger=spec.ledger,
        domain=None if domain is None else read_domain(domain),
    )
    sealed, draw, side, signer, claims = found.sealed, found.draw, found.side_channel, found.signer, found.claims
    together = room.audit_composition([protocol, *others], spec.source, **reading) if others else None
    outside = (
        None
        if draws is None
        else audit_black_box(sealed, spec.source, draws, bins=spec.bin_rules, dialect=spec.dialect)
    )
    content = {
        "holds": True,
        "rows": found.rows,
        "secret": sealed.domain.secret_columns,
        "secret_named_by": "the auditor" if found.secret_named else "the protocol file alone",
        "promise": sealed.promise.name,
        "epsilon": sealed.promise.epsilon,
        "stated": sealed.epsilon,
        "certified": found.certified,
        "table_leak": None if found.table_leak is None else finite_or_none(found.table_leak),
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
        "leaks": [leak.to_dict() for leak in found.leaks],
        "together": None
        if together is None
        else {
            "releases": len(together.alone),
            "epsilon": finite_or_none(together.composed.epsilon),
            "bounded": math.isfinite(together.composed.epsilon),
            "worst": together.composed.description,
            "alone": [finite_or_none(one.epsilon) for one in together.alone],
        },
    }
    secrets = sealed.secret_text
    facts = [
        _format_verdict(sealed),
        ("rows", f"{found.rows:,}"),
        ("secret", secrets if found.secret_named else f"{secrets}, {_NOT_NAMED}"),
        (
            "certified",
            f"ε = {found.certified:.6g} now, {sealed.epsilon:.6g} stated, {sealed.mechanism.describe_check()}",
        ),
    ]
    facts += _population_facts(found, named=domain is not None)
    if side is not None:
        facts.append(("side channels", format_side_channel(side)))
    if draw is not None:
        facts += _draw_facts(draw, secrets, FALSE_ALARM)
    facts += found.file_facts
    if claims is not None:
        facts.append(("information", str(claims)))
    facts += [("leak", leak.text) for leak in found.leaks]
    facts.append(("signed by", format_signer(signer)))
    if outside is not None:
        facts += outside.facts()
    if together is not None:
        facts.append(("alone", ", ".join(f"ε = {text_format.format_epsilon(one.epsilon)}" for one in together.alone)))
        facts.append(
            (
                "together",
                f"{together.promise.name} ε = {text_format.format_epsilon(together.composed.epsilon)} for "
                f"{len(together.alone)} "
                f"releases, worst for {together.composed.description}",
            )
        )
    if not sealed.for_publication:
        facts.append(("beware", "drawn from a seed: not for publication"))
    answer(as_json, content, _format_audit(facts, details=details))


_ORDER_UNKNOWN = (
    "unknown without a ledger, so outputs assigned to wrong rows would go unnoticed. Name the owner's --ledger, or "
    "--keep-order if the rows are in the order of the table"
)
_NOT_NAMED = "as the protocol file states; name the secret column with --secret to have it checked"


def _population_facts(found: Audit, *, named: bool) -> list[tuple[str, str]]:
    """What holds for those whom the rows stand for."""
    if found.people is None:
        return [("people", "ε for the population was not computed: too many numbers, or a promise of another package")]
    promised = found.people.private or found.sealed.promise.population is not None
    facts = [("holds for" if promised else "people", found.people_text)]
    alone = found.people.rare_alone
    facts += [("rare", alone)] if alone else []
    if found.people.private and not named:
        facts.append(("names", "secrets are numbered, as the file does not name them; --domain domain.json does"))
    return facts


def _draw_facts(draw: DrawAgreement, secret: str, false_alarm: float) -> list[tuple[str, str]]:
    """Whether the table was drawn as stated, and how that was tested."""
    how = "row by row" if draw.paired else "in the counts of outputs"
    follows, refused = draw.secret_dependence, f"refused below {false_alarm:g}"
    facts = [
        ("draw", f"consistent with the protocol {how} (p = {draw.p_value:.3f}, {refused})"),
        ("test", f"chi-square {draw.statistic:.1f} on {draw.degrees} degrees of freedom, exact for many rows"),
        ("order", "" if draw.paired else _ORDER_UNKNOWN),
        ("not tested", ", ".join(draw.untested)),
        ("seed", "no common seed draws these rows; others were not tried" if draw.unseeded else ""),
    ]
    if follows is not None:
        allowed = f"outputs depend on {secret} no more than the protocol allows"
        facts.append(("independence", f"{allowed}, p = {follows.p_value:.3f} ({refused}; exact for many rows)"))
    return [(name, text) for name, text in facts if text]
