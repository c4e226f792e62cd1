"""A second release of the same rows: noticed, refused unless it is wanted, and said in numbers what both give away.

Accounts say for each group of people and each secret what was promised, spent and is left of ε. Releases count together
where they are of the same rows, or where one was made after the other. A release after others promises one ε for all of
them; releases with a limit A add up (docs/theory.md, Theorems 77 and 78); a kept key draws people once. Nothing bounds
what others say together.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacyfunnel.errors import InputError, LedgerError, ParameterError
from privacyfunnel.formatting import format_epsilon
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.after_model import AfterModel
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.published.noisy_counts import check_design_epsilon
from privacyfunnel.names import format_names
from privacyfunnel.release.findings.composition_leakage import ReleaseComposition, compose_releases
from privacyfunnel.release.ledger.column_fingerprints import SALT, column_fingerprints
from privacyfunnel.release.ledger.ledger_file import (
    BEGUN,
    FINISHED,
    MOST_TEXT,
    NOISE,
    NOTHING,
    Entry,
    Ledger,
    protocol_digest,
)

if TYPE_CHECKING:
    from privacyfunnel.release.row_sampler import RowSampler
    from privacyfunnel.spec import ReleaseSpec
    from privacyfunnel.tables.coding.bins import Bins
    from privacyfunnel.tables.coding.contingency import Contingency
    from privacyfunnel.tables.coding.merges import Merge
    from privacyfunnel.tables.readers.table_files import TableSource

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProtocolText:
    """A protocol file as it stands, or will stand."""

    path: Path | str
    text: str


@dataclass(frozen=True, slots=True)
class LedgerReport:
    """What the ledger says of a release: the owner's own."""

    ledger: Path
    repeats: tuple[Entry, ...] = ()  # releases of the same rows about the same secret
    others: tuple[Entry, ...] = ()  # releases of the same rows about other secrets
    together: ReleaseComposition | None = None  # what the repeats and this one say together
    unknown: str = ""  # why that is not known, if it is not
    replaced: tuple[Entry, ...] = ()  # releases of these rows that lay in the same place
    alike: tuple[Entry, ...] = ()  # releases of these rows that drew whoever did not change as this one does
    noise: tuple[Entry, ...] = ()  # the times that noise was drawn for the counts of these rows before
    at_most: float | None = None  # ε of all together, where each of the others adds at most its A

    @property
    def noise_spent(self) -> float:
        """The ε of all designs before this one."""
        return float(sum(Fraction(entry.noise) for entry in self.noise))

    @property
    def statements(self) -> tuple[str, ...]:
        """What the owner must know, a sentence each."""
        sentences = []
        if self.repeats:
            worst = "" if self.together is None else f" Worst for {self.together.composed.description}."
            sentences.append(
                f"These rows were released before: {_list_entries(self.repeats)}. {self.leak_statement}{worst}"
            )
        if self.replaced:
            sentences.append(
                f"This replaces a release of the same rows: {_list_entries(self.replaced)}. If that was ever "
                "handed out, "
                "both count; the ledger remembers it, but counts it no more."
            )
        if self.alike:
            sentences.append(
                "These rows were released before with the same key, ids and protocol: "
                f"{_list_entries(self.alike)}. Whoever "
                "did not change is published once; whoever changed has two independent draws, and nothing bounds what "
                "both say."
            )
        if self.others:
            sentences.append(
                f"These rows were also released about other secrets: {_list_entries(self.others)}. An audit of all "
                "their protocols computes what they leak together about each secret."
            )
        return tuple(sentences)

    @property
    def leak_statement(self) -> str:
        """What the repeats and this release say together, in numbers and without a value of the secret."""
        if self.together is None:
            return f"Their joint leakage with this one is not known: {self.unknown}"
        found = self.together
        sentence = (
            f"Together with this one they leak {found.promise.name} ε = {format_epsilon(found.composed.epsilon)}."
        )
        if self.at_most is None:
            return sentence
        return f"{sentence} Whoever believes the prior of this one learns at most ε = {format_epsilon(self.at_most)}."


def early_entry(
    counted: Contingency,
    spec: ReleaseSpec,
    source: TableSource,
    table: Path | str,
    salt: bytes,
    *,
    for_publication: bool,
) -> Entry:
    """What is known of a release before its protocol is."""
    columns, beside = column_fingerprints(counted, salt)
    return Entry(
        when="",
        rows=int(counted.weights.sum()),
        secret=tuple(spec.secret),
        publish=tuple(spec.publish),
        columns=columns,
        beside=beside,
        source=source.identity,
        table=full_name(table),
        protocol_file="",
        digest="",
        protocol=None,
        promise="",
        order=None,
        for_publication=for_publication,
    )


def full_name(place: Path | str) -> str:
    """Where a file is; the address of one on a cluster as it stands."""
    return place if isinstance(place, str) else str(place.resolve())


def make_entry(
    sealed: SealedProtocol,
    counted: Contingency,
    spec: ReleaseSpec,
    protocol: ProtocolText,
    salt: bytes,
    source: TableSource,
    table: Path | str,
    *,
    rows: int,
    order: bytes | None = None,
    trial: bool = False,
) -> Entry:
    """The entry of a release that is about to be made."""
    key, row_id, limit = spec.row_key, spec.row_id, sealed.promise.composable
    public = sealed.for_publication and spec.seed is None and not trial
    return replace(
        early_entry(counted, spec, source, table, salt, for_publication=public),
        when=datetime.now().astimezone().isoformat(timespec="microseconds"),
        rows=rows,
        secret=sealed.domain.secret_columns,
        publish=tuple(at.name for at in sealed.domain.attributes),
        protocol_file=full_name(protocol.path),
        digest=protocol_digest(protocol.text.encode("utf-8")),
        protocol=protocol.text if len(protocol.text) <= MOST_TEXT else None,
        promise=f"{sealed.promise.name} ε = {sealed.total_epsilon:g}{'' if limit is None else f', A = {limit:g}'}",
        order=order,
        after=sealed.model.files if isinstance(sealed.model, AfterModel) else (),
        drawn="" if key is None or row_id is None else key.mark(salt[:SALT], sealed.digest, row_id),
    )


def refuse_repeat(
    book: Ledger,
    counted: Contingency,
    spec: ReleaseSpec,
    source: TableSource,
    table: Path,
    salt: bytes,
    *,
    trial: bool = False,
) -> None:
    """Refuse a second release of the same rows before its protocol is designed: fingerprints need the columns alone.

    With a kept key it is the protocol that decides whether rows are drawn alike; then nothing is refused yet.
    """
    if spec.again or spec.key_file is not None:
        return
    mine = early_entry(counted, spec, source, table, salt, for_publication=spec.seed is None and not trial)
    repeats = tuple(entry for entry in book.other_releases(mine) if entry.repeats(mine))
    if repeats:
        raise LedgerError(
            f"These rows were released before: {_list_entries(repeats)}. Two releases of the same rows can leak more "
            f"than their ε added. {NOTHING}, and nothing was solved; {hint('again')} releases them again and states "
            "what both leak."
        )


def assess_repeats(
    ledger: Path,
    mine: Entry,
    others: Sequence[Entry],
    outgoing: RowSampler | None,
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
) -> LedgerReport:
    """What the releases that the ledger knows of these rows say together with this one; `bins` are the secret's."""
    repeats = tuple(entry for entry in others if entry.repeats(mine))
    alike = tuple(entry for entry in others if entry.draws_alike(mine))
    rest = tuple(entry for entry in others if entry not in (*repeats, *alike) and entry.digest not in mine.after)
    found, unknown, at_most = None, "", None
    if outgoing is None:
        unknown = "it is not computed on a cluster."
    elif repeats and not outgoing.bound_table.has_secret:
        unknown = outgoing.bound_table.unmeasured or f"these rows do not carry {' & '.join(mine.secret)}."
    elif repeats:
        try:
            protocols = [("this release", outgoing.sealed), *(_load_protocol(entry) for entry in repeats)]
            at_most = _add_composable([sealed for _, sealed in protocols])
            found = compose_releases(protocols, outgoing.bound_table.encoding.table, bins, merges)
        except InputError as error:
            unknown = error.sentence
    return LedgerReport(ledger, repeats, rest, found, unknown, alike=alike, at_most=at_most)


@contextmanager
def remember(
    book: Ledger,
    mine: Entry,
    spec: ReleaseSpec,
    outgoing: RowSampler | None = None,
    of_secret: tuple[Sequence[Bins], Sequence[Merge]] = ((), ()),
) -> Iterator[LedgerReport]:
    """Make the release inside, and remember it; refuse one of rows that were released before, unless it is asked for.

    `outgoing` are rows on this machine, of which it is said what both releases leak.
    """
    found = assess_repeats(book.path, mine, book.other_releases(mine), outgoing, *of_secret)
    if found.repeats and not spec.again:
        before = f"These rows were released before: {_list_entries(found.repeats)}. {found.leak_statement}"
        raise LedgerError(f"{before} {NOTHING}; {hint('again')} releases them again.")
    LOG.info("drawing %d rows, with a protocol of %s about %s", mine.rows, mine.promise, " & ".join(mine.secret))
    with book.record(mine, known=found.repeats, refuse=concurrent_release_error) as replaced:
        yield replace(found, replaced=tuple(replaced))
    LOG.info("published %s; recorded in the ledger as %s", mine.table, mine.name)


def _add_composable(releases: Sequence[SealedProtocol]) -> float | None:
    """ε of the first, A of every other, and all noise (docs/theory.md, Theorem 77); None where one has no A."""
    limits = [sealed.promise.composable for sealed in releases[1:]]
    if None in limits:
        return None
    noise = sum(sealed.design_epsilon or 0.0 for sealed in releases[1:])
    return releases[0].total_epsilon + sum(limit or 0.0 for limit in limits) + noise


def concurrent_release_error(repeats: Sequence[Entry]) -> LedgerError:
    """Why a release is not made that another run has made meanwhile."""
    return LedgerError(
        f"rows are released once; while this release was prepared another run released them: {_list_entries(repeats)}. "
        f"{NOTHING}; run again to see what both would say together."
    )


def _load_protocol(entry: Entry) -> tuple[str, SealedProtocol]:
    """The protocol of a release, and what it is called."""
    name = f"the protocol of '{entry.table}'"
    if entry.protocol is not None:
        return name, SealedProtocol.from_text(entry.protocol, name)
    if not entry.stands:
        raise LedgerError(f"'{entry.protocol_file}' must be there to compute it; it was moved or altered.")
    return name, SealedProtocol.load(entry.protocol_file)


def _list_entries(entries: Sequence[Entry]) -> str:
    more = f", and {len(entries) - 1} more" if len(entries) > 1 else ""
    return f"{entries[-1].description}{more}"


def record_noise(
    book: Ledger,
    counted: Contingency,
    spec: ReleaseSpec,
    source: TableSource,
    protocol: Path | str,
    salt: bytes,
    *,
    trial: bool = False,
) -> tuple[Entry, ...]:
    """Before a private design draws its noise: remember it, and refuse rows whose counts were noised before.

    What it gives are the times before that were agreed to. Noise from a seed, or of a trial, is not for publication.
    """
    if not spec.is_private_design or spec.seed is not None or trial:
        return ()
    whole = Fraction(str(spec.promise_value.epsilon))  # of which a published model takes a part
    mine = replace(
        early_entry(counted, spec, source, protocol, salt, for_publication=True),
        when=datetime.now().astimezone().isoformat(timespec="microseconds"),
        protocol_file=full_name(protocol),
        noise=str(whole if spec.design_epsilon is None else check_design_epsilon(spec.design_epsilon)),
    )

    def refuse(before: Sequence[Entry]) -> LedgerError:
        return LedgerError(
            f"{noise_statement(before, mine.noise)} {NOTHING}, and no noise was drawn. {hint('try_')} looks without "
            f"spending; {hint('again')} goes on, and both count."
        )

    return book.record_noise(mine, refuse=None if spec.again else refuse)


@contextmanager
def noise_counts(recorded: Sequence[object]) -> Iterator[None]:
    """Say in a refusal that noise was drawn, where it was: who ran designs until one pleases would choose by it."""
    try:
        yield
    except ParameterError as error:
        if not recorded:
            raise
        raise ParameterError(
            f"{error.sentence} Noise was drawn, and its ε is spent: the next run needs {hint('again')}. "
            f"{hint('try_')} spends nothing."
        ) from None


def noise_statement(before: Sequence[Entry], now: str | float) -> str:
    """How often noise was drawn for these rows, and what its ε add up to together with this design's."""
    spent = sum((Fraction(entry.noise) for entry in before), Fraction(now))
    times = "once" if len(before) == 1 else f"{len(before)} times"
    return (
        f"These rows were designed for before, {times}, last on {before[-1].when[:10]} for "
        f"'{before[-1].protocol_file}'. Each design draws noise for the counts, which anybody who saw its files can "
        f"average: with this one they spend ε = {format_epsilon(float(spent))} together."
    )


@dataclass(frozen=True, slots=True)
class Account:
    """What releases of some people say together about one secret."""

    secret: tuple[str, ...]
    rows: int  # of the latest release
    releases: tuple[str, ...]  # their files
    promised: float | None  # ε of all together; None where nothing bounds it
    spent: float | None  # of that, by the certificates, with noise that was drawn
    noise: float  # ε of designs that were never released, which counts besides
    how: str

    @property
    def left(self) -> float | None:
        """What a release after the last may still use without a larger ε."""
        return None if self.promised is None or self.spent is None else max(0.0, self.promised - self.spent)

    @property
    def text(self) -> str:
        """In a sentence."""
        several = f"{len(self.releases)} releases" if len(self.releases) > 1 else "one release"
        start = f"{' & '.join(self.secret)}, {self.rows:,} rows, {several}: "
        if self.promised is None or self.spent is None or self.left is None:
            start += f"no bound. {self.how}"
        else:
            promised, spent = format_epsilon(self.promised), format_epsilon(self.spent)
            start += f"ε = {promised} promised, {spent} spent, {self.left:.3g} left. {self.how}"
        besides = f" Designs that were not released drew noise of ε = {format_epsilon(self.noise)} besides."
        return start + (besides if self.noise else "")

    def to_dict(self) -> dict[str, Any]:
        """As one object of JSON; what nothing bounds is null."""
        return {
            "secret": list(self.secret),
            "rows": self.rows,
            "releases": list(self.releases),
            "promised": self.promised,
            "spent": self.spent,
            "left": self.left,
            "noise": self.noise,
            "how": self.how,
        }


def list_accounts(entries: Sequence[Entry]) -> tuple[Account, ...]:
    """An account for each group of releases that count together, in the order of the latest."""
    groups: list[list[Entry]] = []
    standing = [entry for entry in entries if entry.state in {BEGUN, FINISHED} and entry.for_publication]
    for entry in standing:
        mine = [group for group in groups if any(_counts_together(entry, other) for other in group)]
        groups = [group for group in groups if group not in mine]
        groups.append([*(other for group in mine for other in group), entry])
    return tuple(_account(group, entries, standing) for group in groups)


def _counts_together(one: Entry, other: Entry) -> bool:
    follows = one.digest in other.after or other.digest in one.after
    return follows or one.repeats(other) or other.repeats(one) or one.draws_alike(other)


def _account(group: Sequence[Entry], entries: Sequence[Entry], standing: Sequence[Entry]) -> Account:
    last, files = group[-1], {entry.protocol_file for entry in group}
    designs = [e for e in entries if e.state == NOISE and e.has_same_rows(last) and e.protocol_file not in files]
    noise = float(sum(Fraction(entry.noise) for entry in designs))
    promised, spent, how = _sum_up(group)
    apart = [each for each in standing if not any(each is e or each.comparable(e) for e in group)]
    if apart:
        names = format_names([entry.table for entry in apart])
        how += (
            f" Whether these people are in {names}, too, is not known: other ledgers knew them before they were merged."
        )
    return Account(last.secret, last.rows, tuple(entry.table for entry in group), promised, spent, noise, how)


def _sum_up(group: Sequence[Entry]) -> tuple[float | None, float | None, str]:
    """ε promised and spent by releases together, and why it is that much."""
    last = group[-1]
    try:
        sealed = [_load_protocol(entry)[1] for entry in group]
    except InputError as error:
        return None, None, f"A protocol cannot be read: {error.sentence}"
    if all(entry.digest in last.after for entry in group[:-1]):
        how = "The promise of the last covers all." if len(group) > 1 else "The promise of the one."
        return sealed[-1].total_epsilon, sealed[-1].certified_total, how
    if all(entry.draws_alike(last) for entry in group):
        how = "One key: whoever did not change was drawn once; nothing bounds what is said of the others."
        return sealed[-1].total_epsilon, sealed[-1].certified_total, how
    sums = [total for i in range(len(sealed)) if (total := _add_composable([sealed[i], *sealed[:i], *sealed[i + 1 :]]))]
    if sums:
        return min(sums), min(sums), "Each adds its limit A to one of them."
    names = format_names([entry.table for entry in group])
    return None, None, f"They were made independently of each other: {names}."
