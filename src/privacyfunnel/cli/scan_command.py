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
from privacyfunnel.cli.release_summary import PRIOR, Details, meaning
from privacyfunnel.cli.spec_options import COARSER, READING, Given, TableOrDatabase, build_spec, takes_spec
from privacyfunnel.formatting import format_error, format_factor, format_number, format_percent, format_percent_range
from privacyfunnel.hints import hint
from privacyfunnel.names import format_names

if TYPE_CHECKING:
    from privacyfunnel.audits.column_groups import ColumnGroup
    from privacyfunnel.audits.scan import ColumnScan, Scan
    from privacyfunnel.estimation.expected_precision import Consequence
    from privacyfunnel.model.promises import Promise
    from privacyfunnel.spec import ReleaseSpec

ONE = 1.0  # ε, where none is asked for
COLUMNS = 4  # that a table for choosing shows
MEASURES = {"k": "k", "unique": "alone", "l": "ℓ", "t": "t", "delta": "δ", "beta": "β"}
MOST_CELLS = 1 << 14  # of a table of counts whose measures are exact fractions
SHOWN_PAIRS = 5  # of those that break the promise: more are in the JSON


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
    details: Details = False,
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
    several = _consequences(spec)
    safe = {look.column for look in found.looks if found.safe(look, wanted)}
    safe_in_bins = {look.column for look in found.looks if found.safe_in_bins(look, wanted)}
    columns = [
        {
            **asdict(look),
            "safe": look.column in safe,
            "safe_in_bins": look.column in safe_in_bins,
            "disclosure": _disclosure(found, look.column),
        }
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
        "together": None if found.together is None else asdict(found.together),
        "domain": None if domain is None else str(domain),
        "not_in_domain": omitted,
        "to_choose": [one.to_dict(PRIOR) for one in several],
    }
    name = " & ".join(found.secret)
    about = f"about {name} ({found.secrets} values), published unchanged"
    lines = [
        *(_format_epsilon_choices(several, name) if several else []),
        f"{found.rows:,} rows. What each column would tell {about}:",
        *(f"({column} was cut into bins for this scan.)" for column in found.secret_in_bins),
        "",
        text_format.format_table(
            ["column", "values", f"ε = {format_number(wanted.epsilon)}", "a guess moves", "gives away", "worst case"],
            [line for look in found.looks for line in _lines(look, safe, safe_in_bins)],
            "<><>><",
        ),
        "",
        *_conclusions(found, wanted, safe, safe_in_bins),
        *_rare_notes(found),
        *(_detail_lines(found, wanted) if details else ()),
        *_domain_notes(domain, omitted),
    ]
    answer(as_json, content, "\n".join(lines))


def _consequences(spec: ReleaseSpec) -> tuple[Consequence, ...]:
    """What several sizes of the promise would mean for the columns to publish."""
    from privacyfunnel.cli.curve_command import read_joint
    from privacyfunnel.estimation.expected_precision import EPSILONS, Consequence, consequences

    sizes = sorted({*EPSILONS, spec.promise_value.epsilon})
    if not spec.publish:
        return tuple(Consequence(spec.promise_value.with_epsilon(size), (), "") for size in sizes)
    mine = {column: how for column, how in spec.bins.items() if column in (*spec.secret, *spec.publish)}
    joint = read_joint(replace(spec, bins=mine))
    return consequences(joint, int(joint.weights.sum()), spec.promise_value, sizes)


def _domain_notes(domain: Path | None, omitted: tuple[str, ...]) -> list[str]:
    if domain is None:
        return []
    left_out = f" Not listed, since their labels would quote persons: {format_names(omitted)}." if omitted else ""
    return [
        "",
        f"{domain} lists the labels and bins of this table. Edit it before sanitise uses it (--domain): list "
        "what anybody could know; a label that stands in this table alone reveals that somebody has it."
        f"{left_out}",
    ]


_ALONE = "as it is and alone, against someone who sees this one column of a person and knows nothing else of them"


def _lines(look: ColumnScan, safe: set[str], safe_in_bins: set[str]) -> list[list[str]]:
    """The column as it is and, if it is many numbers, in bins below."""
    decided = "" if look.decided is None or not look.decided else _format_share_of_rows(look.decided)
    keeps = "kept" if look.column in safe else "broken"
    values = f"{look.values:,}{'+' if look.note and look.values else ' bins' if look.binned else ''}"
    grows = "" if look.note else _format_growth(look.lip)
    lines = [[look.column, values, "" if look.note else keeps, grows, decided, _worst_case(look)]]
    if look.in_bins is not None and not look.tells_rows_apart:
        cut, kept = look.in_bins, "kept" if look.column in safe_in_bins else "broken"
        shown = [kept, _format_growth(cut.lip), _format_share_of_rows(cut.decided) if cut.decided else "", ""]
        lines.append(["  in bins", f"{cut.values} bins", *shown])
    return lines


def _format_share_of_rows(share: float) -> str:
    return f"{format_percent(share)} of rows" if share else "no row"


def _format_growth(leak: float) -> str:
    return "without limit" if math.isinf(leak) else f"×{format_factor(leak)}"


def _worst_case(look: ColumnScan) -> str:
    if look.tells_rows_apart:
        return "identifies rows" + (f"; {look.note}" if look.note else "")
    never = f"nobody with “{look.value}” has “{look.secret}”"
    return look.note or (never if math.isinf(look.lip) else f"“{look.value}” changes “{look.secret}” most")


def _detail_lines(found: Scan, wanted: Promise) -> list[str]:
    """Every measure of each column, and what rare secrets cost; k, ℓ, t, δ and β are those of other tools."""
    rows = []
    for look in found.looks:
        share = "" if look.information is None else format_percent(look.information / (found.secret_entropy or 1))
        disclosure = _disclosure(found, look.column)
        others = (
            [""] * len(MEASURES) if disclosure is None else [_format_measure(disclosure[name]) for name in MEASURES]
        )
        epsilons = [text_format.format_epsilon(each) for each in (look.lip, look.ldp)]
        rows.append([look.column, *epsilons, share, *others])
    return [
        "",
        text_format.format_table(["column", "LIP ε", "LDP ε", "average", *MEASURES.values()], rows, "<" + ">" * 9),
        "average: I(S;X) as a share of H(S). k-anonymity, records alone with their value, ℓ-diversity, t-closeness,",
        "δ-disclosure and β-likeness are those of the column unchanged.",
        f"{wanted.name} ε = {text_format.format_epsilon(wanted.epsilon)}: "
        f"{meaning(wanted, wanted.epsilon, ' & '.join(found.secret))}.",
    ]


def _format_measure(size: float) -> str:
    return f"{size:,}" if isinstance(size, int) else f"{size:.3g}"


def _disclosure(found: Scan, column: str) -> dict[str, float] | None:
    """The measures of other tools for a column; None where it has too many values."""
    from privacyfunnel.model.disclosure_models import measure_disclosure

    joint = found.joints.get(column)
    if joint is None or joint.weights.size > MOST_CELLS:
        return None
    return measure_disclosure(joint.weights).to_dict()


def _conclusions(found: Scan, wanted: Promise, safe: set[str], safe_in_bins: set[str]) -> list[str]:
    """Which columns keep the promise: alone, in bins, together; each sentence says against whom."""
    promise_text = f"{wanted.name} ε = {format_number(wanted.epsilon)} (×{format_factor(wanted.epsilon)})"
    alone = [look.column for look in found.looks if look.column in safe]
    apart = [look.column for look in found.looks if look.tells_rows_apart]
    in_bins = [look.column for look in found.looks if look.column in safe_in_bins - safe - set(apart)]
    notes = [
        f"{promise_text} is kept by a single column unchanged: {', '.join(alone) or 'none'}.",
        *_combination_notes(found, wanted),
    ]
    if in_bins:
        example = hint("bins", f"{in_bins[0]}=EDGE,EDGE,…")
        notes.append(f"In eight bins, not as exact numbers: {', '.join(in_bins)}. To publish bins: {example}")
    if apart:
        notes.append(f"Ids, or nearly: {', '.join(apart)}. Whoever knows a person's value finds their row.")
    return notes + _order_notes(found)


def _order_notes(found: Scan) -> list[str]:
    if found.order is None:
        return []
    notes = [f"Row order: {found.order}. sanitise shuffles the rows unless told to keep their order."]
    if found.ids_in_order:
        notes.append(f"Sorted like the table; kept, they would restore its order: {', '.join(found.ids_in_order)}.")
    return notes


def _combination_notes(found: Scan, wanted: Promise) -> list[str]:
    together = found.together
    if together is None or not (together.pairs or together.whole or together.not_looked_at):
        return []
    who = "in one row" + (", or some known beforehand" if wanted.guards_known_attributes else "")
    broken = [joined for joined in together.pairs if not joined.keeps]
    count = f"; the worst {SHOWN_PAIRS} of the others" if len(broken) > SHOWN_PAIRS else "; the others"
    notes = []
    if together.pairs:
        notes.append(
            f"It is kept by {len(together.pairs) - len(broken)} of {len(together.pairs)} pairs of these, {who}"
            f"{f'{count}:' if broken else '.'}"
        )
        notes += [f"  {_format_combination(joined)}" for joined in broken[:SHOWN_PAIRS]]
    if together.whole is not None and len(together.columns) > 2:
        kept = "It is kept" if together.whole.keeps else "It is NOT kept"
        notes.append(f"{kept} by all {len(together.columns)} {who}: {_format_combination(together.whole)}")
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
        f"{', '.join(bounded)}. Which of the merged values it is would no longer be protected.",
    ]


def _format_combination(joined: ColumnGroup) -> str:
    leak = "not measured" if joined.epsilon is None else f"a guess moves {_format_growth(joined.epsilon)}"
    return f"{' & '.join(joined.columns)}: {leak}; {_format_share_of_rows(joined.decided)} given away."


def _format_epsilon_choices(found: Sequence[Consequence], secret: str) -> list[str]:
    """A table of what each ε allows and gives."""
    names = [" × ".join(share.columns) for share in next((one.shares for one in found if one.shares), ())][:COLUMNS]
    lines = []
    for one in found:
        epsilon, belief = one.promise.epsilon, format_percent_range(*one.belief_range(PRIOR))
        errors = {" × ".join(share.columns): format_error(share.average) for share in one.shares}
        shown = [errors.get(name, "") for name in names]
        lines.append([format_number(epsilon), f"×{format_factor(epsilon)}", belief, *shown])
    header = ["ε", "a guess moves", f"{format_percent(PRIOR)} becomes", *names]
    errors_text = (
        ", and how many points shares would be off"
        if names
        else f" ({hint('publish', 'COLUMNS')} adds what shares lose)"
    )
    unknown = next((one.unknown for one in found if one.unknown), "")
    return [
        f"What each ε would mean: how far a guess about {secret} may move{errors_text}:",
        "",
        text_format.format_table(header, lines, ">>>" + ">" * len(names)),
        *([f"Intervals are not predicted where {unknown}."] if unknown else []),
        "",
    ]
