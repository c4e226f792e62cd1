"""What an analyst gets: the shares of every column and of one cross table, with expected errors in percentage points.

The expected error follows from the mechanism (`estimation.expected_precision`), not from the draw.
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

MOST_ROWS = 30  # values of one column that are drawn: the largest
MOST_CELLS = 16  # cells of a cross table that are drawn
MOST_GROUPS = 8  # that bear most of the error
SECONDS = 2.0  # to find a cross table that can be estimated
KEYS = (("true", "in the table"), ("told", "95 % interval of an estimate from the published table"))


@dataclass(frozen=True, slots=True, eq=False)
class AnalystView:
    """Expected errors of columns and of one cross table, and the columns that take too long."""

    columns: tuple[ExpectedPrecision, ...]
    cross: ExpectedPrecision | None
    left_out: tuple[str, ...]

    @property
    def typical(self) -> float | None:
        """Expected error of a share, averaged over all columns; None if none can be estimated."""
        return float(np.mean([each.average for each in self.columns])) if self.columns else None


def analyst_view(sealed: SealedProtocol, joint: Joint, rows: int, seconds: float = SECONDS) -> AnalystView:
    """Each column, and the pair of columns with the strongest association among those that can be estimated."""
    deadline = time.monotonic() + seconds
    found = expected_precision_by_column(sealed, joint, rows)
    estimable = {each.columns[0] for each in found}
    cross = None
    for pair in _pairs_by_association(joint):
        if not estimable.issuperset(pair):
            continue
        if cross is not None or time.monotonic() >= deadline:
            break
        try:
            cross = expected_precision(sealed, joint, rows, pair)
        except SizeError:  # the next pair may be smaller
            continue
    return AnalystView(found, cross, tuple(at.name for at in joint.attributes if at.name not in estimable))


def _pairs_by_association(joint: Joint) -> Iterator[tuple[str, str]]:
    """Pairs of columns, the strongest association first."""
    pairs = sorted(combinations(range(joint.m), 2), key=lambda pair: -_association(_table(joint, pair)))
    return ((joint.attributes[i].name, joint.attributes[j].name) for i, j in pairs)


def _table(joint: Joint, pair: tuple[int, int]) -> FloatArray:
    table = np.zeros([len(joint.attributes[j].labels) for j in pair])
    np.add.at(table, tuple(joint.combos[:, j] for j in pair), joint.p_x)
    return table


def _association(p: FloatArray) -> float:
    """Cramér's V: 0 for independent columns, 1 if one determines the other."""
    alone = np.outer(p.sum(axis=1), p.sum(axis=0))
    chi = float(((p - alone)[alone > 0] ** 2 / alone[alone > 0]).sum())
    return float(np.sqrt(chi / max(1, min(p.shape) - 1)))


def shares_bars(found: ExpectedPrecision, orders: Orders = ()) -> BarChart:
    """The shares of a column, or the largest cells of a cross table, with the expected error of each estimate."""
    alone, title = len(found.columns) == 1, " × ".join(found.columns)
    names = [" × ".join(labels) for labels in found.labels]
    attribute, most = (
        (Attribute(title, tuple(names)), MOST_ROWS) if alone else (Attribute("", tuple(names)), MOST_CELLS)
    )
    drawn = select_labels(attribute, found.shares, most, orders if alone else ()).tolist()
    low = np.maximum(found.shares - found.half_widths, 0.0)
    high = np.minimum(found.shares + found.half_widths, 1.0)
    end = scale_end(high[drawn])
    rows = []
    for i in drawn:
        share = float(found.shares[i])
        marks = (Mark("true", 0.0, share / end), Mark("told", float(low[i]) / end, float(high[i]) / end))
        rows.append(Bar(names[i], marks, f"{format_percent(share)} ± {format_points(float(found.half_widths[i]))}"))
    left = f" Shown: the {len(drawn)} largest of {len(names)}." if len(drawn) < len(names) else ""
    text = f"{'Shares' if alone else 'Cells'} of {title}, with the 95 % interval of an estimate.{left}"
    return BarChart(tuple(rows), select_keys(rows, KEYS), percent_ticks(end), text, title, "share ± points")


def error_table(found: AnalystView) -> list[tuple[str, str, str, str]]:
    """Column, values, error of its shares on average, and the value that is told worst; for any number of columns."""
    rows = []
    for each in (*found.columns, *(() if found.cross is None else (found.cross,))):
        worst = each.worst
        rows.append(
            (
                " × ".join(each.columns),
                f"{len(each.shares):,}",
                f"± {format_points(each.average)}",
                f"{' & '.join(each.labels[worst])} ± {format_points(float(each.half_widths[worst]))}",
            )
        )
    return rows


def group_errors(found: AnalystView, rows: int) -> list[tuple[str, str, str, str]]:
    """The groups that bear most of the error: value, people, error in points, and in percent of the group itself."""
    each = [
        (float(half / share), name, label, float(share), float(half))
        for column in found.columns
        for name in column.columns
        for (label, *_), share, half in zip(column.labels, column.shares, column.half_widths, strict=True)
        if share > 0
    ]
    each.sort(key=lambda group: -group[0])
    return [
        (
            f"{name} = {label}",
            f"{round(share * rows):,}",
            f"± {format_points(half)}",
            f"± {format_percent(relative, up=True)}",
        )
        for relative, name, label, share, half in each[:MOST_GROUPS]
        if half > 0
    ]
