"""The picture of a curve: information kept against ε, a line per method, the proved bound above."""

from __future__ import annotations

from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from privacyfunnel.designs.curve import Curve
from privacyfunnel.report.colours import EVERYTHING, LINES

MARKS = "osD^vP"


def trade_off(curve: Curve, title: str = "", *, size: tuple[float, float] = (7.2, 4.4)) -> Figure:
    """Draw the curve."""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.axhline(curve.entropy, color=EVERYTHING, linewidth=1, linestyle=":", label="H(X), everything")
    for i, (name, points) in enumerate(curve.lines()):
        colour = LINES[i % len(LINES)]
        kept = [(p.epsilon, p.utility) for p in points if p.utility is not None]
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
    axes.set_ylabel("information kept, I(X;Y) in nats")
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
