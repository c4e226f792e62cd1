"""Files that a page is given, by a path or by an upload."""

from __future__ import annotations

from pathlib import Path

from privacyfunnel.errors import ParameterError
from privacyfunnel.studio.choices import Source
from privacyfunnel.studio.crew import DONE, Job
from privacyfunnel.studio.pages.page import Form
from privacyfunnel.studio.sessions import Session


def taken(session: Session, form: Form, *slots: str) -> None:
    """Remember the paths that a form names; what was uploaded stays where no path is named."""
    for slot in slots:
        path = form.get(f"path.{slot}", "").strip()
        known = session.beside.get(slot)
        if path and (known is None or known.uploaded or str(known.path) != path):
            session.beside[slot] = Source(Path(path).expanduser().absolute(), Path(path).name)
        elif not path and known is not None and not known.uploaded and f"path.{slot}" in form:
            del session.beside[slot]


def given(session: Session, slot: str) -> Source | None:
    found = session.beside.get(slot)
    return found if isinstance(found, Source) else None


def published(session: Session) -> Job | None:
    """The work of publishing in this tab, where it is done."""
    job = session.known("publish")
    return job if job is not None and job.state == DONE else None


def just_published(session: Session) -> tuple[Source, Source]:
    """The protocol and the table that were published in this tab."""
    job = published(session)
    if job is None:
        raise ParameterError("Nothing was published in this tab yet. Name the files instead.")
    files = [path for path, _ in job.result.files]
    protocol = next(path for path in files if path.name == "protocol.json")
    return Source(protocol, protocol.name), Source(files[0], files[0].name)
