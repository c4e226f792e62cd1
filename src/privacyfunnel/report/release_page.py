"""The report of a release as one HTML page without outside resources: the owner's page and the public page.

Both answer six questions, for every kind of mechanism: what was promised and for whom, what an attacker could learn at
worst, what an analyst gets, what was changed, what is not promised, and how to repeat the release.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from privacyfunnel.audits.side_channel_audit import side_channel
from privacyfunnel.designs.methods import Effort
from privacyfunnel.errors import ParameterError
from privacyfunnel.formatting import format_percent
from privacyfunnel.hints import hint, word_for_python
from privacyfunnel.model.joint import Joint
from privacyfunnel.release.release_files import ReportPage
from privacyfunnel.release.sanitise import Release
from privacyfunnel.report import CROISSANT, OWNER_REPORT, PUBLIC_REPORT, statements
from privacyfunnel.report.analyst import AnalystView, analyst_view, shares_bars
from privacyfunnel.report.attacker import AttackerView, attacker_view, beliefs_bars, guessing_sentence, worst_sentence
from privacyfunnel.report.bars import STYLE
from privacyfunnel.report.changes import change_bars, changes, public_bars
from privacyfunnel.report.cost_picture import LOOSE, cost_curve, costs_picture
from privacyfunnel.report.croissant import description
from privacyfunnel.report.statements import Occasion, to_sentence

__all__ = ["Occasion", "frame_page", "owner_page", "pages", "public_page"]

MOST_PICTURES = 4  # of several published columns, one each
SIDE_SECONDS = 1.5  # to measure the leakage to somebody who knows some columns


def pages(
    release: Release,
    occasion: Occasion,
    *,
    owners: bool = True,
    public: bool = False,
    croissant: bool = False,
    curve: bool = False,
    watch: Callable[[str], None] | None = None,
) -> Iterator[ReportPage]:
    """The requested pages: the owner's (readable by the owner only), the public one, a description for catalogues."""
    if owners:
        yield ReportPage(OWNER_REPORT, owner_page(release, occasion, curve=curve, watch=watch), owners=True)
    if public:
        yield ReportPage(PUBLIC_REPORT, public_page(release, occasion))
    if croissant:
        yield ReportPage(CROISSANT, description(release, occasion))


def frame_page(release: Release) -> str:
    """The owner's page of a release of a frame, for whoever works in Python."""
    python = f"Python {sys.version.split()[0]}"
    occasion = Occasion(datetime.now().astimezone(), "a frame in memory", python, wording=word_for_python)
    return owner_page(release, occasion, curve=release.spec.curve)


def owner_page(
    release: Release,
    occasion: Occasion,
    *,
    curve: bool = False,
    effort: Effort = LOOSE,
    watch: Callable[[str], None] | None = None,
) -> str:
    """The owner's page. It shows figures about the secret and is not for publication.

    Only `curve` solves further problems, each with this `effort`.
    """
    say = watch or (lambda doing: None)
    sealed, joint = release.sealed, release.joint
    if joint is None:
        raise ParameterError("The owner's report needs the counts of the table; this release carries none.")
    costs = None
    if curve:
        say("solving the curve")
        found = cost_curve(joint, sealed, effort, release.known)
        costs = found and costs_picture(found, release.method, sealed.promise.epsilon, sealed.information)
    say("drawing the report")
    estimates = analyst_view(sealed, joint, release.rows)
    attacker = attacker_view(joint, sealed)
    return _render(
        occasion,
        **_common_fields(release),
        **_attacker_fields(release, attacker),
        **_analyst_fields(release, estimates),
        **_change_fields(release, joint),
        owner=True,
        title=f"Publishing {statements.column_names(sealed)} without giving away {statements.secret_name(sealed)}",
        facts=statements.facts(release, attacker, estimates),
        scopes=statements.scope_answers(release, side_channel(joint, sealed.mechanism, SIDE_SECONDS)),
        not_promised=release.not_promised_to_owner,
        costs=costs,
        curve_note="" if curve else f"For a curve of information kept against ε, use {hint('curve')}.",
        provenance=statements.provenance(release, occasion),
        command="\n".join(filter(None, (occasion.command, statements.audit_command(release, occasion)))),
    )


def public_page(release: Release, occasion: Occasion) -> str:
    """The page for everybody. No figure on it is a function of exact counts.

    Somebody who knows all other rows can compute a person's secret from such a figure, even from probabilities in whole
    percents (benchmarks attacks). Figures of noisy counts are shown.
    """
    sealed = release.sealed
    picture = public_bars(sealed) if sealed.has_noisy_design else None
    return _render(
        occasion,
        **_common_fields(release),
        owner=False,
        lead="",
        facts=statements.public_facts(sealed),
        title=f"{statements.column_names(sealed)}: a sanitised table",
        scopes=statements.public_scope_answers(sealed),
        attacker=None,
        attacker_notes=["Probability of a value before seeing a published record, and its limits after:"],
        examples=statements.examples(sealed),
        beliefs=(),
        has_limit=True,
        analyst_notes=[statements.FOR_ANALYSTS],
        shares=[],
        change_notes=[statements.publication_statement(sealed, drawn=picture is not None)],
        changed=[],
        change_pictures=[(picture, "")] if picture else [],
        not_promised=release.not_promised,
        costs=None,
        curve_note="",
        provenance=statements.public_provenance(sealed, occasion),
        command="",
    )


def _render(occasion: Occasion, **fields: Any) -> str:
    environment = Environment(
        loader=PackageLoader("privacyfunnel", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=lambda value: occasion.wording(value) if type(value) is str else value,
    )
    environment.filters["percent"] = format_percent
    return environment.get_template("page.html.jinja").render(style=STYLE, **fields)


def _common_fields(release: Release) -> dict[str, Any]:
    sealed = release.sealed
    return {
        "secret": statements.secret_name(sealed),
        "for_publication": sealed.for_publication,
        "meaning": statements.meaning(sealed),
    }


def _attacker_fields(release: Release, found: AttackerView) -> dict[str, Any]:
    sealed, secret = release.sealed, statements.secret_name(release.sealed)
    notes = [statements.prior_statement(sealed)]
    if found.guessing is not None:
        notes.append(guessing_sentence(found.guessing, secret))
    if found.worst.highest is None:
        notes.append(statements.output_limit_statement(sealed, release.method))
    return {
        "lead": worst_sentence(found, secret),
        "attacker_notes": notes,
        "examples": (),
        "attacker": beliefs_bars(found, secret),
        "beliefs": found.beliefs,
        "has_limit": found.has_limit,
    }


def _analyst_fields(release: Release, found: AnalystView) -> dict[str, Any]:
    orders = release.sealed.domain.orders
    notes = [statements.ESTIMATED] if found.columns else []
    if found.left_out:
        notes.append(statements.missing_estimates(found.left_out))
    notes += [to_sentence(str(each)) for each in found.columns[MOST_PICTURES:]]
    drawn = [*found.columns[:MOST_PICTURES], *([] if found.cross is None else [found.cross])]
    return {"analyst_notes": notes, "shares": [(shares_bars(each, orders), to_sentence(str(each))) for each in drawn]}


def _change_fields(release: Release, joint: Joint) -> dict[str, Any]:
    sealed, orders = release.sealed, release.sealed.domain.orders
    found = changes(joint, sealed)
    return {
        "change_notes": statements.change_statements(release, listed=bool(found)),
        "changed": [
            (each.column.name, "–" if each.own is None else format_percent(each.own), format_percent(each.exact))
            for each in found
        ],
        "change_pictures": [
            (change_bars(each, orders), each.column.name if len(found) > 1 else "") for each in found[:MOST_PICTURES]
        ],
    }
