"""Bars as a page draws them: rows of a name, marks on a track, and a figure. Names are text of the page, and wrap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.formatting import format_percent
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.uses.ordinal_scale import Orders, display_positions
from privacyfunnel.report.svg import Scale

Key = tuple[str, str]  # how a mark looks, and what it means


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark from `start` to `end` of a track, both between 0 and 1; `look` is a class of the style sheet."""

    look: str
    start: float
    end: float
    text: str = ""

    @property
    def css(self) -> str:
        """Where it stands; what is only a place has the width that the style sheet gives it."""
        start, end = min(max(self.start, 0.0), 1.0), min(max(self.end, 0.0), 1.0)
        wide = f";width:{100 * (end - start):.2f}%" if end > start else ""
        return f"left:{100 * start:.2f}%{wide}"


@dataclass(frozen=True, slots=True)
class Bar:
    """One row."""

    name: str
    marks: tuple[Mark, ...]
    figure: str


@dataclass(frozen=True, slots=True)
class BarChart:
    """Rows on one scale, what their marks mean, and what they show in words."""

    rows: tuple[Bar, ...]
    keys: tuple[Key, ...]
    ticks: tuple[tuple[float, str], ...]
    words: str
    name: str = ""  # what the rows are
    figure: str = ""  # what the figures are


def percent_ticks(most: float) -> tuple[tuple[float, str], ...]:
    """Round shares from 0 to `most`, as places on a track and in percent.

    >>> percent_ticks(0.47)
    ((0.0, '0 %'), (0.425..., '20 %'), (0.851..., '40 %'))
    """
    return tuple((tick / most, format_percent(tick)) for tick in Scale(0.0, most, 0.0, 1.0).ticks(4))


def select_labels(attribute: Attribute, shares: FloatArray, most: int, orders: Orders = ()) -> IntArray:
    """Which labels to show, at most so many: the largest; in their own order where they have one, else by share."""
    largest = np.argsort(-shares, kind="stable")[:most]
    where = display_positions(attribute, orders)
    if where is None:
        return largest
    return largest[np.argsort(where[largest], kind="stable")]


def divide_track(chances: FloatArray, names: Sequence[str], own: int | None, least: float = 0.005) -> tuple[Mark, ...]:
    """A whole track divided by chances: one's own first, then the two likeliest others, and all the rest together."""
    others = [int(x) for x in np.argsort(-chances, kind="stable") if int(x) != own and chances[x] >= least]
    parts = [] if own is None or chances[own] < least else [("own", float(chances[own]), names[own])]
    parts += [(look, float(chances[x]), names[x]) for look, x in zip(("next", "third"), others, strict=False)]
    rest = float(chances.sum()) - sum(chance for _, chance, _ in parts)
    if rest >= least:
        parts.append(("rest", rest, ""))
    marks, start = [], 0.0
    for look, chance, name in parts:
        marks.append(Mark(look, start, start + chance, name if chance >= NAMED else ""))
        start += chance
    return tuple(marks)


NAMED = 0.18  # a part of a track at least this wide has its name in it
DIVIDED: tuple[Key, ...] = (
    ("own", "the value that is shown"),
    ("next", "the next likeliest"),
    ("third", "a third"),
    ("rest", "any other"),
)


def select_keys(rows: Sequence[Bar], keys: Sequence[Key]) -> tuple[Key, ...]:
    """Those of the keys that some row needs."""
    used = {mark.look for row in rows for mark in row.marks}
    return tuple(key for key in keys if key[0] in used)


def scale_end(*shares: FloatArray) -> float:
    """Where a scale ends that holds these shares: a little beyond the largest, and never beyond all."""
    most = max((float(np.nanmax(part)) for part in shares if len(part)), default=1.0)
    return min(1.0, 1.05 * most) if math.isfinite(most) and most > 0 else 1.0
