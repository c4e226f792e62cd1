"""Audit: a protocol, or a matrix from other software, and the table it is for."""

from __future__ import annotations

from typing import Any

from privacyfunnel.studio.choices import SECRET
from privacyfunnel.studio.pages.file_slots import publication_files, publication_job, slot_file, store_paths
from privacyfunnel.studio.pages.page_definition import Form, StudioPage
from privacyfunnel.studio.sessions import Session
from privacyfunnel.studio.task_pool import Job

SLOTS = ("rules", "original", "drawn")


def show(session: Session) -> dict[str, Any]:
    said = session.beside.get("audit", {})
    return {
        **{slot: slot_file(session, slot) for slot in SLOTS},
        "secret": said.get("secret", ""),
        "publish": said.get("publish", ""),
        "published": publication_job(session) is not None,
    }


def take(session: Session, form: Form) -> None:
    store_paths(session, form, *SLOTS)
    if "secret" in form:
        session.beside["audit"] = {"secret": form["secret"].strip(), "publish": form.get("publish", "").strip()}


def use_publication(session: Session, form: Form) -> None:
    """What was just published, against the table it came from."""
    session.beside["rules"], session.beside["drawn"] = publication_files(session)
    session.beside["original"] = session.choices.table
    session.beside["audit"] = {"secret": ", ".join(session.choices.columns(SECRET)), "publish": ""}


def work(session: Session) -> Job | None:
    rules, original, drawn = (slot_file(session, slot) for slot in SLOTS)
    if rules is None or original is None:
        return None
    said = session.beside.get("audit", {})
    secret, publish = (
        tuple(name.strip() for name in said.get(key, "").split(",") if name.strip()) for key in ("secret", "publish")
    )
    matrix = not rules.name.lower().endswith(".json")
    return session.work(
        "audit", rules.path, original.path, None if drawn is None or matrix else drawn.path, secret, publish, matrix
    )


def part(session: Session, job: Job) -> dict[str, Any]:
    return {"found": job.result}


PAGE = StudioPage("audit", "Audit", show, take, work, part, actions={"mine": use_publication})
