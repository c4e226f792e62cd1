"""What the page says in words: the promise, for whom it holds, what is changed, and where it all comes from."""

from __future__ import annotations

import math
import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from privacyfunnel.audits.side_channel_audit import SideChannel
from privacyfunnel.estimation.expected_precision import format_points
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.names import format_names
from privacyfunnel.release.release_files import PROTOCOL, STEM
from privacyfunnel.release.sanitise import Release
from privacyfunnel.report.analyst import AnalystView
from privacyfunnel.report.attacker import AttackerView
from privacyfunnel.report.number_text import format_factor, format_percent, to_sentence
from privacyfunnel.tables.readers.table_files import table_suffix

MEANING = {
    "LIP": "No published record moves anybody's belief about {secret}, from what it is for a person picked at random, "
    "by more than a factor of {factor}, in either direction.",
    "LDP": "Every published record is almost as likely for one value of {secret} as for any other: the chances differ "
    "by at most a factor of {factor}, and so do the odds between two values for whoever sees it.",
    "SRLIP": "No published record moves anybody's belief about {secret} by more than a factor of {factor}, in either "
    "direction, whichever of the published attributes they knew before.",
}
ANY_MEANING = (
    "Of any two groups of people that {promise} compares, a published record is almost as likely for one as for the "
    "other: the chances differ by at most a factor of {factor}."
)
NAMELESS = "a column without a name"
EXAMPLES = (0.01, 0.1, 0.3, 0.5, 0.9)  # beliefs that a public page moves
ESTIMATED = (
    "Whoever has the published table and its protocol can estimate how the original columns were distributed "
    "(privacyfunnel estimate). How near they will come is told here in percentage points, beside the truth, which is "
    "for your eyes only."
)
FOR_ANALYSTS = (
    "The original distributions with intervals that take the randomisation into account: privacyfunnel estimate "
    f"{PROTOCOL} sanitised.csv. Counting the published values as if they were the original ones would be wrong."
)


@dataclass(frozen=True, slots=True, eq=False)
class Occasion:
    """What the page says of the occasion: when, from what, and by which command."""

    when: datetime
    source: str
    command: str
    query: str = ""  # what was asked, where the source is a database


def secret_name(sealed: SealedProtocol) -> str:
    return " & ".join(sealed.domain.secret_columns)


def column_names(sealed: SealedProtocol) -> str:
    return ", ".join(at.name for at in sealed.domain.attributes)


def meaning(sealed: SealedProtocol) -> str:
    """The promise in plain words."""
    promise = sealed.promise
    words = MEANING.get(promise.name, ANY_MEANING)
    return words.format(secret=secret_name(sealed), factor=format_factor(promise.epsilon), promise=promise.name)


def _design_epsilon(sealed: SealedProtocol) -> float | None:
    """The ε of noise in the counts that the protocol was made from; None where they had none."""
    people = sealed.promise.population
    design = None if people is None else people.rule.design_epsilon
    return None if design is None else float(design)


def _rows_answer(sealed: SealedProtocol, size: float) -> str:
    if _design_epsilon(sealed) is not None:
        return "By themselves no: a private design knows noisy counts only, and promises for the people."
    how = f"checked {sealed.mechanism.check_method} on the very integers that were drawn from"
    return f"Yes, by a factor of at most {format_factor(size)}: {how}."


def _file_answer(sealed: SealedProtocol) -> str:
    design = _design_epsilon(sealed)
    if design is not None:
        most = format_factor(sealed.promise.epsilon + design)
        return f"Yes, by a factor of at most {most}: the file was made from counts with noise."
    return (
        "No. Whoever knows all other rows of the table could work out somebody's secret from the file. Only you can "
        "read it as it is; hand it on to people whom you trust that far, or make it with --design-epsilon."
    )


def _population_answer(sealed: SealedProtocol) -> str:
    people = sealed.promise.population
    if people is None:
        return ""
    return (
        f"Yes, by a factor of at most {format_factor(sealed.promise.epsilon)}, with {100 * people.confidence:g} "
        "% confidence, "
        "if these rows are an independent sample of them."
    )


def scope_answers(release: Release, side: SideChannel | None) -> list[tuple[str, str]]:
    """For whom the promise holds, and by how much, as far as the owner may know."""
    sealed = release.sealed
    people = _population_answer(sealed)
    if not people and release.people is not None:
        found = release.people
        many = (
            "no factor bounds it"
            if math.isinf(found.epsilon)
            else f"the factor is at most {format_factor(found.epsilon)}"
        )
        people = (
            f"{_no_population_answer(release)} With {100 * found.confidence:g} % confidence {many}, "
            f"because {found.reason}."
        )
    alone = release.people.rare_alone if release.people is not None else ""
    if alone:
        people += f" {to_sentence(alone)}"
    found_out = [
        (f"these {release.rows:,} rows", _rows_answer(sealed, sealed.epsilon)),
        ("the people they stand for", people or _no_population_answer(release)),
    ]
    if side is not None:
        found_out.append(("somebody who knows some of the columns already", _side_channel_answer(side, sealed)))
    found_out.append((f"whoever reads {PROTOCOL} too", _file_answer(sealed)))
    return found_out


def _no_population_answer(release: Release) -> str:
    """That the people are promised nothing, and why or how that could be had."""
    why = release.not_for_people
    return f"Not promised: {why}." if why else "Not promised; --population 95% asks for it."


def public_scope_answers(sealed: SealedProtocol) -> list[tuple[str, str]]:
    """The same, as far as everybody may know."""
    return [
        ("the rows of this table", _rows_answer(sealed, sealed.promise.epsilon)),
        ("the people they stand for", _population_answer(sealed) or "Not promised."),
        (f"whoever reads {PROTOCOL} too", "Yes." if _design_epsilon(sealed) is not None else "Not promised."),
    ]


def _side_channel_answer(side: SideChannel, sealed: SealedProtocol) -> str:
    limit = "up to" if side.exact else "at least"
    size = "without bound" if math.isinf(side.epsilon) else f"by a factor of {limit} {format_factor(side.epsilon)}"
    if sealed.promise.guards_known_attributes:
        return f"Yes: {size} ({side.text})."
    return f"Not promised: their belief can move {size} ({side.text})."


def prior_statement(sealed: SealedProtocol) -> str:
    """Where beliefs start."""
    counted = "noisy counts that the protocol was made from" if _design_epsilon(sealed) is not None else "table"
    return (
        f"Before the publication an attacker can do no better than the shares of {secret_name(sealed)} in the "
        f"{counted}. A "
        "published record moves that belief, by no more than is shown here."
    )


def too_many_outputs(sealed: SealedProtocol, method: str) -> str:
    """Why nothing is drawn but what the promise allows."""
    many = "Sets of values are too many" if sealed.mechanism.members else f"What {method} can publish is too much"
    return f"{many} to go through here: only what the promise allows is drawn."


def examples(sealed: SealedProtocol) -> list[tuple[str, str, str]]:
    """What the promise makes of some beliefs: nothing of the data is in it."""
    promise = sealed.promise
    found = [(prior, *promise.belief_bounds(prior, promise.epsilon)) for prior in EXAMPLES]
    if all((low, high) == (0.0, 1.0) for _, low, high in found):
        return []
    return [
        (format_percent(prior), format_percent(low, down=True), format_percent(high, up=True))
        for prior, low, high in found
    ]


def missing_estimates(names: Sequence[str]) -> str:
    """Which columns have no estimates here."""
    return (
        f"Estimating {format_names(names)} takes longer than a page may: privacyfunnel estimate does it. Their "
        "errors are "
        "left out here."
    )


def change_statements(release: Release, *, listed: bool) -> list[str]:
    """What was done to rows and columns."""
    sealed, domain = release.sealed, release.sealed.domain
    words = []
    if sealed.mechanism.members:
        words.append(
            "Each record is published as a set of values: its own with chance one half, each other one by a draw of "
            "its own. No value is shown as it was."
        )
    else:
        several = f", in all of {column_names(sealed)}" if len(domain.attributes) > 1 else ""
        words.append(f"{format_percent(release.unchanged)} of the rows show the value they had{several}.")
        if not listed:
            words.append("What each value became is too large a table for a page; protocol.json states it.")
    exact = [f"Kept exactly as they were, unprotected: {format_names(release.kept)}."] if release.kept else []
    left = f"Not published: {format_names([name or NAMELESS for name in (secret_name(sealed), *release.dropped)])}."
    order = "The rows are in the order of the table." if release.kept_order else "The rows are in a random order."
    numbers = [f"Numbers are published as ranges: {format_names(list(domain.bins))}."] if domain.bins else []
    rest = [f"Rare values are published together: {format_names(list(domain.rest))}."] if domain.rest else []
    words.append(" ".join([*exact, left, order, *numbers, *rest]))
    return words


def has_public_chances(sealed: SealedProtocol) -> bool:
    """Whether the chances of the draw come from noisy counts, and tell no more of anybody than those do."""
    return _design_epsilon(sealed) is not None


def publication_statement(sealed: SealedProtocol, *, drawn: bool) -> str:
    """How values become what is published, for everybody."""
    if sealed.mechanism.members:
        return (
            "Each record is published as a set of values: its own with chance one half, others by draws of their own."
        )
    if drawn:
        return (
            f"Each record's {column_names(sealed)} was replaced at random, by the chances shown here in whole percents."
        )
    replaced = f"Each record's {column_names(sealed)} was replaced at random, by the chances that {PROTOCOL} states"
    return f"{replaced}." if has_public_chances(sealed) else f"{replaced}; they were computed from the counts."


def public_facts(sealed: SealedProtocol) -> list[tuple[str, str, str]]:
    """What a public page states at its top."""
    return [
        ("promise", f"ε = {sealed.promise.epsilon:g}", f"{sealed.promise.name} about {secret_name(sealed)}"),
        ("a belief moves by", f"× {format_factor(sealed.promise.epsilon)} at most", ""),
    ]


def facts(release: Release, attacker: AttackerView, analyst: AnalystView) -> list[tuple[str, str, str]]:
    """What a board reads first."""
    promise, worst = release.sealed.promise, attacker.worst
    found = [
        ("promise", f"ε = {promise.epsilon:g}", f"{promise.name}: a factor of at most {format_factor(promise.epsilon)}")
    ]
    if attacker.has_limit or worst.highest is not None:
        moves = f"{format_percent(worst.prior)} → {format_percent(worst.top, up=True)}".replace(
            " %", "\N{NO-BREAK SPACE}%"
        )
        found.append(("at worst", moves, f"the belief in {worst.secret}"))
    found.append(("rows as they were", format_percent(release.unchanged), "show the value they had"))
    if analyst.typical is not None:
        found.append(("error of a share", f"±{format_points(analyst.typical)} points", "on average, estimated back"))
    return found


def audit_command(release: Release, occasion: Occasion) -> str:
    """The command that checks the release from its files."""
    if release.protocol_file is None:
        return ""
    table = release.protocol_file.parent / f"{STEM}{table_suffix(Path(release.table))}"
    asked = ["--query", occasion.query] if occasion.query else []
    return shlex.join(
        ["privacyfunnel", "audit", str(release.protocol_file), occasion.source, *asked, "--sanitised", str(table)]
    )


def _information_facts(sealed: SealedProtocol) -> list[tuple[str, str]]:
    """What is kept of what there is, as the protocol file states it; a mean over the rows has a standard error."""
    stated = sealed.certificate
    share = f" ({100 * stated.information / stated.entropy:.1f} %)" if stated.entropy else ""
    error = f" ± {stated.information_error:.4f} (standard error over the rows)" if stated.information_error else ""
    found = [("information kept", f"{stated.information:.4f}{error} of {stated.entropy:.4f} nats{share}")]
    if stated.bound is not None:
        found.append(("best possible", f"proved: none that looks at the same keeps more than {stated.bound:.4f} nats"))
    return found


def public_provenance(sealed: SealedProtocol, occasion: Occasion) -> list[tuple[str, str]]:
    """Where a public page comes from."""
    return [
        ("published columns", column_names(sealed)),
        ("secret columns", ", ".join(sealed.domain.secret_columns)),
        ("certified", f"ε = {sealed.certificate.epsilon:g}"),
        *_information_facts(sealed),
        ("made with", f"privacyfunnel {version('privacyfunnel')}"),
        ("date", f"{occasion.when:%Y-%m-%d}"),
    ]


def provenance(release: Release, occasion: Occasion) -> list[tuple[str, str]]:
    """Where it comes from, and what it cost in nats."""
    sealed = release.sealed
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "highspy", "polars", "cryptography"))
    use = release.worth
    return [
        ("table", occasion.source),
        ("rows", f"{release.rows:,}"),
        ("secret", ", ".join(sealed.domain.secret_columns)),
        ("published", column_names(sealed)),
        ("method", release.method + (", which looks at the secret" if sealed.sees_secret else "")),
        *([("because", to_sentence(release.reason))] if release.reason else []),
        ("certified", f"ε = {sealed.epsilon:.6g} {sealed.mechanism.check_method}"),
        *_information_facts(sealed),
        *(
            [("made for", f"{use.use.full_name}: {use.value:.4f}, {use.use.unit}")]
            if use.use.name != "information"
            else []
        ),
        *([("sparseness", release.sparse)] if release.sparse else []),
        *(("rare", said) for said in release.rare),
        ("date", f"{occasion.when:%Y-%m-%d %H:%M %Z}".strip()),
        ("made with", f"privacyfunnel {version('privacyfunnel')}, Python {platform.python_version()}, {libraries}"),
    ]
