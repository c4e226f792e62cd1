"""Composition: what several releases of the same rows say about the secret together, from their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from privacyfunnel.audits.protocol import check_secret
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.release.composition import Composed, Together, composed, together
from privacyfunnel.tables.bins import Bins
from privacyfunnel.tables.dialect import AS_FOUND, Dialect
from privacyfunnel.tables.merging import Merge
from privacyfunnel.tables.sources import Source, source_of

__all__ = ["Composed", "Together", "audit_together", "composed"]


def audit_together(
    protocols: Sequence[str | Path],
    table: str | Path | Source,
    *,
    secret: Sequence[str] = (),
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
    dialect: Dialect = AS_FOUND,
) -> Together:
    """What releases of one table say together about the secret of the first, under its promise.

    The same file again is a second draw from it. The columns of all protocols are counted together from the table.
    """
    sealed = [SealedProtocol.load(path) for path in protocols]
    check_secret(sealed[0], secret)
    people = source_of(table).open(dialect)
    return together([(f"'{path}'", one) for path, one in zip(protocols, sealed, strict=True)], people, bins, merges)
