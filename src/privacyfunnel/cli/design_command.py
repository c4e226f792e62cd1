"""`design`: the counts of a table in, a certified protocol out; no row is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.release_summary import Details, design_facts, format_details, promise_text
from privacyfunnel.cli.spec_options import Given, SaveSpec, TableOrSpec, build_spec, fields_of, save_spec, takes_spec

if TYPE_CHECKING:
    from privacyfunnel.release.design import DesignResult


@takes_spec(*fields_of("design"))
def design(
    source: TableOrSpec = None,
    *,
    given: Given,
    save_spec_as: SaveSpec = None,
    details: Details = False,
    as_json: Json = False,
) -> None:
    """Make and certify the protocol for a table, and draw nothing: apply draws rows with it, as often as needed."""
    from privacyfunnel.cli.application import show_progress
    from privacyfunnel.release.design import design_file

    spec = build_spec(source, given)
    save_spec(spec, save_spec_as)
    with show_progress() as (progress, watch):
        found = design_file(None, spec, watch=watch, progress=progress)
    answer(as_json, content(found), format_summary(found, details=details))


def content(found: DesignResult) -> dict[str, Any]:
    """What was designed, as one object."""
    from privacyfunnel.estimation.expected_precision import expected_precision_by_column

    sealed = found.sealed
    return {
        "rows": found.rows,
        "secret": sealed.domain.secret_columns,
        "publish": [at.name for at in sealed.domain.attributes],
        "promise": sealed.promise.name,
        "epsilon": sealed.total_epsilon,
        "certified": sealed.epsilon,
        "model_epsilon": None if sealed.model is None else float(sealed.model.epsilon),
        "population": None if sealed.promise.population is None else sealed.promise.population.confidence,
        "method": found.choice.method,
        "reason": found.choice.reason,
        "seconds": found.seconds,
        "search_cut": found.short is not None,
        "stopped": found.worth.stopped,
        "missing_at_most": found.short,
        "sees_secret": sealed.sees_secret,
        "information_nats": sealed.information,
        "entropy_nats": sealed.entropy,
        "bound_nats": sealed.bound,
        "use": found.worth.use.full_name,
        "value": found.worth.value,
        "bound": found.worth.bound,
        "unit": found.worth.use.unit,
        "shares_within": [each.to_dict() for each in expected_precision_by_column(sealed, found.joint, found.rows)],
        "protocol": str(found.protocol_file),
        "codebook": None if found.codebook is None else str(found.codebook),
        "not_promised": found.not_promised,
    }


def format_summary(found: DesignResult, prog_name: str = "privacyfunnel", *, details: bool = False) -> str:
    """The same in a few lines; what comes next is done by the program that is called so."""
    sealed = found.sealed
    whose = "may be published" if sealed.has_noisy_design else "for you alone (it can give secrets away)"
    lines = [
        ("Protocol", f"{found.protocol_file}   designed on {found.rows:,} rows, nothing was drawn; {whose}"),
        *protection_facts(found),
        ("Next", f"{prog_name} apply {found.protocol_file} ROWS --into SANITISED"),
    ]
    if not details:
        return text_format.format_facts(lines)
    codebook = [] if found.codebook is None else [("codebook", f"{found.codebook}: what each outcome code stands for")]
    return format_details([*lines, ("", ""), *detail_facts(found), *codebook], found.not_promised)


def protection_facts(found: DesignResult) -> list[tuple[str, str]]:
    """What it protects, and how accurate rows drawn with it are."""
    from privacyfunnel.estimation.expected_precision import counting_error, expected_precision_by_column
    from privacyfunnel.report.summary_lines import accuracy_texts, protection_text

    sealed, joint, rows = found.sealed, found.joint, found.rows
    accuracy = accuracy_texts(expected_precision_by_column(sealed, joint, rows), counting_error(sealed, joint, rows))
    average_only = found.options.average_only
    return [("Protects", protection_text(sealed, joint, average_only=average_only)), ("Accuracy", "; ".join(accuracy))]


def detail_facts(found: DesignResult) -> list[tuple[str, str]]:
    """What was promised, how, what an analyst will get and what it keeps, a line each."""
    from privacyfunnel.estimation.expected_precision import expected_precision_by_column

    sealed = found.sealed
    shares = expected_precision_by_column(sealed, found.joint, found.rows)
    return [
        ("promise", promise_text(sealed, average_only=found.options.average_only)),
        *design_facts(sealed, found.choice.method, found.choice.reason, found.worth, shares),
    ]
