"""The owner's report of a release as one HTML page without outside resources, and the pages of its folder.

It answers six questions, for every kind of mechanism: what was promised and for whom, what an attacker could learn at
worst, what an analyst gets, what was changed, what is not promised, and how to repeat the release.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from privacyfunnel.atomic_files import OWNER, PUBLIC, begin_file
from privacyfunnel.errors import ParameterError
from privacyfunnel.formatting import format_factor, format_percent
from privacyfunnel.hints import word_for_command_line, word_for_python
from privacyfunnel.mechanisms.leak_profile import leak_profiles
from privacyfunnel.mechanisms.protocol_file import PROTOCOL
from privacyfunnel.model.joint import Joint
from privacyfunnel.names import format_names
from privacyfunnel.release.release import Release
from privacyfunnel.release.release_files import CROISSANT, DCAT, README, REPORT
from privacyfunnel.report import catalogue, statements
from privacyfunnel.report.analyst import (
    AnalystView,
    analyst_view,
    change_bars,
    changes,
    error_table,
    group_errors,
    public_bars,
    shares_bars,
)
from privacyfunnel.report.attacker import (
    AttackerView,
    annex_rows,
    attacker_view,
    beliefs_bars,
    guessing_sentence,
    people_sentences,
    trade_off_picture,
    worst_sentence,
)
from privacyfunnel.report.bars import STYLE
from privacyfunnel.report.statements import Occasion, to_sentence
from privacyfunnel.report.summary_lines import believer

__all__ = ["Occasion", "frame_page", "owner_page", "readme_page", "write_pages"]

MOST_PICTURES = 4  # of several published columns, one each


def write_pages(
    release: Release,
    staged: Path,
    *,
    source: str,
    query: str = "",
    command: str = "",
    watch: Callable[[str], None] | None = None,
) -> list[str]:
    """Write the pages of a release into its staged folder; their names in it."""
    wording = word_for_command_line if command else word_for_python
    occasion = Occasion(datetime.now().astimezone(), source, command, query, wording)
    folder = staged / PUBLIC
    pages: dict[str, Callable[[], str]] = {
        f"{PUBLIC}/{README}": lambda: readme_page(release, folder, occasion),
        f"{PUBLIC}/{DCAT}": lambda: catalogue.dcat(release, folder, occasion),
        f"{PUBLIC}/{CROISSANT}": lambda: catalogue.croissant(release, folder, occasion),
    }
    if release.spec.report:
        pages[f"{OWNER}/{REPORT}"] = lambda: owner_page(release, occasion, watch=watch)
    for name, make in pages.items():
        begin_file(staged / name).write_text(make(), encoding="utf-8")
    return list(pages)


def frame_page(release: Release) -> str:
    """The owner's page of a release of a frame, for whoever works in Python."""
    python = f"Python {sys.version.split()[0]}"
    occasion = Occasion(datetime.now().astimezone(), "a frame in memory", python, wording=word_for_python)
    return owner_page(release, occasion)


def owner_page(release: Release, occasion: Occasion, *, watch: Callable[[str], None] | None = None) -> str:
    """The owner's page. It shows figures about the secret and is not for publication."""
    say = watch or (lambda doing: None)
    sealed, joint = release.design.sealed, release.joint
    if joint is None:
        raise ParameterError("The owner's report needs the counts of the table; this release carries none.")
    say("drawing the report")
    estimates = analyst_view(sealed, joint, release.rows)
    attacker = attacker_view(joint, sealed)
    return _render(
        "page",
        occasion,
        **_common_fields(release),
        **_attacker_fields(release, attacker),
        **_analyst_fields(release, estimates),
        **_change_fields(release, joint),
        title=f"Publishing {statements.column_names(sealed)} without giving away "
        f"{statements.secret_name(sealed).removeprefix('each of ')}",
        facts=statements.facts(release, attacker, estimates),
        scopes=statements.scope_answers(release),
        **_board_fields(release, attacker, estimates),
        not_promised=release.not_promised_to_owner,
        provenance=statements.provenance(release, occasion),
        command="\n".join(filter(None, (occasion.command, statements.audit_command(release, occasion)))),
    )


def readme_page(release: Release, folder: Path, occasion: Occasion) -> str:
    """The page for everybody, beside the table in its public `folder`. No figure on it is a function of exact counts.

    Somebody who knows all other rows can compute a person's secret from such a figure, even from probabilities in whole
    percents (benchmarks attacks). Figures of noisy counts are shown.
    """
    sealed = release.design.sealed
    picture = public_bars(sealed) if sealed.has_noisy_design else None
    return _render(
        "readme",
        occasion,
        **_common_fields(release),
        title=f"{statements.column_names(sealed)}: a sanitised table",
        lead=statements.readme_lead(release),
        facts=statements.public_facts(sealed),
        scopes=statements.public_scope_answers(sealed),
        examples=statements.examples(sealed),
        analyst_notes=statements.analyst_notes(sealed),
        commands=statements.estimate_commands(release),
        files=statements.file_list(release, folder),
        citation=statements.citation(release, folder, occasion),
        changed=statements.publication_statement(sealed, drawn=picture is not None),
        picture=picture,
        not_promised=release.not_promised,
        provenance=statements.public_provenance(sealed, occasion),
    )


def _render(page: str, occasion: Occasion, **fields: Any) -> str:
    environment = Environment(
        loader=PackageLoader("privacyfunnel", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=lambda value: occasion.wording(value) if type(value) is str else value,
    )
    environment.filters["percent"] = format_percent
    return environment.get_template(f"{page}.html.jinja").render(style=STYLE, **fields)


def _common_fields(release: Release) -> dict[str, Any]:
    sealed = release.design.sealed
    return {
        "secret": statements.secret_name(sealed),
        "for_publication": sealed.for_publication,
        "meaning": statements.meaning(sealed),
    }


def _attacker_fields(release: Release, found: AttackerView) -> dict[str, Any]:
    sealed, secret = release.design.sealed, statements.secret_name(release.design.sealed)
    notes = [statements.prior_statement(sealed)]
    notes += map(guessing_sentence, found.guessing)
    leaks = () if sealed.follows else leak_profiles(sealed.mechanism, sealed.promise, release.design.joint)
    notes += [to_sentence(leak.spread) for leak in leaks]
    if found.worst.highest is None:
        notes.append("There are too many possible records to list: only the limits of the promise are drawn.")
    return {
        "lead": worst_sentence(found, secret, believer(sealed), several=sealed.promise.by_column),
        "attacker_notes": notes,
        "attacker": beliefs_bars(found, secret),
        "beliefs": found.beliefs,
        "trade_off": trade_off_picture(leaks) if leaks else None,
        "has_limit": found.has_limit,
    }


def _analyst_fields(release: Release, found: AnalystView) -> dict[str, Any]:
    orders = release.design.sealed.domain.orders
    notes = [statements.ESTIMATED] if found.columns else []
    if found.left_out:
        notes.append(statements.missing_estimates(found.left_out))
    drawn = [*found.columns[:MOST_PICTURES], *([] if found.cross is None else [found.cross])]
    return {"analyst_notes": notes, "shares": [(shares_bars(each, orders), to_sentence(str(each))) for each in drawn]}


def _board_fields(release: Release, attacker: AttackerView, estimates: AnalystView) -> dict[str, Any]:
    """What a review board asks."""
    sealed, linkage = release.design.sealed, release.findings.linkage
    secret, columns = statements.secret_name(sealed), statements.column_names(sealed)
    factor = format_factor(sealed.total_epsilon)
    return {
        "approval": _approval(release),
        "destinations": _destinations(release),
        "errors": error_table(estimates),
        "groups": group_errors(estimates, release.rows),
        "people": people_sentences(linkage, secret, columns),
        "annex": annex_rows(linkage, secret, columns, factor, believer(sealed)),
    }


def _change_fields(release: Release, joint: Joint) -> dict[str, Any]:
    sealed, orders = release.design.sealed, release.design.sealed.domain.orders
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


def _approval(release: Release) -> list[tuple[str, str]]:
    """Who answers for the release, as the request says."""
    spec = release.spec
    stated = {
        "approved by": spec.approved_by,
        "purpose": spec.purpose,
        "contact": spec.contact,
        "valid until": spec.valid_until,
    }
    return [(name, text or "not stated") for name, text in stated.items()]


def _destinations(release: Release) -> list[tuple[str, str]]:
    """What goes where: columns and files."""
    sealed, secret = release.design.sealed, statements.secret_name(release.design.sealed)
    files, noisy = f"{PROTOCOL} and the codebook", sealed.has_noisy_design
    public = "the randomised table, its description" + (f", {files}" if noisy else "")
    owner = "this report, the request, the disclosure record" + ("" if noisy else f", {files}")
    dropped = f"{secret}; {format_names(release.dropped)}" if release.dropped else secret
    found = [
        ("published, randomised", statements.column_names(sealed)),
        ("published unchanged", format_names(release.kept) if release.kept else "nothing"),
        ("not published", dropped),
        ("files for everybody", public),
        ("files for you alone", owner),
    ]
    trust = "Until now only you hold the table. It was randomised here; the first table says who can learn how much."
    stays = "" if noisy else f" {to_sentence(files)[:-1]} can give secrets away, and stay here."
    return [*found, ("trust", f"{trust}{stays}")]
