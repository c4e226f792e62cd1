"""What an analyst gets: every column's shares and one cross table estimated back, with errors in percentage points.

Estimates are made as an analyst makes them, from the published table and its protocol alone; the errors are their
standard errors, so what another draw would give. The owner, who knows the truth, sees it beside them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.errors import ParameterError, SizeError, SolverError
from privacyfunnel.estimation import ShareTable, estimate
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.uses.order import Orders
from privacyfunnel.release.release import Release
from privacyfunnel.report.bars import Bar, Bars, Mark, end_of_scale, in_order, keys_of, ticks_of
from privacyfunnel.report.colours import RED
from privacyfunnel.report.svg import Picture, Scale, frame, line, mark, svg
from privacyfunnel.report.words import percent, points

MOST_ROWS = 30  # values that are drawn of one column: the largest
MOST_ENTRIES = 10**6  # of P(output | value) that an estimate writes out: more take many seconds
SECONDS = 3.0  # for all estimates: one that has not begun by then is left out
KEYS = (
    ("true", "in the table"),
    ("dot", "estimated back from what is published, with its 95 % interval"),
    ("open", "not identified: between these bounds"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Recovered:
    """The shares of one column, or of a cross table: true, and estimated back by the published table."""

    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    original: FloatArray
    estimated: FloatArray  # not a number where the protocol does not identify the share
    error: FloatArray  # standard errors
    lower: FloatArray
    upper: FloatArray
    notes: tuple[str, ...]

    @property
    def typical(self) -> float | None:
        """The mean standard error of the shares that are identified; None where none is."""
        known = self.error[~np.isnan(self.error)]
        return float(known.mean()) if len(known) else None

    @property
    def largest(self) -> float | None:
        known = self.error[~np.isnan(self.error)]
        return float(known.max()) if len(known) else None

    @property
    def open(self) -> int:
        """How many shares are not identified."""
        return int(np.isnan(self.estimated).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Analyst:
    """What was estimated back, and which columns were left out since that would take long."""

    columns: tuple[Recovered, ...]
    cross: Recovered | None
    left_out: tuple[str, ...]

    @property
    def typical(self) -> float | None:
        """The mean error over all columns."""
        errors = [each.typical for each in self.columns if each.typical is not None]
        return float(np.mean(errors)) if errors else None


def analyst(release: Release, joint: Joint, seconds: float = SECONDS) -> Analyst:
    """Estimate each column by itself, and the two published columns that say most about each other together."""
    deadline = time.monotonic() + seconds
    names = [at.name for at in joint.attributes]
    found: dict[tuple[str, ...], Recovered] = {}
    asked: list[tuple[str, ...]] = [(name,) for name in names]
    asked += [tuple(names[j] for j in pair) for pair in _closest(joint)]
    for columns in asked:
        if time.monotonic() >= deadline or _entries(release.sealed, joint, columns) > MOST_ENTRIES:
            continue
        try:
            table = estimate(release.sealed, release.table, columns=[columns]).tables[0]
        except (ParameterError, SizeError, SolverError):  # the report says what it can; the release stands without it
            continue
        found[columns] = _recovered(table, joint)
    alone = [found[name,] for name in names if (name,) in found]
    cross = next((each for columns, each in found.items() if len(columns) > 1), None)
    return Analyst(tuple(alone), cross, tuple(name for name in names if (name,) not in found))


def _entries(sealed: SealedProtocol, joint: Joint, columns: Sequence[str]) -> int:
    """How many chances it takes to estimate these columns."""
    wanted = [j for j, at in enumerate(joint.attributes) if at.name in columns]
    law, _ = sealed.law.restricted(sealed.law.covering(wanted, joint.m))
    listed = law.listed
    return law.written_out if listed is None else law.inputs * len(listed.outputs)


def _closest(joint: Joint) -> list[tuple[int, int]]:
    """The pair of columns with the largest χ² per row, relative to what it could be; none where there is one column."""
    pairs = list(combinations(range(joint.m), 2))
    return [max(pairs, key=lambda pair: _association(_table(joint, pair)))] if pairs else []


def _table(joint: Joint, pair: tuple[int, int]) -> FloatArray:
    table = np.zeros([len(joint.attributes[j].labels) for j in pair])
    np.add.at(table, tuple(joint.combos[:, j] for j in pair), joint.p_x)
    return table


def _association(p: FloatArray) -> float:
    """Cramér's V: 0 where two columns say nothing about each other, 1 where one tells the other."""
    alone = np.outer(p.sum(axis=1), p.sum(axis=0))
    chi = float(((p - alone)[alone > 0] ** 2 / alone[alone > 0]).sum())
    return float(np.sqrt(chi / max(1, min(p.shape) - 1)))


def _recovered(table: ShareTable, joint: Joint) -> Recovered:
    place = {at.name: j for j, at in enumerate(joint.attributes)}
    shares: dict[tuple[str, ...], float] = {}
    for labels, share in zip(joint.values, joint.p_x.tolist(), strict=True):
        cell = tuple(labels[place[name]] for name in table.columns)
        shares[cell] = shares.get(cell, 0.0) + share
    cells = table.cells
    return Recovered(
        table.columns,
        tuple(cell.labels for cell in cells),
        np.array([shares.get(cell.labels, 0.0) for cell in cells]),
        np.array([np.nan if cell.share is None else cell.share for cell in cells]),
        np.array([np.nan if cell.standard_error is None else cell.standard_error for cell in cells]),
        np.array([cell.lower for cell in cells]),
        np.array([cell.upper for cell in cells]),
        table.notes,
    )


def shares_bars(column: Recovered, orders: Orders = ()) -> Bars:
    """A column's shares in the table, and estimated back with intervals."""
    attribute = Attribute(column.columns[0], tuple(labels[0] for labels in column.labels))
    drawn = in_order(attribute, column.original, MOST_ROWS, orders).tolist()
    most = end_of_scale(column.original[drawn], column.upper[drawn])
    rows = []
    for i in drawn:
        marks = [Mark("true", 0.0, float(column.original[i]) / most)]
        estimated = float(column.estimated[i])
        low, high = float(column.lower[i]) / most, float(column.upper[i]) / most
        if np.isnan(estimated):
            marks.append(Mark("open", low, high))
            said = percent(float(column.original[i]))
        else:
            marks += [Mark("told", low, high), Mark("dot", estimated / most, estimated / most)]
            said = f"{percent(float(column.original[i]))} ± {points(float(column.error[i])).removesuffix(' points')}"
        rows.append(Bar(column.labels[i][0], tuple(marks), said))
    left = len(column.labels) - len(drawn)
    more = f" The {len(drawn)} largest of {len(column.labels)} are drawn." if left else ""
    return Bars(
        tuple(rows),
        keys_of(rows, KEYS),
        ticks_of(most),
        f"Shares of {column.columns[0]}: in the table, and as an analyst finds them in what is published.{more}",
        column.columns[0],
        "share ± error",
    )


def errors_sentence(found: Recovered) -> str:
    """The errors of one table, in words."""
    what = f"a share of {found.columns[0]}" if len(found.columns) == 1 else f"a cell of {' × '.join(found.columns)}"
    if found.typical is None or found.largest is None:
        return f"What is published alone does not tell {what}; it tells bounds."
    said = f"{what[0].upper()}{what[1:]} is off by about {points(found.typical)}, the worst by {points(found.largest)}."
    if found.open:
        said += f" Of {len(found.labels)}, {found.open} are not identified: for these there are only bounds."
    return said


def cross_picture(found: Recovered) -> Picture:
    """Every cell of a cross table: its share in the table against what an analyst finds."""
    side, left, bottom = 200.0, 52.0, 206.0
    known = ~np.isnan(found.estimated)
    most = end_of_scale(found.original, found.estimated[known])
    across, up = Scale(0.0, most, left, left + side), Scale(0.0, most, bottom, bottom - side)
    parts = [*frame(across, up, "share in the table", "estimated back", percents=True)]
    parts.append(line(left, bottom, left + side, bottom - side, faint=0.4, dashes="3 3"))
    for i in np.flatnonzero(known).tolist():
        x = across(float(found.original[i]))
        low, high = (min(max(float(end[i]), 0.0), most) for end in (found.lower, found.upper))
        parts.append(line(x, up(low), x, up(high), colour=RED, width=0.7, faint=0.45))
        parts.append(mark("circle", x, up(min(float(found.estimated[i]), most)), RED, size=4))
    names = " and ".join(found.columns)
    said = f"Each dot is one of {int(known.sum())} cells of the cross table of {names}; on the line it would be exact."
    return Picture("cross-table", svg(left + side + 130, bottom + 36, parts), said)
