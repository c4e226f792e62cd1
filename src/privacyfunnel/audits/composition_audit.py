"""Composition: what several releases of the same rows say about the secret together, from their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from privacyfunnel.audits.protocol_audit import check_secret
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.release.findings.composition_leakage import (
    CompositionLeak,
    ReleaseComposition,
    compose_releases,
    composition_leak,
)
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.merges import Merge
from privacyfunnel.tables.readers.formats import AUTO_DETECT, Dialect
from privacyfunnel.tables.readers.table_files import TableSource, resolve_source

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
