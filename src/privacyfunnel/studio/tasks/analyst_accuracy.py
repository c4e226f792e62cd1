"""What an analyst will get: how near estimates come to every share, to the cells of a cross table, and what blurs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privacyfunnel.errors import PrivacyFunnelError
from privacyfunnel.estimation.expected_precision import (
    ExpectedPrecision,
    expected_precision,
    expected_precision_by_column,
)
from privacyfunnel.formatting import format_percent
from privacyfunnel.release.release import Release
from privacyfunnel.studio.pictures import Picture, ShareInterval, intervals_picture

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
            f"The shares of {name} in the table, and between what an analyst's estimates of them will lie, 95 times in "
            f"100. Values in amber blur: they are told no nearer than {format_percent(BLURRED)} of themselves.",
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
