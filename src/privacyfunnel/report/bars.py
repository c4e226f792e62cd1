"""Bar charts in HTML: rows of a name, marks on a track, and a figure; and the style sheet of all pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.formatting import format_percent
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.uses.ordinal_scale import Orders, display_positions
from privacyfunnel.report.svg import Scale

Key = tuple[str, str]  # the class of a mark in the style sheet, and what it means
STYLE: str = files("privacyfunnel.report").joinpath("style.css").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark from `start` to `end` of a track, both between 0 and 1; `look` is a class of the style sheet."""

    look: str
    start: float
    end: float
    text: str = ""

    @property
    def css(self) -> str:
        """Its place; a mark without width has the width of the style sheet."""
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
    """Rows on one scale, the meaning of their marks, and a description."""

    rows: tuple[Bar, ...]
    keys: tuple[Key, ...]
    ticks: tuple[tuple[float, str], ...]
    words: str
    name: str = ""  # what the rows are
    figure: str = ""  # what the figures are


def percent_ticks(most: float) -> tuple[tuple[float, str], ...]:
    """Round shares from 0 to `most`: places on a track, and labels in percent.

    >>> percent_ticks(0.47)
    ((0.0, '0 %'), (0.425..., '20 %'), (0.851..., '40 %'))
    """
    return tuple((tick / most, format_percent(tick)) for tick in Scale(0.0, most, 0.0, 1.0).ticks(4))


def select_labels(attribute: Attribute, shares: FloatArray, most: int, orders: Orders = ()) -> IntArray:
    """The largest labels, at most so many; ordered by their own scale if they have one, else by share."""
    largest = np.argsort(-shares, kind="stable")[:most]
    where = display_positions(attribute, orders)
    if where is None:
        return largest
    return largest[np.argsort(where[largest], kind="stable")]


def divide_track(chances: FloatArray, names: Sequence[str], own: int | None, least: float = 0.005) -> tuple[Mark, ...]:
    """A track divided by probabilities: the own value, the two likeliest others, and all others together."""
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


NAMED = 0.18  # least width of a part that carries its name
DIVIDED: tuple[Key, ...] = (
    ("own", "the value shown"),
    ("next", "second likeliest"),
    ("third", "third likeliest"),
    ("rest", "all others"),
)


def select_keys(rows: Sequence[Bar], keys: Sequence[Key]) -> tuple[Key, ...]:
    """The keys whose marks some row has."""
    used = {mark.look for row in rows for mark in row.marks}
    return tuple(key for key in keys if key[0] in used)


def scale_end(*shares: FloatArray) -> float:
    """The end of a scale for these shares: a little above the largest, at most 1."""
    most = max((float(np.nanmax(part)) for part in shares if len(part)), default=1.0)
    return min(1.0, 1.05 * most) if math.isfinite(most) and most > 0 else 1.0
