"""The studio's own pictures: how numbers lie, and what columns give away. Shapes and colours are the report's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privacyfunnel.formatting import format_factor, format_percent
from privacyfunnel.report.svg import (
    AMBER,
    GREY,
    RED,
    TEAL,
    Picture,
    Scale,
    line,
    mark,
    rectangle,
    shorten,
    svg,
    text_element,
)

if TYPE_CHECKING:
    from privacyfunnel.studio.tasks.scan_tasks import TableLeaks
    from privacyfunnel.tables.coding.exploration import Histogram

__all__ = [
    "Picture",
    "bars_picture",
    "intervals_picture",
    "leaks_picture",
]

WIDTH, EDGE = 360.0, 6.0
HIGH = 70.0  # of bars
PITCH = 19.0  # of rows
MOST_ROWS = 30
LINE = 17.0  # of intervals
MOST_FACTOR = 20.0  # that a bar shows; larger ones reach the end


def bars_picture(column: str, held: Histogram, edges: Sequence[float] = ()) -> Picture:
    """How many rows hold which numbers, and where bins begin."""
    most = max(held.rows) or 1
    wide = (WIDTH - 2 * EDGE) / len(held.rows)
    parts = [
        rectangle(EDGE + wide * i, EDGE + HIGH * (1 - rows / most), wide - 0.6, HIGH * rows / most, TEAL, faint=0.75)
        for i, rows in enumerate(held.rows)
        if rows
    ]
    span = held.high - held.low
    inside = [edge for edge in edges if held.low < edge < held.high] if span > 0 else []
    for edge in inside:
        x = EDGE + (WIDTH - 2 * EDGE) * (edge - held.low) / span
        parts.append(line(x, EDGE - 3, x, EDGE + HIGH + 3, colour=RED, width=1.2))
    bottom = EDGE + HIGH
    parts += [
        line(EDGE, bottom, WIDTH - EDGE, bottom),
        text_element(EDGE, bottom + 10, f"{held.low:g}", size=9),
        text_element(WIDTH - EDGE, bottom + 10, f"{held.high:g}", size=9, anchor="end"),
    ]
    cut = f", cut at {len(inside)} edges" if inside else ""
    return Picture(
        "bars",
        svg(WIDTH, bottom + 18, parts),
        f"Histogram of {shorten(column, 60)} from {held.low:g} to {held.high:g}{cut}.",
    )


def leaks_picture(found: TableLeaks) -> Picture:
    """By which factor each column moves a belief at worst."""
    shown = [each for each in found.columns if each.epsilon is not None][:MOST_ROWS]
    left = 120.0
    across = Scale(1.0, MOST_FACTOR, left, WIDTH - EDGE - 54, logarithmic=True)
    parts = []
    for tick in (1.0, 2.0, 5.0, 10.0, 20.0):
        bottom = EDGE + PITCH * len(shown)
        parts += [
            line(across(tick), EDGE, across(tick), bottom, faint=0.2),
            text_element(across(tick), bottom + 9, f"×{tick:g}", size=9, anchor="middle"),
        ]
    for row, each in enumerate(shown):
        top = EDGE + PITCH * row
        factor = math.inf if each.epsilon is None or each.epsilon > 50 else math.exp(each.epsilon)
        colour = (TEAL if each.keeps else RED if math.isinf(factor) else AMBER) if each.chosen else GREY
        end = across(min(factor, MOST_FACTOR)) + (8 if factor > MOST_FACTOR else 0)
        text = "no bound" if math.isinf(factor) else f"×{format_factor(each.epsilon or 0.0)}"
        parts += [
            text_element(left - 5, top + PITCH / 2, shorten(each.column, 20), size=10, anchor="end"),
            rectangle(left, top + 3, max(end - left, 1.5), PITCH - 6, colour),
            text_element(end + 4, top + PITCH / 2, text, size=9),
        ]
    endless = sum(1 for each in shown if each.epsilon is not None and math.isinf(each.epsilon))
    return Picture(
        "leaks",
        svg(WIDTH, EDGE + PITCH * len(shown) + 18, parts),
        f"Largest factor by which a person's value in each unchanged column changes the belief about "
        f"{shorten(found.secret, 60)}. {endless} of {len(shown)} columns have no bound. Chosen columns are coloured.",
    )


@dataclass(frozen=True, slots=True)
class ShareInterval:
    """A share, and between what an estimate of it lies; no share where there is but an interval."""

    label: str
    share: float | None
    low: float
    high: float
    doubtful: bool = False  # told in another colour


def intervals_picture(name: str, caption: str, shown: Sequence[ShareInterval]) -> Picture:
    """Shares with their intervals, a line each."""
    left, bottom = 130.0, EDGE + LINE * len(shown)
    across = Scale(0.0, max([each.high for each in shown] + [0.01]), left, WIDTH - EDGE - 6)
    parts = []
    for tick in across.ticks(5):
        parts += [
            line(across(tick), EDGE, across(tick), bottom, faint=0.15),
            text_element(across(tick), bottom + 9, format_percent(tick), size=9, anchor="middle"),
        ]
    for row, each in enumerate(shown):
        y = EDGE + LINE * (row + 0.5)
        colour = AMBER if each.doubtful else TEAL
        parts += [
            text_element(left - 5, y, shorten(each.label, 22), size=10, anchor="end"),
            line(across(each.low), y, across(each.high), y, colour=colour, width=3.0 if each.share is None else 1.6),
        ]
        if each.share is not None:
            parts.append(mark("circle", across(each.share), y, colour, size=4.5))
    return Picture(name, svg(WIDTH, bottom + 18, parts), caption)
