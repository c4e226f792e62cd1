"""What an analyst gets: the shares of every column and of one cross table, with expected errors in percentage points.

The expected error follows from the mechanism (`estimation.expected_precision`), not from the draw.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from privacyfunnel.arrays import FloatArray, nonzero_entries
from privacyfunnel.errors import SizeError
from privacyfunnel.estimation.expected_precision import (
    ExpectedPrecision,
    expected_precision,
    expected_precision_by_column,
)
from privacyfunnel.formatting import format_percent, format_points
from privacyfunnel.mechanisms.mechanism import check_table_size
from privacyfunnel.mechanisms.outcomes import outcome_codes
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.uses.ordinal_scale import Orders, display_positions
from privacyfunnel.report.bars import (
    DIVIDED,
    Bar,
    BarChart,
    Mark,
    divide_track,
    percent_ticks,
    scale_end,
    select_keys,
    select_labels,
)

MOST_ROWS = 30  # values of one column that are drawn: the largest
MOST_CELLS = 16  # cells of a cross table that are drawn
MOST_GROUPS = 8  # that bear most of the error
SECONDS = 2.0  # to find a cross table that can be estimated
KEYS = (("true", "in the table"), ("told", "95 % interval of an estimate from the published table"))


@dataclass(frozen=True, slots=True, eq=False)
class AnalystView:
    """Expected errors of columns and of one cross table, and the columns that take too long."""

    columns: tuple[ExpectedPrecision, ...]
    cross: ExpectedPrecision | None
    left_out: tuple[str, ...]

    @property
    def typical(self) -> float | None:
        """Expected error of a share, averaged over all columns; None if none can be estimated."""
        return float(np.mean([each.average for each in self.columns])) if self.columns else None


def analyst_view(sealed: SealedProtocol, joint: Joint, rows: int, seconds: float = SECONDS) -> AnalystView:
    """Each column, and the pair of columns with the strongest association among those that can be estimated."""
    deadline = time.monotonic() + seconds
    found = expected_precision_by_column(sealed, joint, rows)
    estimable = {each.columns[0] for each in found}
    cross = None
    for pair in _pairs_by_association(joint):
        if not estimable.issuperset(pair):
            continue
        if cross is not None or time.monotonic() >= deadline:
            break
        try:
            cross = expected_precision(sealed, joint, rows, pair)
        except SizeError:  # the next pair may be smaller
            continue
    return AnalystView(found, cross, tuple(at.name for at in joint.attributes if at.name not in estimable))


def _pairs_by_association(joint: Joint) -> Iterator[tuple[str, str]]:
    """Pairs of columns, the strongest association first."""
    pairs = sorted(combinations(range(joint.m), 2), key=lambda pair: -_association(_table(joint, pair)))
    return ((joint.attributes[i].name, joint.attributes[j].name) for i, j in pairs)


def _table(joint: Joint, pair: tuple[int, int]) -> FloatArray:
    table = np.zeros([len(joint.attributes[j].labels) for j in pair])
    np.add.at(table, tuple(joint.combos[:, j] for j in pair), joint.p_x)
    return table


def _association(p: FloatArray) -> float:
    """Cramér's V: 0 for independent columns, 1 if one determines the other."""
    alone = np.outer(p.sum(axis=1), p.sum(axis=0))
    chi = float(((p - alone)[alone > 0] ** 2 / alone[alone > 0]).sum())
    return float(np.sqrt(chi / max(1, min(p.shape) - 1)))


def shares_bars(found: ExpectedPrecision, orders: Orders = ()) -> BarChart:
    """The shares of a column, or the largest cells of a cross table, with the expected error of each estimate."""
    alone, title = len(found.columns) == 1, " × ".join(found.columns)
    names = [" × ".join(labels) for labels in found.labels]
    attribute, most = (
        (Attribute(title, tuple(names)), MOST_ROWS) if alone else (Attribute("", tuple(names)), MOST_CELLS)
    )
    drawn = select_labels(attribute, found.shares, most, orders if alone else ()).tolist()
    low = np.maximum(found.shares - found.half_widths, 0.0)
    high = np.minimum(found.shares + found.half_widths, 1.0)
    end = scale_end(high[drawn])
    rows = []
    for i in drawn:
        share = float(found.shares[i])
        marks = (Mark("true", 0.0, share / end), Mark("told", float(low[i]) / end, float(high[i]) / end))
        rows.append(Bar(names[i], marks, f"{format_percent(share)} ± {format_points(float(found.half_widths[i]))}"))
    left = f" Shown: the {len(drawn)} largest of {len(names)}." if len(drawn) < len(names) else ""
    text = f"{'Shares' if alone else 'Cells'} of {title}, with the 95 % interval of an estimate.{left}"
    return BarChart(tuple(rows), select_keys(rows, KEYS), percent_ticks(end), text, title, "share ± points")


def error_table(found: AnalystView) -> list[tuple[str, str, str, str]]:
    """Column, values, error of its shares on average, and the value that is told worst; for any number of columns."""
    rows = []
    for each in (*found.columns, *(() if found.cross is None else (found.cross,))):
        worst = each.worst
        rows.append(
            (
                " × ".join(each.columns),
                f"{len(each.shares):,}",
                f"± {format_points(each.average)}",
                f"{' & '.join(each.labels[worst])} ± {format_points(float(each.half_widths[worst]))}",
            )
        )
    return rows


def group_errors(found: AnalystView, rows: int) -> list[tuple[str, str, str, str]]:
    """The groups that bear most of the error: value, people, error in points, and in percent of the group itself."""
    each = [
        (float(half / share), name, label, float(share), float(half))
        for column in found.columns
        for name in column.columns
        for (label, *_), share, half in zip(column.labels, column.shares, column.half_widths, strict=True)
        if share > 0
    ]
    each.sort(key=lambda group: -group[0])
    return [
        (
            f"{name} = {label}",
            f"{round(share * rows):,}",
            f"± {format_points(half)}",
            f"± {format_percent(relative, up=True)}",
        )
        for relative, name, label, share, half in each[:MOST_GROUPS]
        if half > 0
    ]


SHOWN_OUTPUTS = 24  # rows of a picture
CERTAIN = 1 - 1e-9  # an output above it determines one value; the rest is rounding error
PUBLIC_PLACES = 2  # of a probability on a public page: whole percents
WHOLE = ((0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %"))


@dataclass(frozen=True, slots=True, eq=False)
class ShownValue:
    """A value or code that a column can show, and the posterior of the original value."""

    name: str
    value: int | None  # the column's value with the same name, if any
    share: float  # of all rows
    posterior: FloatArray  # p(value | this)


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One published column: what its rows show, and how much of it is unchanged."""

    column: Attribute
    own: float | None  # P(a row shows its own value); None if no output is a value
    exact: float  # share of rows whose output determines the value
    outputs: tuple[ShownValue, ...]  # the most frequent first
    by_code: bool  # whether each is one output; otherwise outputs with one name are pooled


def changes(joint: Joint, sealed: SealedProtocol) -> tuple[Change, ...]:
    """One entry per published column; none if the table is too large."""
    try:
        found = _collect_changes(joint, sealed)
    except SizeError:
        return ()
    return tuple(found[j] for j in sorted(found))


def _collect_changes(joint: Joint, sealed: SealedProtocol) -> dict[int, Change]:
    found: dict[int, Change] = {}
    likely = {outcome.attributes: outcome.likely for outcome in sealed.outcomes}
    for part, (values, p_xy) in zip(sealed.mechanism.parts, sealed.mechanism.value_joint(joint), strict=True):
        for i, j in enumerate(part.attributes):
            column = joint.attributes[j]
            check_table_size(len(column.labels), p_xy.shape[1])
            x, y, chance = nonzero_entries(p_xy)
            p_vy = np.zeros((len(column.labels), p_xy.shape[1]))
            np.add.at(p_vy, (values[x, i], y), chance)
            if part.attributes in likely:
                names = [column.labels[v] for v in likely[part.attributes][:, i].tolist()]
            else:
                names = [name[i] for name in part.names]
            coded = part.attributes in likely and len(part.attributes) == 1 and p_xy.shape[1] <= SHOWN_OUTPUTS
            found[j] = _change(column, p_vy, names, outcome_codes(p_xy.shape[1]) if coded else ())
    return found


def _change(column: Attribute, p_vy: FloatArray, names: Sequence[str], codes: Sequence[str]) -> Change:
    p_y, total = p_vy.sum(axis=0), float(p_vy.sum())
    place = {label: v for v, label in enumerate(column.labels)}
    value = [place.get(name) for name in names]
    own = sum(float(p_vy[v, y]) for y, v in enumerate(value) if v is not None) / total
    certain = float(p_y[p_vy.max(axis=0) >= CERTAIN * p_y].sum()) / total
    calls = [f"{code} {name}" for code, name in zip(codes, names, strict=True)] if codes else list(names)
    called: dict[str, FloatArray] = {}
    for y, call in enumerate(calls):
        called[call] = called.get(call, 0.0) + p_vy[:, y]
    meaning = dict(zip(calls, value, strict=True))
    shown = [
        ShownValue(call, meaning[call], float(p_v.sum()) / total, p_v / p_v.sum())
        for call, p_v in called.items()
        if p_v.any()
    ]
    shown.sort(key=lambda each: -each.share)
    identified = any(v is not None for v in value)
    return Change(column, own if identified else None, certain, tuple(shown), bool(codes))


def change_bars(change: Change, orders: Orders = ()) -> BarChart:
    """A bar per shown value, divided by the posterior of the original value."""
    drawn = list(change.outputs[:SHOWN_OUTPUTS])
    where = display_positions(change.column, orders)
    if where is not None and all(each.value is not None for each in drawn):
        drawn.sort(key=lambda each: float(where[each.value or 0]))
    labels = change.column.labels
    rows = [
        Bar(each.name, divide_track(each.posterior, labels, each.value), format_percent(each.share)) for each in drawn
    ]
    what = "outcome code" if change.by_code else "value"
    left = len(change.outputs) - len(drawn)
    more = f" Shown: the {len(drawn)} most frequent of {len(change.outputs)}." if left else ""
    return BarChart(
        tuple(rows),
        select_keys(rows, DIVIDED),
        WHOLE,
        f"Each published {what} of {change.column.name}, divided by the original values of those records.{more}",
        "published as",
        "of all rows",
    )


def public_bars(sealed: SealedProtocol) -> BarChart | None:
    """P(published | original) in whole percents; None if there are too many values."""
    listed = sealed.mechanism.table_protocol
    domain = sealed.domain
    if listed is None or len(domain.combos) > SHOWN_OUTPUTS:
        return None
    channel = np.round(listed.channel if sealed.induced is None else sealed.induced, PUBLIC_PLACES)
    outputs = [" & ".join(labels) for labels in listed.outputs]
    rows = []
    for x, labels in enumerate(domain.values):
        name = " & ".join(labels)
        chances = channel[x] / max(float(channel[x].sum()), 1e-300)
        own = outputs.index(name) if name in outputs else None
        rows.append(Bar(name, divide_track(chances, outputs, own), format_percent(float(channel[x].max()))))
    return BarChart(
        tuple(rows),
        select_keys(
            rows,
            (
                ("own", "unchanged"),
                ("next", "likeliest other"),
                ("third", "next likeliest"),
                ("rest", "all others"),
            ),
        ),
        WHOLE,
        "Each original value, divided by what it is published as. A name with | stands for several values.",
        "original value",
        "likeliest",
    )
