"""Sentences of the report: the promise, its scope, what was changed, and where the release comes from."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from privacyfunnel.atomic_files import file_digest
from privacyfunnel.formatting import (
    format_epsilon,
    format_factor,
    format_number,
    format_percent,
    format_points,
)
from privacyfunnel.hints import hint, option_name, word_for_command_line
from privacyfunnel.mechanisms.protocol_file import PROTOCOL
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.names import format_names
from privacyfunnel.release.release import Release
from privacyfunnel.release.release_files import CROISSANT, DCAT, ESTIMATES, README
from privacyfunnel.report.analyst import AnalystView
from privacyfunnel.report.attacker import AttackerView
from privacyfunnel.report.summary_lines import believer

MEANING = {
    "LIP": "A published record changes the probability of any value of {secret} by at most a factor of {factor}, up or "
    "down, compared with its share {where}.",
    "LDP": "A published record is at most {factor} times as likely under one value of {secret} as under another. So it "
    "changes the odds of any two values by at most a factor of {factor}, however common somebody took them to be, if "
    "published values go with them as {where}.",
    "SRLIP": "A published record changes the probability of any value of {secret} by at most a factor of {factor}, up "
    "or down, if it goes with published values as {where}, also for somebody who knew some of these before.",
}
ANY_MEANING = (
    "{promise} compares groups of people. A published record is at most {factor} times as likely in one group as in "
    "another that {promise} compares it with."
)
NAMELESS = "a column without a name"
EXAMPLES = (0.01, 0.1, 0.3, 0.5, 0.9)  # probabilities before, for the table on a public page
ESTIMATED = (
    "From the published table and its protocol, anybody can estimate the original shares (privacyfunnel estimate). The "
    "expected error is given in percentage points, beside the true shares. The true shares are for you only."
)
BIASED = "Shares counted directly from the published values are biased."
FOR_ANALYSTS = (
    f"Estimate the original shares from the table and {PROTOCOL}, with intervals that include the randomisation. "
    f"{BIASED}"
)
WEIGHTED = (
    "For any other program that takes weights, weighted.csv has the published records and public synthetic ones, with "
    "positive and negative weights: weighted means, cross tables and regressions over all of its lines are unbiased."
)
OTHER_ROWS = "somebody who knows all other rows", "Not promised: the table itself was made by exact counts."
WITHOUT_PROTOCOL = (
    f"{PROTOCOL} was computed from exact counts and stays with the owner of the data: somebody who knows all other "
    "rows could compute a person's secret from it.",
    "With the table alone you can use each record as it is: count published values, compare groups, fit models. "
    f"You cannot correct for the randomisation. {BIASED} How much, only "
    f"{PROTOCOL} says: ask the owner for it, or for a release that was made from noisy counts.",
)


@dataclass(frozen=True, slots=True, eq=False)
class Occasion:
    """When, from what and by which command a release was made; and how its hints are worded."""

    when: datetime
    source: str
    command: str
    query: str = ""  # of a database
    wording: Callable[[str], str] = word_for_command_line


def to_sentence(text: str) -> str:
    """The text with a capital letter in front and a full stop behind."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def secret_name(sealed: SealedProtocol) -> str:
    return sealed.secret_text


def column_names(sealed: SealedProtocol) -> str:
    return ", ".join(at.name for at in sealed.domain.attributes)


def meaning(sealed: SealedProtocol) -> str:
    """The promise in one or two sentences."""
    promise = sealed.promise
    template = MEANING.get(promise.name) or promise.meaning or ANY_MEANING
    factor = format_factor(sealed.total_epsilon)
    where = "among all records" if sealed.model is None else "in the published model"
    return template.format(secret=secret_name(sealed), factor=factor, promise=promise.name, where=where)


def scope_answers(release: Release) -> list[tuple[str, str]]:
    """Who can learn how much, for the owner: believers of the prior, who knows better, and who reads the file."""
    found = [(each.who, each.answer) for each in release.findings.attackers]
    return [*found, (f"somebody who also reads {PROTOCOL}", _file_answer(release.design.sealed, release.noise_spent))]


def public_scope_answers(sealed: SealedProtocol) -> list[tuple[str, str]]:
    """For whom the promise holds, without figures that depend on exact counts."""
    return [
        *(_model_answers(sealed) or [("the rows of this table", _rows_answer(sealed, sealed.promise.epsilon))]),
        ("the population they were sampled from", _population_answer(sealed) or "Not promised."),
        ("the same, reading every file and knowing all other rows", "Yes.") if sealed.has_noisy_design else OTHER_ROWS,
    ]


def _model_answers(sealed: SealedProtocol) -> list[tuple[str, str]]:
    if sealed.model is None:
        return []
    most, how = format_factor(sealed.total_epsilon), sealed.mechanism.describe_check()
    sure = f"Yes, by a factor of at most {most}, checked {how}: anybody can repeat that from {PROTOCOL} alone."
    return [("somebody who believes the published model", sure), *_odds_answers(sealed)]


def _odds_answers(sealed: SealedProtocol) -> list[tuple[str, str]]:
    odds, prior = sealed.promise.odds, "the table" if sealed.model is None else "the model"
    most = f"Yes, by a factor of at most {format_factor(sealed.total_epsilon)}, {sealed.mechanism.describe_check()}."
    return [] if odds is None else [(odds.people(prior), most)]


def _rows_answer(sealed: SealedProtocol, epsilon: float) -> str:
    if sealed.has_noisy_design:
        return "No. A private design knows noisy counts only; it promises for the population."
    how = f"checked {sealed.mechanism.describe_check()}, on the integers that the draw used"
    return f"Yes, by a factor of at most {format_factor(epsilon)}, {how}."


def _population_answer(sealed: SealedProtocol) -> str:
    people = sealed.promise.population
    if people is None:
        return ""
    return (
        f"Yes, by a factor of at most {format_factor(sealed.promise.epsilon)}, with "
        f"{format_percent(people.confidence)} confidence, if the rows are an independent sample of the population."
    )


def _file_answer(sealed: SealedProtocol, spent: float) -> str:
    design = sealed.design_epsilon
    if design is not None:
        whole = sealed.promise.epsilon + design if sealed.model is None else sealed.total_epsilon
        before = ", and so were others before it" if spent else ""
        most = format_factor(whole + spent)
        return f"By a factor of {most} where the above is promised: the file was computed from noisy counts{before}."
    return (
        "No. The file was computed from exact counts. Somebody who knows all other rows can compute a person's secret "
        "from it, and the table alone may tell them something. It is readable by you only. Give it to people you "
        f"trust with the table, or use {hint('prior', 'model')}."
    )


def prior_statement(sealed: SealedProtocol) -> str:
    """Where beliefs start."""
    return f"These figures are for somebody who {believer(sealed)}, and sees one published record."


def examples(sealed: SealedProtocol) -> list[tuple[str, str, str]]:
    """What the promise makes of some probabilities; no figure of the data."""
    promise = sealed.promise
    ranges = [(prior, *promise.belief_bounds(prior, sealed.total_epsilon)) for prior in EXAMPLES]
    if all((low, high) == (0.0, 1.0) for _, low, high in ranges):
        return []
    return [
        (format_percent(prior), format_percent(low, down=True), format_percent(high, up=True))
        for prior, low, high in ranges
    ]


def missing_estimates(names: Sequence[str]) -> str:
    """Which columns have no expected errors on the page."""
    return f"Not computed here, because it takes long: {format_names(names)}. Use privacyfunnel estimate."


def change_statements(release: Release, *, listed: bool) -> list[str]:
    """What was done to rows and columns."""
    sealed, domain = release.design.sealed, release.design.sealed.domain
    paragraphs = []
    several = f", in all of {column_names(sealed)}" if len(domain.attributes) > 1 else ""
    paragraphs.append(f"{format_percent(release.unchanged)} of the rows show the value they had{several}.")
    if not sealed.mechanism.lists_inputs:
        paragraphs.append("In the place of the others stand synthetic records, drawn from the published model.")
    elif not listed:
        paragraphs.append(f"The table of all replacements is too large for this page; it is in {PROTOCOL}.")
    hidden = [name or NAMELESS for name in (secret_name(sealed), *release.dropped)]
    sentences = [
        f"Published unchanged: {format_names(release.kept)}." if release.kept else "",
        f"Not published: {format_names(hidden)}.",
        f"Row order: {'as in the table' if release.kept_order else 'shuffled'}.",
        f"Published as ranges: {format_names(list(domain.bins))}." if domain.bins else "",
        f"Rare values merged: {format_names(list(domain.rest))}." if domain.rest else "",
    ]
    return [*paragraphs, " ".join(filter(None, sentences))]


def publication_statement(sealed: SealedProtocol, *, drawn: bool) -> str:
    """How values become what is published, for everybody."""
    if not sealed.mechanism.lists_inputs:
        return (
            f"Each record is published as it is, or a synthetic one in its place, drawn from the model in {PROTOCOL}; "
            "no row says which it is."
        )
    replaced = f"{column_names(sealed)} of each record {_was(sealed)} replaced at random"
    if drawn:
        return f"{replaced}, with the probabilities shown here in whole percents."
    if sealed.has_noisy_design:
        return f"{replaced}, with the probabilities in {PROTOCOL}."
    return f"{replaced}. The probabilities are in {PROTOCOL}; they were computed from exact counts."


def _promise_fact(sealed: SealedProtocol, note: str) -> tuple[str, str, str]:
    return "promise", f"ε = {format_number(sealed.total_epsilon)}", f"{sealed.promise.name} {note}"


def public_facts(sealed: SealedProtocol) -> list[tuple[str, str, str]]:
    """The figures at the top of a public page."""
    factor = f"× {format_factor(sealed.total_epsilon)} at most"
    whose = f"of somebody who {believer(sealed)}"
    return [_promise_fact(sealed, f"about {secret_name(sealed)}"), ("change of a belief", factor, whose)]


def facts(release: Release, attacker: AttackerView, analyst: AnalystView) -> list[tuple[str, str, str]]:
    """The figures at the top of the owner's page."""
    worst, factor = attacker.worst, format_factor(release.design.sealed.total_epsilon)
    found = [_promise_fact(release.design.sealed, f"limits beliefs to ×\N{NO-BREAK SPACE}{factor}; for whom: below")]
    if attacker.has_limit or worst.highest is not None:
        moves = f"{format_percent(worst.prior)} → {format_percent(worst.top, up=True)}"
        found.append(("worst case", moves.replace(" %", "\N{NO-BREAK SPACE}%"), f"probability of {worst.secret}"))
    found.append(("unchanged rows", format_percent(release.unchanged), "show the value they had"))
    if analyst.typical is not None:
        error = f"±{format_points(analyst.typical)} points"
        found.append(("error of a share", error, "average half-width of 95 % intervals"))
    return found


def _was(sealed: SealedProtocol) -> str:
    return "was" if len(sealed.domain.attributes) == 1 else "were"


def readme_lead(release: Release) -> str:
    """What the table is, in two sentences."""
    sealed = release.design.sealed
    kept = f" {format_names(release.kept)}: published unchanged." if release.kept else ""
    return (
        f"{release.rows:,} records. {column_names(sealed)} {_was(sealed)} randomised to limit what a record tells "
        f"about {secret_name(sealed)}, which is not published.{kept}"
    )


def analyst_notes(sealed: SealedProtocol) -> list[str]:
    """What somebody can do with the table, and what not."""
    if not sealed.mechanism.lists_inputs:
        return [FOR_ANALYSTS, WEIGHTED]
    return [FOR_ANALYSTS] if sealed.has_noisy_design else [*WITHOUT_PROTOCOL]


def estimate_commands(release: Release) -> str:
    """Three lines that estimate the original shares; none where the protocol is the owner's."""
    if not release.design.sealed.has_noisy_design:
        return ""
    name = Path(release.table).name
    weights = f"\nprivacyfunnel.estimation.weigh({PROTOCOL!r}, {name!r}).write_csv('weighted.csv')"
    more = "" if release.sealed.mechanism.lists_inputs else weights
    return (
        f"import privacyfunnel\nfound = privacyfunnel.estimate({PROTOCOL!r}, {name!r})\nprint(found.to_frame()){more}"
    )


def file_list(release: Release, folder: Path) -> list[tuple[str, str]]:
    """The public files, and what each is; the pages are not written yet."""
    order = "in the order of the table" if release.kept_order else "shuffled"
    described = {
        Path(release.table).name: f"the sanitised records, {order}",
        PROTOCOL: "how values were replaced, and with which promise, in integers that can be checked",
        "codebook": "what each outcome code stands for",
        ESTIMATES: "the shares of the original table with 95 % intervals, estimated from the other files",
        f"{PROTOCOL}.sig": "the owner's signature of protocol and table",
    }
    written = sorted(path.name for path in folder.iterdir() if path.name != README)
    return [
        *((name, described.get(name, described.get(Path(name).stem, ""))) for name in written),
        (README, "this page"),
        (CROISSANT, "columns, and the SHA-256 of every other file, for catalogues"),
        (DCAT, "the same data set in DCAT-AP, for data portals"),
    ]


def citation(release: Release, folder: Path, occasion: Occasion) -> str:
    """How to cite the table: what tells it from any other is its SHA-256."""
    sealed, name = release.design.sealed, Path(release.table).name
    return (
        f"{column_names(sealed)}, sanitised ({sealed.promise.name} about {secret_name(sealed)}, ε = "
        f"{format_number(sealed.total_epsilon)}). {occasion.when:%Y}. Data set, {release.rows:,} records. Made with "
        f"privacyfunnel {version('privacyfunnel')}. SHA-256 of {name}: {file_digest(folder / name)}."
    )


def audit_command(release: Release, occasion: Occasion) -> str:
    """The command that checks the release from its files."""
    if release.protocol_file is None:
        return ""
    table = release.table
    if not release.sealed.mechanism.lists_inputs:
        return shlex.join(["privacyfunnel", "audit", str(release.protocol_file.parent)])
    query = [option_name("query"), occasion.query] if occasion.query else []
    return shlex.join(
        [
            "privacyfunnel",
            "audit",
            str(release.protocol_file),
            occasion.source,
            *query,
            option_name("sanitised"),
            str(table),
        ]
    )


def _information_facts(sealed: SealedProtocol) -> list[tuple[str, str]]:
    """The share of the information that is kept, and its bound, as the protocol file states them."""
    stated, whole = sealed.certificate, sealed.certificate.entropy or 1.0
    about = " (a mean over records)" if stated.information_error else ""
    found = [("information kept", f"{format_percent(stated.information / whole, down=True)}{about}")]
    if stated.bound is not None:
        most = format_percent(min(stated.bound / whole, 1.0), up=True)
        found.append(("proved upper bound", f"{most}, for every protocol that sees the same columns"))
    return found


def public_provenance(sealed: SealedProtocol, occasion: Occasion) -> list[tuple[str, str]]:
    """Where a public page comes from.

    The certified ε and the information kept are functions of the counts. They are stated only if the counts were noisy:
    computed from exact counts, they give a person's secret away to somebody who knows all other rows.
    """
    stated = sealed.certificate
    certified = [("certified", f"ε = {format_epsilon(stated.epsilon)} for the records, by exact integers")]
    if stated.entropy:
        share = format_percent(stated.information / stated.entropy, down=True)
        certified.append(("kept", f"{share} of the information in the published columns"))
    return [
        ("published columns", column_names(sealed)),
        ("secret columns", ", ".join(sealed.domain.secret_columns)),
        *(certified if sealed.has_noisy_design else []),
        ("made with", f"privacyfunnel {version('privacyfunnel')}"),
        ("date", f"{occasion.when:%Y-%m-%d}"),
    ]


def provenance(release: Release, occasion: Occasion) -> list[tuple[str, str]]:
    """Where the release comes from, and what it keeps."""
    sealed, use = release.design.sealed, release.worth
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "highspy", "polars", "cryptography"))
    found = [
        ("table", occasion.source),
        ("rows", f"{release.rows:,}"),
        ("secret", ", ".join(sealed.domain.secret_columns)),
        ("published", column_names(sealed)),
        ("method", use.describe_method(release.method) + (", which sees the secret" if sealed.sees_secret else "")),
        ("reason", to_sentence(release.reason) if release.reason else ""),
        ("certified", f"ε = {format_epsilon(sealed.epsilon)} {sealed.mechanism.describe_check()}"),
        *_information_facts(sealed),
        ("model", to_sentence(release.findings.model_quality) if release.findings.model_quality else ""),
        ("use", use.use.full_name),
        ("sparseness", release.sparse),
        *(("rare values", sentence) for sentence in release.rare),
        ("date", f"{occasion.when:%Y-%m-%d %H:%M %Z}".strip()),
        ("made with", f"privacyfunnel {version('privacyfunnel')}, Python {platform.python_version()}, {libraries}"),
    ]
    return [(name, text) for name, text in found if text]
