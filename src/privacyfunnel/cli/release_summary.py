"""What `sanitise` says of a release: as one object, and as a short summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from privacyfunnel.cli import owner_summary, text_format
from privacyfunnel.cli.epsilon_meaning import meaning
from privacyfunnel.names import format_names

if TYPE_CHECKING:
    from privacyfunnel.estimation.expected_precision import CountingBias, ExpectedPrecision
    from privacyfunnel.mechanisms.sealing import SealedProtocol
    from privacyfunnel.model.uses.use import UseValue
    from privacyfunnel.release.sanitise import Release

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
        "epsilon": sealed.promise.epsilon,
        "certified": sealed.epsilon,
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
        "order": owner_summary.order_content(release),
        "ledger": owner_summary.ledger_content(release),
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
                release.method + (", which looks at the secret" if sealed.sees_secret else "") + _reason_text(release),
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
            ("order", owner_summary.order_text(release)),
            *([("sparse", release.sparse)] if release.sparse else []),
            *(("rare", sentence) for sentence in release.rare),
            *owner_summary.rare_secret_facts(release),
            *([("unprotected", format_names(release.kept))] if release.kept else []),
            *([("excel-safe", EXCEL_SAFE)] if release.excel_safe else []),
            *([("reports", ", ".join(map(str, release.pages)))] if release.pages else []),
            *([("signed by", f"{release.signed_by}: {release.signature}")] if release.signature else []),
            *([("dropped", format_names(release.dropped))] if release.dropped else []),
            *owner_summary.ledger_facts(release),
        ]
    )
    return "\n".join([lines, "not promised", *(f"  - {sentence}" for sentence in release.not_promised_to_owner)])


def promise_text(sealed: SealedProtocol, *, average_only: bool) -> str:
    """What was promised about what, and what was certified; an average alone promises nothing."""
    name, secret = sealed.promise.name, " & ".join(sealed.domain.secret_columns)
    if average_only:
        return f"none about {secret}, only an average; as {name} it is {certificate_text(sealed)}"
    return (
        f"{name} about {secret}: asked ε = {text_format.format_epsilon(sealed.promise.epsilon)}, "
        f"{certificate_text(sealed)}"
    )


def _meaning_text(release: Release, secret: str) -> str:
    """What the promise leaves of a belief, for the secret of this table."""
    joint = release.joint
    commonest = None if joint is None else float(joint.p_s.max())
    sealed = release.sealed
    epsilon = sealed.epsilon if release.average_only else sealed.promise.epsilon
    return meaning(sealed.promise, epsilon, secret, commonest)


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
    return f"certified ε = {text_format.format_epsilon(sealed.epsilon)} {sealed.mechanism.check_method}"
