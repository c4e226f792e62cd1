"""How much to promise: two plain questions, a size, and what beliefs become."""

from __future__ import annotations

from typing import Any

from starlette.responses import HTMLResponse, Response

from privacyfunnel.errors import check_epsilon
from privacyfunnel.formatting import format_percent, format_places
from privacyfunnel.model.promises import Promise
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
        "factor": format_places(choices.factor, 2, up=True),
    }


def _belief_range(promise: Promise, prior: float) -> tuple[str, str]:
    least, most = promise.movable(prior, promise.epsilon)
    return format_percent(least, down=True), format_percent(most, up=True)


PAGE = StudioPage("promise", "How much to promise", show, take, views={"table": table})
