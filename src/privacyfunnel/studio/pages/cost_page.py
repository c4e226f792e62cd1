"""What it costs: the protocol that would be published, what is lost, and what another size would change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from privacyfunnel.spec.text_forms import join_names
from privacyfunnel.studio.choices import PUBLISH, Choices
from privacyfunnel.studio.pages.page_definition import Form, StudioPage
from privacyfunnel.studio.sessions import Session
from privacyfunnel.studio.task_pool import STOPPED, Job
from privacyfunnel.studio.tasks.cost_task import Cost

USES = {
    "": "what serves most: shares and tables where they can be had",
    "information": "everything a little: the most information",
    "statistics": "shares and tables: the least error of all shares",
    "balanced": "shares, but 99 % of the information too",
    "balanced:0.97": "shares, but 97 % of the information too",
    "values": "single records: the right value most often",
    "distance": "numbers and bins: the least distance from the right value",
    "distance:squared": "one column of numbers or bins: the least squared error",
}


def uses(choices: Choices) -> dict[str, str]:
    """What a table of these columns can be made for: as it stands behind --for, and in words."""
    published = choices.columns(PUBLISH)
    each = {
        f"statistics:{join_names(published)}": "the shares of each column: their least error, whatever goes together"
    }
    return USES | each if len(published) > 1 else USES


def show(session: Session) -> dict[str, Any]:
    return {"uses": uses(session.choices)}


def take(session: Session, form: Form) -> None:
    if form.get("use", session.choices.use) in uses(session.choices):
        session.change(use=form.get("use", session.choices.use))


def work(session: Session) -> Job | None:
    if session.choices.use not in uses(session.choices):  # it was about columns that are published no more
        session.change(use="")
    choices = session.choices
    choices.check_roles()
    return session.work("cost", choices, about=solution_key(choices))


def solution_key(choices: Choices) -> Choices:
    """What a solution depends on; not for how long it was searched."""
    return replace(choices, into="", public_report=False, time_limit=None)


def solution(session: Session) -> Cost | None:
    """What was found for the choices as they are; the curve may still be on its way."""
    job = work(session)
    return None if job is None else job.result or job.messages.get("solved")


def part(session: Session, job: Job) -> dict[str, Any]:
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
    """Go on with what the last round ended with: what `--time-limit` of as many seconds gives."""
    job = session.last_job("cost")
    found = None if job is None else job.messages.get("best")
    if job is not None and found is not None and not job.is_over:
        job.accept_best()
        session.change(time_limit=found.time_limit)


def search_again(session: Session, form: Form) -> None:
    """Search from the beginning."""
    session.change(time_limit=None)
    session.forget("cost")


PAGE = StudioPage(
    "cost", "What it costs", show, take, work, part, actions={"stop": stop, "best": accept_best, "again": search_again}
)
