"""Table: which one, how it is read, and what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privacyfunnel.studio.choices import Choices, TableFile
from privacyfunnel.studio.pages.page_definition import Form, StudioPage
from privacyfunnel.studio.sessions import Session
from privacyfunnel.studio.task_pool import Job
from privacyfunnel.tables.readers.formats import Dialect

DELIMITERS = {",": "comma ,", ";": "semicolon ;", "\t": "tab", "|": "bar |"}
ENCODINGS = ("utf-8", "windows-1252", "iso-8859-1", "utf-16")
DECIMALS = {".": "point 3.5", ",": "comma 3,5"}


def show(session: Session) -> dict[str, Any]:
    return {}


def take(session: Session, form: Form) -> None:
    """Another table forgets what was said about the last one; another way to read it, its columns too."""
    path = form.get("path", "").strip()
    known = session.choices.source
    shown = "" if known is None or known.uploaded else str(known.path)
    if path and path != shown:
        choose_table(session, TableFile(Path(path).expanduser().absolute(), Path(path).name))
        return
    if "delimiter" in form:
        delimiter, encoding, decimal = (form.get(name, "") or None for name in ("delimiter", "encoding", "decimal"))
        session.change(dialect=Dialect(delimiter, encoding, decimal))


def choose_table(session: Session, source: TableFile) -> None:
    """Begin with this table."""
    before = session.choices
    session.choices = Choices(
        source=source, knows=before.knows, ratios=before.ratios, epsilon=before.epsilon, people=before.people
    )


def work(session: Session) -> Job | None:
    choices = session.choices
    if choices.source is None:
        return None
    return session.work("look", choices.source, choices.dialect)


def part(session: Session, job: Job) -> dict[str, Any]:
    return {"looked": job.result, "delimiters": DELIMITERS, "encodings": ENCODINGS, "decimals": DECIMALS}


PAGE = StudioPage("table", "Table", show, take, work, part)
