"""How much to promise: two plain questions, a size, and what beliefs become."""

from __future__ import annotations

import math
from typing import Any

from starlette.responses import HTMLResponse, Response

from privacyfunnel.errors import check_epsilon
from privacyfunnel.studio.choices import Choices
from privacyfunnel.studio.pages.page_definition import Form, PageRequest, StudioPage
from privacyfunnel.studio.sessions import Session

PRIORS = (0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.8)  # beliefs before
LEAST, MOST = 0.05, 4.0  # ε that the slider reaches


def show(session: Session) -> dict[str, Any]:
    return {"least": LEAST, "most": MOST, **beliefs(session.choices)}


def take(session: Session, form: Form) -> None:
    if "epsilon" in form:
        session.change(**_parse_form(form))


def _parse_form(form: Form) -> dict[str, Any]:
    return {
        "epsilon": check_epsilon(form["epsilon"]),
        "knows": form.get("knows") == "yes",
        "ratios": form.get("ratios") == "yes",
        "people": form.get("people") == "yes",
    }


async def table(asked: PageRequest) -> Response:
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
        "factor": math.ceil(choices.factor * 100 - 1e-9) / 100,
    }


def _belief_range(promise: Any, prior: float) -> tuple[str, str]:
    least, most = promise.belief_bounds(prior, promise.epsilon)
    return format_percent(least, up=False), format_percent(most, up=True)


def format_percent(share: float, *, up: bool | None = None) -> str:
    """A share in percent; a limit is never rounded to look tighter than it is.

    >>> (format_percent(0.01), format_percent(0.7425, up=True),
    ...  format_percent(0.0271828, up=True), format_percent(0.2, up=False))
    ('1 %', '74.3 %', '2.72 %', '20 %')
    """
    size = 100 * share
    scale = 10.0 if size >= 10 else 100.0
    whole = (
        round(size * scale) if up is None else math.ceil(size * scale - 1e-9) if up else math.floor(size * scale + 1e-9)
    )
    return f"{whole / scale:g} %"


PAGE = StudioPage("promise", "How much to promise", show, take, views={"table": table})
