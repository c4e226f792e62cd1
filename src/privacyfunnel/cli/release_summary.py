"""What `sanitise` says of a release: five lines, all details, and one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.formatting import finite_or_none, format_percent, format_percent_range
from privacyfunnel.hints import hint
from privacyfunnel.names import format_names

if TYPE_CHECKING:
    from privacyfunnel.estimation.expected_precision import ExpectedPrecision
    from privacyfunnel.mechanisms.sealing import SealedProtocol
    from privacyfunnel.mechanisms.signatures import Signer
    from privacyfunnel.model.promises import Promise
    from privacyfunnel.model.uses.use import UseValue
    from privacyfunnel.release.apply import Applied
    from privacyfunnel.release.sanitise import Release

PRIOR = 0.3  # a belief that everybody can imagine
NAMED = 4  # columns whose shares have a line of their own
EXCEL_SAFE = (
    "text that begins with = + - @ and is no number has an apostrophe in front; estimate and audit read it either way"
)
Details = Annotated[bool, typer.Option("--details", help="Say everything, not only the most important lines.")]
WEIGHTED = "estimates by weights, in which real rows count most; nothing is proved about the best"


def content(release: Release) -> dict[str, Any]:
    """The release as one object."""
    from privacyfunnel.estimation.expected_precision import counting_error
    from privacyfunnel.estimation.verdict import judge

    sealed = release.sealed
    off = counting_error(sealed, release.joint, release.rows)
    return {
        "rows": release.rows,
        "read_as": release.read_as,
        "secret": sealed.domain.secret_columns,
        "publish": [at.name for at in sealed.domain.attributes],
        "kept": release.kept,
        "dropped": release.dropped,
        "promise": sealed.promise.name,
        "epsilon": sealed.total_epsilon,
        "certified": sealed.epsilon,
        "model_quality": release.findings.model_quality,
        "model_epsilon": None if sealed.model is None else float(sealed.model.epsilon),
        "table_leak": None if sealed.model is None else finite_or_none(release.findings.table_leak),
        "population": None if sealed.promise.population is None else sealed.promise.population.confidence,
        "method": release.method,
        "reason": release.reason,
        "seconds": release.seconds,
        "search_cut": release.short is not None,
        "stopped": release.worth.stopped,
        "missing_at_most": release.short,
        "sparse": release.sparse,
        "rare": release.rare,
        "sees_secret": sealed.sees_secret,
        "information_nats": sealed.information,
        "information_error_nats": sealed.information_error,
        "entropy_nats": sealed.entropy,
        "share_kept": release.share_kept,
        "bound_nats": sealed.bound,
        "use": release.worth.use.full_name,
        "value": release.worth.value,
        "bound": release.worth.bound,
        "unit": release.worth.use.unit,
        "average": release.average,
        "counted_off": None if off is None else asdict(off),
        "shares_within": [share.to_dict() for share in expected_shares(release)],
        "verdict": judge(release.design, release.unchanged_expected, release.spec).grade,
        "tried": release.spec.try_,
        "unchanged": release.unchanged,
        "unchanged_expected": release.unchanged_expected,
        "for_publication": sealed.for_publication,
        "excel_safe": release.excel_safe,
        "order": order_content(release),
        "ledger": ledger_content(release),
        "not_for_people": release.not_for_people,
        "rows_alone": None if release.rows_alone is None else release.rows_alone.value,
        "attackers": [each.to_dict() for each in release.findings.attackers],
        "people": None if release.people is None else release.people.to_dict(),
        "not_promised": release.not_promised_to_owner,
        "table": None if release.table is None else str(release.table),
        "into_table": release.spec.into_table,
        "protocol": None if release.protocol_file is None else str(release.protocol_file),
        "codebook": None if release.codebook is None else str(release.codebook),
        "reports": [str(page) for page in release.pages],
        **({"signature": str(release.signature), "signed_by": release.signed_by} if release.signature else {}),
    }


def format_summary(release: Release, *, details: bool = False) -> str:
    """The release in five lines; with details, all there is to say."""
    from privacyfunnel.report.summary_lines import summary_lines

    lines = summary_lines(release)
    if not details:
        return text_format.format_facts(lines)
    return format_details([*lines, ("", ""), *_detail_facts(release)], release.not_promised_to_owner)


def format_details(facts: Sequence[tuple[str, str]], not_promised: Sequence[str]) -> str:
    """Facts, and below them what is not promised."""
    return "\n".join([text_format.format_facts(facts), "not promised", *(f"  - {note}" for note in not_promised)])


def _detail_facts(release: Release) -> list[tuple[str, str]]:
    sealed, people = release.sealed, release.people
    rare = "" if people is None else people.rare_alone
    facts = [
        ("files", ", ".join(str(path) for path in (release.protocol_file, release.codebook, *release.pages) if path)),
        ("read as", f"{', '.join(release.read_as)}, written likewise" if release.read_as else ""),
        ("promise", promise_text(sealed, average_only=release.average_only)),
        ("means", meaning(sealed.promise, sealed.certified_total, sealed.secret_text)),
        ("population", _population_text(release)),
        ("model", release.findings.model_quality),
        *((each.name, each.answer) for each in release.findings.attackers if each.promised is None),
        *design_facts(sealed, release.method, release.reason, release.worth, expected_shares(release)),
        ("order", order_text(release)),
        *(("rare", sentence) for sentence in (*release.rare, rare)),
        ("kept", kept_text(release)),
        ("excel-safe", EXCEL_SAFE if release.excel_safe else ""),
        ("signed by", f"{release.signed_by}: {release.signature}" if release.signature else ""),
        ("dropped", format_names(release.dropped)),
        ("ledger", ledger_text(release)),
    ]
    return [(name, text) for name, text in facts if text]


def promise_text(sealed: SealedProtocol, *, average_only: bool) -> str:
    """What was promised about what, and what was certified; an average alone promises nothing."""
    name, secret = sealed.promise.name, sealed.secret_text
    size = text_format.format_epsilon(sealed.epsilon)
    certified = f"certified {size} {sealed.mechanism.describe_check()}"
    if sealed.epsilon > sealed.promise.epsilon:
        certified = f"certified {sealed.epsilon:.1e}, the least that 64-bit integers can show"
    if average_only:
        return f"none about {secret}, only an average; as {name} it is {certified}"
    requested = f"ε = {text_format.format_epsilon(sealed.promise.epsilon)}"
    if sealed.model is not None:
        requested = (
            f"ε = {text_format.format_epsilon(float(sealed.model.total))} for all public files together, "
            f"{text_format.format_epsilon(float(sealed.model.epsilon))} of it for the published model; records"
        )
    return f"{name} about {secret}, {requested}, {certified}"


def design_facts(
    sealed: SealedProtocol, method: str, reason: str, worth: UseValue, shares: Sequence[ExpectedPrecision]
) -> list[tuple[str, str]]:
    """The method, how near it is to the best, and each column's error."""
    reads = ", which looks at the secret" if sealed.sees_secret else ""
    found = sorted(shares, key=lambda share: -share.average)
    more = len(found) - NAMED
    return [
        ("method", f"{worth.describe_method(method)}{reads}{f': {reason}' if reason else ''}"),
        ("made for", f"{worth.use.full_name}; {optimality_text(worth)}" if sealed.mechanism.lists_inputs else WEIGHTED),
        *(("shares", f"{share} (95 %)") for share in found[:NAMED]),
        *([("", f"and {more} more columns, nearer than these")] if more > 0 else []),
    ]


def optimality_text(worth: UseValue) -> str:
    """How near the protocol is to the best one for its use."""
    if worth.is_unproved or worth.bound is None:
        return f"a longer {hint('time_limit')} might be more accurate"
    gap = abs(worth.bound - worth.value) / max(abs(worth.bound), abs(worth.value), 1e-300)
    return f"within {format_percent(gap, up=True)} of the best that is possible, proved"


def expected_shares(release: Release) -> tuple[ExpectedPrecision, ...]:
    """How near an analyst will come to the shares of each column."""
    from privacyfunnel.estimation.expected_precision import expected_precision_by_column

    return expected_precision_by_column(release.sealed, release.joint, release.rows)


def _population_text(release: Release) -> str:
    """Whom it holds for beyond the rows; or why not, where that was left open."""
    population = release.sealed.promise.population
    if population is None:
        return f"not promised: {release.not_for_people}" if release.not_for_people else ""
    return (
        f"the same for the people whom the {population.rows:,} rows are an independent sample of, with "
        f"{100 * population.confidence:g} % confidence; secrets of fewer than {population.rule.rare} rows together"
    )


def meaning(promise: Promise, epsilon: float, secret: str) -> str:
    """What a promise of that size leaves of a belief."""
    becomes = format_percent_range(*promise.belief_bounds(PRIOR, epsilon))
    return f"a belief of {format_percent(PRIOR)} about {secret} may become {becomes}"


def order_content(release: Release | Applied) -> dict[str, Any]:
    """The order of the rows, and what it, or that of a kept column, says about the secret: for the owner."""
    tells = release.order_tells
    return {
        "kept": release.kept_order,
        "of_table": None if tells is None else asdict(tells),
        "of_kept_columns": {column.column: asdict(column) for column in release.kept_columns},
    }


def ledger_content(release: Release | Applied) -> dict[str, Any] | None:
    """What the ledger says of the release."""
    found = release.remembered
    if found is None:
        return None
    return {
        "file": str(found.ledger),
        "repeats": [entry.table for entry in found.repeats],
        "together": None if found.together is None else found.together.composed.epsilon,
        "replaced": [entry.table for entry in found.replaced],
        "said": found.statements,
    }


def format_signer(signer: Signer | None) -> str:
    """Whose signature was verified, and of what."""
    if signer is None:
        return "nobody"
    whose = "the key asked for" if signer.asked_for else "a key that was not asked for: name the owner's --signed-by"
    what = "both files" if signer.with_table else "the protocol file; the table was not named"
    return f"{signer.fingerprint}, {whose} ({what})"


def order_text(release: Release | Applied) -> str:
    """The same in words."""
    how = "that of the table, as asked" if release.kept_order else "shuffled"
    tells = release.order_tells
    parts = [how if tells is None else f"{how}; in the order of the table, {tells}"]
    return "; ".join([*parts, *(column.secret_statement for column in release.kept_columns if column.secret_statement)])


def kept_text(release: Release | Applied) -> str:
    """The kept columns, and whether ε is about them."""
    if not release.kept:
        return ""
    judged = "ε is about them and what is published together" if release.kept_judged else "not covered by the promise"
    return f"{format_names(release.kept)}: unchanged, {judged}"


def ledger_text(release: Release | Applied) -> str:
    """Where the ledger is."""
    if release.remembered is None:
        return ""
    return f"{release.remembered.ledger}: the owner's record of this release, with the key that undoes the row order"
