"""Publish: what is not promised is read and ticked; then the files are written, and how to do it again is shown."""

from __future__ import annotations

from typing import Any

from starlette.responses import HTMLResponse, Response

from privacyfunnel.errors import ParameterError
from privacyfunnel.studio.pages.page_definition import Form, PageRequest, StudioPage
from privacyfunnel.studio.pages.promise_pages import solution, start_cost
from privacyfunnel.studio.sessions import Session
from privacyfunnel.studio.task_pool import DONE, FAILED, WORKING, Job
from privacyfunnel.studio.tasks import publish_task

REPORT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox"


def show(session: Session) -> dict[str, Any]:
    return {}


def take(session: Session, form: Form) -> None:
    if "into" in form:
        session.change(into=form["into"].strip(), time_limit=session.choices.time_limit)


def work(session: Session) -> Job | None:
    """What is published first has to be solved; while it is written, that is waited for."""
    job = _publication_job(session)
    if job is not None and job.state in {WORKING, DONE}:
        return job
    # Where all is known that the form shows, nothing is waited for: a curve that is still drawn must not disturb it.
    return start_cost(session) if solution(session) is None else Job(DONE)


def _publication_job(session: Session) -> Job | None:
    """The work of publishing just this."""
    job = session.last_job("publish")
    return job if job is not None and session.beside.get("publish") == session.choices else None


def part(session: Session, job: Job) -> dict[str, Any]:
    writing = _publication_job(session)
    choices = session.choices
    return {
        "writing": writing is not None and writing.state == WORKING,
        "doing": "" if writing is None else writing.messages.get("doing", ""),
        "released": writing.result if writing is not None and writing.state == DONE else None,
        "sentence": writing.sentence if writing is not None and writing.state == FAILED else "",
        "found": solution(session),
        "ticked": session.beside.get("ticked") == solution(session),
        "folder": choices.folder,
        "command": publish_task.format_command(choices.to_spec()),
        "script": publish_task.script(choices),
    }


def write(session: Session, form: Form) -> None:
    """Publish, if everything that is not promised was ticked."""
    take(session, form)
    solved = solution(session)
    if solved is None:
        raise ParameterError("The cost is not computed yet. Wait for it, then publish.")
    missing = [i for i in range(len(solved.not_promised)) if form.get(f"tick.{i}") != "yes"]
    if missing:
        raise ParameterError(
            f"Every line of what is not promised must be ticked; {len(missing)} of {len(solved.not_promised)} are "
            "not. Read them, and tick them if you accept them."
        )
    session.beside["ticked"] = solved
    old = session.last_job("publish")
    if old is not None and old.state == WORKING:
        return
    session.beside["publish"] = session.choices
    session.forget("publish")
    session.work("publish", session.choices, *(form.get(name) == "yes" for name in ("again", "force", "anyway")))


async def report(asked: PageRequest) -> Response:
    """The owner's report, as it was written, in a frame that nothing can leave."""
    job = asked.session.last_job("publish")
    if job is None or job.state != DONE:
        return Response("", 404)
    text = job.result.report.read_text(encoding="utf-8")
    headers = {"Content-Security-Policy": REPORT, "X-Frame-Options": "SAMEORIGIN"}
    return HTMLResponse(text, headers=headers)


async def script(asked: PageRequest) -> Response:
    return _file(publish_task.script(asked.session.choices), "text/x-python", "publish.py")


async def notebook(asked: PageRequest) -> Response:
    return _file(publish_task.notebook(asked.session.choices), "application/x-ipynb+json", "publish.ipynb")


def _file(text: str, kind: str, name: str) -> Response:
    return Response(text, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


PAGE = StudioPage(
    "publish",
    "Publish",
    show,
    take,
    work,
    part,
    views={"report": report, "publish.py": script, "publish.ipynb": notebook},
    actions={"write": write},
)
