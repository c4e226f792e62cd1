"""The picture of a curve: what is kept against ε, a line per method, and the proved bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from privacyfunnel.designs.curve import Curve
from privacyfunnel.model.uses.use import Information
from privacyfunnel.report import CURVE, line_figures
from privacyfunnel.report.line_figures import Line


def trade_off(curve: Curve, title: str = "", *, size: tuple[float, float] = (7.2, 4.4)) -> Figure:
    """Draw the curve."""
    lines = [
        Line(
            name,
            [(p.epsilon, p.height) for p in points if p.height is not None],
            [(p.epsilon, p.bound) for p in points if p.bound is not None],
            f"bound on {name}",
        )
        for name, points in curve.lines()
    ]
    informed = curve.use == Information()
    up = "information kept, I(X;Y) in nats" if informed else curve.use.unit
    everything = curve.entropy if informed else None
    return line_figures.draw_lines(
        lines, f"ε ({curve.promise.upper()})", up, everything=everything, title=title, size=size
    )


def write_curve(curve: Curve, into: Path, *, force: bool = False) -> list[Path]:
    """Write the curve as a table and as a picture in two formats: all of them, whole, or none."""
    return line_figures.write_files([into / name for name in CURVE], _rows(curve), trade_off(curve), force=force)


def _rows(curve: Curve) -> Iterator[Sequence[Any]]:
    if curve.use == Information():
        yield ["method", "epsilon", "utility_nats", "bound_nats"]
        yield from ([p.name, p.epsilon, p.utility, p.bound] for p in curve.points)
    else:
        yield ["method", "epsilon", "utility_nats", "bound_nats", "value", "bound", "unit"]
        yield from (
            [p.name, p.epsilon, p.utility, p.bound_nats, p.value, p.bound, curve.use.unit] for p in curve.points
        )
