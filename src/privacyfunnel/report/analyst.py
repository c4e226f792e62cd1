"""What an analyst gets: every column's shares and one cross table, with how far off they will be in percentage points.

How far off follows from the law (`estimation.expected`), whatever is drawn: it is told of the draw that was published
and of every other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.errors import SizeError
from privacyfunnel.estimation.expected_precision import (
    ExpectedPrecision,
    expected_precision,
    expected_precision_by_column,
)
from privacyfunnel.formatting import format_percent, format_points
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.uses.ordinal_scale import Orders
from privacyfunnel.report.bars import Bar, BarChart, Mark, percent_ticks, scale_end, select_keys, select_labels

MOST_ROWS = 30  # values that are drawn of one column: the largest
MOST_CELLS = 16  # and cells of a cross table
SECONDS = 2.0  # for finding a cross table that can be estimated: a try that has not begun by then is left out
KEYS = (("true", "in the table"), ("told", "where an estimate from what is published will lie, 19 times in 20"))


@dataclass(frozen=True, slots=True, eq=False)
class AnalystView:
    """How near estimates come, and which columns are left out since estimating them takes long."""

    columns: tuple[ExpectedPrecision, ...]
    cross: ExpectedPrecision | None
    left_out: tuple[str, ...]

    @property
    def typical(self) -> float | None:
        """How far off a share will be, on average over all columns; None where none can be estimated."""
        return float(np.mean([each.average for each in self.columns])) if self.columns else None


def analyst_view(sealed: SealedProtocol, joint: Joint, rows: int, seconds: float = SECONDS) -> AnalystView:
    """Each column by itself, and of the pairs that can be estimated the one whose columns say most about each other."""
    deadline = time.monotonic() + seconds
    found = expected_precision_by_column(sealed, joint, rows)
    told = {each.columns[0] for each in found}
    cross = None
    for pair in _pairs_by_association(joint):
        if not told.issuperset(pair):
            continue
        if cross is not None or time.monotonic() >= deadline:
            break
        try:
            cross = expected_precision(sealed, joint, rows, pair)
        except SizeError:  # the next pair may be published earlier in a chain
            continue
    return AnalystView(found, cross, tuple(at.name for at in joint.attributes if at.name not in told))


def _pairs_by_association(joint: Joint) -> Iterator[tuple[str, str]]:
    """Pairs of columns, those that say most about each other first."""
    pairs = sorted(combinations(range(joint.m), 2), key=lambda pair: -_association(_table(joint, pair)))
    return ((joint.attributes[i].name, joint.attributes[j].name) for i, j in pairs)


def _table(joint: Joint, pair: tuple[int, int]) -> FloatArray:
    table = np.zeros([len(joint.attributes[j].labels) for j in pair])
    np.add.at(table, tuple(joint.combos[:, j] for j in pair), joint.p_x)
    return table


def _association(p: FloatArray) -> float:
    """Cramér's V: 0 where two columns say nothing about each other, 1 where one tells the other."""
    alone = np.outer(p.sum(axis=1), p.sum(axis=0))
    chi = float(((p - alone)[alone > 0] ** 2 / alone[alone > 0]).sum())
    return float(np.sqrt(chi / max(1, min(p.shape) - 1)))


def shares_bars(told: ExpectedPrecision, orders: Orders = ()) -> BarChart:
    """The shares of a column, or the largest cells of a cross table, and how near an estimate of each comes."""
    alone = len(told.columns) == 1
    names = [" × ".join(labels) for labels in told.labels]
    attribute = Attribute(told.columns[0] if alone else "", tuple(names))
    drawn = select_labels(attribute, told.shares, MOST_ROWS if alone else MOST_CELLS, orders if alone else ()).tolist()
    low, high = np.maximum(told.shares - told.half_widths, 0.0), np.minimum(told.shares + told.half_widths, 1.0)
    most = scale_end(high[drawn])
    rows = []
    for i in drawn:
        share = float(told.shares[i])
        marks = (Mark("true", 0.0, share / most), Mark("told", float(low[i]) / most, float(high[i]) / most))
        rows.append(Bar(names[i], marks, f"{format_percent(share)} ± {format_points(float(told.half_widths[i]))}"))
    left = f" The {len(drawn)} largest of {len(names)} are drawn." if len(drawn) < len(names) else ""
    title = " × ".join(told.columns)
    said = f"{'Shares' if alone else 'Cells'} of {title}, and how near an estimate of each will come.{left}"
    return BarChart(tuple(rows), select_keys(rows, KEYS), percent_ticks(most), said, title, "share ± points")
