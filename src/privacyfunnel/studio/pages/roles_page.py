"""Roles: what each column is, and how its values are read."""

from __future__ import annotations

from typing import Any

from starlette.responses import HTMLResponse, Response

from privacyfunnel.studio import pictures
from privacyfunnel.studio.choices import KEEP, LEAVE, PUBLISH, ROLES, SECRET
from privacyfunnel.studio.pages import table_page
from privacyfunnel.studio.pages.page_definition import Form, PageRequest, StudioPage, wait_for
from privacyfunnel.studio.sessions import Session
from privacyfunnel.studio.task_pool import DONE, Job
from privacyfunnel.tables.coding.coders import MOST_NUMBERS
from privacyfunnel.tables.coding.exploration import DATES, NUMBERS, ColumnProfile
from privacyfunnel.tables.coding.grouping_rules import PARTS

NAMES = {SECRET: "Secret", PUBLISH: "Published, protected", KEEP: "Kept as it is", LEAVE: "Left out"}
WARNINGS = {KEEP: "Nothing is promised about a kept column: it is copied as it is, and may give the secret away."}
USUAL = {NUMBERS: "quantiles:8", DATES: "month"}  # bins of many numbers or dates for which nobody asked for any


def show(session: Session) -> dict[str, Any]:
    return {}


def usual_bins(at: ColumnProfile) -> str:
    """What a column is cut into unless somebody says otherwise."""
    return USUAL.get(at.kind, "") if at.distinct > MOST_NUMBERS or at.more else ""


def take(session: Session, form: Form) -> None:
    """Roles, bins and rare values by the number of the column: its name may be anything."""
    looked = _column_glances(session)
    if looked is None:
        return
    roles, bins, rare = {}, {}, {}
    for i, at in enumerate(looked):
        role = form.get(f"role.{i}", LEAVE)
        roles[at.column] = role if role in ROLES else LEAVE
        how = form.get(f"bin.{i}", usual_bins(at)).strip()
        if how:
            bins[at.column] = how
        few = form.get(f"rare.{i}", "").strip()
        if few.isdecimal() and len(few) < 10 and int(few) > 1:
            rare[at.column] = int(few)
    session.change(roles=roles, bins=bins, rare=rare)


def work(session: Session) -> Job | None:
    return table_page.work(session)


def part(session: Session, job: Job) -> dict[str, Any]:
    choices = session.choices
    rows = [
        {
            "at": at,
            "role": choices.roles.get(at.column, LEAVE),
            "bins": choices.bins.get(at.column, "" if choices.roles else usual_bins(at)),
            "usual": usual_bins(at),
            "rare": choices.rare.get(at.column, ""),
            "picture": pictures.bars_picture(at.column, at.bars) if at.bars is not None else None,
        }
        for at in job.result.columns
    ]
    return {"rows": rows, "names": NAMES, "warnings": WARNINGS, "parts": tuple(PARTS), "looked": job.result}


async def cut(asked: PageRequest) -> Response:
    """One column in the bins that are asked for, as a picture and in words."""
    looked = _column_glances(asked.session)
    number = asked.query.get("column", "")
    if looked is None or not number.isdecimal() or int(number) >= len(looked):
        return Response("", 404)
    at, how = looked[int(number)], asked.query.get("how", "").strip()
    choices = asked.session.choices
    picture, found, sentence = None, None, ""
    if how:
        job = await wait_for(
            asked.session.work(
                "edges",
                choices.table,
                choices.dialect,
                at.column,
                how,
            )
        )
        found = job.result if job.state == DONE else None
        sentence = job.sentence
    if at.bars is not None:
        picture = pictures.bars_picture(at.column, at.bars, found.edges if found is not None else ())
    pairs = [] if found is None else list(zip(found.labels, found.rows, strict=True))
    return HTMLResponse(asked.render("cut", shown=picture, cut=found, pairs=pairs, sentence=sentence))


def _column_glances(session: Session) -> tuple[ColumnProfile, ...] | None:
    job = session.last_job("look")
    return job.result.columns if job is not None and job.state == DONE else None


PAGE = StudioPage("roles", "Roles", show, take, work, part, views={"cut": cut})
