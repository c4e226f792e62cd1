"""`ledger`: what the owner's ledger remembers, and what it is to forget."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.spec_options import field_option

if TYPE_CHECKING:
    from privacyfunnel.release.ledger.ledger_file import Entry, Ledger

SHOWN = 8  # letters of a name: enough to tell entries apart


class Action(StrEnum):
    """What is done with the ledger."""

    LIST = "list"
    SHOW = "show"
    FORGET = "forget"
    MERGE = "merge"


def ledger(
    action: Annotated[Action, typer.Argument(help="list, show NAME, forget NAME, or merge FILE.")] = Action.LIST,
    names: Annotated[
        list[str] | None, typer.Argument(help="Releases, by the names that list prints; other ledgers for merge.")
    ] = None,
    *,
    table: Annotated[
        Path, typer.Option("--table", readable=False, help="The table beside which the ledger is.", metavar="TABLE")
    ] = Path("table.csv"),
    file: Annotated[Path | None, field_option("ledger")] = None,
    as_json: Json = False,
) -> None:
    """Show what was promised about whom, spent and left; forget a release that nobody got, or merge others.

    A release that somebody has seen must not be forgotten: a later one would not be told what both leak.
    """
    from privacyfunnel.errors import ParameterError
    from privacyfunnel.release.ledger.ledger_file import Ledger, ledger_path
    from privacyfunnel.release.ledger.repeats import list_accounts

    book = Ledger(ledger_path(table) if file is None else file)
    if action is Action.MERGE:
        return _merge(book, [Path(name) for name in names or ()], as_json)
    if not book.path.exists():
        raise ParameterError(f"There is no ledger '{book.path}'. Name it with --ledger, or the table with --table.")
    entries = book.entries()
    chosen = entries
    if action in {Action.SHOW, Action.FORGET}:
        chosen = tuple(_find_entry(name, entries) for name in names or ())
        if not chosen:
            raise ParameterError(f"{action} needs the name of a release; list prints them. Name one.")
    content: dict[str, Any] = {"ledger": str(book.path), "releases": [_content(entry) for entry in chosen]}
    accounts = list_accounts(entries) if action is Action.LIST else ()
    content |= {"accounts": [account.to_dict() for account in accounts]} if action is Action.LIST else {}
    if action is Action.FORGET:
        book.forget([entry.name for entry in chosen])
        text = "\n".join(
            f"Forgotten: {entry.description}. If anybody has seen it, both count: then release nothing more of it."
            for entry in chosen
        )
    elif action is Action.SHOW:
        text = "\n\n".join(
            text_format.format_facts([(name, str(value)) for name, value in _content(entry).items()])
            for entry in chosen
        )
    else:
        text = "\n\n".join([_format_list(entries, book.path), *(account.text for account in accounts)])
    return answer(as_json, content, text)


def _merge(book: Ledger, others: list[Path], as_json: bool) -> None:
    from privacyfunnel.errors import ParameterError
    from privacyfunnel.release.ledger.ledger_file import Ledger

    missing = [path for path in others if not path.exists()]
    if not others or missing:
        raise ParameterError(f"merge needs other ledgers; there is no '{missing[0] if missing else ''}'. Name files.")
    new = book.merge([Ledger(path) for path in others])
    content = {"ledger": str(book.path), "merged": list(map(str, others)), "new": new}
    answer(
        as_json, content, f"{book.path} has {new} entries more. Rows that {len(others)} other ledgers know are known."
    )


def _find_entry(name: str, entries: tuple[Entry, ...]) -> Entry:
    from privacyfunnel.errors import ParameterError

    found = [entry for entry in entries if entry.name.startswith(name)]
    if len(found) != 1:
        raise ParameterError(f"'{name}' must name one release of the ledger; it names {len(found)}. See ledger list.")
    return found[0]


def _content(entry: Entry) -> dict[str, Any]:
    """The entry without what undoes the order of its rows, and without fingerprints."""
    return {
        "name": entry.name,
        "when": entry.when,
        "state": entry.state,
        "counts": entry.for_publication,
        "rows": entry.rows,
        "secret": ", ".join(entry.secret),
        "publish": ", ".join(entry.publish),
        "follows": len(entry.after),
        "promise": entry.promise or (f"noise of ε = {float(Fraction(entry.noise)):g}" if entry.noise else ""),
        "table": entry.table,
        "protocol": entry.protocol_file,
    }


def _format_list(entries: tuple[Entry, ...], path: Path) -> str:
    if not entries:
        return f"{path} remembers nothing."
    rows = [_content(entry) for entry in entries]
    table = [[r["name"][:SHOWN], r["when"][:10], r["state"], r["secret"], r["promise"], r["table"]] for r in rows]
    return text_format.format_table(["name", "when", "state", "secret", "promise", "file"], table, "<<<<<<")
