"""What it gives away today."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from privacyfunnel.studio import pictures
from privacyfunnel.studio.choices import Choices
from privacyfunnel.studio.pages.page_definition import StudioPage
from privacyfunnel.studio.sessions import Session
from privacyfunnel.studio.task_pool import Job


def show(session: Session) -> dict[str, Any]:
    return {}


def work(session: Session) -> Job | None:
    choices = session.choices
    choices.check_roles()
    return session.work("today", choices, about=_scan_key(choices))


def _scan_key(choices: Choices) -> Choices:
    """What a scan depends on."""
    return replace(choices, into="", public_report=False, time_limit=None, use="", people=False)


def part(session: Session, job: Job) -> dict[str, Any]:
    return {"found": job.result, "shown": None if job.result is None else pictures.leaks_picture(job.result)}


PAGE = StudioPage("today", "What it gives away today", show, work=work, part=part)
