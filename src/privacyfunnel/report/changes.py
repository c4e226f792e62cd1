"""What was changed: how often rows show their own value, and P(original value | shown value)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, nonzero_entries
from privacyfunnel.errors import SizeError
from privacyfunnel.formatting import format_percent
from privacyfunnel.mechanisms.mechanism import check_table_size
from privacyfunnel.mechanisms.outcomes import outcome_codes
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.uses.ordinal_scale import Orders, display_positions
from privacyfunnel.report.bars import DIVIDED, Bar, BarChart, divide_track, select_keys

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
    told = any(v is not None for v in value)
    return Change(column, own if told else None, certain, tuple(shown), bool(codes))


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
