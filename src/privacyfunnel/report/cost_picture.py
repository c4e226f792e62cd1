"""What this privacy costs: what every method keeps of the same table at other sizes of the promise, and the bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from privacyfunnel.designs.curve import Curve, Point, curve, enforce_monotonicity
from privacyfunnel.designs.methods import Effort
from privacyfunnel.formatting import format_nats, format_number
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.report.colours import EVERYTHING, LINES, RED
from privacyfunnel.report.svg import LINE, MARKS, Picture, Scale, extent, frame, legend, line, mark, polyline, svg

WIDTH = 390.0  # points: about a phone's, so that letters keep their size there
MOST_INPUTS, MOST_IN_TWO = 120, 400  # inputs for which a curve is drawn; more of them where the secret has two values
SIZES = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0)  # the ε of its curve, besides the chosen one: enough to see the bend
LOOSE = Effort(gap=1e-3, time_limit=1.0)  # a curve is looked at, not published: a thousandth of a nat is enough
SECONDS = 2.5  # for all of it: a point that has not begun by then is not drawn
BEST = "optimal"  # the line that no other exceeds


def cost_curve(
    joint: Joint, sealed: SealedProtocol, effort: Effort = LOOSE, known: Sequence[Point] = ()
) -> Curve | None:
    """What every method keeps on this very data, at the usual ε and the chosen one; None where it would take long.

    Points that are known from the release are not solved again.
    """
    inputs = joint.a * (joint.c if sealed.sees_secret else 1)
    if inputs > (MOST_IN_TWO if joint.c == 2 else MOST_INPUTS):
        return None
    sizes = sorted({*SIZES, sealed.promise.epsilon} - {0.0})
    found = curve(
        joint,
        sealed.promise,
        epsilons=sizes,
        sees_secret=sealed.sees_secret,
        effort=effort,
        known=known,
        seconds=SECONDS,
        cores=None,
    )
    return found if sealed.sees_secret else _raise_to_release(found, sealed.promise.epsilon, sealed.information)


def _raise_to_release(found: Curve, epsilon: float, kept: float) -> Curve:
    """The curve with what this release keeps: the best method keeps no less, there and at every larger ε.

    Only a search that was cut short is mended by this: every method's protocol is one that the best may choose.
    """
    best = [p for p in found.points if p.name == BEST]
    raised = [replace(p, utility=max(p.utility or 0.0, kept)) if p.epsilon == epsilon else p for p in best]
    others = tuple(p for p in found.points if p.name != BEST)
    return replace(found, points=(*enforce_monotonicity(sorted(raised, key=lambda p: p.epsilon)), *others))


def costs_picture(found: Curve, method: str, epsilon: float, kept: float) -> Picture:
    """Information kept against ε, with the chosen point marked."""
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
            entries.append((mark("dash", 0, 0, colour, size=12), f"proved: {name} keeps no more"))
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
    """This release beside the best that was found at its ε."""
    mine = f"This release ({method}, ε = {format_number(epsilon)}) keeps {format_nats(kept, down=True)}"
    best = max((p.utility or 0.0 for p in found.points if p.epsilon == epsilon), default=kept)
    if best <= kept + 5e-4:
        return f"{mine}, the most of all that were tried."
    return f"{mine}; the best that was found at that ε keeps {format_nats(best, down=True)}."
