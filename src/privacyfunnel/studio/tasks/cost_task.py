"""The cost task: the best protocol for the choices, and the accuracy an analyst gets from it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.errors import PrivacyFunnelError
from privacyfunnel.estimation.expected_precision import (
    ExpectedPrecision,
    expected_precision,
    expected_precision_by_column,
)
from privacyfunnel.formatting import format_percent
from privacyfunnel.release.design import DesignResult, count_table, design_from_counts
from privacyfunnel.release.kept_counts import count_kept
from privacyfunnel.release.release import Release
from privacyfunnel.release.sanitise import ReleaseRun
from privacyfunnel.report.summary_lines import summary_lines
from privacyfunnel.studio.choices import Choices
from privacyfunnel.studio.pictures import Picture, ShareInterval, intervals_picture
from privacyfunnel.studio.task_pool import ProgressReporter
from privacyfunnel.tables.readers.table_files import open_table

NOT_YET = ("Published", "Stays here", "Again", "Tried")  # of a summary, before anything is written
MOST_LINES = 30  # values of a column that are drawn: the largest
MOST_ACROSS, MOST_DOWN = 8, 16  # of a cross table that is shown
MOST_CELLS = 2000  # of a cross table that is worked out
BLURRED = 0.25  # of a share: one that is told no nearer than this blurs


@dataclass(frozen=True, slots=True)
class Column:
    """A published column as an analyst will know it."""

    name: str
    sentence: str
    picture: Picture
    blurred: tuple[str, ...]  # values whose share is told no nearer than a quarter of itself
    values: int


@dataclass(frozen=True, slots=True)
class Cross:
    """Two columns together: each share, and within how much of it an estimate will be; None where nobody has both."""

    one: str
    other: str
    across: tuple[str, ...]
    down: tuple[tuple[str, tuple[tuple[float, float] | None, ...]], ...]
    left_out: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class AnalystAccuracy:
    """What the published table is worth to an analyst; the owner's own, for it has shares of the table."""

    columns: tuple[Column, ...]
    cross: Cross | None


def analyst_accuracy(release: Release) -> AnalystAccuracy:
    """Before anything is drawn: from the law and the counts."""
    joint, sealed = release.joint, release.sealed
    if joint is None:
        return AnalystAccuracy((), None)
    columns = tuple(_column(each) for each in expected_precision_by_column(sealed, joint, release.rows))
    cross = None
    names = [at.name for at in sealed.domain.attributes]
    if len(names) > 1:
        sizes = [len(at.labels) for at in sealed.domain.attributes]
        if sizes[0] * sizes[1] <= MOST_CELLS:
            try:
                cross = _cross(expected_precision(sealed, joint, release.rows, names[:2]))
            except PrivacyFunnelError:  # too large to estimate from: there is no such table then
                cross = None
    return AnalystAccuracy(columns, cross)


def _column(found: ExpectedPrecision) -> Column:
    largest = np.argsort(-found.shares, kind="stable")[:MOST_LINES]
    blurred = found.half_widths > BLURRED * np.maximum(found.shares, 1e-12)
    names = [labels[0] for labels in found.labels]
    shown = [
        ShareInterval(
            names[i],
            float(found.shares[i]),
            max(0.0, float(found.shares[i] - found.half_widths[i])),
            min(1.0, float(found.shares[i] + found.half_widths[i])),
            doubtful=bool(blurred[i]),
        )
        for i in largest.tolist()
    ]
    name = found.columns[0]
    return Column(
        name,
        str(found),
        intervals_picture(
            "worth",
            f"Shares of {name} in the table, with 95 % intervals of estimates. Amber: the half-width exceeds "
            f"{format_percent(BLURRED)} of the share.",
            shown,
        ),
        tuple(names[i] for i in np.flatnonzero(blurred).tolist()),
        len(names),
    )


def _cross(found: ExpectedPrecision) -> Cross:
    one, other = found.columns
    rows: dict[str, float] = {}
    columns: dict[str, float] = {}
    cells: dict[tuple[str, str], tuple[float, float]] = {}
    for (a, b), share, within in zip(found.labels, found.shares.tolist(), found.half_widths.tolist(), strict=True):
        rows[a] = rows.get(a, 0.0) + share
        columns[b] = columns.get(b, 0.0) + share
        cells[a, b] = share, within
    down, across = (sorted(each, key=lambda label: -each[label]) for each in (rows, columns))
    shown = across[:MOST_ACROSS]
    return Cross(
        one,
        other,
        tuple(shown),
        tuple((a, tuple(cells.get((a, b)) for b in shown)) for a in down[:MOST_DOWN]),
        len(down) > MOST_DOWN or len(across) > MOST_ACROSS,
        str(found),
    )


ROUNDS = (2.0, 10.0, None)  # seconds; None is as long as the command line takes
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
    short: float | None  # how much may be missing
    seconds: float  # since the search began


@dataclass(frozen=True, slots=True)
class Cost:
    """The protocol that would be published, and what is to be said of it."""

    best: Best
    lines: tuple[tuple[str, str], ...]  # protection, accuracy and warnings, as the command line says them
    not_promised: tuple[str, ...]
    advice: tuple[str, ...]
    worth: AnalystAccuracy  # to an analyst


class _EnoughError(Exception):
    """Somebody said that the best so far will do."""


def cost(say: ProgressReporter, choices: Choices) -> Cost:
    """Solve, round by round; then what there is to say."""
    begun = time.monotonic()
    table = open_table(choices.table.path, choices.dialect)
    say("doing", "counting")
    spec = choices.to_spec()
    encoding = count_table(table, spec)
    kept = count_kept(encoding, spec.judged_columns)
    say("doing", "searching for the best protocol")
    found: DesignResult | None = None
    for limit in (choices.time_limit,) if choices.time_limit is not None else ROUNDS:
        limited = replace(spec, time_limit=limit)
        progress = _progress_callback(say, begun, stoppable=found is not None)
        try:
            found, spec = design_from_counts(encoding.contingency, limited, progress, kept), limited
        except _EnoughError:
            break
        best = _best(found, limit, time.monotonic() - begun)
        say("best", best)
        if best.short is None:
            break
    assert found is not None
    say("doing", "measuring the release")
    release = ReleaseRun.from_design(encoding, spec, found).preview()
    solved = Cost(
        best=best,
        lines=tuple(line for line in summary_lines(release) if line[0] not in NOT_YET),
        not_promised=release.not_promised_to_owner,
        advice=release.rare,
        worth=analyst_accuracy(release),
    )
    say("solved", solved)
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
        certified=sealed.certified_total,
        short=missing if missing is not None and missing > NEAR else None,
        seconds=seconds,
    )
