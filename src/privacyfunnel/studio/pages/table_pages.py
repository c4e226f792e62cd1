"""The first two steps: which table and how it is read; the role of each column and how its values are grouped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse, Response

from privacyfunnel.studio import pictures
from privacyfunnel.studio.choices import KEEP, LEAVE, PUBLISH, ROLES, SECRET, Choices, TableFile
from privacyfunnel.studio.pages.page_definition import Form, PageRequest, StudioPage, wait_for
from privacyfunnel.studio.sessions import Session
from privacyfunnel.studio.task_pool import DONE, Job
from privacyfunnel.tables.coding.bins import example_edges
from privacyfunnel.tables.coding.coders import MOST_NUMBERS
from privacyfunnel.tables.coding.exploration import DATES, NUMBERS, ColumnProfile
from privacyfunnel.tables.coding.grouping_rules import PARTS
from privacyfunnel.tables.readers.formats import Dialect

READING = ("delimiter", "encoding", "decimal", "sheet")
DELIMITERS = {",": "comma ,", ";": "semicolon ;", "\t": "tab", "|": "bar |"}
ENCODINGS = ("utf-8", "windows-1252", "iso-8859-1", "utf-16")
DECIMALS = {".": "point 3.5", ",": "comma 3,5"}


def show_table(session: Session) -> dict[str, Any]:
    return {}


def take_table(session: Session, form: Form) -> None:
    """Another table forgets what was said about the last one; another way to read it, its columns too."""
    path = form.get("path", "").strip()
    known = session.choices.source
    shown = "" if known is None or known.uploaded else str(known.path)
    if path and (path != shown or "delimiter" not in form):  # opened again, it is read anew
        choose_table(session, TableFile(Path(path).expanduser().absolute(), Path(path).name))
        return
    if "delimiter" in form:
        delimiter, encoding, decimal, sheet = (form.get(name, "") or None for name in READING)
        row = form.get("header_row", "").strip()
        header_row = int(row) if row.isdecimal() and 0 < len(row) < 7 and int(row) else None
        session.change(dialect=Dialect(delimiter, encoding, decimal, sheet=sheet, header_row=header_row))


def choose_table(session: Session, source: TableFile) -> None:
    """Begin with this table."""
    before = session.choices
    session.choices = Choices(
        source=source, knows=before.knows, ratios=before.ratios, epsilon=before.epsilon, prior=before.prior
    )


def start_table(session: Session) -> Job | None:
    choices = session.choices
    if choices.source is None:
        return None
    return session.work("look", choices.source, choices.dialect)


def table_part(session: Session, job: Job) -> dict[str, Any]:
    return {"looked": job.result, "delimiters": DELIMITERS, "encodings": ENCODINGS, "decimals": DECIMALS}


TABLE_PAGE = StudioPage("table", "Table", show_table, take_table, start_table, table_part)


NAMES = {SECRET: "Secret", PUBLISH: "Published", KEEP: "Kept in clear", LEAVE: "Left out"}
WARNINGS = {
    SECRET: "Protected. Several secret columns are promised each by itself, and nothing about several together.",
    PUBLISH: "Published, randomised. The secret is protected; this column is not.",
    KEEP: "Published in clear for every row, and judged together with what else is published.",
}


def show_roles(session: Session) -> dict[str, Any]:
    return {}


def usual_bins(at: ColumnProfile) -> str:
    """What many numbers or dates are cut into unless somebody says otherwise: at round edges, or by the month."""
    if at.distinct <= MOST_NUMBERS and not at.more:
        return ""
    if at.kind == NUMBERS and at.bars is not None:
        return example_edges(at.bars.low, at.bars.high)
    return "month" if at.kind == DATES else ""


def take_roles(session: Session, form: Form) -> None:
    """Roles, bins, and rare or public values by the number of the column: its name may be anything."""
    looked = _column_glances(session)
    if looked is None:
        return
    roles, bins, rare, public = {}, {}, {}, []
    for i, at in enumerate(looked):
        role = form.get(f"role.{i}", LEAVE)
        roles[at.column] = role if role in ROLES else LEAVE
        how = form.get(f"bin.{i}", usual_bins(at)).strip()
        if how:
            bins[at.column] = how
        few = form.get(f"rare.{i}", "").strip()
        if few.isdecimal() and len(few) < 10 and int(few) > 1:
            rare[at.column] = int(few)
        if form.get(f"public.{i}") == "yes":
            public.append(at.column)
    session.change(roles=roles, bins=bins, rare=rare, public=tuple(public))


def start_roles(session: Session) -> Job | None:
    return start_table(session)


def roles_part(session: Session, job: Job) -> dict[str, Any]:
    choices = session.choices
    rows = [
        {
            "at": at,
            "role": choices.roles.get(at.column, LEAVE),
            "bins": choices.bins.get(at.column, "" if choices.roles else usual_bins(at)),
            "usual": usual_bins(at),
            "rare": choices.rare.get(at.column, ""),
            "public": at.column in choices.public,
            "picture": pictures.bars_picture(at.column, at.bars) if at.bars is not None else None,
        }
        for at in job.result.columns
    ]
    return {"rows": rows, "names": NAMES, "warnings": WARNINGS, "parts": tuple(PARTS), "looked": job.result}


async def cut(request: PageRequest) -> Response:
    """One column in the bins that are asked for, as a picture and in words."""
    looked = _column_glances(request.session)
    number = request.query.get("column", "")
    if looked is None or not number.isdecimal() or int(number) >= len(looked):
        return Response("", 404)
    at, how = looked[int(number)], request.query.get("how", "").strip()
    choices = request.session.choices
    picture, found, sentence = None, None, ""
    if how:
        job = await wait_for(
            request.session.work(
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
    return HTMLResponse(request.render("cut", shown=picture, cut=found, pairs=pairs, sentence=sentence))


def _column_glances(session: Session) -> tuple[ColumnProfile, ...] | None:
    job = session.last_job("look")
    return job.result.columns if job is not None and job.state == DONE else None


ROLES_PAGE = StudioPage("roles", "Roles", show_roles, take_roles, start_roles, roles_part, views={"cut": cut})
