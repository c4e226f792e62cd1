"""Files that a page is given, by a path or by an upload."""

from __future__ import annotations

from pathlib import Path

from privacyfunnel.errors import ParameterError
from privacyfunnel.studio.choices import TableFile
from privacyfunnel.studio.pages.page_definition import Form
from privacyfunnel.studio.sessions import Session
from privacyfunnel.studio.task_pool import DONE, Job


def store_paths(session: Session, form: Form, *slots: str) -> None:
    """Remember the paths that a form names; what was uploaded stays where no path is named."""
    for slot in slots:
        path = form.get(f"path.{slot}", "").strip()
        known = session.beside.get(slot)
        if path and (known is None or known.uploaded or str(known.path) != path):
            session.beside[slot] = TableFile(Path(path).expanduser().absolute(), Path(path).name)
        elif not path and known is not None and not known.uploaded and f"path.{slot}" in form:
            del session.beside[slot]


def slot_file(session: Session, slot: str) -> TableFile | None:
    found = session.beside.get(slot)
    return found if isinstance(found, TableFile) else None


def publication_job(session: Session) -> Job | None:
    """The work of publishing in this tab, where it is done."""
    job = session.last_job("publish")
    return job if job is not None and job.state == DONE else None


def publication_files(session: Session) -> tuple[TableFile, TableFile]:
    """The protocol and the table that were published in this tab."""
    job = publication_job(session)
    if job is None:
        raise ParameterError("Nothing was published in this tab yet. Name the files instead.")
    files = [path for path, _ in job.result.files]
    protocol = next(path for path in files if path.name == "protocol.json")
    return TableFile(protocol, protocol.name), TableFile(files[0], files[0].name)
