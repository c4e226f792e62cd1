"""The picture of the classical funnel: I(X;Y) against I(S;Y), proved, with other ways beside it."""

from __future__ import annotations

import csv
import math
from contextlib import ExitStack
from pathlib import Path

from matplotlib.figure import Figure

from privacyfunnel.designs.funnel import Funnel
from privacyfunnel.report import FUNNEL
from privacyfunnel.report.colours import EVERYTHING, LINES
from privacyfunnel.report.trade_off import MARKS, save
from privacyfunnel.tables.whole import folder, whole_file


def funnel_picture(found: Funnel, *, size: tuple[float, float] = (7.2, 4.4)) -> Figure:
    """Draw the curve, what is proved above it, greedy merging, and the points of LIP and LDP."""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.axhline(found.entropy, color=EVERYTHING, linewidth=1, linestyle=":", label="H(X), everything")
    averages = [point.average for point in found.points]
    axes.plot(averages, [p.utility for p in found.points], color=LINES[0], marker=MARKS[0], markersize=4, label="best")
    bounds = [p.bound for p in found.points]
    axes.plot(averages, bounds, color=LINES[0], linestyle="none", marker="_", markersize=12, label="bound")
    axes.plot(averages, found.greedy, color=LINES[1], marker=MARKS[1], markersize=4, label="greedy merging")
    for i, promise in enumerate(dict.fromkeys(each.promise for each in found.beside), start=2):
        mine = [each for each in found.beside if each.promise == promise]
        told, kept = [each.about_secret for each in mine], [each.utility for each in mine]
        axes.plot(told, kept, color=LINES[i], linestyle="none", marker=MARKS[i], markersize=5, label=promise.upper())
        for each in mine:
            axes.annotate(
                f"ε = {each.epsilon:g}",
                (each.about_secret, each.utility),
                xytext=(4, -8),
                textcoords="offset points",
                fontsize=6,
                color=LINES[i],
            )
    axes.set_xlabel("told about the secret on average, I(S;Y) in nats")
    axes.set_ylabel("information kept, I(X;Y) in nats")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, frameon=False)
    return figure


def write_funnel(found: Funnel, into: Path, *, force: bool = False) -> list[Path]:
    """Write the curve as a table and as a picture in two formats: all of them, whole, or none."""
    paths = [into / name for name in FUNNEL]
    figure = funnel_picture(found)
    with folder(into), ExitStack() as stack:
        table, *pictures = (stack.enter_context(whole_file(path, force=force)) for path in paths)
        with table.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(
                ["way", "average_nats", "about_secret_nats", "utility_nats", "bound_nats", "lip_epsilon", "ldp_epsilon"]
            )
            for p in found.points:
                worst = ["inf" if math.isinf(epsilon) else epsilon for epsilon in p.worst.values()]
                writer.writerow(["best", p.average, p.about_secret, p.utility, p.bound, *worst])
            writer.writerows(
                ["greedy merging", p.average, "", kept, "", "", ""]
                for p, kept in zip(found.points, found.greedy, strict=True)
            )
            writer.writerows(
                [f"{b.promise} {b.epsilon:g}", "", b.about_secret, b.utility, "", "", ""] for b in found.beside
            )
        for picture, path in zip(pictures, paths[1:], strict=True):
            save(figure, picture, path.suffix.removeprefix("."))
    return paths
