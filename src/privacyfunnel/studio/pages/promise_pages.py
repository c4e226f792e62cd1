"""Steps three to five: what the table leaks today, how much to promise, and what the promise costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.responses import HTMLResponse, Response

from privacyfunnel.errors import ParameterError, check_epsilon
from privacyfunnel.formatting import format_percent, format_places
from privacyfunnel.model.promises import Promise
from privacyfunnel.spec.fields import MODEL, POPULATION_PRIOR, TABLE
from privacyfunnel.spec.text_forms import join_names
from privacyfunnel.studio import pictures
from privacyfunnel.studio.choices import PUBLISH, Choices
from privacyfunnel.studio.pages.page_definition import Form, PageRequest, StudioPage
from privacyfunnel.studio.sessions import Session
from privacyfunnel.studio.task_pool import DONE, FAILED, STOPPED, WORKING, Job
from privacyfunnel.studio.tasks.cost_task import Cost
from privacyfunnel.studio.tasks.publish_task import format_command, notebook, script


def show_today(session: Session) -> dict[str, Any]:
    return {}


def start_today(session: Session) -> Job | None:
    choices = session.choices
    choices.check_roles()
    return session.work("today", choices, about=_scan_key(choices))


def _scan_key(choices: Choices) -> Choices:
    """What a scan depends on."""
    return replace(choices, into="", time_limit=None, use="", prior=MODEL)


def today_part(session: Session, job: Job) -> dict[str, Any]:
    return {"found": job.result, "shown": None if job.result is None else pictures.leaks_picture(job.result)}


TODAY_PAGE = StudioPage("today", "What it leaks today", show_today, work=start_today, part=today_part)


PRIORS = (0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.8)  # beliefs before
LEAST, MOST = 0.05, 4.0  # ε that the slider reaches


def show_promise(session: Session) -> dict[str, Any]:
    return {"least": LEAST, "most": MOST, **beliefs(session.choices)}


def take_promise(session: Session, form: Form) -> None:
    if "epsilon" in form:
        session.change(**_parse_form(form))


def _parse_form(form: Form) -> dict[str, Any]:
    return {
        "epsilon": check_epsilon(form["epsilon"]),
        "knows": form.get("knows") == "yes",
        "ratios": form.get("ratios") == "yes",
        "prior": form["prior"] if form.get("prior") in (TABLE, POPULATION_PRIOR) else MODEL,
    }


async def beliefs_view(request: PageRequest) -> Response:
    """The beliefs for what the form says now; nothing is kept."""
    from dataclasses import replace

    choices = replace(request.session.choices, **_parse_form(request.query))
    return HTMLResponse(request.render("beliefs", **beliefs(choices)))


def beliefs(choices: Choices) -> dict[str, Any]:
    """Before and after, for beliefs of every size."""
    promise = choices.promise
    lines = [(format_percent(prior), *_belief_range(promise, prior)) for prior in PRIORS]
    return {
        "beliefs": lines,
        "promise_name": promise.name,
        "size": choices.size,
        "factor": format_places(choices.factor, 2, up=True),
    }


def _belief_range(promise: Promise, prior: float) -> tuple[str, str]:
    least, most = promise.belief_bounds(prior, promise.epsilon)
    return format_percent(least, down=True), format_percent(most, up=True)


PROMISE_PAGE = StudioPage("promise", "How much to promise", show_promise, take_promise, views={"table": beliefs_view})


USES = {
    "": "automatic: shares and tables where possible",
    "information": "information: the most nats",
    "statistics": "shares and tables: the least squared error",
    "balanced": "shares, keeping 99 % of the information",
    "balanced:0.97": "shares, keeping 97 % of the information",
    "values": "single records: the most correct values",
    "distance": "numbers and bins: the least distance from the original",
    "distance:squared": "one column of numbers or bins: the least squared error",
}


def uses(choices: Choices) -> dict[str, str]:
    """What a table of these columns can be made for: the text of the field `use`, and its description."""
    published = choices.columns(PUBLISH)
    each = {f"statistics:{join_names(published)}": "the shares of each column alone: the least squared error"}
    return USES | each if len(published) > 1 else USES


def show_cost(session: Session) -> dict[str, Any]:
    return {"uses": uses(session.choices)}


def take_cost(session: Session, form: Form) -> None:
    if form.get("use", session.choices.use) in uses(session.choices):
        session.change(use=form.get("use", session.choices.use))


def start_cost(session: Session) -> Job | None:
    if session.choices.use not in uses(session.choices):  # it was about columns that are published no more
        session.change(use="")
    choices = session.choices
    choices.check_roles()
    return session.work("cost", choices, about=solution_key(choices))


def solution_key(choices: Choices) -> Choices:
    """What a solution depends on; not for how long it was searched."""
    return replace(choices, into="", time_limit=None)


def solution(session: Session) -> Cost | None:
    """What was found for the choices as they are; the curve may still be on its way."""
    job = start_cost(session)
    return None if job is None else job.result or job.messages.get("solved")


def cost_part(session: Session, job: Job) -> dict[str, Any]:
    messages, found = job.messages, job.result or job.messages.get("solved")
    return {
        "best": messages.get("best") if found is None else found.best,
        "found": found,
        "proof": messages.get("proof"),
        "doing": messages.get("doing"),
        "over": job.is_over,
        "stopped": job.state == STOPPED,
        "taken": session.choices.time_limit,
    }


def stop(session: Session, form: Form) -> None:
    """End the search; nothing of it is used."""
    job = session.last_job("cost")
    if job is not None:
        job.stop()


def accept_best(session: Session, form: Form) -> None:
    """Go on with what the last round ended with: the same as a time limit of as many seconds."""
    job = session.last_job("cost")
    found = None if job is None else job.messages.get("best")
    if job is not None and found is not None and not job.is_over:
        job.accept_best()
        session.change(time_limit=found.time_limit)


def search_again(session: Session, form: Form) -> None:
    """Search from the beginning."""
    session.change(time_limit=None)
    session.forget("cost")


COST_PAGE = StudioPage(
    "cost",
    "What it costs",
    show_cost,
    take_cost,
    start_cost,
    cost_part,
    actions={"stop": stop, "best": accept_best, "again": search_again},
)


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
        "command": format_command(choices.to_spec()),
        "script": script(choices),
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


async def report(request: PageRequest) -> Response:
    """The owner's report, as it was written, in a frame that nothing can leave."""
    job = request.session.last_job("publish")
    if job is None or job.state != DONE:
        return Response("", 404)
    text = job.result.report.read_text(encoding="utf-8")
    headers = {"Content-Security-Policy": REPORT, "X-Frame-Options": "SAMEORIGIN"}
    return HTMLResponse(text, headers=headers)


async def send_script(request: PageRequest) -> Response:
    return _file(script(request.session.choices), "text/x-python", "publish.py")


async def send_notebook(request: PageRequest) -> Response:
    return _file(notebook(request.session.choices), "application/x-ipynb+json", "publish.ipynb")


def _file(text: str, kind: str, name: str) -> Response:
    return Response(text, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


PAGE = StudioPage(
    "publish",
    "Publish",
    show,
    take,
    work,
    part,
    views={"report": report, "publish.py": send_script, "publish.ipynb": send_notebook},
    actions={"write": write},
)
