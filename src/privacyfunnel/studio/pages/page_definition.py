"""What a page is: what it shows, what its form changes, which work it waits for, and what else can be asked of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from privacyfunnel.studio.sessions import PrivateFolder, Session
from privacyfunnel.studio.task_pool import Job

LOOK = 0.02  # seconds between looks whether work is done
Form = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request within a session."""

    request: Request
    session: Session
    place: PrivateFolder
    render: Callable[..., str]  # a template by its name

    @property
    def query(self) -> Form:
        return self.request.query_params


def _ignore_form(session: Session, form: Form) -> None:
    return None


def _no_work(session: Session) -> Job | None:
    return None


@dataclass(frozen=True, slots=True)
class StudioPage:
    """A page of a session; its templates are called as it is."""

    name: str
    title: str
    show: Callable[[Session], dict[str, Any]]  # what the template is told
    take: Callable[[Session, Form], None] = _ignore_form  # what the form changes
    work: Callable[[Session], Job | None] = _no_work  # what its lower part waits for; begun if need be
    part: Callable[[Session, Job], dict[str, Any]] = field(default=lambda session, job: {})
    views: Mapping[str, Callable[[PageRequest], Awaitable[Response]]] = field(default_factory=dict)  # below its address
    actions: Mapping[str, Callable[[Session, Form], None]] = field(default_factory=dict)  # buttons, by their names


async def wait_for(job: Job) -> Job:
    """The work when it is done, failed or stopped."""
    while not job.is_over:
        await asyncio.sleep(LOOK)
    return job
