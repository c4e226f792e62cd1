"""What the owner of a release is told beside the public: the order of its rows, and what the ledger remembers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privacyfunnel.release.release import Release


def order(release: Release) -> dict[str, Any]:
    """The order of the rows, and what it, or that of a kept column, says about the secret: for the owner."""
    tells = release.order_tells
    return {
        "kept": release.kept_order,
        "of_table": None if tells is None else asdict(tells),
        "of_kept_columns": {column.column: asdict(column) for column in release.kept_columns},
    }


def ledger(release: Release) -> dict[str, Any] | None:
    """What the ledger says of the release."""
    found = release.remembered
    if found is None:
        return None
    return {
        "file": str(found.ledger),
        "repeats": [entry.table for entry in found.repeats],
        "together": None if found.together is None else found.together.composed.epsilon,
        "replaced": [entry.table for entry in found.replaced],
        "said": found.words,
    }


def order_words(release: Release) -> str:
    """The same in words."""
    how = "that of the table, as asked" if release.kept_order else "random"
    said = [f"{how}; in the order of the table {release.order_tells}"]
    return "; ".join([*said, *(column.of_secret for column in release.kept_columns if column.of_secret)])


def ledger_words(release: Release) -> list[tuple[str, str]]:
    """Where the ledger is, and what it says, a line each."""
    found = release.remembered
    if found is None:
        return []
    where = f"{found.ledger}, the owner's: it remembers this release, and how its order is undone"
    return [*(("again", sentence) for sentence in found.words), ("ledger", where)]
