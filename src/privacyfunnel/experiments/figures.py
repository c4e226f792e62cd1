"""The pictures: records in, SVG and PNG out. The only place of the experiments that knows matplotlib."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from privacyfunnel.experiments import adult_curves, grr_cr, ldp_lip, lip_srlip
from privacyfunnel.experiments.experiment import Record, numbers, select

# Okabe and Ito's colours: told apart by all common kinds of colour vision. Markers and dashes say the same again.
BLACK, ORANGE, SKY, GREEN, BLUE, RED, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY = "#6b6b6b"
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#444444",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "svg.hashsalt": "privacyfunnel",  # the same numbers give the same file
}
WIDTH = 8.6  # inches; the PNG is then as wide as a page of text likes, twice over
DPI = 160  # sharp on a page and on a screen
BAND = 0.25  # opacity
VISIBLE = 1e-3  # nats


@dataclass(frozen=True, slots=True)
class LineStyle:
    """How a method is drawn, and what it is called."""

    label: str
    colour: str
    marker: str
    dashes: str = "-"


LDP_STYLES = {
    ldp_lip.GAMMA: LineStyle("ε-LDP, vertices of Γ (the paper's way)", BLACK, "X", ":"),
    ldp_lip.OURS_LDP: LineStyle("ε-LDP, ours", RED, "s", "--"),
    ldp_lip.OURS_LIP: LineStyle("ε-LIP, ours", BLUE, "o"),
    ldp_lip.OURS_HALF: LineStyle("ε/2-LIP, ours", GREEN, "D"),
}
SRLIP_STYLES = {
    lip_srlip.LISTED: LineStyle("recipe, vertices of Γ (the paper's way)", BLACK, "X", ":"),
    lip_srlip.RECIPE: LineStyle("recipe: product, ε/3 each", RED, "s", "--"),
    lip_srlip.SRLIP_BEST: LineStyle("optimal ε-SRLIP", GREEN, "D"),
    lip_srlip.LIP_BEST: LineStyle("optimal ε-LIP", BLUE, "o"),
}
ADULT_STYLES = {
    adult_curves.OPT_SEES: LineStyle("best seeing S and X", BLACK, "v", "--"),
    adult_curves.OPT: LineStyle("Opt-LIP (best seeing X)", GREEN, "D"),
    adult_curves.GRR: LineStyle("GRR", BLUE, "o"),
    adult_curves.CR: LineStyle("CR", RED, "s", "-."),
    adult_curves.OUE: LineStyle("OUE", PURPLE, "^", ":"),
}
REPORTING_STYLES = {"grr": LineStyle("GRR", BLUE, "o"), "cr": LineStyle("CR", RED, "s", "--")}


def draw_figure(name: str, records: Sequence[Record]) -> dict[str, bytes]:
    """The figure of that name as SVG and as PNG."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        figure = _FIGURES[name](records)
        drawn = {}
        for kind, metadata in (("svg", {"Date": None, "Title": name}), ("png", {"Title": name})):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata)
            drawn[kind] = buffer.getvalue()
    return drawn


def _panels(rows: int, columns: int, height: float, **shared: Any) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(WIDTH, height), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
    axes = figure.subplots(rows, columns, squeeze=False, **shared)
    return figure, list(axes.ravel())


def _legend(figure: Figure, axes: Axes, columns: int) -> None:
    """Below all panels, where it covers nothing."""
    handles, _ = axes.get_legend_handles_labels()
    if any(isinstance(drawn, PolyCollection) for panel in figure.axes for drawn in panel.collections):
        handles = [*handles, Patch(facecolor=GREY, alpha=BAND, label="up to the proved bound")]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, handlelength=3.2)


def _plot_draws(
    axes: Axes, records: Sequence[Record], looks: Mapping[str, LineStyle], column: str, methods: Iterable[str]
) -> None:
    """Every draw as a small dot, their mean as a line with its bound, the methods side by side at each ε."""
    methods = [method for method in methods if select(records, method=method)]
    epsilons = sorted({float(record["epsilon"]) for record in records})
    for place, method in enumerate(methods):
        look, offset = looks[method], 0.045 * (place - (len(methods) - 1) / 2)
        x, means, bounds = [], [], []
        for epsilon in epsilons:
            runs = select(records, method=method, epsilon=epsilon)
            values = numbers(runs, column)
            axes.plot([epsilon + offset] * len(values), values, ".", color=look.colour, alpha=0.35, markersize=4)
            if values and len(values) == len(runs):  # of runs that were stopped there is no mean
                x.append(epsilon + offset)
                means.append(float(np.mean(values)))
                proved = numbers(runs, "bound")
                bounds.append(float(np.mean(proved)) if proved else means[-1])
        if column == "utility":
            _band(axes, look, x, means, bounds)
        axes.plot(x, means, look.dashes, color=look.colour, marker=look.marker, label=look.label)
    axes.set_xticks(epsilons)
    axes.set_xlabel("ε")


def _band(axes: Axes, look: LineStyle, x: Sequence[float], kept: Sequence[float], bounds: Sequence[float]) -> None:
    """From what is kept to what is proved possible, where that is wide enough to see."""
    if bounds and max(np.subtract(bounds, kept)) > VISIBLE:
        axes.fill_between(x, kept, bounds, color=look.colour, alpha=BAND, linewidth=0)


def _time_and_utility(records: Sequence[Record], looks: Mapping[str, LineStyle], columns: int) -> Figure:
    figure, (time, utility) = _panels(1, 2, 4.4)
    _plot_draws(time, records, looks, "seconds", looks)
    unfinished = [r for r in records if r["seconds"] == ""]
    if unfinished:
        time.plot(
            numbers(unfinished, "epsilon"),
            numbers(unfinished, "time_limit"),
            "^",
            color=GREY,
            markerfacecolor="none",
            label="not finished in time",
        )
    _set_decades(time)
    time.set_ylabel("processor time")
    time.set_title("Computing time")
    kept = [r for r in records if r["method"] not in {ldp_lip.GAMMA, lip_srlip.LISTED}]
    _plot_draws(utility, kept, looks, "utility", looks)
    utility.set_ylabel("I(X;Y) (nats)")
    utility.set_title("Information kept")
    _legend(figure, time, columns)
    return figure


def _set_decades(axes: Axes) -> None:
    """A logarithmic axis of times, whole decades long."""
    axes.set_yscale("log")
    shown = [line.get_ydata() for line in axes.get_lines()]
    seconds = np.concatenate([np.asarray(y, dtype=float) for y in shown])
    low, high = np.floor(np.log10(seconds.min())), np.ceil(np.log10(seconds.max()))
    axes.set_ylim(10.0**low, 1.3 * 10.0**high)  # room for markers that stand on the last line
    axes.yaxis.set_major_locator(LogLocator(numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g} s" if y >= 1 else f"{1000 * y:g} ms"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _ldp_lip(records: Sequence[Record]) -> Figure:
    return _time_and_utility(records, LDP_STYLES, 2)


def _lip_srlip(records: Sequence[Record]) -> Figure:
    figure = _time_and_utility(records, SRLIP_STYLES, 2)
    figure.axes[1].set_ylim(bottom=0)
    return figure


def _adult(records: Sequence[Record]) -> Figure:
    figure, panels = _panels(len(adult_curves.PUBLISHED), len(adult_curves.SECRETS), 12.4)
    cases = [(secret, publish) for publish in adult_curves.PUBLISHED for secret in adult_curves.SECRETS]
    for axes, (secret, publish) in zip(panels, cases, strict=True):
        case = select(records, secret=secret, publish=publish)
        whole = float(case[0]["entropy"])
        for method, look in ADULT_STYLES.items():
            points = sorted(select(case, method=method), key=lambda r: float(r["epsilon"]))
            epsilons, kept = numbers(points, "epsilon"), numbers(points, "utility")
            _band(axes, look, epsilons, kept, numbers(points, "bound"))
            axes.plot(
                epsilons, kept, look.dashes, color=look.colour, marker=look.marker, markersize=4.5, label=look.label
            )
        last = max(float(r["epsilon"]) for r in case)
        for level, text in ((whole, "H(X)"), (whole / 2, "½ H(X)")):
            axes.axhline(level, color=GREY, linewidth=0.9, linestyle=(0, (1, 2)))
            axes.annotate(
                text, (last, level), xytext=(4, 0), textcoords="offset points", va="center", color=GREY, fontsize=9,
                annotation_clip=False,
            )  # fmt: skip
        axes.set_ylim(0, 1.06 * whole)
        axes.set_xlim(0, last)
        axes.set_title(f"S = {secret} (c = {case[0]['c']}), X = {publish} (a = {case[0]['a']})")
        axes.set_ylabel("I(X;Y) (nats)")
        axes.set_xlabel("ε of LIP")
    _legend(figure, panels[0], 3)
    return figure


def _grr_cr(records: Sequence[Record]) -> Figure:
    figure, panels = _panels(3, 2, 9.0, sharex=True, sharey=True)
    epsilons = sorted({float(record["epsilon"]) for record in records})
    for place, (axes, (a, c)) in enumerate(zip(panels, grr_cr.PAIRS, strict=True)):
        for offset, (method, look) in zip((-0.025, 0.025), REPORTING_STYLES.items(), strict=True):
            draws = [grr_cr.shares(select(records, a=a, c=c, epsilon=epsilon), method) for epsilon in epsilons]
            axes.errorbar(
                np.add(epsilons, offset),
                [np.mean(draw) for draw in draws],
                yerr=[np.std(draw, ddof=1) for draw in draws],
                color=look.colour,
                marker=look.marker,
                linestyle=look.dashes,
                elinewidth=1.1,
                capsize=2.5,
                label=look.label,
            )
        axes.set_title(f"a = {a}, c = {c}")
        axes.set_ylim(0, 1.05)
        axes.tick_params(labelbottom=True)
        if place % 2 == 0:
            axes.set_ylabel("I(X;Y) / H(X)")
        axes.set_xlabel("ε of LIP")
    _legend(figure, panels[0], 2)
    return figure


def _alpha_utility(records: Sequence[Record]) -> Figure:
    figure, panels = _panels(1, 3, 3.6, sharey=True)
    for axes, epsilon in zip(panels, grr_cr.PAPER_CORRELATIONS, strict=True):
        here = select(records, epsilon=epsilon)
        axes.axhline(0, color=GREY, linewidth=0.8)
        axes.axvline(0, color=GREY, linewidth=0.8)
        axes.plot(
            *grr_cr.differences(here), "o", color=BLUE, alpha=0.6, markersize=4.5, markeredgewidth=0, linestyle=""
        )
        axes.set_title(f"ε = {epsilon:g}, ρ = {grr_cr.correlation(here):.4f}")
        axes.set_xlabel("α of CR − α of GRR")
    panels[0].set_ylabel("I(X;Y) of CR − that of GRR (nats)")
    return figure


def _alpha_epsilon(records: Sequence[Record]) -> Figure:
    figure, panels = _panels(1, 2, 4.0)
    for axes, (secret, publish) in zip(panels, grr_cr.ADULT_CASES, strict=True):
        case = select(records, secret=secret, publish=publish)
        every = max(1, len(case) // 15)
        for method, look in REPORTING_STYLES.items():
            axes.plot(
                numbers(case, "epsilon"),
                numbers(case, f"{method}_alpha"),
                look.dashes,
                color=look.colour,
                marker=look.marker,
                markevery=every,
                label=look.label,
            )
        axes.set_title(f"S = {secret}, X = {publish}")
        axes.set_xlabel("ε of LIP")
        axes.set_ylabel("α")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
    _legend(figure, panels[0], 2)
    return figure


_FIGURES: dict[str, Callable[[Sequence[Record]], Figure]] = {
    "ldp-lip": _ldp_lip,
    "ldp-half-lip": _ldp_lip,
    "lip-srlip": _lip_srlip,
    "adult": _adult,
    "grr-cr": _grr_cr,
    "alpha-utility": _alpha_utility,
    "alpha-epsilon": _alpha_epsilon,
}
