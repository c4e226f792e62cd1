"""Numbers to pictures: figures as text of SVG that takes its letters and its text colour from the page around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacyfunnel.designs.curve import Curve
from privacyfunnel.report.colours import AMBER, EVERYTHING, GREY, LINES, NEAREST, PALE_TEAL, RED, TEAL
from privacyfunnel.report.numbers import Attacker, Belief, Column, Outputs
from privacyfunnel.report.svg import (
    LINE,
    MARKS,
    Scale,
    extent,
    legend,
    line,
    mark,
    polyline,
    rectangle,
    short,
    svg,
    words,
)

WIDTH = 360.0  # points: on a phone the letters keep their size
EDGE = 6.0  # around every picture
MOST_ROWS = 40  # values that are drawn
LEAST_SHOWN = 1e-3  # chances below this are not drawn
NAMED = 0.22  # a part of a bar at least this wide has its name in it
WHITE = "#ffffff"


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as SVG, and what it shows in words for those who do not see it."""

    name: str
    svg: str
    words: str


def curve_picture(curve: Curve, method: str, epsilon: float, kept: float) -> Picture:
    """Information kept against ε, with the chosen point marked."""
    lines = list(curve.lines())
    best = max((p.utility or 0.0 for p in curve.points if p.epsilon == epsilon), default=kept)
    most = max([curve.entropy, kept, *(p.bound or 0.0 for p in curve.points)])
    bottom, left = 210.0, 46.0
    across = Scale(0.0, 1.04 * max([*curve.epsilons, epsilon]), left, WIDTH - EDGE)
    up = Scale(0.0, 1.05 * most or 1.0, bottom, EDGE)
    parts = [*_frame(across, up, f"ε ({curve.promise.upper()})", "information kept, I(X;Y) in nats")]
    parts.append(line(left, up(curve.entropy), WIDTH - EDGE, up(curve.entropy), colour=EVERYTHING, dashes="1 2"))
    entries = [(line(-8, 0, 8, 0, colour=EVERYTHING, dashes="1 2"), "H(X), everything")]
    for i, (name, points) in enumerate(lines):
        colour, sign = LINES[i % len(LINES)], MARKS[i % len(MARKS)]
        places = [(across(p.epsilon), up(p.utility)) for p in points if p.utility is not None]
        if places:
            parts += [polyline(places, colour), *(mark(sign, x, y, colour, size=4.5) for x, y in places)]
            entries.append((line(-8, 0, 8, 0, colour=colour, width=1.5) + mark(sign, 0, 0, colour, size=4.5), name))
        proved = [p for p in points if p.bound is not None]
        parts += [mark("dash", across(p.epsilon), up(p.bound or 0.0), colour, size=12) for p in proved]
        if proved:
            entries.append((mark("dash", 0, 0, colour, size=12), f"bound on {name}"))
    parts.append(mark("star", across(epsilon), up(kept), RED, size=14))
    entries.append((mark("star", 0, 0, RED, size=12), "this release"))
    return Picture(
        "trade-off",
        _with_legend(parts, entries, bottom + 40),
        f"Information kept against ε for every method on this table, out of {curve.entropy:.2f} nats. This release "
        f"({method}, ε = {epsilon:g}) keeps {kept:.3f} nats; the best method at that ε keeps {best:.3f}.",
    )


def outputs_picture(shown: Outputs) -> Picture:
    """Each output as a bar of the values it may stand for."""
    rows, pitch = len(shown.labels), 16.5
    right, bottom = WIDTH - 36.0, EDGE + pitch * rows
    across = Scale(0.0, 1.0, EDGE, right)
    parts = []
    for y in range(rows):
        top, left = EDGE + pitch * y + 2.3, 0.0
        for rank, x in enumerate(np.argsort(-shown.posterior[y], kind="stable")):
            chance = float(shown.posterior[y, x])
            if chance < LEAST_SHOWN:
                break
            wide = across(left + chance) - across(left)
            parts.append(rectangle(across(left), top, wide, 12, NEAREST[min(rank, len(NEAREST) - 1)]))
            if chance > NAMED:
                name = short(shown.values[x], int(wide / extent("x", 7)) - 1)
                middle = across(left + chance / 2)
                parts.append(words(middle, top + 6, name, size=7, anchor="middle", colour=WHITE))
            left += chance
        parts.append(words(right + 5, top + 6, f"{100 * shown.share[y]:.1f} %", size=7.5))
    said = "chance that a record published so was originally …   (right: share of all records)"
    parts += [*_ruler(across, bottom), words(across(0.5), bottom + 24, said, anchor="middle")]
    certain = int((shown.posterior.max(axis=1) > 1 - 1e-6).sum())
    return Picture(
        "outputs",
        svg(WIDTH, bottom + 34, parts),
        f"{rows} published outputs, most frequent first, each a bar divided among the values it may stand for. "
        f"{certain} of them {'stands' if certain == 1 else 'stand'} for one value with certainty.",
    )


def channel_picture(shown: Outputs) -> Picture:
    """The channel q(y | x) as a heat map."""
    rows, columns = shown.channel.shape
    values = [short(value, 20) for value in shown.values[:MOST_ROWS]]
    labels = [short(label, 16) for label in shown.labels]
    pitch, left, right = 13.7, 22.0 + max(extent(value, 7) for value in values), WIDTH - 52.0
    bottom = EDGE + pitch * len(values)
    wide = (right - left) / columns
    parts = [words(EDGE + 4, (EDGE + bottom) / 2, "original value", size=9, anchor="middle", turned=-90)]
    for x, value in enumerate(values):
        top = EDGE + pitch * x
        parts += [words(left - 5, top + pitch / 2, value, size=7, anchor="end")]
        parts += [
            rectangle(left + wide * y, top, wide, pitch, TEAL, faint=float(chance))
            for y, chance in enumerate(shown.channel[x])
            if chance >= LEAST_SHOWN
        ]
    parts += [
        words(left + wide * (y + 0.5), bottom + 7, label, size=6.5, anchor="end", turned=-60)
        for y, label in enumerate(labels)
    ]
    parts += [line(left, EDGE, left, bottom), line(left, bottom, right, bottom)]
    deep = bottom + 16 + 0.87 * max(extent(label, 6.5) for label in labels)
    parts.append(words((left + right) / 2, deep + 4, "published as", size=9, anchor="middle"))
    return Picture(
        "channel",
        svg(WIDTH, deep + 14, [*parts, *_shades(right + 10, EDGE, bottom)]),
        f"Heat map of the chance that each of {rows} original values is published as each of {columns} outputs. "
        f"On average a value keeps {100 * float(shown.channel.max(axis=1).mean()):.0f} % on its likeliest output.",
    )


def attacker_picture(shown: Attacker, epsilon: float) -> Picture:
    """Prior and posterior of every secret value, within the band that was promised."""
    rows, pitch, factor = len(shown.secrets), 15.5, float(np.exp(epsilon))
    names = [short(secret, 22) for secret in shown.secrets]
    left, bottom = EDGE + 8 + max(extent(name, 7.5) for name in names), EDGE + pitch * rows
    least, most = shown.prior / factor, np.minimum(shown.prior * factor, 1.0)
    seen = np.concatenate([least, most, shown.typical, shown.worst])
    seen = np.log(seen[seen > 0])
    low, high = np.exp(seen.min() - 0.06 * np.ptp(seen)), np.exp(seen.max() + 0.06 * np.ptp(seen))
    across = Scale(float(low), float(high) if high > low else 2 * float(low), left, WIDTH - EDGE, logarithmic=True)
    marks = (
        ("bar", shown.prior, "currentColor", 11.0, "before"),
        ("circle", shown.typical, TEAL, 5.0, "after the most frequent output"),
        ("diamond", shown.worst, RED, 5.0, "after the worst output"),
    )
    parts = [*_ruler(across, bottom, percent=True), *_names(names, left, pitch)]
    for row in range(rows):
        height = EDGE + pitch * (row + 0.5)
        start, end = across(float(least[row])), across(float(most[row]))
        parts.append(rectangle(start, height - 4.8, end - start, 9.6, GREY, faint=0.3))
        for sign, beliefs, colour, size, _ in marks:
            if beliefs[row] > 0:
                parts.append(mark(sign, across(float(beliefs[row])), height, colour, size=size))
    said = "belief that the person has this secret value (log scale)"
    parts.append(words((left + WIDTH) / 2, bottom + 26, said, size=9, anchor="middle"))
    entries = [(mark(sign, 0, 0, colour, size=min(size, 9)), name) for sign, _, colour, size, name in marks]
    entries.append((rectangle(-8, -3.5, 16, 7, GREY, faint=0.3), "allowed by the promise"))
    moved = float(np.abs(np.log(shown.worst / shown.prior)).max()) if (shown.worst > 0).all() else float("inf")
    return Picture(
        "attacker",
        _with_legend(parts, entries, bottom + 42),
        f"Belief about each of {rows} secret values before and after seeing a record. After the worst output "
        f"({shown.worst_output}) the largest move is a factor of {np.exp(moved):.2f}; the promise allows "
        f"{factor:.2f}.",
    )


def column_picture(column: Column) -> Picture:
    """A column's shares: original, published exactly, and estimated back with intervals."""
    order = np.argsort(-column.original, kind="stable")[:MOST_ROWS]
    names, pitch = [short(column.labels[x], 22) for x in order], 19.0
    left, bottom = EDGE + 8 + max(extent(name, 7.5) for name in names), EDGE + pitch * len(order)
    known = ~np.isnan(column.estimated)
    middle = np.where(known, column.estimated, (column.lower + column.upper) / 2)
    most = max(float(np.nanmax(part[order])) for part in (column.original, column.upper, middle))
    most = max(most, 0.0 if column.exact is None else float(column.exact[order].max()))
    across = Scale(0.0, 1.04 * most or 1.0, left, WIDTH - EDGE)
    parts = [*_ruler(across, bottom, percent=True), *_names(names, left, pitch), line(left, EDGE, left, bottom)]
    for row, x in enumerate(order):
        top = EDGE + pitch * row
        parts.append(rectangle(left, top + 3, across(column.original[x]) - left, 6.5, GREY, faint=0.8))
        if column.exact is not None:
            parts.append(rectangle(left, top + 9.5, across(column.exact[x]) - left, 6.5, PALE_TEAL))
        colour, width = (RED, 1.2) if known[x] else (AMBER, 2.5)
        low, high = across(min(column.lower[x], middle[x])), across(max(column.upper[x], middle[x]))
        height = top + 6.2
        parts.append(_interval(low, high, height, colour, width))
        if known[x]:
            parts.append(mark("circle", across(middle[x]), height, colour, size=3.6))
    said = f"share of records, {short(column.name, 40)}"
    parts.append(words((left + WIDTH) / 2, bottom + 26, said, size=9, anchor="middle"))
    entries = [(rectangle(-8, -3, 16, 6, GREY, faint=0.8), "original")]
    if column.exact is not None:
        entries.append((rectangle(-8, -3, 16, 6, PALE_TEAL), "published just so"))
    if known[order].any():
        sign = _interval(-8, 8, 0, RED, 1.2) + mark("circle", 0, 0, RED, size=3.6)
        entries.append((sign, "estimated back, 95 %"))
    if not known[order].all():
        entries.append((_interval(-8, 8, 0, AMBER, 2.5), "only bounds are known"))
    error = np.abs(column.estimated - column.original)[known]
    said = f"Shares of the {len(column.labels)} values of {column.name}: original, "
    said += "published just so, " if column.exact is not None else ""
    said += "and estimated back from the sanitised table."
    if len(error):
        said += f" The largest error of an estimate is {100 * float(error.max()):.2f} percentage points."
    else:
        said += " The sanitised table alone does not say what they are; lines show what is known."
    name = f"column-{re.sub(r'[^A-Za-z0-9]+', '-', column.name)}"
    return Picture(name, _with_legend(parts, entries, bottom + 42), said)


def beliefs_sentence(belief: Belief, secret: str) -> str:
    """The promise in one plain sentence, with numbers from this data."""
    return (
        f"Whoever sees a published record, their belief that this person's {secret} is {belief.secret} can rise from "
        f"{_percent(belief.prior)} to at most {_percent(belief.at_most, up=True)}, or fall to no less than "
        f"{_percent(belief.at_least)}."
    )


def _percent(share: float, *, up: bool = False) -> str:
    """Two digits that matter, in percent; an upper limit is never rounded down."""
    percent = 100 * share
    if percent <= 0:
        return "0 %"
    digits = max(0, 1 - int(np.floor(np.log10(percent))))
    scale = 10.0**digits
    rounded = np.ceil(percent * scale - 1e-9) / scale if up else np.round(percent * scale) / scale
    return f"{rounded:.{digits}f} %"


def _frame(across: Scale, up: Scale, below: str, beside: str) -> list[str]:
    """Two axes with their ticks, their names, and a faint grid."""
    left, right, bottom, top = across.start, across.end, up.start, up.end
    parts = [line(across(tick), top, across(tick), bottom, faint=0.12) for tick in across.ticks()]
    for tick in up.ticks():
        parts += [
            line(left, up(tick), right, up(tick), faint=0.12),
            line(left - 3, up(tick), left, up(tick)),
            words(left - 5, up(tick), f"{tick:g}", anchor="end"),
        ]
    parts += [
        *_ruler(across, bottom),
        line(left, top, left, bottom),
        words((left + right) / 2, bottom + 26, below, size=9, anchor="middle"),
        words(EDGE + 6, (top + bottom) / 2, beside, size=9, anchor="middle", turned=-90),
    ]
    return parts


def _ruler(across: Scale, y: float, *, percent: bool = False) -> list[str]:
    """A flat axis with its ticks."""
    parts = [line(across.start, y, across.end, y)]
    for tick in across.ticks():
        said = f"{100 * tick:.6g} %" if percent else f"{tick:g}"
        parts += [line(across(tick), y, across(tick), y + 3), words(across(tick), y + 11, said, anchor="middle")]
    return parts


def _names(names: Sequence[str], left: float, pitch: float) -> list[str]:
    """What the rows are called, to the left of them."""
    return [words(left - 5, EDGE + pitch * (row + 0.5), name, size=7.5, anchor="end") for row, name in enumerate(names)]


def _interval(low: float, high: float, y: float, colour: str, width: float) -> str:
    """A line with an end to both sides."""
    ends = (line(x, y - 2, x, y + 2, colour=colour, width=width) for x in (low, high))
    return line(low, y, high, y, colour=colour, width=width) + "".join(ends)


def _shades(x: float, top: float, bottom: float) -> list[str]:
    """From 1 above to 0 below, in shades of the heat map."""
    up = Scale(0.0, 1.0, bottom, top)
    steps = 40  # more than the eye tells apart
    parts = [
        rectangle(x, up((k + 1) / steps), 9, (bottom - top) / steps, TEAL, faint=(k + 0.5) / steps)
        for k in range(steps)
    ]
    for tick in up.ticks(5):
        parts += [line(x + 9, up(tick), x + 12, up(tick)), words(x + 14, up(tick), f"{tick:.1f}", size=7)]
    return [*parts, words(x + 36, (top + bottom) / 2, "chance", anchor="middle", turned=-90)]


def _with_legend(parts: Sequence[str], entries: Sequence[tuple[str, str]], y: float) -> str:
    """The picture with what its marks mean below, from height y on."""
    longest = max(extent(text, 7.5) for _, text in entries)
    columns = 2 if longest < WIDTH / 2 - 30 else 1
    rows = -(-len(entries) // columns)
    left = EDGE + 14
    signs = legend(entries, left, y, WIDTH - EDGE - left, columns=columns)
    return svg(WIDTH, y + LINE * (rows - 1) + 10, [*parts, *signs])
