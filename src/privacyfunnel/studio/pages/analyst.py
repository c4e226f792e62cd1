"""For the analyst: a protocol and a sanitised table, and what they say about the original columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.responses import FileResponse, Response

from privacyfunnel.errors import ParameterError
from privacyfunnel.studio.crew import DONE, Job
from privacyfunnel.studio.pages.files import given, just_published, published, taken
from privacyfunnel.studio.pages.page import Asked, Form, Page, over
from privacyfunnel.studio.sessions import Session

SLOTS = ("protocol", "sanitised")
LEVELS = (0.9, 0.95, 0.99)
MOST_IMPUTED = 20


def show(session: Session) -> dict[str, Any]:
    return {
        "protocol": given(session, "protocol"),
        "sanitised": given(session, "sanitised"),
        "published": published(session) is not None,
    }


def take(session: Session, form: Form) -> None:
    taken(session, form, *SLOTS)
    asked = {name: form.get(name, "") for name in ("one", "other", "by", "level", "target") if name in form}
    if asked:
        session.beside["analyst"] = {**session.beside.get("analyst", {}), **asked}


def mine(session: Session, form: Form) -> None:
    """What was just published."""
    session.beside["protocol"], session.beside["sanitised"] = just_published(session)


def work(session: Session) -> Job | None:
    protocol, sanitised = (given(session, slot) for slot in SLOTS)
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
    imputed = session.known("impute")
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


async def estimates(asked: Asked) -> Response:
    job = asked.session.known("analyst")
    if job is None or job.state != DONE:
        return Response("", 404)
    return Response(job.result.csv, media_type="text/csv", headers=_named("estimates.csv"))


async def impute(asked: Asked) -> Response:
    """Complete so many tables, and hand out the one that is asked for."""
    protocol, sanitised = (given(asked.session, slot) for slot in SLOTS)
    number = asked.query.get("table", "")
    if protocol is None or sanitised is None or not number.isdecimal() or not 1 <= int(number) <= MOST_IMPUTED:
        return Response("", 404)
    into = asked.session.beside.setdefault("imputed", asked.place.new_folder())
    job = asked.session.work(
        "impute", protocol.path, sanitised.path, into, 5, (), about=(protocol.path, sanitised.path)
    )
    job = await over(job)
    if job.state != DONE or int(number) > len(job.result):
        return Response(job.sentence or "There is no such table.", 409, media_type="text/plain")
    path: Path = job.result[int(number) - 1]
    return FileResponse(path, headers=_named(path.name))


def _named(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


PAGE = Page(
    "analyst",
    "For the analyst",
    show,
    take,
    work,
    part,
    more={"estimates.csv": estimates, "imputed": impute},
    does={"mine": mine},
)
