"""docs/rivals.md and its figures, from the CSVs of results alone: a number cannot differ from what was measured.

The text is `page.md` beside this file. `{table; ε; arm; question}` in it stands for a figure, `{interval; …}` for one
with its interval, `{draws; ε; arm}` for the least and the most draws of an arm, `{ratio; table; ε; arm; other arm;
question}` for how many times the first one's figure is the second's; `<!-- tables -->` for all tables,
`<!-- matrix -->` for every attacker against every arm, `<!-- costs -->` for the seconds of every arm on every table,
`<!-- lines -->` for the lines of code.
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
    "beyond": "records beyond e^ε for who knows better than the model",
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
PERCENT = ("linked", "beyond", "learnt", "inside", "control", "real", "trained", "covered", "conclusions")
ABOUT = {
    "census 1": "occupation secret, education published, 48,842 rows",
    "compas": "two-year recidivism secret, 6 columns published, 6,172 rows",
    "affairs": "affair secret, 7 columns published, 6,366 rows",
    "votes": "vote of 2016 secret, 7 columns published, 38,603 rows",
    "census 8, income": "income secret, 8 columns published, 48,842 rows",
    "census 3": "occupation secret, 3 columns published, 48,842 rows",
    "census 8, occupation": "occupation secret, 8 columns published, 48,842 rows",
}
WITHOUT_SECRETS = ("as it is", "OpenDP", "OUE")
CONTROLS = ("told which rows are real",)  # an arm that is no way to publish a table
AT_FREQUENCIES = "not covered: the table's frequencies give it away ([limits](limits.md))"
KNOWS_OTHERS = {  # A3, where it is not covered by the arm's promise
    "as it is": "not covered: the record is published",
    "randomised response": AT_FREQUENCIES,
    "PRAM": AT_FREQUENCIES,
    "privacyfunnel, statistics": AT_FREQUENCIES,
    "privacyfunnel, information": AT_FREQUENCIES,
    "OUE": "as A1, for reports do not depend on other rows",
    "trees": "not covered, nor measured: it takes a run for each person and secret",
    "ANJANA": "exact: the others' secrets are subtracted from those of the class",
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
    text = text.replace("<!-- matrix -->", "\n".join(_matrix(found)))
    text = text.replace("<!-- costs -->", "\n".join(_costs(found)))
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


def _matrix(found: dict[Place, Line]) -> Iterable[str]:
    """Every attacker against every arm, on the first of some tables on which it was run; or why there is no figure."""
    yield "|  | table | A1 | A2 | A2, by anonymeter: in the table, outside | A3 | A4 |"
    yield "|---|---|---|---|---|---|---|"
    arms = {place[2]: line["promise"] for place, line in found.items() if not place[2].endswith(CONTROLS)}
    for arm, promise in arms.items():
        table = next(name for name in ("compas", *ABOUT) if (name, "1", arm, "one_way") in found)
        here = {name: format_figure(found[at]) for name in HEADINGS for at in [(table, "1", arm, name)] if at in found}
        guess = "no secrets to guess from" if arm.startswith(WITHOUT_SECRETS) else "not run"
        guess = "not run: more than 10,000 rows" if table.startswith("census") else guess
        by_name = {name: reason for name, reason in KNOWS_OTHERS.items() if arm.startswith(name)}
        cells = [
            here.get("linked", "no linked record"),
            here.get("learnt", "–"),
            f"{here['inside']}, {here['control']}" if "inside" in here else guess,
            next(iter(by_name.values()), "covered, e^ε"),
            here.get("member", "not run"),
        ]
        yield f"| {arm} ({promise}) | {table} | {' | '.join(cells)} |"


def _costs(found: dict[Place, Line]) -> Iterable[str]:
    """Processor seconds a draw at ε = 1, and how many draws."""
    yield f"| | {' | '.join(ABOUT)} |"
    yield "|---" * (len(ABOUT) + 1) + "|"
    for arm in dict.fromkeys(place[2] for place in found):
        lines = [found.get((table, "1", arm, "seconds")) for table in ABOUT]
        cells = ["–" if line is None else f"{format_figure(line)} ({line['draws']})" for line in lines]
        yield f"| {arm} | {' | '.join(cells)} |"


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
    """shares.svg: the error of a share; attackers.svg: tables of two columns, and the better of two attackers."""
    at_one = {(place[0], place[2], place[3]): line for line in results for place in [_place(line)] if place[1] == "1"}
    wide = [table for table in ABOUT if (table, "as it is", "two_way") in at_one]
    shares = {place: line for place, line in at_one.items() if place[1] != "as it is"}
    _draw_dots("shares.svg", shares, {"error of a share, in points": ("one_way",)}, list(ABOUT))
    error, guess = "two columns, total variation, %", "secret named right by the better attacker, %"
    _draw_dots("attackers.svg", at_one, {error: ("two_way",), guess: ("linked", "learnt")}, wide)


def _draw_dots(
    name: str, found: dict[tuple[str, str, str], Line], asked: dict[str, tuple[str, ...]], tables: list[str]
) -> None:
    """A dot for every arm: questions above each other, tables side by side; of several questions the largest answer."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    mpl.rcParams.update({"svg.hashsalt": "rivals", "svg.fonttype": "none", "font.size": 8})
    arms = list(dict.fromkeys(arm for _, arm, question in found if question in sum(asked.values(), ())))
    arms = sorted(
        (arm for arm in arms if not arm.endswith(CONTROLS)), key=lambda arm: not arm.startswith("privacyfunnel")
    )[::-1]
    size = (13, 0.8 + len(asked) * (0.4 + 0.17 * len(arms)))
    figure, axes = plt.subplots(len(asked), len(tables), figsize=size, layout="constrained", sharey=True, squeeze=False)
    for axis_row, (heading, questions) in zip(axes, asked.items(), strict=True):
        for axis, table in zip(axis_row, tables, strict=True):
            for place, arm in enumerate(arms):
                lines = [found[table, arm, name] for name in questions if (table, arm, name) in found]
                if lines:
                    line = max(lines, key=lambda line: float(line["mean"]))
                    scale = 100 if line["question"] in PERCENT else 1
                    half = scale * float(line["half_width"] or 0)
                    axis.errorbar(scale * float(line["mean"]), place, xerr=half, fmt="o", ms=4, color=_colour(arm))
            axis.grid(alpha=0.3)
            if questions[0] not in PERCENT:
                axis.set_xscale("symlog", linthresh=0.01)
                axis.xaxis.set_major_locator(FixedLocator([0, 0.01, 0.1, 1, 10]))
                axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axis.xaxis.set_minor_locator(NullLocator())
                axis.set_xlim(-0.003, 100)
            axis.set_title(table)
        axis_row[0].set_yticks(range(len(arms)), arms)
        axis_row[len(tables) // 2].set_xlabel(heading)
    figure.savefig(FOLDER / name, metadata={"Date": None})
    plt.close(figure)


def _colour(arm: str) -> str:
    return next((colour for name, colour in COLOURS.items() if arm.startswith(name)), "#888888")
