"""`scan`: what every column would say about the secret, alone and with others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import Json, answer
from privacyfunnel.cli.release_summary import PRIOR, format_belief_range, meaning
from privacyfunnel.cli.spec_options import COARSER, READING, Given, TableOrDatabase, build_spec, takes_spec
from privacyfunnel.formatting import format_factor, format_number, format_percent, format_points

if TYPE_CHECKING:
    from privacyfunnel.audits.column_groups import ColumnGroup
    from privacyfunnel.audits.scan import ColumnScan, Scan
    from privacyfunnel.estimation.expected_precision import Consequence
    from privacyfunnel.model.promises import Promise
    from privacyfunnel.spec import ReleaseSpec

ONE = 1.0  # ε, where none is asked for
COLUMNS = 4  # that a table for choosing shows
SHOWN_PAIRS = 10  # of those that break the promise: more are in the JSON


@takes_spec(
    *("secret", "publish", "epsilon", "factor", "promise", *COARSER, *READING, "force"),
    publish="Columns to publish: also say what several ε would mean for them, to choose by.",
)
def scan(
    table: TableOrDatabase,
    *,
    given: Given,
    domain: Annotated[
        Path | None, typer.Option("--domain", help="Write a draft of the public labels and bins, for a private design.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Look at every other column: what would it say about the secret, published as it is, alone or together?"""
    from privacyfunnel.audits import scan as room

    spec = build_spec(table, given, epsilon=ONE)
    wanted = spec.promise_value
    found = room.scan(
        spec.source,
        secret=spec.secret,
        bins=spec.bin_rules,
        dialect=spec.dialect,
        promise=wanted,
        merges=spec.merges,
    )
    if domain is not None:
        room.write_domain(spec.source, domain, found, spec.bin_rules, dialect=spec.dialect, force=spec.force)
    several = _consequences(spec) if spec.publish else ()
    safe = {look.column for look in found.looks if found.safe(look, wanted)}
    safe_in_bins = {look.column for look in found.looks if found.safe_in_bins(look, wanted)}
    columns = [
        {**asdict(look), "safe": look.column in safe, "safe_in_bins": look.column in safe_in_bins}
        for look in found.looks
    ]
    content = {
        "rows": found.rows,
        "secret": found.secret,
        "secrets": found.secrets,
        "secret_entropy": found.secret_entropy,
        "promise": wanted.name,
        "epsilon": wanted.epsilon,
        "secret_in_bins": found.secret_in_bins,
        "columns": columns,
        "safe_means": f"keeps the promise {_ALONE}",
        "order": None if found.order is None else {**asdict(found.order), "ids_in_order": found.ids_in_order},
        "rare_secrets": None
        if found.rare is None
        else {"merged": found.rare.secrets.merged, "option": found.rare.secrets.option, "leaks": found.rare.leaks},
        "rare_alone": None if found.rare_alone is None else asdict(found.rare_alone),
        "together": None if found.together is None else asdict(found.together),
        "domain": None if domain is None else str(domain),
        "to_choose": [one.to_dict(PRIOR) for one in several],
    }
    name = " & ".join(found.secret)
    told = [
        f"{found.rows:,} rows. What each column says about {name} ({found.secrets} values) if it is published alone, "
        "exactly as it is:",
        *(f"({column} is many numbers and was cut into bins for this look.)" for column in found.secret_in_bins),
        "",
        text_format.format_table(
            ["", "column", "values", "LIP ε", "LDP ε", "I(S;X)", "of H(S)", "decides", "says most"],
            [line for look in found.looks for line in _lines(look, found, safe, safe_in_bins)],
            "<<>>>>>><",
        ),
        "",
        *_conclusions(found, wanted, safe, safe_in_bins),
        *_rare_notes(found),
        *([found.rare_alone.text] if found.rare_alone is not None else []),
        "",
        f"{wanted.name} ε = {text_format.format_epsilon(wanted.epsilon)}: {meaning(wanted, wanted.epsilon, name)}.",
        *([""] if several else []),
        *(_format_epsilon_choices(several, name) if several else []),
        "ε is the worst case; I(S;X), in nats, is the average. A value that rules out a secret has no finite ε.",
        "A value, or a combination of values, that occurs with one secret only decides it for the rows that have it.",
        *_domain_notes(domain),
    ]
    answer(as_json, content, "\n".join(told))


def _consequences(spec: ReleaseSpec) -> tuple[Consequence, ...]:
    """What several sizes of the promise would mean for the columns to publish."""
    from privacyfunnel.cli.curve_command import read_joint
    from privacyfunnel.estimation.expected_precision import EPSILONS, consequences

    mine = {column: how for column, how in spec.bins.items() if column in (*spec.secret, *spec.publish)}
    joint = read_joint(replace(spec, bins=mine))
    sizes = sorted({*EPSILONS, spec.promise_value.epsilon})
    return consequences(joint, int(joint.weights.sum()), spec.promise_value, sizes)


def _domain_notes(domain: Path | None) -> list[str]:
    if domain is None:
        return []
    return [
        "",
        f"{domain} lists the labels and bins of this table. Before a private design (sanitise --design-epsilon) uses "
        "it, edit it to list what anybody might know: a label that only this table tells of gives its people away.",
    ]


_ALONE = "as it is and alone, against someone who sees this one column of a person and knows nothing else of them"


def _lines(look: ColumnScan, found: Scan, safe: set[str], safe_in_bins: set[str]) -> list[list[str]]:
    """The column as it is and, if it is many numbers, in bins below."""
    whole = found.secret_entropy
    decided = "" if look.decided is None else format_percent(look.decided)
    if look.note:
        lines = [
            [
                "",
                look.column,
                f"{look.values:,}+" if look.values else "",
                "",
                "",
                "",
                "",
                decided,
                _strongest_finding(look),
            ]
        ]
    else:
        lines = [
            [
                "alone" if look.column in safe else "",
                look.column,
                f"{look.values:,}{' bins' if look.binned else ''}",
                text_format.format_epsilon(look.lip),
                text_format.format_epsilon(look.ldp),
                f"{look.information or 0:.4f}",
                text_format.format_share(look.information or 0, whole),
                decided,
                _strongest_finding(look),
            ]
        ]
    if look.in_bins is not None:
        cut = look.in_bins
        lines.append(
            [
                "alone" if look.column in safe_in_bins else "",
                "  if in bins",
                f"{cut.values} bins",
                text_format.format_epsilon(cut.lip),
                text_format.format_epsilon(cut.ldp),
                f"{cut.information:.4f}",
                text_format.format_share(cut.information, whole),
                format_percent(cut.decided),
                "",
            ]
        )
    return lines


def _strongest_finding(look: ColumnScan) -> str:
    if look.tells_rows_apart:
        return f"tells rows apart: {100 * look.distinct:.1f} values per 100 rows" + (
            f"; {look.note}" if look.note else ""
        )
    if look.note:
        return look.note
    return f"{look.value} {'rules out' if math.isinf(look.lip) else 'about'} {look.secret}"


def _conclusions(found: Scan, wanted: Promise, safe: set[str], safe_in_bins: set[str]) -> list[str]:
    """Which columns keep the promise: alone, in bins, together; each sentence says against whom."""
    asked = f"{wanted.name} ε = {text_format.format_epsilon(wanted.epsilon)}"
    names = [look.column for look in found.looks]
    alone = [name for name in names if name in safe]
    in_bins = {
        look.column: look.in_bins.quantiles
        for look in found.looks
        if look.in_bins is not None and look.column in safe_in_bins - safe
    }
    apart = [look.column for look in found.looks if look.tells_rows_apart]
    said = [
        f"Alone, against someone who sees that one column of a person and knows nothing else of them, {asked} is kept "
        f"by: {', '.join(alone) or 'none'}."
    ]
    if in_bins:
        asking = " ".join(f"--bin {name}=quantiles:{quantiles}" for name, quantiles in in_bins.items())
        said.append(
            f"Against the same, alone, and only in bins, not as exact numbers: {', '.join(in_bins)}. "
            f"To publish bins, and to have them judged together with others here, ask for them: {asking}"
        )
    if apart:
        said.append(f"Ids, or nearly: who knows a person's value finds that person's row: {', '.join(apart)}.")
    return said + _order_notes(found) + _combination_notes(found, wanted, asked)


def _order_notes(found: Scan) -> list[str]:
    if found.order is None:
        return []
    hidden = "sanitise publishes rows in a random order unless told to keep it"
    said = [f"The order of the rows, to someone who knows it and other rows' secrets: {found.order}; {hidden}."]
    if found.ids_in_order:
        said.append(f"Sorted as the table is, so kept they would give back its order: {', '.join(found.ids_in_order)}.")
    return said


def _combination_notes(found: Scan, wanted: Promise, asked: str) -> list[str]:
    together = found.together
    if together is None or not (together.pairs or together.whole or together.not_looked_at):
        return []
    who = "someone who sees them together in one row"
    if wanted.guards_known_attributes:
        who += ", or some of them while knowing the others"
    broken = [joined for joined in together.pairs if not joined.keeps]
    said = []
    if together.pairs:
        said.append(
            f"In pairs, against {who}, {asked} is kept by {len(together.pairs) - len(broken)} of "
            f"{len(together.pairs)} pairs" + (f"; it is broken by{_count_note(broken)}:" if broken else ".")
        )
        said += [f"  {_format_combination(joined)}" for joined in broken[:SHOWN_PAIRS]]
    if together.whole is not None and len(together.columns) > 2:
        kept = "is kept" if together.whole.keeps else "is NOT kept"
        said.append(
            f"All {len(together.columns)} at once, against {who}: {asked} {kept} by "
            f"{_format_combination(together.whole)}"
        )
    return said + [f"Not looked at together: {sentence}" for sentence in together.not_looked_at]


def _rare_notes(found: Scan) -> list[str]:
    """What rare secrets cost, in numbers."""
    if found.rare is None:
        return []
    secrets, leaks = found.rare.secrets, found.rare.leaks
    before, after = (sum(math.isinf(leak[i]) for leak in leaks.values()) for i in (0, 1))
    bounded = [
        f"{column} {text_format.format_epsilon(now)}"
        for column, (was, now) in leaks.items()
        if math.isinf(was) and math.isfinite(now)
    ]
    are = "is" if secrets.rare == 1 else "are"
    return [
        f"Rare secrets: {secrets.rare} of {found.secrets} values {are} held by few rows. With {secrets.option} "
        f"{after} instead of {before} of {len(leaks)} columns would leak without bound; ε would be finite for "
        f"{', '.join(bounded)}. Nothing would then be promised that tells the merged values apart.",
    ]


def _count_note(broken: list[ColumnGroup]) -> str:
    return f" {len(broken)}, of which the worst {SHOWN_PAIRS}" if len(broken) > SHOWN_PAIRS else ""


def _format_combination(joined: ColumnGroup) -> str:
    leak = "ε not measured" if joined.epsilon is None else f"ε {text_format.format_epsilon(joined.epsilon)}"
    return f"{' & '.join(joined.columns)}: {leak}; {format_percent(joined.decided)} of rows have their secret decided."


def _format_epsilon_choices(found: Sequence[Consequence], secret: str) -> list[str]:
    """A table of what each ε allows and gives."""
    names = [" × ".join(told.columns) for told in next((one.shares for one in found if one.shares), ())][:COLUMNS]
    lines = []
    for one in found:
        epsilon = one.promise.epsilon
        errors = {" × ".join(told.columns): f"±{format_points(told.average)}" for told in one.shares}
        shown = [errors.get(name, "") for name in names]
        lines.append(
            [format_number(epsilon), format_factor(epsilon), format_belief_range(one.promise, epsilon, PRIOR), *shown]
        )
    header = ["ε", "factor", f"{format_percent(PRIOR)} becomes", *names]
    unknown = next((one.unknown for one in found if one.unknown), "")
    return [
        f"What an ε would mean for {secret}, and how near an analyst would come to each share, in points on average "
        "(95 %):",
        "",
        text_format.format_table(header, lines, ">>>" + ">" * len(names)),
        *([f"Shares are not told beforehand where {unknown}."] if unknown else []),
        "",
    ]
