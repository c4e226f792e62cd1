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
from privacyfunnel.names import format_names

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
    """Measure what every other column would leak about the secret if it were published unchanged, alone or together."""
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
    omitted: tuple[str, ...] = ()
    if domain is not None:
        omitted = room.write_domain(spec.source, domain, found, spec.bin_rules, dialect=spec.dialect, force=spec.force)
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
        "not_in_domain": omitted,
        "to_choose": [one.to_dict(PRIOR) for one in several],
    }
    name = " & ".join(found.secret)
    lines = [
        f"{found.rows:,} rows. Leakage about {name} ({found.secrets} values) of each column, alone and unchanged:",
        *(f"({column} was cut into bins for this scan.)" for column in found.secret_in_bins),
        "",
        text_format.format_table(
            ["", "column", "values", "LIP ε", "LDP ε", "I(S;X)", "of H(S)", "decides", "worst value"],
            [line for look in found.looks for line in _lines(look, found, safe, safe_in_bins)],
            "<<>>>>>><",
        ),
        "",
        *_conclusions(found, wanted, safe, safe_in_bins),
        *_rare_notes(found),
        *([found.rare_alone.text] if found.rare_alone is not None else []),
        "",
        f"{wanted.name} ε = {text_format.format_epsilon(wanted.epsilon)}: {meaning(wanted, wanted.epsilon, name)}.",
        *(["", *_format_epsilon_choices(several, name)] if several else []),
        "ε is the worst case; I(S;X), in nats, is the average. A value that rules out a secret has no finite ε.",
        "A value, or a combination of values, that occurs with one secret only decides it for its rows.",
        *_domain_notes(domain, omitted),
    ]
    answer(as_json, content, "\n".join(lines))


def _consequences(spec: ReleaseSpec) -> tuple[Consequence, ...]:
    """What several sizes of the promise would mean for the columns to publish."""
    from privacyfunnel.cli.curve_command import read_joint
    from privacyfunnel.estimation.expected_precision import EPSILONS, consequences

    mine = {column: how for column, how in spec.bins.items() if column in (*spec.secret, *spec.publish)}
    joint = read_joint(replace(spec, bins=mine))
    sizes = sorted({*EPSILONS, spec.promise_value.epsilon})
    return consequences(joint, int(joint.weights.sum()), spec.promise_value, sizes)


def _domain_notes(domain: Path | None, omitted: tuple[str, ...]) -> list[str]:
    if domain is None:
        return []
    left_out = f" Not listed, since their labels would quote persons: {format_names(omitted)}." if omitted else ""
    return [
        "",
        f"{domain} lists the labels and bins of this table. Edit it before a private design (--design-epsilon) uses "
        "it: it must list what anybody might know, as a label that only this table has reveals its people."
        f"{left_out}",
    ]


_ALONE = "as it is and alone, against someone who sees this one column of a person and knows nothing else of them"


def _lines(look: ColumnScan, found: Scan, safe: set[str], safe_in_bins: set[str]) -> list[list[str]]:
    """The column as it is and, if it is many numbers, in bins below."""
    decided = "" if look.decided is None else format_percent(look.decided)
    if look.note:
        values = f"{look.values:,}+" if look.values else ""
        lines = [["", look.column, values, "", "", "", "", decided, _strongest_finding(look)]]
    else:
        values = f"{look.values:,}{' bins' if look.binned else ''}"
        figures = _figures(look.lip, look.ldp, look.information or 0, found)
        mark = "alone" if look.column in safe else ""
        lines = [[mark, look.column, values, *figures, decided, _strongest_finding(look)]]
    if look.in_bins is not None:
        cut, mark = look.in_bins, "alone" if look.column in safe_in_bins else ""
        figures = _figures(cut.lip, cut.ldp, cut.information, found)
        lines.append([mark, "  if in bins", f"{cut.values} bins", *figures, format_percent(cut.decided), ""])
    return lines


def _figures(lip: float, ldp: float, information: float, found: Scan) -> list[str]:
    share = text_format.format_share(information, found.secret_entropy)
    return [text_format.format_epsilon(lip), text_format.format_epsilon(ldp), f"{information:.4f}", share]


def _strongest_finding(look: ColumnScan) -> str:
    if look.tells_rows_apart:
        return f"identifies rows: {100 * look.distinct:.1f} values per 100 rows" + (
            f"; {look.note}" if look.note else ""
        )
    if look.note:
        return look.note
    return f"{look.value} {'rules out' if math.isinf(look.lip) else 'about'} {look.secret}"


def _conclusions(found: Scan, wanted: Promise, safe: set[str], safe_in_bins: set[str]) -> list[str]:
    """Which columns keep the promise: alone, in bins, together; each sentence says against whom."""
    asked = f"{wanted.name} ε = {text_format.format_epsilon(wanted.epsilon)}"
    alone = [look.column for look in found.looks if look.column in safe]
    in_bins = {
        look.column: look.in_bins.quantiles
        for look in found.looks
        if look.in_bins is not None and look.column in safe_in_bins - safe
    }
    apart = [look.column for look in found.looks if look.tells_rows_apart]
    notes = [
        f"Alone, against someone who sees that one column of a person and knows nothing else of them, {asked} is kept "
        f"by: {', '.join(alone) or 'none'}."
    ]
    if in_bins:
        options = " ".join(f"--bin {name}=quantiles:{quantiles}" for name, quantiles in in_bins.items())
        notes.append(
            f"The same in bins only, not as exact numbers: {', '.join(in_bins)}. To publish bins, and to see them "
            f"judged together with other columns, add {options}"
        )
    if apart:
        notes.append(f"Ids, or nearly: whoever knows a person's value finds their row: {', '.join(apart)}.")
    return notes + _order_notes(found) + _combination_notes(found, wanted, asked)


def _order_notes(found: Scan) -> list[str]:
    if found.order is None:
        return []
    notes = [f"Row order: {found.order}. sanitise shuffles the rows unless told to keep their order."]
    if found.ids_in_order:
        notes.append(f"Sorted like the table; kept, they would restore its order: {', '.join(found.ids_in_order)}.")
    return notes


def _combination_notes(found: Scan, wanted: Promise, asked: str) -> list[str]:
    together = found.together
    if together is None or not (together.pairs or together.whole or together.not_looked_at):
        return []
    who = "someone who sees them together in one row"
    if wanted.guards_known_attributes:
        who += ", or some of them while knowing the others"
    broken = [joined for joined in together.pairs if not joined.keeps]
    notes = []
    if together.pairs:
        notes.append(
            f"In pairs, against {who}, {asked} is kept by {len(together.pairs) - len(broken)} of "
            f"{len(together.pairs)} pairs" + (f"; it is broken by{_count_note(broken)}:" if broken else ".")
        )
        notes += [f"  {_format_combination(joined)}" for joined in broken[:SHOWN_PAIRS]]
    if together.whole is not None and len(together.columns) > 2:
        kept = "is kept" if together.whole.keeps else "is NOT kept"
        notes.append(
            f"All {len(together.columns)} at once, against {who}: {asked} {kept} by "
            f"{_format_combination(together.whole)}"
        )
    return notes + [f"Not examined together: {sentence}" for sentence in together.not_looked_at]


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
        f"Rare secrets: {secrets.rare} of {found.secrets} values {are} held by few rows. With {secrets.option}, "
        f"{after} instead of {before} of {len(leaks)} columns would leak without bound; ε would be finite for "
        f"{', '.join(bounded)}. The promise would then exclude what separates the merged values.",
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
        f"What each ε would mean for {secret}, and the average half-width of an analyst's 95 % intervals of shares, in "
        "points:",
        "",
        text_format.format_table(header, lines, ">>>" + ">" * len(names)),
        *([f"Intervals are not predicted where {unknown}."] if unknown else []),
        "",
    ]
