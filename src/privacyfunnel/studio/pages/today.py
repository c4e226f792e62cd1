"""What it gives away today."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from privacyfunnel.studio import drawing
from privacyfunnel.studio.choices import Choices
from privacyfunnel.studio.crew import Job
from privacyfunnel.studio.pages.page import Page
from privacyfunnel.studio.sessions import Session


def show(session: Session) -> dict[str, Any]:
    return {}


def work(session: Session) -> Job | None:
    choices = session.choices
    choices.checked_roles()
    return session.work("today", choices, about=_scanned(choices))


def _scanned(choices: Choices) -> Choices:
    """What a scan depends on."""
    return replace(choices, into="", public_report=False, time_limit=None, use="", people=False)


def part(session: Session, job: Job) -> dict[str, Any]:
    return {"found": job.result, "shown": None if job.result is None else drawing.leaks(job.result)}


PAGE = Page("today", "What it gives away today", show, work=work, part=part)
