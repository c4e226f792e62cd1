"""What a promise costs on this very table: the protocol, what analysts will get of it, and the trade-off.

The search gets a little time, then more, then as much as the command line gives it. Whatever one of these rounds ended
with is the best so far: it can be taken at once, and `--time-limit` gives it again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from privacyfunnel.designs.curve import Curve, Point, curve, line_name
from privacyfunnel.designs.methods import Effort
from privacyfunnel.release.design import counted, designed
from privacyfunnel.release.order import Order
from privacyfunnel.release.release import Release
from privacyfunnel.release.work import Work
from privacyfunnel.report.numbers import LOOSE, MOST_IN_TWO, MOST_INPUTS
from privacyfunnel.report.pictures import Picture, curve_picture
from privacyfunnel.studio.choices import Choices
from privacyfunnel.studio.tasks.saying import Say
from privacyfunnel.tables.files import open_table

ROUNDS = (2.0, 10.0, None)  # seconds; None is as long as the command line takes
SIZES = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0)  # the ε of the curve, besides the chosen one
SEEN = 0.2  # seconds between two sights of how far a proof is


@dataclass(frozen=True, slots=True)
class Cost:
    """What was found for one limit of time."""

    time_limit: float | None
    method: str
    reason: str
    kept: float  # the share of the information
    most: float | None  # the share that no protocol exceeds; None where nothing was proved
    certified: float
    use: str
    value: float
    bound: float | None
    unit: str
    short: float | None  # how much may be missing
    not_promised: tuple[str, ...]
    advice: tuple[str, ...]
    seconds: float
    unchanged: float


def cost(say: Say, choices: Choices) -> Cost:
    """Solve, round by round; then the curve, point by point."""
    begun = time.monotonic()
    best: Cost | None = None
    table = open_table(choices.table.path, delimiter=choices.delimiter, encoding=choices.encoding)
    say("doing", "counting")
    for limit in (choices.time_limit,) if choices.time_limit is not None else ROUNDS:
        order = replace(choices, time_limit=limit).order(_watched(say, begun))
        work = Work.begun(table, order)
        release = work.release("")
        best = _cost(release, limit, time.monotonic() - begun)
        say("best", best)
        if best.short is None:
            break
    assert best is not None
    say("doing", "drawing the trade-off")
    for picture in _curve(release, order):
        say("curve", picture)
    return best


def _watched(say: Say, begun: float):  # noqa: ANN202
    last = -math.inf

    def progress(value: float, bound: float) -> None:
        nonlocal last
        if time.monotonic() - last > SEEN:
            last = time.monotonic()
            say("proof", (value, bound, time.monotonic() - begun))

    return progress


def _cost(release: Release, limit: float | None, seconds: float) -> Cost:
    sealed, worth = release.sealed, release.worth
    return Cost(
        time_limit=limit,
        method=release.method,
        reason=release.reason,
        kept=release.share_kept,
        most=None if sealed.bound is None or not sealed.entropy else sealed.bound / sealed.entropy,
        certified=sealed.epsilon,
        use=worth.use.called,
        value=worth.value,
        bound=worth.bound,
        unit=worth.use.unit,
        short=release.short,
        not_promised=release.not_promised_to_owner,
        advice=tuple(filter(None, (release.sparse, *release.rare))),
        seconds=seconds,
        unchanged=release.unchanged_expected,
    )


def _curve(release: Release, order: Order) -> Iterator[Picture]:
    """The trade-off on this table, again with each point that is known."""
    joint, sealed = release.joint, release.sealed
    if joint is None or joint.a > (MOST_IN_TWO if joint.c == 2 else MOST_INPUTS):
        return
    known: tuple[Point, ...] = release.known
    chosen = sealed.promise.epsilon
    for epsilon in sorted({*SIZES, chosen}, key=lambda size: abs(math.log(size / chosen)) if chosen > 0 else size):
        found = curve(joint, sealed.promise, epsilons=[epsilon], effort=LOOSE, known=known)
        known = (*known, *(point for point in found.points if point not in known))
        whole = Curve(found.promise, found.entropy, known)
        yield curve_picture(whole, release.method, chosen, release.information)
