"""What a promise costs on this very table: the protocol, what analysts will get of it, and the trade-off.

The search gets a little time, then more, then as much as the command line gives it. Whatever one of these rounds ended
with is the best so far: whoever waits may say that it is enough, and `--time-limit` gives it again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from privacyfunnel.designs.curve import Curve, Point, curve
from privacyfunnel.release.design import DesignResult, count_table, design_from_counts
from privacyfunnel.release.release import Release
from privacyfunnel.release.release_run import ReleaseRun
from privacyfunnel.studio.choices import Choices
from privacyfunnel.studio.pictures import LOOSE, MOST_IN_TWO, MOST_INPUTS, Picture, costs_picture
from privacyfunnel.studio.tasks.analyst_accuracy import AnalystAccuracy, analyst_accuracy
from privacyfunnel.studio.tasks.progress_messages import ProgressReporter
from privacyfunnel.tables.readers.table_files import open_table

ROUNDS = (2.0, 10.0, None)  # seconds; None is as long as the command line takes
SIZES = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0)  # the ε of the curve, besides the chosen one
POINT = 1.0  # seconds for a point of the curve
SEEN = 0.2  # seconds between two sights of how far a proof is
NEAR = 1e-5  # of a unit: a search that comes so near to its bound is not called short


@dataclass(frozen=True, slots=True)
class Best:
    """The protocol of one round, in numbers."""

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
    seconds: float  # since the search began


@dataclass(frozen=True, slots=True)
class Cost:
    """The protocol that would be published, and what is to be said of it."""

    best: Best
    unchanged: float  # the share of rows that will show the value they had
    not_promised: tuple[str, ...]
    advice: tuple[str, ...]
    worth: AnalystAccuracy  # to an analyst


class _EnoughError(Exception):
    """Somebody said that the best so far will do."""


def cost(say: ProgressReporter, choices: Choices) -> Cost:
    """Solve, round by round; then what there is to say; then the curve, point by point."""
    begun = time.monotonic()
    table = open_table(choices.table.path, choices.dialect)
    say("doing", "counting")
    spec = choices.to_spec()
    encoding = count_table(table, spec)
    say("doing", "searching for the best protocol")
    found: DesignResult | None = None
    for limit in (choices.time_limit,) if choices.time_limit is not None else ROUNDS:
        limited = replace(spec, time_limit=limit)
        progress = _progress_callback(say, begun, stoppable=found is not None)
        try:
            found, spec = design_from_counts(encoding.contingency, limited, progress), limited
        except _EnoughError:
            break
        best = _best(found, limit, time.monotonic() - begun)
        say("best", best)
        if best.short is None:
            break
    assert found is not None
    say("doing", "looking at what it means")
    release = ReleaseRun.from_design(encoding, spec, found).release("")
    solved = Cost(
        best=best,
        unchanged=release.unchanged_expected,
        not_promised=release.not_promised_to_owner,
        advice=tuple(filter(None, (release.sparse, *release.rare))),
        worth=analyst_accuracy(release),
    )
    say("solved", solved)
    say("doing", "drawing the trade-off")
    for picture in _curve(release):
        say("curve", picture)
    return solved


def _progress_callback(say: ProgressReporter, begun: float, *, stoppable: bool) -> Callable[[float, float], None]:
    last = -math.inf

    def progress(value: float, bound: float) -> None:
        nonlocal last
        if time.monotonic() - last > SEEN:
            last = time.monotonic()
            say("proof", (value, bound, last - begun))
            if stoppable and say.is_enough:
                raise _EnoughError

    return progress


def _best(found: DesignResult, limit: float | None, seconds: float) -> Best:
    sealed, worth = found.sealed, found.worth
    missing = None if worth.bound is None else abs(worth.bound - worth.value)
    return Best(
        time_limit=limit,
        method=found.choice.method,
        reason=found.choice.reason,
        kept=sealed.information / sealed.entropy if sealed.entropy else 1.0,
        most=None if sealed.bound is None or not sealed.entropy else sealed.bound / sealed.entropy,
        certified=sealed.epsilon,
        use=worth.use.full_name,
        value=worth.value,
        bound=worth.bound,
        unit=worth.use.unit,
        short=missing if missing is not None and missing > NEAR else None,
        seconds=seconds,
    )


def _curve(release: Release) -> Iterator[Picture]:
    """The trade-off on this table, again with each point that is known."""
    joint, sealed = release.joint, release.sealed
    if joint is None or joint.a > (MOST_IN_TWO if joint.c == 2 else MOST_INPUTS):
        return
    known: tuple[Point, ...] = release.known
    chosen = sealed.promise.epsilon
    for epsilon in sorted({*SIZES, chosen}, key=lambda size: abs(math.log(size / chosen)) if chosen > 0 else size):
        found = curve(joint, sealed.promise, epsilons=[epsilon], effort=replace(LOOSE, time_limit=POINT), known=known)
        known = (*known, *(point for point in found.points if point not in known))
        yield costs_picture(Curve(found.promise, found.entropy, known), release.method, chosen, release.information)
