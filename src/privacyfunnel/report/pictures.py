"""Numbers to pictures: figures as text of SVG that takes its colours from the page around it."""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter

from privacyfunnel.designs.curve import Curve
from privacyfunnel.report.numbers import Attacker, Belief, Column, Outputs
from privacyfunnel.report.trade_off import trade_off

INK = "#123456"  # replaced by the page's own text colour
WIDTH = 5.0  # inches: on a phone the letters keep their size
TEAL, RED, AMBER, GREY = "#1b8a6b", "#d1495b", "#d99000", "#8a9499"
NEAREST = ("#1b8a6b", "#5aa9c9", "#d99000", "#9b7bd1", "#d1495b", "#8a9499")
LONGEST = 34  # letters of a label in a picture; the page's tables have the rest

STYLE: Any = {
    "svg.fonttype": "none",
    "font.size": 9,
    "font.family": "sans-serif",
    "text.parse_math": False,  # a label with dollar signs is a label
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "savefig.transparent": True,
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as SVG, and what it shows in words for those who do not see it."""

    name: str
    svg: str
    words: str


def curve_picture(curve: Curve, method: str, epsilon: float, kept: float) -> Picture:
    """Information kept against ε, with the chosen point marked."""
    with rc_context(STYLE):
        figure = trade_off(curve, size=(WIDTH, 3.9))
        axes = figure.axes[0]
        axes.plot([epsilon], [kept], "*", markersize=16, color=RED, zorder=5, label="this release")
        axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
        best = max((p.utility or 0.0 for p in curve.points if p.epsilon == epsilon), default=kept)
        return _picture(
            "trade-off",
            figure,
            f"Information kept against ε for every method on this table, out of {curve.entropy:.2f} nats. This release "
            f"({method}, ε = {epsilon:g}) keeps {kept:.3f} nats; the best method at that ε keeps {best:.3f}.",
        )


def outputs_picture(shown: Outputs) -> Picture:
    """Each output as a bar of the values it may stand for."""
    with rc_context(STYLE):
        rows = len(shown.labels)
        figure, axes = _axes(0.9 + 0.23 * rows)
        places = np.arange(rows)[::-1]
        for y, place in enumerate(places):
            left = 0.0
            for rank, x in enumerate(np.argsort(-shown.posterior[y], kind="stable")):
                width = float(shown.posterior[y, x])
                if width < 1e-3:
                    break
                axes.barh(place, width, left=left, height=0.72, color=NEAREST[min(rank, 5)], linewidth=0)
                if width > 0.22:
                    name = _short(shown.values[x], int(46 * width))
                    axes.text(left + width / 2, place, name, ha="center", va="center", fontsize=7, color="white")
                left += width
            axes.text(1.015, place, f"{100 * shown.share[y]:.1f} %", va="center", fontsize=7.5)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlim(0, 1)
        axes.set_xlabel(
            "chance that a record published so was originally …   (right: share of all records)", fontsize=8
        )
        certain = int((shown.posterior.max(axis=1) > 1 - 1e-6).sum())
        return _picture(
            "outputs",
            figure,
            f"{rows} published outputs, most frequent first, each a bar divided among the values it may stand for. "
            f"{certain} of them {'stands' if certain == 1 else 'stand'} for one value with certainty.",
        )


def channel_picture(shown: Outputs) -> Picture:
    """The channel q(y | x) as a heat map."""
    with rc_context(STYLE):
        rows, columns = shown.channel.shape
        figure, axes = _axes(1.9 + 0.19 * min(rows, 40))
        shade = LinearSegmentedColormap.from_list("shade", [(0.11, 0.54, 0.42, 0.0), (0.11, 0.54, 0.42, 1.0)])
        drawn = axes.imshow(shown.channel[:40], aspect="auto", cmap=shade, vmin=0, vmax=1, interpolation="nearest")
        axes.set_yticks(range(min(rows, 40)), [_short(v, 20) for v in shown.values[:40]], fontsize=7)
        axes.set_xticks(range(columns), [_short(v, 16) for v in shown.labels], fontsize=6.5, rotation=60, ha="right")
        axes.set_xlabel("published as")
        axes.set_ylabel("original value")
        bar = figure.colorbar(drawn, ax=axes, fraction=0.04, pad=0.02)
        bar.set_label("chance", fontsize=8)
        bar.outline.set_visible(False)
        return _picture(
            "channel",
            figure,
            f"Heat map of the chance that each of {rows} original values is published as each of {columns} outputs. "
            f"On average a value keeps {100 * float(shown.channel.max(axis=1).mean()):.0f} % on its likeliest output.",
        )


def attacker_picture(shown: Attacker, epsilon: float) -> Picture:
    """Prior and posterior of every secret value, within the band that was promised."""
    with rc_context(STYLE):
        rows = len(shown.secrets)
        figure, axes = _axes(1.15 + 0.22 * rows)
        places = np.arange(rows)[::-1]
        factor = float(np.exp(epsilon))
        axes.barh(places, shown.prior * factor - shown.prior / factor, left=shown.prior / factor, height=0.62,
                  color=GREY, alpha=0.3, linewidth=0, label="allowed by the promise")  # fmt: skip
        axes.plot(shown.prior, places, "|", color=INK, markersize=11, markeredgewidth=1.6, label="before")
        axes.plot(shown.typical, places, "o", color=TEAL, markersize=5, label="after the most frequent output")
        axes.plot(shown.worst, places, "D", color=RED, markersize=4.5, label="after the worst output")
        axes.set_xscale("log")
        axes.margins(x=0.06)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_yticks(places, [_short(s, 22) for s in shown.secrets], fontsize=7.5)
        axes.set_xlabel("belief that the person has this secret value (log scale)")
        axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.4, -0.6 / (0.55 + 0.22 * rows)), ncols=2)
        moved = float(np.abs(np.log(shown.worst / shown.prior)).max()) if (shown.worst > 0).all() else float("inf")
        return _picture(
            "attacker",
            figure,
            f"Belief about each of {rows} secret values before and after seeing a record. After the worst output "
            f"({shown.worst_output}) the largest move is a factor of {np.exp(moved):.2f}; the promise allows "
            f"{factor:.2f}.",
        )


def column_picture(column: Column) -> Picture:
    """A column's shares: original, published exactly, and estimated back with intervals."""
    with rc_context(STYLE):
        order = np.argsort(-column.original, kind="stable")[:40]
        rows = len(order)
        figure, axes = _axes(1.15 + 0.27 * rows)
        places = np.arange(rows)[::-1]
        axes.barh(places + 0.17, column.original[order], height=0.34, color=GREY, label="original")
        if column.exact is not None:
            axes.barh(places - 0.17, column.exact[order], height=0.34, color="#9fd3c3", label="published just so")
        known = ~np.isnan(column.estimated[order])
        middle = np.where(known, column.estimated[order], (column.lower[order] + column.upper[order]) / 2)
        low = np.maximum(middle - column.lower[order], 0)
        high = np.maximum(column.upper[order] - middle, 0)
        axes.errorbar(middle[known], places[known] + 0.17, xerr=[low[known], high[known]], fmt="o", markersize=3.5,
                      color=RED, elinewidth=1.2, capsize=2, label="estimated back, 95 %")  # fmt: skip
        if not known.all():
            axes.errorbar(middle[~known], places[~known] + 0.17, xerr=[low[~known], high[~known]], fmt="none",
                          ecolor=AMBER, elinewidth=2.5, capsize=2, label="only bounds are known")  # fmt: skip
        axes.set_yticks(places, [_short(column.labels[x], 22) for x in order], fontsize=7.5)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        axes.set_xlabel(f"share of records, {column.name}")
        axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.4, -0.6 / (0.55 + 0.27 * rows)), ncols=2)
        error = np.abs(column.estimated - column.original)[~np.isnan(column.estimated)]
        said = f"Shares of the {len(column.labels)} values of {column.name}: original, "
        said += "published just so, " if column.exact is not None else ""
        said += "and estimated back from the sanitised table."
        if len(error):
            said += f" The largest error of an estimate is {100 * float(error.max()):.2f} percentage points."
        else:
            said += " The sanitised table alone does not say what they are; lines show what is known."
        return _picture(f"column-{re.sub(r'[^A-Za-z0-9]+', '-', column.name)}", figure, said)


def beliefs_sentence(belief: Belief, secret: str) -> str:
    """The promise in one plain sentence, with numbers from this data."""
    return (
        f"Whoever sees a published record, their belief that this person's {secret} is {belief.secret} can rise from "
        f"{_percent(belief.prior)} to at most {_percent(belief.at_most, up=True)}, or fall to no less than "
        f"{_percent(belief.at_least)}."
    )


def _percent(share: float, *, up: bool = False) -> str:
    """Two digits that matter, in percent; an upper limit is never rounded down."""
    percent = 100 * share
    if percent <= 0:
        return "0 %"
    digits = max(0, 1 - int(np.floor(np.log10(percent))))
    scale = 10.0**digits
    rounded = np.ceil(percent * scale - 1e-9) / scale if up else np.round(percent * scale) / scale
    return f"{rounded:.{digits}f} %"


def _axes(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def _short(label: str, longest: int = LONGEST) -> str:
    return label if len(label) <= longest else label[: max(1, longest - 1)] + "…"


def _picture(name: str, figure: Figure, words: str) -> Picture:
    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": name}), warnings.catch_warnings():
        # Letters are drawn by the page's own fonts, not by those that are missing here.
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    # Ids must differ between the figures of one page.
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r"url\(#", f"url(#{name}-", svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    return Picture(name, svg.replace(INK, "currentColor"), words)
