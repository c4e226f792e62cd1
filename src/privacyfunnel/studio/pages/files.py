"""Files that a page is given, by a path or by an upload."""

from __future__ import annotations

from pathlib import Path

from privacyfunnel.studio.choices import Source
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
