"""The picture of the classical funnel: I(X;Y) against I(S;Y), proved, with other ways beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from privacyfunnel.designs.optimal.privacy_funnel import Funnel
from privacyfunnel.report import FUNNEL, line_figures
from privacyfunnel.report.line_figures import Line


def funnel_picture(found: Funnel, *, size: tuple[float, float] = (7.2, 4.4)) -> Figure:
    """Draw the curve, what is proved above it, greedy merging, and the points of LIP and LDP."""
    averages = [point.average for point in found.points]
    lines = [
        Line(
            "best",
            [(p.average, p.utility) for p in found.points],
            [(p.average, p.bound) for p in found.points],
            "bound",
        ),
        Line("greedy merging", list(zip(averages, found.greedy, strict=True))),
    ]
    for promise in dict.fromkeys(each.promise for each in found.beside):
        mine = [each for each in found.beside if each.promise == promise]
        places, texts = [(each.about_secret, each.utility) for each in mine], [f"ε = {each.epsilon:g}" for each in mine]
        lines.append(Line(promise.upper(), places, texts=texts))
    figure = line_figures.draw_lines(
        lines,
        "told about the secret on average, I(S;Y) in nats",
        "information kept, I(X;Y) in nats",
        everything=found.entropy,
        size=size,
    )
    figure.axes[0].set_xlim(left=0)
    return figure


def write_funnel(found: Funnel, into: Path, *, force: bool = False) -> list[Path]:
    """Write the curve as a table and as a picture in two formats: all of them, whole, or none."""
    return line_figures.write_files([into / name for name in FUNNEL], _rows(found), funnel_picture(found), force=force)


def _rows(found: Funnel) -> Iterator[Sequence[Any]]:
    yield ["way", "average_nats", "about_secret_nats", "utility_nats", "bound_nats", "lip_epsilon", "ldp_epsilon"]
    for p in found.points:
        worst = ["inf" if math.isinf(epsilon) else epsilon for epsilon in p.worst.values()]
        yield ["best", p.average, p.about_secret, p.utility, p.bound, *worst]
    for p, kept in zip(found.points, found.greedy, strict=True):
        yield ["greedy merging", p.average, "", kept, "", "", ""]
    for b in found.beside:
        yield [f"{b.promise} {b.epsilon:g}", "", b.about_secret, b.utility, "", "", ""]
