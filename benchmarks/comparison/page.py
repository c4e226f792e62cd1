"""docs/rivals.md and its figures, from the CSVs of results alone: a number cannot differ from what was measured.

The text is `page.md` beside this file. `{table; ε; arm; question}` in it stands for a figure, `{interval; …}` for one
with its interval, `{draws; ε; arm}` for the least and the most draws of an arm, `{ratio; table; ε; arm; other arm;
question}` for how many times the first one's figure is the second's; `<!-- tables -->` for all tables, `<!-- lines -->`
for the lines of code.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterable
from pathlib import Path

from benchmarks.comparison.environments import ROOT, SCRIPTS

FOLDER = ROOT / "docs" / "rivals"
RESULTS, FAILURES = FOLDER / "results.csv", FOLDER / "failures.csv"
PAGE, TEMPLATE = ROOT / "docs" / "rivals.md", SCRIPTS.parent / "page.md"
HEADINGS = {
    "leak": "ε about the secret",
    "linked": "secret named right from the linked record",
    "learnt": "… by who knows the other columns",
    "inside": "… by anonymeter",
    "control": "… outside the table",
    "member": "members found (AUC)",
    "real": "rows as they were",
    "one_way": "shares, error in points",
    "two_way": "two columns, total variation",
    "three_way": "three columns",
    "off": "coefficients, error in standard errors",
    "covered": "their 95 % intervals cover",
    "conclusions": "conclusions that hold",
    "trained": "classifier trained on it",
    "seconds": "processor seconds",
    "memory": "MB",
}
PERCENT = ("linked", "learnt", "inside", "control", "real", "trained", "covered", "conclusions")
ABOUT = {
    "census 1": "occupation secret, education published, 48,842 rows",
    "compas": "two-year recidivism secret, 6 columns published, 6,172 rows",
    "affairs": "affair secret, 7 columns published, 6,366 rows",
    "votes": "vote of 2016 secret, 7 columns published, 38,603 rows",
    "census 8, income": "income secret, 8 columns published, 48,842 rows",
    "census 3": "occupation secret, 3 columns published, 48,842 rows",
    "census 8, occupation": "occupation secret, 8 columns published, 48,842 rows",
}
COLOURS = {"privacyfunnel": "#0b6e99", "dpmm": "#b3541e", "OpenDP": "#b3541e", "PAC": "#b3541e", "ANJANA": "#5a7d2a"}

Line = dict[str, str]
Place = tuple[str, str, str, str]  # table, ε, arm, question


def read_lines(path: Path) -> list[Line]:
    """A CSV."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def make_page(template: str, results: list[Line], failures: list[Line]) -> str:
    """The page."""
    found = {_place(line): line for line in results}

    def fill(match: re.Match[str]) -> str:
        words = [word.strip() for word in match[1].split(";")]
        if words[0] == "draws":
            drawn = [int(line["draws"]) for place, line in found.items() if place[1:] == (*words[1:], "one_way")]
            return str(drawn[0]) if min(drawn) == max(drawn) else f"{min(drawn)} to {max(drawn)}"
        if words[0] == "ratio":
            table, epsilon, arm, other, question = words[1:]
            own, others = (float(found[table, epsilon, name, question]["mean"]) for name in (arm, other))
            return f"{own / others:.2g}"
        spread = words[0] == "interval"
        table, epsilon, arm, question = words[spread:]
        return format_figure(found[table, epsilon, arm, question], interval=spread)

    text = re.sub(r"\{([^{}]+;[^{}]+)\}", fill, template)
    text = text.replace("<!-- lines -->", ", ".join(f"{name} {lines}" for name, lines in count_lines().items()))
    return text.replace("<!-- tables -->", "\n\n".join(_sections(found, failures)))


def _place(line: Line) -> Place:
    return line["table"], line["epsilon"], line["arm"], line["question"]


def format_figure(line: Line, *, interval: bool = False) -> str:
    """The mean, and half of its interval where there is one."""
    mean, name = float(line["mean"]), line["question"]
    if mean == float("inf"):
        return "unbounded"
    scale, unit = (100, " %") if name in PERCENT else (1, " %" if name in ("two_way", "three_way") else "")
    if name in ("seconds", "memory"):
        return f"{mean:.0f}" if mean >= 10 else f"{mean:.1f}"
    half = float(line["half_width"] or 0) * scale
    spread = f" ± {half:.0f}" if half >= 10 else f" ± {half:.1g}" if half >= 5e-4 else ""
    shown = f"{scale * mean:.1f}" if name in PERCENT else f"{mean:.3g}"
    return f"{shown}{spread if interval else ''}{unit}"


def _sections(found: dict[Place, Line], failures: list[Line]) -> Iterable[str]:
    for table, epsilon in dict.fromkeys(place[:2] for place in found):
        here = {place: line for place, line in found.items() if place[:2] == (table, epsilon)}
        arms = dict.fromkeys(place[2] for place in here)
        asked = [name for name in HEADINGS if any(place[3] == name for place in here)]
        rows = [f"| {' | '.join(['', *(HEADINGS[name] for name in asked)])} |", "|---" * (len(asked) + 1) + "|"]
        for arm in arms:
            lines = [here.get((table, epsilon, arm, name)) for name in asked]
            cells = ["–" if line is None else format_figure(line, interval=True) for line in lines]
            drawn = max(int(line["draws"]) for line in lines if line is not None)
            rows.append(f"| {' | '.join([f'{arm} ({drawn})', *cells])} |")
        told = [
            f"{line['arm']}: {line['reason']}."
            for line in failures
            if (line["table"], line["epsilon"]) == (table, epsilon)
        ]
        rows += ["", "Could not be run: " + " ".join(told)] if told else []
        yield "\n".join([f"### {table}: {ABOUT[table]}, ε = {epsilon}", "", *rows])


def count_lines() -> dict[str, int]:
    """Statements and imports of each script that calls a rival: what its user writes, but for reading the table."""
    found = {}
    for path in sorted(SCRIPTS.glob("*.py")):
        if path.stem not in ("harness", "survey_tables", "trees", "anonymeter_inference", "qif_vulnerability"):
            body = ast.parse(path.read_text()).body
            nodes = [node for top in body for node in ast.walk(top) if isinstance(node, ast.stmt)]
            texts = (ast.Expr, ast.FunctionDef)
            ours = [node for node in nodes if not isinstance(node, texts) and "run_draws" not in ast.unparse(node)]
            found[path.stem.replace("_", " ")] = len(ours)
    return found


def write_page() -> None:
    """The page and the figures."""
    results, failures = read_lines(RESULTS), read_lines(FAILURES)
    PAGE.write_text(make_page(TEMPLATE.read_text(encoding="utf-8"), results, failures), encoding="utf-8")
    draw_figures(results)


def draw_figures(results: list[Line]) -> None:
    """shares.svg: the error of a share by arm and table; attackers.svg: tables of two columns by the best guess."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    mpl.rcParams.update({"svg.hashsalt": "rivals", "svg.fonttype": "none", "font.size": 8})
    at_one = {_place(line): line for line in results if line["epsilon"] == "1"}
    tables = [table for table in ABOUT if any(place[0] == table for place in at_one)]
    figure, axes = plt.subplots(2, 4, figsize=(13, 6.5), layout="constrained")
    for axis, table in zip(axes.flat, [*tables, *[""] * (8 - len(tables))], strict=True):
        lines = [line for place, line in at_one.items() if place[0] == table and place[3] == "one_way"]
        lines = [line for line in lines if line["arm"] != "as it is"]
        if not lines:
            axis.axis("off")
            continue
        lines.sort(key=lambda line: -float(line["mean"]))
        means, halves = ([float(line[name] or 0) for line in lines] for name in ("mean", "half_width"))
        axis.errorbar(means, range(len(lines)), xerr=halves, fmt="none", ecolor="#555555")
        axis.scatter(means, range(len(lines)), color=[_colour(line["arm"]) for line in lines], zorder=3)
        axis.set_yticks(range(len(lines)), [line["arm"] for line in lines])
        axis.grid(axis="x", alpha=0.3)
        axis.set_xscale("log")
        axis.set_title(f"{table}, error in points")
    figure.savefig(FOLDER / "shares.svg", metadata={"Date": None})
    plt.close(figure)
    wide = [table for table in tables if (table, "1", "as it is", "two_way") in at_one]
    figure, axes = plt.subplots(2, 3, figsize=(13, 7.5), layout="constrained")
    for axis, table in zip(axes.flat, [*wide, *[""] * (6 - len(wide))], strict=True):
        if not table:
            axis.axis("off")
            continue
        for number, arm in enumerate(dict.fromkeys(place[2] for place in at_one if place[0] == table)):
            told = [at_one.get((table, "1", arm, question)) for question in ("linked", "learnt")]
            best = max((float(line["mean"]) for line in told if line is not None), default=None)
            error = at_one.get((table, "1", arm, "two_way"))
            if best is not None and error is not None:
                axis.plot(100 * best, float(error["mean"]), "o", color=_colour(arm))
                place = {"xytext": (4, (3, -8)[number % 2]), "textcoords": "offset points", "fontsize": 6}
                axis.annotate(arm, (100 * best, float(error["mean"])), **place)
        axis.margins(x=0.25)
        axis.set_yscale("symlog", linthresh=0.5)
        axis.set_title(table)
        axis.set_xlabel("secret named right by the better attacker, %")
        axis.set_ylabel("two columns, total variation, %")
    figure.savefig(FOLDER / "attackers.svg", metadata={"Date": None})
    plt.close(figure)


def _colour(arm: str) -> str:
    return next((colour for name, colour in COLOURS.items() if arm.startswith(name)), "#888888")
