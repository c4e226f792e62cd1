"""Ways of publishing a table, side by side: the same tables, the same attackers, the same questions.

Rivals run in environments of their own, installed from the package registry into `build/rivals`, where results are kept
too: what was drawn once is not drawn again. `python -m benchmarks.rivals [DRAWS [ε …]]` writes
`docs/rivals/results.csv` and the tables of `docs/rivals.md`; 20 draws and ε = 0.5, 1 and 2 without arguments, at most 3
draws of rivals that take minutes. With `--kept` nothing is run: the page is made of what was drawn before.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.comparison.arms import Arm, all_arms
from benchmarks.comparison.environments import BUILD, ROOT, RivalError
from benchmarks.comparison.judging import Judgement, judge
from benchmarks.comparison.tables import Case, load_cases

DRAWS, EPSILONS = 20, (0.5, 1.0, 2.0)
RESULTS, PAGE = ROOT / "docs" / "rivals" / "results.csv", ROOT / "docs" / "rivals.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
NAMES = [field.name for field in fields(Judgement)]
HEADINGS = {
    "leak": "ε about the secret",
    "linked": "secret named right from the linked record",
    "learnt": "… by who knows the other columns",
    "member": "members told from others (AUC)",
    "real": "rows as they were",
    "one_way": "shares, error in points",
    "two_way": "two columns, total variation",
    "three_way": "three columns",
    "trained": "classifier trained on it",
    "seconds": "seconds",
}
PERCENT = ("linked", "learnt", "real", "trained")


def run_draws(case: Case, arm: Arm, epsilon: float, draws: int, *, kept_only: bool = False) -> list[Judgement] | str:
    """Every draw of an arm on a table, or why it could not be run."""
    kept = BUILD / "judged" / f"{case.name}-{arm.name}-{epsilon:g}.json".replace(" ", "_").replace(",", "")
    kept.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    for seed in range(min(draws, arm.most_draws)):
        if str(seed) not in found and "failed" not in found and not kept_only:
            try:
                found[str(seed)] = asdict(judge(case, arm, epsilon, seed))
            except RivalError as error:
                found["failed"] = str(error)
            kept.write_text(json.dumps(found))
    if "failed" in found:
        return str(found["failed"])
    return [Judgement(**one) for key, one in found.items() if int(key) < draws]


def main(words: list[str]) -> None:
    kept_only = "--kept" in words
    words = [word for word in words if word != "--kept"]
    draws = int(words[0]) if words else DRAWS
    epsilons = tuple(map(float, words[1:])) or EPSILONS
    lines, sections = ["table,epsilon,arm,promise,draws,question,mean,half_width"], []
    for case in load_cases():
        for epsilon in epsilons:
            rows = []
            for arm in all_arms():
                if not arm.fits(case):
                    continue
                print(f"{case.name}, ε = {epsilon:g}: {arm.name}", flush=True)
                found = run_draws(case, arm, epsilon, draws, kept_only=kept_only)
                if not found:
                    continue
                rows.append((arm, found))
                if not isinstance(found, str):
                    lines += _result_lines(case, epsilon, arm, found)
            if rows:
                sections.append(_section(case, epsilon, rows))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text("\n".join(lines) + "\n")
    _write_page(PAGE, "\n\n".join(sections))


def _values(found: list[Judgement], name: str) -> list[float]:
    values = [getattr(one, name) for one in found]
    return [value for value in values if value is not None and not math.isnan(value)]


def _summarise(values: list[float]) -> tuple[float, float]:
    """The mean, and half of its 95 % interval."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 and np.isfinite(values).all() else float("nan")
    return float(np.mean(values)), 1.96 * spread / math.sqrt(len(values))


def _result_lines(case: Case, epsilon: float, arm: Arm, found: list[Judgement]) -> list[str]:
    lines = []
    for name in NAMES:
        values = _values(found, name)
        if values:
            mean, half = _summarise(values)
            shown = "" if math.isnan(half) else f"{half:.3g}"
            lines.append(
                f'"{case.name}",{epsilon:g},"{arm.name}","{arm.promise}",{len(found)},{name},{mean:.5g},{shown}'
            )
    return lines


def _section(case: Case, epsilon: float, rows: list[tuple[Arm, list[Judgement] | str]]) -> str:
    title = (
        f"### {case.name}: {case.secret} secret, {len(case.columns)} column{'s' * (len(case.columns) > 1)} published, "
        f"{case.coded.rows:,} rows, ε = {epsilon:g}"
    )
    table = ["| | " + " | ".join(HEADINGS.values()) + " |", "|---" * (len(HEADINGS) + 1) + "|"]
    failed = []
    for arm, found in rows:
        if isinstance(found, str):
            failed.append(f"{arm.name}: {found}.")
            continue
        table.append(f"| {arm.name} ({len(found)}) | " + " | ".join(_cell(found, name) for name in HEADINGS) + " |")
    return "\n".join([title, "", *table, *(["", "Could not be run: " + " ".join(failed)] if failed else [])])


def _cell(found: list[Judgement], name: str) -> str:
    values = _values(found, name)
    if not values:
        return "–"
    mean, half = _summarise(values)
    if math.isinf(mean):
        return "unbounded"
    if name in PERCENT:
        return f"{mean:.1%}".replace("%", " %")
    if name == "seconds":
        return f"{mean:.0f}"
    unit = " %" if name in ("two_way", "three_way") else ""
    spread = "" if math.isnan(half) or half == 0 else f" ± {half:.1g}"
    return f"{mean:.3g}{spread}{unit}"


def _write_page(path: Path, figures: str) -> None:
    before, _, rest = path.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}")


if __name__ == "__main__":
    main(sys.argv[1:])
