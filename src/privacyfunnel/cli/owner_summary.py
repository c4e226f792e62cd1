"""What the owner of a release is told beside the public: its people, the order of its rows, what a ledger remembers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from privacyfunnel.names import format_names

if TYPE_CHECKING:
    from privacyfunnel.release.apply import Applied
    from privacyfunnel.release.release import Release


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


def order_text(release: Release | Applied) -> str:
    """The same in words."""
    how = "that of the table, as asked" if release.kept_order else "random"
    tells = release.order_tells
    said = [how if tells is None else f"{how}; in the order of the table {tells}"]
    return "; ".join([*said, *(column.secret_statement for column in release.kept_columns if column.secret_statement)])


def rare_secret_facts(release: Release) -> list[tuple[str, str]]:
    """The ε of each rare secret by itself, for the people whom the rows stand for."""
    said = "" if release.people is None else release.people.rare_alone
    return [("rare", f"for the people, {said}")] if said else []


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
    where = f"{found.ledger}, the owner's: it remembers this release, and how its order is undone"
    return [*(("again", sentence) for sentence in found.statements), ("ledger", where)]
