"""What `sanitise` says of a release: as one object, and as a short summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from privacyfunnel.cli import text_format
from privacyfunnel.formatting import finite_or_none, format_percent, format_percent_range
from privacyfunnel.names import format_names

if TYPE_CHECKING:
    from privacyfunnel.estimation.expected_precision import CountingBias, ExpectedPrecision
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
NOT_TOLD = "how near an analyst comes to them is not computed for so many values or combinations"
CODEBOOK = "{}: what each outcome code stands for; the table shows the most likely value beside it"


def content(release: Release) -> dict[str, Any]:
    """The release as one object."""
    sealed = release.sealed
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
        "counted_off": None if (off := counting_error(release)) is None else asdict(off),
        "shares_within": [told.to_dict() for told in expected_shares(release)],
        "unchanged": release.unchanged,
        "unchanged_expected": release.unchanged_expected,
        "for_publication": sealed.for_publication,
        "excel_safe": release.excel_safe,
        "order": order_content(release),
        "ledger": ledger_content(release),
        "not_for_people": release.not_for_people,
        "rows_alone": None if release.rows_alone is None else release.rows_alone.value,
        "people": None if release.people is None else release.people.to_dict(),
        "not_promised": release.not_promised_to_owner,
        "table": str(release.table),
        "protocol": str(release.protocol_file),
        "codebook": None if release.codebook is None else str(release.codebook),
        "reports": [str(page) for page in release.pages],
        **({"signature": str(release.signature), "signed_by": release.signed_by} if release.signature else {}),
    }


def format_summary(release: Release) -> str:
    """The release as a short summary."""
    sealed = release.sealed
    columns, secret = " & ".join(at.name for at in sealed.domain.attributes), " & ".join(sealed.domain.secret_columns)
    kept = text_format.format_nats(sealed.information, sealed.information_error)
    kept += f", {text_format.format_share(sealed.information, sealed.entropy)} of H({columns})"
    if sealed.bound is not None:
        seen = f"{secret} and {columns}" if sealed.sees_secret else f"only {columns}"
        kept += f"; no protocol that sees {seen} keeps more than {sealed.bound:.4f}"
    just = "" if sealed.outcomes else "just "
    lines = text_format.format_facts(
        [
            ("rows", f"{release.rows:,}, published as {release.table}, protocol in {release.protocol_file}"),
            *([("read as", f"{', '.join(release.read_as)}, written likewise")] if release.read_as else []),
            ("promise", promise_text(sealed, average_only=release.average_only)),
            ("means", _meaning_text(release, secret)),
            *_population_facts(release),
            (
                "method",
                method_text(release.method, release.worth)
                + (", which looks at the secret" if sealed.sees_secret else "")
                + _reason_text(release),
            ),
            *(accuracy_facts(expected_shares(release)) if release.joint is not None else ()),
            *_counting_facts(release),
            *use_facts(release.worth, release.average),
            ("information", kept),
            *search_facts(release.worth, release.short),
            (
                "unchanged",
                f"{text_format.format_share(release.unchanged, 1)} of rows show {just}the value they had, "
                f"{text_format.format_share(release.unchanged_expected, 1)} expected",
            ),
            *([] if release.codebook is None else [("codebook", CODEBOOK.format(release.codebook))]),
            ("order", order_text(release)),
            *([("sparse", release.sparse)] if release.sparse else []),
            *(("rare", sentence) for sentence in release.rare),
            *rare_secret_facts(release),
            *kept_facts(release),
            *([("excel-safe", EXCEL_SAFE)] if release.excel_safe else []),
            *([("reports", ", ".join(map(str, release.pages)))] if release.pages else []),
            *([("signed by", f"{release.signed_by}: {release.signature}")] if release.signature else []),
            *([("dropped", format_names(release.dropped))] if release.dropped else []),
            *ledger_facts(release),
        ]
    )
    return "\n".join([lines, "not promised", *(f"  - {sentence}" for sentence in release.not_promised_to_owner)])


def promise_text(sealed: SealedProtocol, *, average_only: bool) -> str:
    """What was promised about what, and what was certified; an average alone promises nothing."""
    name, secret = sealed.promise.name, " & ".join(sealed.domain.secret_columns)
    if average_only:
        return f"none about {secret}, only an average; as {name} it is {certificate_text(sealed)}"
    asked = f"asked ε = {text_format.format_epsilon(sealed.promise.epsilon)}"
    if sealed.model is not None:
        asked = (
            f"ε = {text_format.format_epsilon(float(sealed.model.total))} for all public files together, "
            f"{text_format.format_epsilon(float(sealed.model.epsilon))} of it for the published model; records"
        )
    return f"{name} about {secret}: {asked}, {certificate_text(sealed)}"


def _meaning_text(release: Release, secret: str) -> str:
    """What the certificate leaves of a belief, for the secret of this table."""
    joint = release.joint
    commonest = None if joint is None else float(joint.p_s.max())
    return meaning(release.sealed.promise, release.sealed.certified_total, secret, commonest)


def expected_shares(release: Release) -> tuple[ExpectedPrecision, ...]:
    """How near an analyst will come to the shares of each column."""
    from privacyfunnel.estimation.expected_precision import expected_precision_by_column

    return () if release.joint is None else expected_precision_by_column(release.sealed, release.joint, release.rows)


def accuracy_facts(shares: Sequence[ExpectedPrecision]) -> list[tuple[str, str]]:
    """What an analyst will get, column by column; those that are told worst where there are many."""
    found = sorted(shares, key=lambda told: -told.average)
    if not found:
        return [("shares", NOT_TOLD)]
    more = len(found) - NAMED
    rest = [("", f"and {more} more columns, nearer than these")] if more > 0 else []
    return [("shares", f"{told} (95 %)") for told in found[:NAMED]] + rest


def counting_error(release: Release) -> CountingBias | None:
    """How far off whoever counts the published values would be."""
    from privacyfunnel.estimation.expected_precision import largest_counting_bias

    return None if release.joint is None else largest_counting_bias(release.sealed, release.joint)


def _counting_facts(release: Release) -> list[tuple[str, str]]:
    """That published values are to be estimated from, where they cannot be counted."""
    off = counting_error(release)
    return [] if off is None else [("counting", f"the published values as they are is {off}; estimate is not")]


def use_facts(worth: UseValue, average: float | None) -> list[tuple[str, str]]:
    """How good it is for the use it was made for; information has a line of its own."""
    if average is not None:
        most = f"{worth.bound:.4f} nats" if worth.bound is not None else "what is known"
        asked = f"I(S;Y) of at most {average:g} nats; with that no protocol keeps more than {most}"
        return [("average", asked)]
    if worth.use.name == "information":
        return []
    than = "less" if worth.use.less_is_better else "more"
    proved = "; what is best is not known" if worth.is_unproved else f"; {than} than {worth.bound:.4f} is not possible"
    return [("use", f"{worth.use.full_name}: {worth.value:.4f}, {worth.use.unit}{proved}")]


def _population_facts(release: Release) -> list[tuple[str, str]]:
    """Whom it holds for beyond the rows and what that costs; or why not, where that was left open."""
    population, alone = release.sealed.promise.population, release.rows_alone
    if population is None:
        return [("population", f"not promised: {release.not_for_people}")] if release.not_for_people else []
    said = (
        f"the same for the people whom the {population.rows:,} rows are an independent sample of, with "
        f"{100 * population.confidence:g} % confidence; secrets of fewer than {population.rule.rare} rows "
        "together"
    )
    if alone is None:
        return [("population", said)]
    unit = "nats kept" if alone.use.name == "information" else alone.use.unit
    return [("population", said), ("", f"for these rows alone it would be {alone.value:.4f} {unit}: --population none")]


def method_text(method: str, worth: UseValue) -> str:
    """The method; one that failed to prove its optimum is not called by that name alone.

    >>> from privacyfunnel.model.uses.use import Information, UseValue
    >>> unproved = UseValue(Information(), 0.3, None)
    >>> method_text("optimal", unproved), method_text("chain", unproved)
    ('best found, not proved to be optimal', 'chain')
    """
    return "best found, not proved to be optimal" if method == "optimal" and worth.is_unproved else method


def search_facts(worth: UseValue, short: float | None) -> list[tuple[str, str]]:
    """What ended the search, where it may have found more."""
    if short is not None:
        return [("search", _shortfall_text(worth, short))]
    late = worth.bound is None and worth.stopped == "time"
    return [("search", text_format.explain_stop(worth.stopped))] if late else []


def _shortfall_text(worth: UseValue, short: float) -> str:
    """That the search was cut short, and what that may have cost."""
    if worth.is_unproved:
        return "ended without a proof: how far this is from the best is not known"
    unit = "nats" if worth.use.name == "information" else worth.use.unit
    return f"cut short: up to {short:.2g} {unit} may be missing; {text_format.explain_stop(worth.stopped)}"


def _reason_text(release: Release) -> str:
    """Why it was chosen, and what it cost, where there was a choice."""
    return f": {release.reason}; made and certified in {release.seconds:.0f} s" if release.reason else ""


def certificate_text(sealed: Any) -> str:
    """What was certified, in words."""
    asked = sealed.promise.epsilon
    if sealed.epsilon > asked:
        return f"certified ε = {sealed.epsilon:.1e}, the least that 64-bit integers can show"
    return f"certified ε = {text_format.format_epsilon(sealed.epsilon)} {sealed.mechanism.describe_check()}"


def meaning(promise: Promise, epsilon: float, secret: str, commonest: float | None = None) -> str:
    """What a promise of that size leaves of a belief; `commonest` is the share of the secret's commonest value."""
    moved = format_belief_range(promise, epsilon, PRIOR)
    said = f"a belief of {format_percent(PRIOR)} about {secret} may become {moved}"
    if commonest is None:
        return said
    ends = format_belief_range(promise, epsilon, commonest)
    return f"{said}; one of {format_percent(commonest)}, the share of its commonest value, {ends}"


def format_belief_range(promise: Promise, epsilon: float, prior: float) -> str:
    return format_percent_range(*promise.belief_bounds(prior, epsilon))


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
    said = [how if tells is None else f"{how}; in the order of the table, {tells}"]
    return "; ".join([*said, *(column.secret_statement for column in release.kept_columns if column.secret_statement)])


def rare_secret_facts(release: Release) -> list[tuple[str, str]]:
    """The ε of each rare secret by itself, for the people whom the rows stand for."""
    said = "" if release.people is None else release.people.rare_alone
    return [("rare", said)] if said else []


def kept_facts(release: Release | Applied) -> list[tuple[str, str]]:
    """The kept columns, and whether ε is about them."""
    if not release.kept:
        return []
    judged = "ε is about them and what is published together" if release.kept_judged else "not covered by the promise"
    return [("kept", f"{format_names(release.kept)}: unchanged, {judged}")]


def ledger_facts(release: Release | Applied) -> list[tuple[str, str]]:
    """Where the ledger is, and what it says, a line each."""
    found = release.remembered
    if found is None:
        return []
    where = f"{found.ledger}: the owner's record of this release, with the key that undoes the row order"
    return [*(("again", sentence) for sentence in found.statements), ("ledger", where)]
