"""`apply`: a protocol that was designed before, and rows; the sanitised rows out."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.release_summary import (
    Details,
    format_details,
    format_signer,
    kept_text,
    ledger_content,
    ledger_text,
    order_content,
    order_text,
)
from privacyfunnel.cli.spec_options import Given, TableOrDatabase, build_spec, fields_of, takes_spec
from privacyfunnel.formatting import format_percent, format_points
from privacyfunnel.names import format_names
from privacyfunnel.spec.fields import BLUR

if TYPE_CHECKING:
    from privacyfunnel.release.apply import Applied

MOST_CHANGES = 3  # columns whose changes the summary tells


@takes_spec(*fields_of("apply"))
def apply(
    protocol: Annotated[
        Path,
        typer.Argument(readable=False, help="A protocol.json, or the folder of a release."),
    ],
    table: TableOrDatabase,
    *,
    given: Given,
    details: Details = False,
    as_json: Json = False,
) -> None:
    """Draw the rows of a table from a protocol that was designed before, on these rows or on others.

    Where the rows carry the secret, the leakage of the protocol on them is measured; --bin and --merge-secrets are
    those of the secret.
    """
    from privacyfunnel.cli.application import show_progress
    from privacyfunnel.release.apply import apply_file

    spec = build_spec(None, given)
    with show_progress() as (_, watch):
        found = apply_file(protocol, table, spec, watch=watch)
    answer(as_json, content(found), format_summary(found, details=details))


def content(found: Applied) -> dict[str, Any]:
    """What was applied, as one object."""
    sealed, measured = found.sealed, found.measured
    return {
        "rows": found.rows,
        "secret": sealed.domain.secret_columns,
        "publish": [at.name for at in sealed.domain.attributes],
        "kept": found.kept,
        "dropped": found.dropped,
        "promise": sealed.promise.name,
        "epsilon": sealed.promise.epsilon,
        "certified": sealed.epsilon,
        "on_these_rows": None if measured is None else {"epsilon": measured.epsilon, "above": measured.above},
        "unmeasured": found.unmeasured,
        "drift": [asdict(each) for each in found.drift],
        "unknown": {
            "rows": found.strangers.rows,
            "columns": found.strangers.columns,
            "became": found.spec.unknown if found.strangers.rows else None,
        },
        "unchanged": None if math.isnan(found.unchanged) else found.unchanged,
        "row_id": found.spec.row_id,
        "key_kept": found.spec.key_file is not None,
        "for_publication": sealed.for_publication and found.spec.seed is None,
        "order": order_content(found),
        "ledger": ledger_content(found),
        "not_promised": found.not_promised,
        "signed_by": None
        if found.signer is None
        else {"fingerprint": found.signer.fingerprint, "asked_for": found.signer.asked_for},
        "table": str(found.table),
        "into_table": found.spec.into_table,
        "protocol": str(found.protocol_file),
    }


def format_summary(found: Applied, *, details: bool = False) -> str:
    """The same in a few lines; with details, all there is to say."""
    from privacyfunnel.report.summary_lines import drift_text, file_text, label_lines

    again = () if found.remembered is None else found.remembered.statements
    lines = [
        *(("Again", note) for note in again),
        ("Published", file_text(found)),
        ("Drawn with", str(found.protocol_file)),
        ("Protects", drift_text(found)),
        *([("Changed", _describe_changes(found))] if found.drift else []),
        *label_lines("Warnings", _warnings(found)),
    ]
    if not details:
        return text_format.format_facts(lines)
    size = text_format.format_epsilon(found.sealed.epsilon)
    promise = f"{found.sealed.promise.name}, certified ε = {size} {found.certified_for}"
    signed = [] if found.signer is None else [("signed by", format_signer(found.signer))]
    return format_details([*lines, ("", ""), ("promise", promise), *signed, *row_facts(found)], found.not_promised)


def _warnings(found: Applied) -> list[str]:
    """What the owner should know before the rows are handed out."""
    warnings = [_describe_unknown(found)] if found.strangers.rows else []
    if not found.sealed.for_publication or found.spec.seed is not None:
        warnings.append("drawn from a seed, which somebody may guess: NOT FOR PUBLICATION")
    if found.kept and not found.kept_judged:
        warnings.append(f"{format_names(found.kept)} in clear, and not covered by the promise")
    return warnings


def _describe_changes(found: Applied) -> str:
    """The columns that changed most since the design."""
    changes = [
        f"{at.column} by {format_points(at.distance)} points ({at.label} {100 * at.change:+.1f})" for at in found.drift
    ]
    return f"{', '.join(changes[:MOST_CHANGES])} since the design, as its model has it"


def row_facts(found: Applied) -> list[tuple[str, str]]:
    """How the rows went out, a line each."""
    kept = "with the key that is kept: whoever did not change is drawn as before"
    key = kept if found.spec.key_file else "fresh key"
    unchanged = "" if math.isnan(found.unchanged) else format_percent(found.unchanged)
    facts = [
        ("these rows", found.on_these_rows),
        ("unchanged", f"{unchanged} of rows show their own values" if unchanged else ""),
        ("addresses", f"{found.spec.row_id} and the value of each row, {key}" if found.spec.row_id else ""),
        ("order", order_text(found)),
        ("kept", kept_text(found)),
        ("dropped", format_names(found.dropped)),
        ("ledger", ledger_text(found)),
    ]
    return [(name, text) for name, text in facts if text]


def _describe_unknown(found: Applied) -> str:
    where = ", ".join(f"{rows:,} in {column}" for column, rows in found.strangers.columns.items())
    places = f" ({where})" if where else ""
    fate = found.blurred if found.spec.unknown == BLUR else "they were left out"
    s = " has" if found.strangers.rows == 1 else "s have"
    return f"{found.strangers.rows:,} row{s} values that are not in the protocol{places}: {fate}"
