"""Audit of public files alone: the promise at the model that the protocol file publishes, with no count of any table.

The integers of the mechanism are checked against the integers of the model, in exact arithmetic; the codebook must
follow from both; every row of the table must be something that the mechanism publishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from privacyfunnel.audits.claims import Claims, check_model_claims
from privacyfunnel.audits.protocol_audit import check_secret
from privacyfunnel.errors import GuaranteeError
from privacyfunnel.mechanisms.leak_profile import LeakProfile, leak_profiles
from privacyfunnel.mechanisms.protocol_file import find_protocol
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify_at_model
from privacyfunnel.mechanisms.signatures import Signer, load_signed_protocol
from privacyfunnel.model.published.table_model import PublishedModel
from privacyfunnel.names import format_names
from privacyfunnel.release.output_layout import detect_layout
from privacyfunnel.release.release_files import altered_files, codebook
from privacyfunnel.tables.readers.table_files import find_table, open_table


@dataclass(frozen=True, slots=True, eq=False)
class PublicAudit:
    """The findings of an audit of public files in which the promise holds."""

    sealed: SealedProtocol
    model: PublishedModel
    certified: float  # ε of the records now, at the published model, in exact arithmetic
    claims: Claims
    signer: Signer | None
    codebook: Path | None  # that was compared with what follows from the protocol
    rows: int | None  # of the sanitised table, all of which the mechanism can publish; None where none was given
    leaks: tuple[LeakProfile, ...] = ()  # the whole leak of a record, at the published model


def audit_public(
    path: str | Path,
    *,
    secret: Sequence[str] = (),
    sanitised: str | Path | None = None,
    signed_by: str | Path | None = None,
) -> PublicAudit:
    """Check a protocol file with a published model, or the folder that holds it, and what lies beside it.

    Raises
    ------
    GuaranteeError
        If the promise does not hold at the published model, a file is not what follows from the protocol, or the folder
        does not hold the files that were published.
    ParameterError
        If the protocol has no published model: its promise is about a table, which must be named.
    """
    protocol = find_protocol(path)
    if Path(path).is_dir():
        refuse_altered(protocol.parent)
        sanitised = sanitised or find_table(path)
    sealed, signer = load_signed_protocol(protocol, sanitised, signed_by)
    check_secret(sealed, secret)
    model = sealed.require_model()
    now = certify_at_model(sealed, "Do not rely on these files.")
    if not now <= sealed.epsilon:
        raise GuaranteeError(
            f"the protocol file certifies ε = {sealed.epsilon:.6g}; at its model it is {now:.6g}. It was altered: ask "
            "for another."
        )
    books = [book for book in protocol.parent.glob("codebook.*") if sealed.outcomes]
    compared = books[0] if books else None
    if compared is not None:
        _check_codebook(sealed, compared)
    rows = None if sanitised is None else _count_possible_rows(sealed, Path(sanitised))
    claims = check_model_claims(sealed)
    one_prior = sealed.mechanism.lists_inputs and not sealed.follows
    leaks = leak_profiles(sealed.mechanism, sealed.promise, sealed.model_joint) if one_prior else ()
    return PublicAudit(sealed, model, now, claims, signer, compared, rows, leaks)


def refuse_altered(public: Path) -> None:
    """Refuse a public folder in which files were added, changed or removed, by the list that was published with it."""
    altered = altered_files(public)
    if altered:
        raise GuaranteeError(
            f"'{public}' must hold the files that were published, as they were; {len(altered)} were added, changed or "
            f"removed: {format_names(altered)}. Do not rely on them: ask the owner for another copy."
        )


def _check_codebook(sealed: SealedProtocol, path: Path) -> None:
    expected = codebook(sealed, sealed.model_joint)
    table = open_table(path)
    found = pl.concat(list(table.batches(table.columns)))
    fits = expected is not None and list(table.columns) == expected.columns and found.height == expected.height
    if not fits or expected is None or not found.cast(pl.String).equals(expected.cast(pl.String), null_equal=True):
        raise GuaranteeError(
            f"'{path}' must be the codebook that follows from its protocol and model; it is another. Do not rely on it."
        )


def _count_possible_rows(sealed: SealedProtocol, path: Path) -> int:
    table = open_table(path)
    layout = detect_layout(sealed, table.columns, table.name)
    rows = strange = 0
    for batch in table.batches(layout.names):
        for piece in batch.iter_slices(layout.rows_at_once):
            rows += piece.height
            strange += int((layout.recover_codes(piece) < 0).any(axis=1).sum())
    if strange:
        raise GuaranteeError(
            f"'{path}' must hold only what the mechanism publishes; {strange:,} of {rows:,} rows show something else. "
            "It was not drawn from this protocol."
        )
    return rows
