"""Pictures of curves: lines with marks and what is proved beside them; and their files, a table and two pictures."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from privacyfunnel.atomic_files import atomic_file, ensure_folder
from privacyfunnel.report.colours import EVERYTHING, LINES

MARKS = "osD^vP"
Places = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Line:
    """Points that are joined, or stand alone with a text each, and what is proved about them."""

    name: str
    points: Places
    bounds: Places = ()
    bound_name: str = ""
    texts: Sequence[str] = ()  # of each point; points with texts are not joined


def draw_lines(
    lines: Iterable[Line],
    across: str,
    up: str,
    *,
    everything: float | None = None,
    title: str = "",
    size: tuple[float, float] = (7.2, 4.4),
) -> Figure:
    """Draw the lines, each in a colour and with a mark of its own; `everything` is H(X), which none exceeds."""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    if everything is not None:
        axes.axhline(everything, color=EVERYTHING, linewidth=1, linestyle=":", label="H(X), everything")
    for i, each in enumerate(lines):
        colour, sign = LINES[i % len(LINES)], MARKS[i % len(MARKS)]
        joined = "none" if each.texts else "-"
        if each.points:
            places = zip(*each.points, strict=True)
            axes.plot(*places, color=colour, marker=sign, markersize=4, linestyle=joined, label=each.name)
        if each.bounds:
            places = zip(*each.bounds, strict=True)
            axes.plot(*places, color=colour, linestyle="none", marker="_", markersize=12, label=each.bound_name)
        for text, place in zip(each.texts, each.points, strict=False):
            axes.annotate(text, place, xytext=(4, -8), textcoords="offset points", fontsize=6, color=colour)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
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


def write_files(
    paths: Sequence[Path], rows: Iterable[Sequence[Any]], figure: Figure, *, force: bool = False
) -> list[Path]:
    """Write a curve as a table and as a picture in each format that is named: all of them, whole, or none."""
    with ensure_folder(paths[0].parent), ExitStack() as stack:
        table, *pictures = (stack.enter_context(atomic_file(path, force=force)) for path in paths)
        with table.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        for picture, path in zip(pictures, paths[1:], strict=True):
            save(figure, picture, path.suffix.removeprefix("."))
    return list(paths)
