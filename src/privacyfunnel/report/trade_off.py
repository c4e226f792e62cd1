"""The picture of a curve: what is kept against ε, a line per method, and the proved bound."""

from __future__ import annotations

import csv
from contextlib import ExitStack
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from privacyfunnel.designs.curve import Curve
from privacyfunnel.model.uses.use import Information
from privacyfunnel.report import CURVE
from privacyfunnel.report.colours import EVERYTHING, LINES
from privacyfunnel.tables.whole import folder, whole_file

MARKS = "osD^vP"


def trade_off(curve: Curve, title: str = "", *, size: tuple[float, float] = (7.2, 4.4)) -> Figure:
    """Draw the curve."""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    of_information = curve.use == Information()
    if of_information:
        axes.axhline(curve.entropy, color=EVERYTHING, linewidth=1, linestyle=":", label="H(X), everything")
    for i, (name, points) in enumerate(curve.lines()):
        colour = LINES[i % len(LINES)]
        kept = [(p.epsilon, p.height) for p in points if p.height is not None]
        if kept:
            axes.plot(*zip(*kept, strict=True), color=colour, marker=MARKS[i % len(MARKS)], markersize=4, label=name)
        proved = [(p.epsilon, p.bound) for p in points if p.bound is not None]
        if proved:
            axes.plot(
                *zip(*proved, strict=True),
                color=colour,
                linestyle="none",
                marker="_",
                markersize=12,
                label=f"bound on {name}",
            )
    axes.set_xlabel(f"ε ({curve.promise.upper()})")
    axes.set_ylabel("information kept, I(X;Y) in nats" if of_information else curve.use.unit)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, frameon=False)
    if title:
        axes.set_title(title, fontsize=10)
    return figure


def save(figure: Figure, path: Path, kind: str) -> None:
    """Write the figure as svg or png, the same bytes for the same figure."""
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with rc_context({"svg.hashsalt": "privacyfunnel", "svg.fonttype": "none"}):
        figure.savefig(path, format=kind, dpi=150, metadata=metadata)


def write_curve(curve: Curve, into: Path, *, force: bool = False) -> list[Path]:
    """Write the curve as a table and as a picture in two formats: all of them, whole, or none."""
    paths = [into / name for name in CURVE]
    figure = trade_off(curve)
    with folder(into), ExitStack() as stack:
        table, *pictures = (stack.enter_context(whole_file(path, force=force)) for path in paths)
        with table.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if curve.use == Information():
                writer.writerow(["method", "epsilon", "utility_nats", "bound_nats"])
                writer.writerows([p.name, p.epsilon, p.utility, p.bound] for p in curve.points)
            else:
                writer.writerow(["method", "epsilon", "utility_nats", "value", "bound", "unit"])
                unit = curve.use.unit
                writer.writerows([p.name, p.epsilon, p.utility, p.value, p.bound, unit] for p in curve.points)
        for picture, path in zip(pictures, paths[1:], strict=True):
            save(figure, picture, path.suffix.removeprefix("."))
    return paths
