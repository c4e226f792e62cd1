"""Steps three to five: what the table leaks today, how much to promise, and what the promise costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.responses import HTMLResponse, Response

from privacyfunnel.errors import check_epsilon
from privacyfunnel.formatting import format_percent, format_places
from privacyfunnel.model.promises import Promise
from privacyfunnel.spec.fields import MODEL, POPULATION_PRIOR, TABLE
from privacyfunnel.spec.text_forms import join_names
from privacyfunnel.studio import pictures
from privacyfunnel.studio.choices import PUBLISH, Choices
from privacyfunnel.studio.pages.page_definition import Form, PageRequest, StudioPage
from privacyfunnel.studio.sessions import Session
from privacyfunnel.studio.task_pool import STOPPED, Job
from privacyfunnel.studio.tasks.cost_task import Cost


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


async def beliefs_view(asked: PageRequest) -> Response:
    """The beliefs for what the form says now; nothing is kept."""
    from dataclasses import replace

    choices = replace(asked.session.choices, **_parse_form(asked.query))
    return HTMLResponse(asked.render("beliefs", **beliefs(choices)))


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
    said, found = job.messages, job.result or job.messages.get("solved")
    return {
        "best": said.get("best") if found is None else found.best,
        "found": found,
        "proof": said.get("proof"),
        "curve": said.get("curve"),
        "doing": said.get("doing"),
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
