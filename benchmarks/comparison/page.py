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
CONTROLS = ("told which rows are real", "neighbours as here", "all its steps")  # arms that explain others
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
OWN = "run_draws|limit_steps|rho|FactoredInference"  # of the scripts, what is for the comparison alone
DP = "differential privacy", "#b3541e"
COLOURS = {"privacyfunnel": ("privacyfunnel", "#0b6e99"), **dict.fromkeys(("dpmm", "OpenDP", "PAC"), DP)}
COLOURS["ANJANA"] = "generalisation", "#5a7d2a"
DEFAULT = "privacyfunnel, default"
FIGURES = {
    "shares.svg": ("Error of a share, in percentage points", ("one_way",)),
    "pairs.svg": ("People in the wrong cell of a table of two columns, %", ("two_way",)),
    "guesses.svg": ("Secret named right by the better of two attackers, %", ("linked", "learnt")),
}
LEFT_OUT = (  # of the figures; the last three have nearly the same dots as δ-disclosure
    *(*CONTROLS, "table prior", "for its model", "for shares", "its model alone", "as it is"),
    *("ANJANA beta-likeness", "ANJANA t-closeness", "ANJANA l-diversity"),
)
SHORT = {DEFAULT: "privacyfunnel", "OUE (multi-freq-ldpy)": "OUE", "OpenDP, noisy tables": "OpenDP"}

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
        try:
            return show([word.strip() for word in match[1].split(";")])
        except KeyError:
            return "(not run)"

    def show(words: list[str]) -> str:
        if words[0] == "draws":
            drawn = [int(line["draws"]) for place, line in found.items() if place[1:] == (*words[1:], "one_way")]
            return " to ".join(map(str, sorted({min(drawn, default=0), max(drawn, default=0)})))
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
    half = half_width(line) * scale
    spread = f" ± {half:.0f}" if half >= 10 else f" ± {half:.1g}" if half >= 5e-4 else ""
    shown = f"{scale * mean:.1f}" if name in PERCENT else f"{mean:.3g}"
    return f"{shown}{spread if interval else ''}{unit}"


def half_width(line: Line) -> float:
    """Of the 95 % interval; 0 for two draws, whose interval is thirteen standard errors wide either way."""
    return 0.0 if line["draws"] == "2" else float(line["half_width"] or 0)


def _sections(found: dict[Place, Line], failures: list[Line]) -> Iterable[str]:
    missing = [(line["table"], line["epsilon"]) for line in failures]
    for table, epsilon in sorted({*missing, *(place[:2] for place in found)}, key=_order):
        here = {place: line for place, line in found.items() if place[:2] == (table, epsilon)}
        arms = dict.fromkeys(place[2] for place in here)
        asked = [name for name in HEADINGS if any(place[3] == name for place in here)]
        rows = [f"| {' | '.join(['', *(HEADINGS[name] for name in asked)])} |", "|---" * (len(asked) + 1) + "|"]
        for arm in arms:
            lines = [here.get((table, epsilon, arm, name)) for name in asked]
            cells = ["–" if line is None else format_figure(line, interval=True) for line in lines]
            drawn = max(int(line["draws"]) for line in lines if line is not None)
            rows.append(f"| {' | '.join([f'{arm} ({drawn})', *cells])} |")
        reasons: dict[str, list[str]] = {}
        for place, line in zip(missing, failures, strict=True):
            if place == (table, epsilon):
                reasons.setdefault(line["reason"], []).append(line["arm"])
        told = [f"{'; '.join(names)}: {reason}." for reason, names in reasons.items()]
        rows = (rows if arms else []) + (["", "Not run: " + " ".join(told)] if told else [])
        yield "\n".join([f"### {table}: {ABOUT[table]}, ε = {epsilon}", "", *rows])


def _order(place: tuple[str, str]) -> tuple[int, float]:
    return list(ABOUT).index(place[0]), float(place[1])


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
            body = [top for top in ast.parse(path.read_text()).body if "DESCENT" not in ast.unparse(top)]
            nodes = [node for top in body for node in ast.walk(top) if isinstance(node, ast.stmt)]
            nodes = [node for node in nodes if not isinstance(node, (ast.Expr, ast.FunctionDef))]
            found[path.stem.replace("_", " ")] = sum(not re.search(OWN, ast.unparse(node)) for node in nodes)
    return found


def write_page() -> None:
    """The page and the figures."""
    results, failures = read_lines(RESULTS), read_lines(FAILURES)
    PAGE.write_text(make_page(TEMPLATE.read_text(encoding="utf-8"), results, failures), encoding="utf-8")
    draw_figures(results)


def draw_figures(results: list[Line]) -> None:
    """A figure for each question, a panel for each table, a dot for each arm; of two questions the larger answer."""
    at_one = {(place[0], place[2], place[3]): line for line in results for place in [_place(line)] if place[1] == "1"}
    for name, (heading, questions) in FIGURES.items():
        tables = [table for table in ABOUT if (table, DEFAULT, questions[0]) in at_one]
        _draw_dots(name, at_one, heading, questions, tables)


def _draw_dots(
    name: str, found: dict[tuple[str, str, str], Line], heading: str, questions: tuple[str, ...], tables: list[str]
) -> None:
    import matplotlib as mpl
    from matplotlib import pyplot as plt
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    mpl.rcParams.update({"svg.hashsalt": "rivals", "svg.fonttype": "none", "font.size": 9})
    guessed = questions[0] in PERCENT
    arms = [arm for arm in dict.fromkeys(at[1] for at in found if at[2] in questions) if not arm.endswith(LEFT_OUT)]
    arms = sorted(arms, key=lambda arm: arm != DEFAULT)[::-1]
    columns = 4 if len(tables) > 6 else 3
    size = (9.5, 1.0 + 2 * (0.5 + 0.19 * len(arms)))
    figure, axes = plt.subplots(2, columns, figsize=size, layout="constrained", sharey=True, squeeze=False)
    for axis, table in zip(axes.flat, tables, strict=False):
        for place, arm in enumerate(arms):
            lines = [found[table, arm, question] for question in questions if (table, arm, question) in found]
            if lines:
                line = max(lines, key=lambda line: float(line["mean"]))
                scale = 100 if guessed else 1
                half = scale * half_width(line)
                axis.errorbar(scale * float(line["mean"]), place, xerr=half, fmt="o", ms=5, color=_colour(arm)[1])
        if guessed:  # between a blind guess and what the table itself says
            for arm_question in ("learnt", "linked"):
                axis.axvline(100 * float(found[table, "as it is", arm_question]["mean"]), color="#888888", ls=":")
        else:
            axis.set_xscale("log")
            axis.xaxis.set_major_locator(FixedLocator([0.01, 0.1, 1, 10]))
            axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.xaxis.set_minor_locator(NullLocator())
            axis.set_xlim(0.002 if name.startswith("shares") else 0.2, 100)
        axis.grid(alpha=0.3)
        axis.set_title(table, fontsize=10)
        axis.set_yticks(range(len(arms)), [SHORT.get(arm, arm) for arm in arms])
    for axis in axes.flat[len(tables) :]:
        axis.set_visible(False)
    kinds = dict.fromkeys([_colour(arm) for arm in arms[::-1]])
    marks = [Line2D([], [], marker="o", ls="", color=colour, label=kind) for kind, colour in kinds]
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False)
    figure.suptitle(f"{heading}; left is better", fontsize=11)
    figure.savefig(FOLDER / name, metadata={"Date": None})
    plt.close(figure)


def _colour(arm: str) -> tuple[str, str]:
    return next((kind for name, kind in COLOURS.items() if arm.startswith(name)), ("other", "#888888"))
