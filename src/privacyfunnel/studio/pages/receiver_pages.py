"""Pages for whoever receives a release: estimates for the analyst, and the audit; with the files they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.responses import FileResponse, Response

from privacyfunnel.errors import ParameterError
from privacyfunnel.studio.choices import SECRET, TableFile
from privacyfunnel.studio.pages.page_definition import Form, PageRequest, StudioPage, wait_for
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
    protocol, table = job.result.protocol, job.result.table
    return TableFile(protocol, protocol.name), TableFile(table, table.name)


ANALYST_SLOTS = ("protocol", "sanitised")
LEVELS = (0.9, 0.95, 0.99)
MOST_IMPUTED = 20


def show_analyst(session: Session) -> dict[str, Any]:
    return {
        "protocol": slot_file(session, "protocol"),
        "sanitised": slot_file(session, "sanitised"),
        "published": publication_job(session) is not None,
    }


def take_analyst(session: Session, form: Form) -> None:
    store_paths(session, form, *ANALYST_SLOTS)
    choices = {name: form.get(name, "") for name in ("one", "other", "by", "level", "target") if name in form}
    if choices:
        session.beside["analyst"] = {**session.beside.get("analyst", {}), **choices}


def analyse_publication(session: Session, form: Form) -> None:
    """What was just published."""
    session.beside["protocol"], session.beside["sanitised"] = publication_files(session)


def start_analyst(session: Session) -> Job | None:
    protocol, sanitised = (slot_file(session, slot) for slot in ANALYST_SLOTS)
    if protocol is None or sanitised is None:
        return None
    choices = session.beside.get("analyst", {})
    one, other = choices.get("one", ""), choices.get("other", "")
    columns = [tuple(dict.fromkeys(name for name in (one, other) if name))] if one else []
    level = float(choices.get("level") or 0.95)
    if level not in LEVELS:
        raise ParameterError("A level is one of 90, 95 and 99 %. Choose one.")
    target = "population" if choices.get("target") == "population" else "table"
    by = (choices["by"],) if choices.get("by") else ()
    return session.work("analyst", protocol.path, sanitised.path, columns, by, level, target)


def analyst_part(session: Session, job: Job) -> dict[str, Any]:
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


async def estimates(request: PageRequest) -> Response:
    job = request.session.last_job("analyst")
    if job is None or job.state != DONE:
        return Response("", 404)
    return Response(job.result.csv, media_type="text/csv", headers=_attachment_headers("estimates.csv"))


async def impute(request: PageRequest) -> Response:
    """Complete so many tables, and hand out the one that is asked for."""
    protocol, sanitised = (slot_file(request.session, slot) for slot in ANALYST_SLOTS)
    number = request.query.get("table", "")
    if protocol is None or sanitised is None or not number.isdecimal() or not 1 <= int(number) <= MOST_IMPUTED:
        return Response("", 404)
    into = request.session.beside.setdefault("imputed", request.place.new_folder())
    job = request.session.work(
        "impute", protocol.path, sanitised.path, into, 5, (), about=(protocol.path, sanitised.path)
    )
    job = await wait_for(job)
    if job.state != DONE or int(number) > len(job.result):
        return Response(job.sentence or "There is no such table.", 409, media_type="text/plain")
    path: Path = job.result[int(number) - 1]
    return FileResponse(path, headers=_attachment_headers(path.name))


def _attachment_headers(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


ANALYST_PAGE = StudioPage(
    "analyst",
    "For the analyst",
    show_analyst,
    take_analyst,
    start_analyst,
    analyst_part,
    views={"estimates.csv": estimates, "imputed": impute},
    actions={"mine": analyse_publication},
)


AUDIT_SLOTS = ("rules", "original", "drawn")


def show_audit(session: Session) -> dict[str, Any]:
    answers = session.beside.get("audit", {})
    return {
        **{slot: slot_file(session, slot) for slot in AUDIT_SLOTS},
        "secret": answers.get("secret", ""),
        "publish": answers.get("publish", ""),
        "published": publication_job(session) is not None,
    }


def take_audit(session: Session, form: Form) -> None:
    store_paths(session, form, *AUDIT_SLOTS)
    if "secret" in form:
        session.beside["audit"] = {"secret": form["secret"].strip(), "publish": form.get("publish", "").strip()}


def audit_publication(session: Session, form: Form) -> None:
    """What was just published, against the table it came from."""
    session.beside["rules"], session.beside["drawn"] = publication_files(session)
    session.beside["original"] = session.choices.table
    session.beside["audit"] = {"secret": ", ".join(session.choices.columns(SECRET)), "publish": ""}


def start_audit(session: Session) -> Job | None:
    rules, original, drawn = (slot_file(session, slot) for slot in AUDIT_SLOTS)
    if rules is None or original is None:
        return None
    answers = session.beside.get("audit", {})
    secret, publish = (
        tuple(name.strip() for name in answers.get(key, "").split(",") if name.strip()) for key in ("secret", "publish")
    )
    matrix = not rules.name.lower().endswith(".json")
    return session.work(
        "audit", rules.path, original.path, None if drawn is None or matrix else drawn.path, secret, publish, matrix
    )


def audit_part(session: Session, job: Job) -> dict[str, Any]:
    return {"found": job.result}


AUDIT_PAGE = StudioPage(
    "audit", "Audit", show_audit, take_audit, start_audit, audit_part, actions={"mine": audit_publication}
)
