"""Audit: does the promise hold for these files, and were the rows drawn from the protocol?

The promise is checked again in exact arithmetic: the integers of the protocol file against the counts of the table. The
draw is judged by a chi-square test of how often each input became each output, and by whether outputs follow the secret
beyond that. Kept columns are judged together with the outputs, the file is compared with its values byte by byte, and
the noise of a private design is tested against the table. Other claims are measured, or reported as unchecked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from privacyfunnel.audits.claims import Claims, check_claims
from privacyfunnel.audits.draw_agreement import DrawAgreement, judge_draw
from privacyfunnel.audits.matched_table import MatchedTable, find_row_order, frame_order, secret_labels
from privacyfunnel.audits.noise_audit import NoiseAudit, audit_model_noise, audit_noise
from privacyfunnel.audits.published_file import FileAudit, audit_file
from privacyfunnel.errors import ColumnError, GuaranteeError, ParameterError
from privacyfunnel.formatting import facts_html, format_epsilon
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.input_domain import ColumnShares
from privacyfunnel.mechanisms.kept_leakage import KeptLeakage, kept_columns_error, kept_leakage
from privacyfunnel.mechanisms.leak_profile import LeakProfile, leak_profiles
from privacyfunnel.mechanisms.protocol_file import find_protocol
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify, exact_worst_leak
from privacyfunnel.mechanisms.signatures import Signer, load_signed_protocol
from privacyfunnel.model.published.table_model import EachModel, PublishedModel, TableModel
from privacyfunnel.release.findings.attacker_leaks import SideChannel, side_channel
from privacyfunnel.release.findings.composition_leakage import (
    CompositionLeak,
    ReleaseComposition,
    compose_releases,
    composition_leak,
)
from privacyfunnel.release.findings.population import PopulationBound, population_bound
from privacyfunnel.release.kept_counts import count_rows, group_table
from privacyfunnel.release.output_layout import detect_layout
from privacyfunnel.release.published_table import PublishedTable
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.domain_file import DomainFile
from privacyfunnel.tables.coding.merges import Merge
from privacyfunnel.tables.readers.column_selection import categories_to_text
from privacyfunnel.tables.readers.formats import AUTO_DETECT, Dialect, Table
from privacyfunnel.tables.readers.table_files import TableSource, find_table, open_source, resolve_source

INDUCED_TOLERANCE = 1e-9  # a stated q(y | x) is written in floats, and only ever read by analysts


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """The findings of an audit in which the promise holds."""

    sealed: SealedProtocol
    rows: int
    certified: float  # ε now, on these rows, in exact arithmetic
    draw: DrawAgreement | None  # None where no sanitised table was given
    side_channel: SideChannel | None = None  # the worst for several columns; None where there is none or too many
    secret_named: bool = False  # whether the auditor named the secret, or the file alone did
    claims: Claims | None = None  # what the file states beside its promise
    signer: Signer | None = None  # who signed the files; None where nobody did
    people: PopulationBound | None = None  # ε for the population; None where it was not computed
    noise: NoiseAudit | None = None  # of a private design, on these counts; None for any other protocol
    file: FileAudit | None = None  # None where no sanitised table was given
    table_leak: float | None = None  # of records at the table's own frequencies, where the prior is a published model
    kept: KeptLeakage | None = None  # of output and kept columns together; None where nothing was kept
    leaks: tuple[LeakProfile, ...] = ()  # the whole leak of a record, on these rows

    @property
    def _facts(self) -> list[tuple[str, str]]:
        promise, draw, secret = self.sealed.promise, self.draw, self.sealed.secret_text
        facts = [
            ("rows", f"{self.rows:,}"),
            (
                "promise",
                f"{promise.name} ε = {promise.epsilon:g} about {secret} holds",
            ),
            ("certified", f"ε = {self.certified:.6g} now, {self.sealed.epsilon:.6g} stated"),
        ]
        facts += [] if self.people is None else [("people", self.people_text)]
        facts += [] if draw is None else [("draw", f"consistent, p = {draw.p_value:.3f}")]
        facts += self.file_facts
        return [*facts, ("signed by", "nobody" if self.signer is None else self.signer.fingerprint)]

    @property
    def people_text(self) -> str:
        """ε of the population, after that of the table where the promise is about it."""
        assert self.people is not None
        if self.sealed.model is None:
            return self.people.describe_with_table(self.certified)
        return f"for the population, if the file is a sample, ε is {self.people.statement} ({self.people.kind})"

    @property
    def file_facts(self) -> list[tuple[str, str]]:
        """Facts about the noise of a private design, the bytes of the sanitised table and its kept columns."""
        facts = [] if self.noise is None else [("noise", str(self.noise))]
        if self.sealed.model is not None and self.noise is None:
            facts.append(("not checked", _unchecked_noise(self.sealed.model, self.rows)))
        if self.table_leak is not None:
            facts.append(
                ("exact", f"on the table's own frequencies a record leaks ε = {format_epsilon(self.table_leak)}")
            )
        if self.file is not None:
            facts.append(("file", f"agrees {self.file.compared}"))
        if self.kept is not None:
            facts.append(("kept", str(self.kept)))
        return facts

    def __repr__(self) -> str:
        return "Audit\n" + "\n".join(f"  {name:<11}{text}" for name, text in self._facts)

    def _repr_html_(self) -> str:
        return facts_html("Audit", self._facts)


def audit(
    protocol: PublishedTable | str | Path,
    table: Any,
    *,
    secret: Sequence[str] = (),
    sanitised: Any = None,
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
    dialect: Dialect = AUTO_DETECT,
    keep_order: bool = False,
    ledger: str | Path | None = None,
    keep: Sequence[str] = (),
    signed_by: str | Path | None = None,
    domain: DomainFile | None = None,
) -> Audit:
    """Check a protocol file against the table it was made for, and the sanitised table against both.

    Tables are files or frames; a release stands for its own protocol and sanitised table.

    Rows are paired where their order is known: `keep_order` says that it is that of the table, the owner's `ledger`
    (by default the one beside the table) how to undo a random one. Else only counts of outputs are compared.

    `keep` names the columns that were kept on purpose; any other that is not published is refused. `signed_by` is the
    public key with which the files must be signed. `domain` is the public one of a private design, with the labels of
    its secrets, which the file does not have.

    Raises
    ------
    GuaranteeError
        If the promise or what the file states does not hold on these rows, the draw did not follow the protocol, or
        the sanitised table holds more than it should.
    SignatureError
        If a signature is wrong, or missing where a key was asked for.
    """
    release = protocol if isinstance(protocol, PublishedTable) else None
    if release is not None and sanitised is None:
        sanitised = release.table
    shown = find_table(sanitised) if isinstance(sanitised, str | Path) else sanitised
    made = protocol.protocol_file if isinstance(protocol, PublishedTable) else find_protocol(protocol)
    if made is not None and (shown is None or isinstance(shown, Path)):
        sealed, signer = load_signed_protocol(made, shown, signed_by)
    else:
        sealed, signer = load_signed_protocol(made, None, signed_by) if made else (_sealed(release), None)
    check_secret(sealed, secret)
    sealed.domain.check_secrets(merges)
    original = open_source(table, dialect)
    found = MatchedTable.match(original, sealed, bins, merges)
    labels = () if domain is None else secret_labels(sealed, domain)
    law, joint = sealed.certified_inputs(found.mechanism, found.joint, labels)
    now = certify(law, sealed.promise, joint, "Do not publish what it drew from this table.")
    if not now <= sealed.epsilon:
        raise GuaranteeError(
            f"the protocol file certifies ε = {sealed.epsilon:.6g}; on this table it is {now:.6g}. "
            "It was made for other rows, or altered: make it again."
        )
    noise = audit_noise(sealed, found, labels)
    if isinstance(sealed.model, TableModel | EachModel):
        noise = audit_model_noise(sealed.model, found)
    _check_induced(sealed, found)
    _check_shares(sealed, found)
    draw = file = kept = None
    if shown is not None:
        published, rows = open_source(shown), found.encoding.rows
        if made is not None and isinstance(shown, Path) and isinstance(table, str | Path | TableSource):
            order = find_row_order(made, table, shown, rows, ledger, keep_order)
        else:
            order = frame_order(None if release is None else release.order, keep_order=keep_order)
        draw = judge_draw(sealed, found, published, order, keep)
        if isinstance(shown, Path):
            layout = detect_layout(sealed, published.columns, published.name)
            numbers = None if order is None else np.concatenate([codes[:, 0] for codes in order(found.codes())])
            file = audit_file(shown, published, layout, original, numbers)
        kept = _check_kept(sealed, found, original, draw.kept_columns)
    claims = check_claims(sealed, found.joint, found.mechanism)
    side = side_channel(found.joint, found.mechanism)
    leak = None
    if sealed.model is not None:
        joint, occurs = group_table(found.encoding.contingency, sealed.model)
        law = found.mechanism.restrict_inputs(occurs)
        leak = exact_worst_leak(law, sealed.promise.without_scales, joint).leak.epsilon
    population = population_bound(law, sealed.promise, joint)
    rows, named = found.encoding.rows, bool(secret)
    leaks = leak_profiles(law, sealed.promise, joint)
    return Audit(sealed, rows, now, draw, side, named, claims, signer, population, noise, file, leak, kept, leaks)


def _sealed(release: PublishedTable | None) -> SealedProtocol:
    if release is None:
        raise ParameterError("An audit needs a release, or a protocol file; there is none. Name one.")
    return release.sealed


def _unchecked_noise(model: PublishedModel, rows: int) -> str:
    """Why nothing was said about the noise of a model."""
    if model.rows != rows:
        return (
            f"whether the model was made from its table with noise: that has {model.rows:,} rows, these are {rows:,}. "
            "Audit with the table that it was designed for"
        )
    return "whether the model was made from this table with noise: the file does not state its noisy counts"


def check_secret(sealed: SealedProtocol, secret: Sequence[str]) -> None:
    stated = sealed.domain.secret_columns
    if secret and tuple(secret) != stated:
        raise ColumnError(
            f"the protocol protects {' & '.join(stated)}; {hint('secret')} names {' & '.join(secret)}. "
            "Name the same columns."
        )


def _check_kept(
    sealed: SealedProtocol, found: MatchedTable, original: Table, columns: Sequence[str]
) -> KeptLeakage | None:
    """Output and kept columns of a record must keep the promise together, on the counts of this table."""
    if not columns:
        return None
    s, x = np.concatenate([np.stack([chunk.secret, chunk.published]) for chunk in found.encoding.chunks()], axis=1)
    kept = pl.concat([categories_to_text(batch) for batch in original.batches(list(columns))])
    leak = kept_leakage(found.mechanism, sealed.promise, found.joint, count_rows(s, x, kept))
    if not leak.keeps and sealed.model is None:  # a model promises nothing about the table's own frequencies
        raise kept_columns_error(sealed.promise, found.joint.secret_name, tuple(columns), leak.epsilon, made=True)
    return leak


def _check_shares(sealed: SealedProtocol, found: MatchedTable) -> None:
    """What analysts calibrate by must be the shares of this table."""
    if sealed.shares is None:
        return
    combos, rows = sealed.domain.combos, found.joint.weights.sum(axis=0)
    mine = combos[found.inputs[: found.joint.a] % len(combos)]
    counted = ColumnShares(
        tuple(
            np.bincount(mine[:, j], weights=rows, minlength=len(at.labels)).astype(np.int64)
            for j, at in enumerate(sealed.domain.attributes)
        )
    )
    if not counted.equals(sealed.shares):
        raise GuaranteeError(
            "the protocol file must state the shares of the published columns in this table; it states others. It was "
            "made for other rows, or altered: make it again."
        )


def _check_induced(sealed: SealedProtocol, found: MatchedTable) -> None:
    """What analysts are told about x and y must follow from the integers."""
    table = found.mechanism.table_protocol
    if sealed.induced is None or table is None:
        return
    joint = found.joint
    induced = table.joint_with_values(joint) / joint.p_x[:, None]
    stated = sealed.induced[found.inputs[: joint.a] % len(sealed.domain.combos)]
    if stated.shape != induced.shape or not np.abs(stated - induced).max() <= INDUCED_TOLERANCE:
        raise GuaranteeError(
            "the protocol file must state the channel from values to outputs that its integers induce on this table; "
            "it states another. It was made for other rows, or altered: make it again."
        )


__all__ = ["CompositionLeak", "ReleaseComposition", "audit_composition", "composition_leak"]


def audit_composition(
    protocols: Sequence[str | Path],
    table: str | Path | TableSource,
    *,
    secret: Sequence[str] = (),
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
    dialect: Dialect = AUTO_DETECT,
) -> ReleaseComposition:
    """What releases of one table say together about the secret of the first, under its promise.

    The same file again is a second draw from it. The columns of all protocols are counted together from the table.
    """
    sealed = [SealedProtocol.load(path) for path in protocols]
    check_secret(sealed[0], secret)
    people = resolve_source(table).open(dialect)
    return compose_releases(
        [(f"'{path}'", one) for path, one in zip(protocols, sealed, strict=True)], people, bins, merges
    )
