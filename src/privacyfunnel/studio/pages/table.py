"""Table: which one, how it is read, and what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privacyfunnel.errors import TableError
from privacyfunnel.studio.choices import Choices, Source
from privacyfunnel.studio.crew import Job
from privacyfunnel.studio.pages.page import Form, Page
from privacyfunnel.studio.sessions import Session

DELIMITERS = {",": "comma ,", ";": "semicolon ;", "\t": "tab", "|": "bar |"}
ENCODINGS = ("utf-8", "windows-1252", "iso-8859-1", "utf-16")


def show(session: Session) -> dict[str, Any]:
    return {"delimiters": DELIMITERS, "encodings": ENCODINGS}


def take(session: Session, form: Form) -> None:
    """Another table forgets what was said about the last one; another way to read it, its columns too."""
    path = form.get("path", "").strip()
    known = session.choices.source
    shown = "" if known is None or known.uploaded else str(known.path)
    if path and path != shown:
        chosen(session, Source(Path(path).expanduser().absolute(), Path(path).name))
        return
    if "delimiter" in form:
        delimiter, encoding = form["delimiter"] or None, form.get("encoding", "") or None
        if delimiter is not None and len(delimiter) != 1:
            raise TableError("A delimiter must be one character. Choose one of the list.")
        session.change(delimiter=delimiter, encoding=encoding)


def chosen(session: Session, source: Source) -> None:
    """Begin with this table."""
    before = session.choices
    session.choices = Choices(
        source=source, knows=before.knows, ratios=before.ratios, epsilon=before.epsilon, people=before.people
    )


def work(session: Session) -> Job | None:
    choices = session.choices
    if choices.source is None:
        return None
    return session.work("look", choices.source, choices.delimiter, choices.encoding)


def part(session: Session, job: Job) -> dict[str, Any]:
    return {"looked": job.result}


PAGE = Page("table", "Table", show, take, work, part)
