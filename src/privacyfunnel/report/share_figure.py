"""The picture of estimates: every share with its interval, beside the original shares where they are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from privacyfunnel.estimation import Estimates, ShareTable
from privacyfunnel.estimation.results import Cell
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.uses.ordinal_scale import Orders
from privacyfunnel.report.bars import select_labels

Shares = Mapping[tuple[str, ...], float]
ESTIMATED, BOUNDED, ORIGINAL = "#d1495b", "#d99000", "#b9c4c9"
WIDTH, LINE = 7.2, 0.24  # inches: of the picture, and of one value in it
MOST_LINES = 40  # values drawn of one table: the largest
MOST_TABLES = 12  # pictures on one sheet
LONGEST = 40  # letters of a label


def shares_figure(
    estimates: Estimates, original: Mapping[tuple[str, ...], Shares] | None = None, orders: Orders = ()
) -> Figure:
    """Draw the estimates, one panel per table; `original` holds the true shares of tables by their columns.

    Values stand by size of their share, and in their own order where they have one.
    """
    tables = estimates.tables[:MOST_TABLES]
    heights = [1.6 + min(len(table.cells), MOST_LINES) for table in tables]
    with rc_context({"text.parse_math": False, "font.size": 9}):
        figure = Figure(figsize=(WIDTH, 0.9 + LINE * sum(heights)), layout="constrained")
        panels = figure.subplots(len(tables), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, table in zip(panels, tables, strict=True):
            truth = None if table.group or original is None else original.get(table.columns)
            _panel(axes, table, _select_cells(table, orders), estimates.level, truth)
        left_out = len(estimates.tables) - len(tables)
        if left_out:
            figure.supxlabel(f"{left_out} more tables are in estimates.csv", fontsize=8)
    return figure


def true_shares(estimates: Estimates, joint: Joint) -> dict[tuple[str, ...], dict[tuple[str, ...], float]]:
    """The shares in the owner's table of each cell that was estimated, by the columns of its table."""
    place = {at.name: j for j, at in enumerate(joint.attributes)}
    shares: dict[tuple[str, ...], dict[tuple[str, ...], float]] = {}
    for table in estimates:
        counted = shares.setdefault(table.columns, {})
        if not counted:
            for labels, share in zip(joint.values, joint.p_x.tolist(), strict=True):
                cell = tuple(labels[place[name]] for name in table.columns)
                counted[cell] = counted.get(cell, 0.0) + share
    return shares


def _select_cells(table: ShareTable, orders: Orders) -> list[Cell]:
    """The largest cells, as they are drawn from the top."""
    middle = np.array([(cell.upper + cell.lower) / 2 if cell.share is None else cell.share for cell in table.cells])
    alone = len(table.columns) == 1
    attribute = Attribute(table.columns[0] if alone else "", tuple(" & ".join(cell.labels) for cell in table.cells))
    return [table.cells[i] for i in select_labels(attribute, middle, MOST_LINES, orders if alone else ())]


def _panel(axes: Axes, table: ShareTable, cells: Sequence[Cell], level: float, truth: Shares | None) -> None:
    places = np.arange(len(cells))[::-1]
    middle = np.array([(c.lower + c.upper) / 2 if c.share is None else c.share for c in cells])
    reach = np.array([[max(m - c.lower, 0), max(c.upper - m, 0)] for m, c in zip(middle, cells, strict=True)]).T
    identified = np.array([cell.identified for cell in cells])
    if truth is not None:
        axes.barh(places, [truth.get(cell.labels, 0.0) for cell in cells], height=0.7, color=ORIGINAL, label="original")
    for which, mark, colour, width, name in (
        (identified, "o", ESTIMATED, 1.3, f"estimated, {100 * level:g} % interval"),
        (~identified, "none", BOUNDED, 2.6, "not identified: bounds"),
    ):
        if which.any():
            axes.errorbar(
                middle[which],
                places[which],
                xerr=reach[:, which],
                fmt=mark,
                color=colour,
                markersize=3.5,
                elinewidth=width,
                capsize=2.5,
                label=name,
            )
    axes.set_yticks(places, [_name(cell.labels) for cell in cells], fontsize=8)
    axes.set_ylim(-0.8, len(cells) - 0.2)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(_title(table, len(cells)), fontsize=9.5, loc="left")
    axes.legend(fontsize=8, frameon=False, loc="lower right")


def _title(table: ShareTable, drawn: int) -> str:
    where = "".join(f", {column} = {label}" for column, label in table.group)
    more = f", the largest {drawn} of {len(table.cells)}" if drawn < len(table.cells) else ""
    return f"{' & '.join(table.columns)}{where} ({table.rows:,} rows{more})"


def _name(labels: Sequence[str]) -> str:
    name = " & ".join(labels)
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
