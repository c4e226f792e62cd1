"""For the analyst: a protocol and a sanitised table, and what they say about the original columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.responses import FileResponse, Response

from privacyfunnel.errors import ParameterError
from privacyfunnel.studio.pages.file_slots import publication_files, publication_job, slot_file, store_paths
from privacyfunnel.studio.pages.page_definition import Form, PageRequest, StudioPage, wait_for
from privacyfunnel.studio.sessions import Session
from privacyfunnel.studio.task_pool import DONE, Job

SLOTS = ("protocol", "sanitised")
LEVELS = (0.9, 0.95, 0.99)
MOST_IMPUTED = 20


def show(session: Session) -> dict[str, Any]:
    return {
        "protocol": slot_file(session, "protocol"),
        "sanitised": slot_file(session, "sanitised"),
        "published": publication_job(session) is not None,
    }


def take(session: Session, form: Form) -> None:
    store_paths(session, form, *SLOTS)
    asked = {name: form.get(name, "") for name in ("one", "other", "by", "level", "target") if name in form}
    if asked:
        session.beside["analyst"] = {**session.beside.get("analyst", {}), **asked}


def use_publication(session: Session, form: Form) -> None:
    """What was just published."""
    session.beside["protocol"], session.beside["sanitised"] = publication_files(session)


def work(session: Session) -> Job | None:
    protocol, sanitised = (slot_file(session, slot) for slot in SLOTS)
    if protocol is None or sanitised is None:
        return None
    asked = session.beside.get("analyst", {})
    one, other = asked.get("one", ""), asked.get("other", "")
    columns = [tuple(dict.fromkeys(name for name in (one, other) if name))] if one else []
    level = float(asked.get("level") or 0.95)
    if level not in LEVELS:
        raise ParameterError("A level is one of 90, 95 and 99 %. Choose one.")
    target = "population" if asked.get("target") == "population" else "table"
    by = (asked["by"],) if asked.get("by") else ()
    return session.work("analyst", protocol.path, sanitised.path, columns, by, level, target)


def part(session: Session, job: Job) -> dict[str, Any]:
    imputed = session.last_job("impute")
    return {
        "found": job.result,
        "asked": {
            "one": "",
            "other": "",
            "by": "",
            "level": "0.95",
            "target": "table",
            **session.beside.get("analyst", {}),
        },
        "levels": LEVELS,
        "imputed": imputed.result if imputed is not None and imputed.state == DONE else (),
        "impute_failed": "" if imputed is None else imputed.sentence,
    }


async def estimates(asked: PageRequest) -> Response:
    job = asked.session.last_job("analyst")
    if job is None or job.state != DONE:
        return Response("", 404)
    return Response(job.result.csv, media_type="text/csv", headers=_attachment_headers("estimates.csv"))


async def impute(asked: PageRequest) -> Response:
    """Complete so many tables, and hand out the one that is asked for."""
    protocol, sanitised = (slot_file(asked.session, slot) for slot in SLOTS)
    number = asked.query.get("table", "")
    if protocol is None or sanitised is None or not number.isdecimal() or not 1 <= int(number) <= MOST_IMPUTED:
        return Response("", 404)
    into = asked.session.beside.setdefault("imputed", asked.place.new_folder())
    job = asked.session.work(
        "impute", protocol.path, sanitised.path, into, 5, (), about=(protocol.path, sanitised.path)
    )
    job = await wait_for(job)
    if job.state != DONE or int(number) > len(job.result):
        return Response(job.sentence or "There is no such table.", 409, media_type="text/plain")
    path: Path = job.result[int(number) - 1]
    return FileResponse(path, headers=_attachment_headers(path.name))


def _attachment_headers(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


PAGE = StudioPage(
    "analyst",
    "For the analyst",
    show,
    take,
    work,
    part,
    views={"estimates.csv": estimates, "imputed": impute},
    actions={"mine": use_publication},
)
