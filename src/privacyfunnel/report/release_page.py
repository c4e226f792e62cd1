"""The page about a release: what its readers ask, answered in words, percent and pictures. It needs nothing but itself.

Six questions, the same for one column, several, a chain or a product: what was promised and for whom, what an attacker
could learn at worst, what an analyst gets, what is changed, what is not promised, and how to repeat it. What a law
cannot show is left out, and nothing is shown in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from privacyfunnel.audits.side_channel_audit import side_channel
from privacyfunnel.designs.methods import Effort
from privacyfunnel.errors import ParameterError
from privacyfunnel.hints import word_for_command_line
from privacyfunnel.model.joint import Joint
from privacyfunnel.release.release_files import ReportPage
from privacyfunnel.release.sanitise import Release
from privacyfunnel.report import CROISSANT, OWNER_REPORT, PUBLIC_REPORT, statements
from privacyfunnel.report.analyst import AnalystView, analyst_view, shares_bars
from privacyfunnel.report.attacker import AttackerView, attacker_view, beliefs_bars, guessing_sentence, worst_sentence
from privacyfunnel.report.changes import change_bars, changes, public_bars
from privacyfunnel.report.cost_picture import LOOSE, cost_curve, costs_picture
from privacyfunnel.report.croissant import description
from privacyfunnel.report.number_text import format_percent, to_sentence
from privacyfunnel.report.statements import Occasion
from privacyfunnel.report.stylesheet import STYLE

__all__ = ["Occasion", "owner_page", "pages", "public_page"]

DRAWN_COLUMNS = 4  # of several published columns: more pictures are not looked at
SIDE_SECONDS = 1.5  # for looking at what somebody learns who knows some columns already


def pages(
    release: Release,
    occasion: Occasion,
    *,
    owners: bool = True,
    public: bool = False,
    croissant: bool = False,
    watch: Callable[[str], None] | None = None,
) -> Iterator[ReportPage]:
    """The owner's page, for their eyes only, the public one, and a description for catalogues, as asked for."""
    if owners:
        yield ReportPage(OWNER_REPORT, owner_page(release, occasion, watch=watch), owners=True)
    if public:
        yield ReportPage(PUBLIC_REPORT, public_page(release, occasion))
    if croissant:
        yield ReportPage(CROISSANT, description(release, occasion))


def owner_page(
    release: Release,
    occasion: Occasion,
    *,
    effort: Effort = LOOSE,
    watch: Callable[[str], None] | None = None,
) -> str:
    """The report for the owner of the data. It shows figures about the secret and is not for publication."""
    say = watch or (lambda doing: None)
    sealed, joint = release.sealed, release.joint
    if joint is None:
        raise ParameterError("The owner's report needs the counts of the table; this release carries none.")
    say("drawing the trade-off")
    curve = cost_curve(joint, sealed, effort, release.known)
    recovered = analyst_view(sealed, joint, release.rows)
    say("drawing the report")
    shown = attacker_view(joint, sealed)
    return _render(
        **_common_fields(release),
        **_attacker_fields(release, shown),
        **_analyst_fields(release, recovered),
        **_change_fields(release, joint),
        owner=True,
        title=f"Publishing {statements.column_names(sealed)} without giving away {statements.secret_name(sealed)}",
        facts=statements.facts(release, shown, recovered),
        whom=statements.scope_answers(release, side_channel(joint, sealed.mechanism, SIDE_SECONDS)),
        not_promised=release.not_promised_to_owner,
        costs=curve and costs_picture(curve, release.method, sealed.promise.epsilon, sealed.information),
        provenance=statements.provenance(release, occasion),
        command="\n".join(filter(None, (occasion.command, statements.audit_command(release, occasion)))),
    )


def public_page(release: Release, occasion: Occasion) -> str:
    """A page for everybody: nothing on it that is not in a public file.

    Chances that were computed from the counts themselves can tell a secret even in whole percents (benchmarks attacks):
    they are drawn only where they come from noisy counts.
    """
    sealed = release.sealed
    picture = public_bars(sealed) if statements.has_public_chances(sealed) else None
    return _render(
        **_common_fields(release),
        owner=False,
        lead="",
        facts=statements.public_facts(sealed),
        title=f"{statements.column_names(sealed)}: a sanitised table",
        whom=statements.public_scope_answers(sealed),
        attacker=None,
        attacker_words=["What somebody believes before they see a record, and what they can believe afterwards:"],
        examples=statements.examples(sealed),
        beliefs=(),
        promised=True,
        analyst_words=[statements.FOR_ANALYSTS],
        shares=[],
        changed_words=[statements.publication_statement(sealed, drawn=picture is not None)],
        changed=[],
        change_pictures=[(picture, "")] if picture else [],
        not_promised=release.not_promised,
        costs=None,
        provenance=statements.public_provenance(sealed, occasion),
        command="",
    )


def _render(**filled: Any) -> str:
    environment = Environment(
        loader=PackageLoader("privacyfunnel", "report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return word_for_command_line(environment.get_template("page.html.jinja").render(style=STYLE, **filled))


def _common_fields(release: Release) -> dict[str, Any]:
    sealed = release.sealed
    return {
        "secret": statements.secret_name(sealed),
        "for_publication": sealed.for_publication,
        "meaning": statements.meaning(sealed),
    }


def _attacker_fields(release: Release, found: AttackerView) -> dict[str, Any]:
    sealed, secret = release.sealed, statements.secret_name(release.sealed)
    told = [statements.prior_statement(sealed)]
    if found.guessing is not None:
        told.append(guessing_sentence(found.guessing, secret))
    if found.worst.highest is None:
        told.append(statements.too_many_outputs(sealed, release.method))
    return {
        "lead": worst_sentence(found, secret),
        "attacker_words": told,
        "examples": (),
        "attacker": beliefs_bars(found, secret),
        "beliefs": found.beliefs,
        "promised": found.has_limit,
    }


def _analyst_fields(release: Release, found: AnalystView) -> dict[str, Any]:
    orders = release.sealed.domain.orders
    words = [statements.ESTIMATED] if found.columns else []
    if found.left_out:
        words.append(statements.missing_estimates(found.left_out))
    drawn = [*found.columns[:DRAWN_COLUMNS], *([] if found.cross is None else [found.cross])]
    words += [to_sentence(str(each)) for each in found.columns[DRAWN_COLUMNS:]]
    return {"analyst_words": words, "shares": [(shares_bars(each, orders), to_sentence(str(each))) for each in drawn]}


def _change_fields(release: Release, joint: Joint) -> dict[str, Any]:
    sealed, orders = release.sealed, release.sealed.domain.orders
    found = changes(joint, sealed)
    several = len(found) > 1
    rows = [
        (each.column.name, "–" if each.own is None else format_percent(each.own), format_percent(each.exact))
        for each in found
    ]
    return {
        "changed_words": statements.change_statements(release, listed=bool(found)),
        "changed": rows,
        "change_pictures": [
            (change_bars(each, orders), each.column.name if several else "") for each in found[:DRAWN_COLUMNS]
        ],
    }
