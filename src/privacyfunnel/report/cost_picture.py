"""The cost picture: information kept against ε on this table, for every method, with proved bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from privacyfunnel.designs.curve import Curve, Point, curve, enforce_monotonicity
from privacyfunnel.designs.methods import Effort
from privacyfunnel.formatting import format_nats, format_number
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.report.svg import (
    EVERYTHING,
    LINE,
    LINES,
    MARKS,
    RED,
    Picture,
    Scale,
    extent,
    frame,
    legend,
    line,
    mark,
    polyline,
    svg,
)

WIDTH = 390.0  # points: about the width of a phone, so that letters keep their size there
MOST_INPUTS, MOST_INPUTS_TWO_SECRETS = 120, 400  # inputs up to which a curve is drawn
SIZES = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0)  # ε of the curve, besides the chosen one
LOOSE = Effort(gap=1e-3, time_limit=1.0)  # of one point: a thousandth of a nat cannot be seen in the picture
SECONDS = 2.5  # of all points: those that have not begun by then are left out
BEST = "optimal"  # the method that no other exceeds


def is_small(joint: Joint, inputs: int) -> bool:
    """Whether a curve with so many inputs takes seconds, not minutes."""
    return inputs <= (MOST_INPUTS_TWO_SECRETS if joint.c == 2 else MOST_INPUTS)


def cost_curve(
    joint: Joint, sealed: SealedProtocol, effort: Effort = LOOSE, known: Sequence[Point] = ()
) -> Curve | None:
    """What every method keeps at the usual ε and the chosen one; None if it would take long. Solves up to 28 problems.

    The `known` points are not solved again.
    """
    if not is_small(joint, joint.a * (joint.c if sealed.sees_secret else 1)):
        return None
    found = curve(
        joint,
        sealed.promise,
        epsilons=sorted({*SIZES, sealed.promise.epsilon} - {0.0}),
        sees_secret=sealed.sees_secret,
        effort=effort,
        known=known,
        seconds=SECONDS,
        cores=None,
    )
    return found if sealed.sees_secret else _raise_to_release(found, sealed.promise.epsilon, sealed.information)


def _raise_to_release(found: Curve, epsilon: float, kept: float) -> Curve:
    """The curve with the best method raised to this release, from its ε on.

    The optimum may choose every other method's protocol; only a search that was cut short is below one.
    """
    best = [p for p in found.points if p.name == BEST]
    raised = [replace(p, utility=max(p.utility or 0.0, kept)) if p.epsilon == epsilon else p for p in best]
    others = tuple(p for p in found.points if p.name != BEST)
    return replace(found, points=(*enforce_monotonicity(sorted(raised, key=lambda p: p.epsilon)), *others))


def costs_picture(found: Curve, method: str, epsilon: float, kept: float) -> Picture:
    """Information kept against ε, with this release marked."""
    most = max([found.entropy, kept, *(p.bound or 0.0 for p in found.points)])
    bottom, left = 210.0, 50.0
    across = Scale(0.0, 1.04 * max([*found.epsilons, epsilon]), left, WIDTH - 8)
    up = Scale(0.0, 1.05 * most or 1.0, bottom, 8.0)
    parts = [*frame(across, up, f"ε ({found.promise.upper()})", "information kept, nats")]
    parts.append(line(left, up(found.entropy), WIDTH - 8, up(found.entropy), colour=EVERYTHING, dashes="1 2"))
    entries = [(line(-8, 0, 8, 0, colour=EVERYTHING, dashes="1 2"), "H(X), everything")]
    for i, (name, points) in enumerate(found.lines()):
        colour, sign = LINES[i % len(LINES)], MARKS[i % len(MARKS)]
        places = [(across(p.epsilon), up(p.utility)) for p in points if p.utility is not None]
        if places:
            parts += [polyline(places, colour), *(mark(sign, x, y, colour, size=4.5) for x, y in places)]
            entries.append((line(-8, 0, 8, 0, colour=colour, width=1.5) + mark(sign, 0, 0, colour, size=4.5), name))
        proved = [p for p in points if p.bound is not None]
        parts += [mark("dash", across(p.epsilon), up(p.bound or 0.0), colour, size=12) for p in proved]
        if proved:
            entries.append((mark("dash", 0, 0, colour, size=12), f"proved upper bound of {name}"))
    parts.append(mark("star", across(epsilon), up(kept), RED, size=14))
    entries.append((mark("star", 0, 0, RED, size=12), "this release"))
    columns = 2 if max(extent(text, 9.5) for _, text in entries) < WIDTH / 2 - 30 else 1
    height = bottom + 46
    signs = legend(entries, 12, height, WIDTH - 20, columns=columns)
    rows = -(-len(entries) // columns)
    return Picture(
        "costs",
        svg(WIDTH, height + LINE * (rows - 1) + 12, [*parts, *signs]),
        f"Information kept against ε, out of {format_nats(found.entropy)}. "
        f"{_compare_with_best(found, method, epsilon, kept)}",
    )


def _compare_with_best(found: Curve, method: str, epsilon: float, kept: float) -> str:
    mine = f"This release ({method}, ε = {format_number(epsilon)}) keeps {format_nats(kept, down=True)}"
    best = max((p.utility or 0.0 for p in found.points if p.epsilon == epsilon), default=kept)
    if best <= kept + 5e-4:
        return f"{mine}, the most of all methods."
    return f"{mine}; the best method at this ε keeps {format_nats(best, down=True)}."
