"""Figures of curves with matplotlib: information against ε, and the privacy funnel; each with its table of numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from privacyfunnel.atomic_files import atomic_file, ensure_folder
from privacyfunnel.designs.curve import Curve
from privacyfunnel.designs.optimal.privacy_funnel import Funnel
from privacyfunnel.formatting import format_number
from privacyfunnel.model.uses.use import Information
from privacyfunnel.report import CURVE, FUNNEL
from privacyfunnel.report.svg import EVERYTHING, LINES

MARKS = "osD^vP"
SIZE = (7.2, 4.4)  # inches
INFORMATION = "information kept, I(X;Y) in nats"
Places = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one method, and the proved bound at each; points with texts are not joined."""

    name: str
    points: Places
    bounds: Places = ()
    bound_name: str = ""
    texts: Sequence[str] = ()


def curve_figure(curve: Curve) -> Figure:
    """What each method keeps against ε, with the proved bounds."""
    lines = [
        Line(
            name,
            [(p.epsilon, p.height) for p in points if p.height is not None],
            [(p.epsilon, p.bound) for p in points if p.bound is not None],
            f"bound on {name}",
        )
        for name, points in curve.lines()
    ]
    of_information = curve.use == Information()
    up = INFORMATION if of_information else curve.use.unit
    return _draw(lines, f"ε ({curve.promise.upper()})", up, curve.entropy if of_information else None)


def funnel_figure(funnel: Funnel) -> Figure:
    """I(X;Y) against I(S;Y): the optimum, its bound, greedy merging, and the optimal LIP and LDP protocols."""
    points = funnel.points
    lines = [
        Line("best", [(p.average, p.utility) for p in points], [(p.average, p.bound) for p in points], "bound"),
        Line("greedy merging", [(p.average, kept) for p, kept in zip(points, funnel.greedy, strict=True)]),
    ]
    for promise in dict.fromkeys(each.promise for each in funnel.beside):
        same = [each for each in funnel.beside if each.promise == promise]
        texts = [f"ε = {format_number(each.epsilon)}" for each in same]
        lines.append(Line(promise.upper(), [(each.about_secret, each.utility) for each in same], texts=texts))
    figure = _draw(lines, "average leakage about the secret, I(S;Y) in nats", INFORMATION, funnel.entropy)
    figure.axes[0].set_xlim(left=0)
    return figure


def write_curve(curve: Curve, into: Path, *, force: bool = False) -> list[Path]:
    """Write the curve as a table and as a figure in two formats: all files or none."""
    return _write_files([into / name for name in CURVE], _curve_rows(curve), curve_figure(curve), force=force)


def write_funnel(funnel: Funnel, into: Path, *, force: bool = False) -> list[Path]:
    """Write the funnel as a table and as a figure in two formats: all files or none."""
    return _write_files([into / name for name in FUNNEL], _funnel_rows(funnel), funnel_figure(funnel), force=force)


def save(figure: Figure, path: Path, kind: str) -> None:
    """Write the figure as svg or png; the same figure gives the same bytes."""
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with rc_context({"svg.hashsalt": "privacyfunnel", "svg.fonttype": "none"}):
        figure.savefig(path, format=kind, dpi=150, metadata=metadata)


def _draw(lines: Iterable[Line], across: str, up: str, entropy: float | None) -> Figure:
    """Lines with a colour and a mark each; `entropy` is H(X), which none exceeds."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    if entropy is not None:
        axes.axhline(entropy, color=EVERYTHING, linewidth=1, linestyle=":", label="H(X), everything")
    for i, each in enumerate(lines):
        colour, sign = LINES[i % len(LINES)], MARKS[i % len(MARKS)]
        style = "none" if each.texts else "-"
        if each.points:
            places = zip(*each.points, strict=True)
            axes.plot(*places, color=colour, marker=sign, markersize=4, linestyle=style, label=each.name)
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
    return figure


def _write_files(paths: Sequence[Path], rows: Iterable[Sequence[Any]], figure: Figure, *, force: bool) -> list[Path]:
    with ensure_folder(paths[0].parent), ExitStack() as stack:
        # What is best follows from exact counts: whoever knows all other rows could compute the last person's secret.
        table, *pictures = (stack.enter_context(atomic_file(path, force=force, owner_only=True)) for path in paths)
        with table.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        for picture, path in zip(pictures, paths[1:], strict=True):
            save(figure, picture, path.suffix.removeprefix("."))
    return list(paths)


def _curve_rows(curve: Curve) -> Iterator[Sequence[Any]]:
    if curve.use == Information():
        yield ["method", "epsilon", "utility_nats", "bound_nats"]
        yield from ([p.name, p.epsilon, p.utility, p.bound] for p in curve.points)
    else:
        yield ["method", "epsilon", "utility_nats", "bound_nats", "value", "bound", "unit"]
        unit = curve.use.unit
        yield from ([p.name, p.epsilon, p.utility, p.bound_nats, p.value, p.bound, unit] for p in curve.points)


def _funnel_rows(funnel: Funnel) -> Iterator[Sequence[Any]]:
    yield ["way", "average_nats", "about_secret_nats", "utility_nats", "bound_nats", "lip_epsilon", "ldp_epsilon"]
    for p in funnel.points:
        worst = ["inf" if math.isinf(epsilon) else epsilon for epsilon in p.worst.values()]
        yield ["best", p.average, p.about_secret, p.utility, p.bound, *worst]
    for p, kept in zip(funnel.points, funnel.greedy, strict=True):
        yield ["greedy merging", p.average, "", kept, "", "", ""]
    for b in funnel.beside:
        yield [f"{b.promise} {format_number(b.epsilon)}", "", b.about_secret, b.utility, "", "", ""]
