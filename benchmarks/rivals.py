"""Ways of publishing a table, side by side: the same tables, the same attackers, the same questions.

`python -m benchmarks rivals` draws in as many processes as there are cores, and writes `docs/rivals/results.csv`, the
figures beside it and `docs/rivals.md`; with `--page` it draws nothing, and makes page and figures of the CSV. Rivals
run in environments of their own, installed from the package registry into `build/rivals`, where draws are kept too: a
run that was stopped goes on.

It ends within `--minutes N` (an hour) of all cores: one draw of everything at ε = 1 says what a draw costs, and then
each arm gets the same seconds on each table, and half of them at other ε, up to twenty draws. `--only TEXT` draws arms
whose names have this text in them, and leaves the figures of the others as they were.
"""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, fields
from functools import cache
from itertools import product
from multiprocessing import get_context
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.comparison.arms import Arm, all_arms
from benchmarks.comparison.environments import BUILD, RivalError, alone
from benchmarks.comparison.judging import Judgement, judge
from benchmarks.comparison.page import FAILURES, RESULTS, read_lines, write_page
from benchmarks.comparison.tables import Case, load_cases
from privacyfunnel.errors import PrivacyFunnelError

EPSILONS = (1.0, 0.5, 2.0)  # what is asked most is first
OTHERS = 0.5  # of the seconds at ε = 1, for each other ε
MOST, FEW = 20, 3  # draws; so many of everything before any arm gets more
DRAWING = 0.6  # of the time, for draws after the first; the rest is for environments, tables and attackers
NAMES = [field.name for field in fields(Judgement) if field.name != "asking"]
Cell = tuple[str, str, float]  # table, arm, ε


def run_draws(case: Case, arm: Arm, epsilon: float, draws: int) -> None:
    """So many draws of an arm on a table, or why it could not be run: kept."""
    kept = _kept_file(case.name, arm.name, epsilon)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with alone(kept):
        found: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
        seeds = [seed for seed in range(min(draws, arm.most_draws)) if str(seed) not in found]
        if "failed" in found or not seeds:
            return
        print(f"{case.name}, ε = {epsilon:g}: {arm.name}, {len(seeds)} draws", flush=True)
        try:
            if arm.script is not None:
                arm.script.run(case, epsilon, seeds)
            for seed in seeds:
                found[str(seed)] = asdict(judge(case, arm, epsilon, seed))
                kept.write_text(json.dumps(found))
        except (RivalError, PrivacyFunnelError) as error:
            kept.write_text(json.dumps({**found, "failed": str(error)}))


def plan_draws(costs: Mapping[Cell, tuple[float, int]], seconds: float) -> dict[Cell, int]:
    """How many draws of each cell fit: all get the same seconds, and half of them at other ε; at ε = 1 at least one.

    Of each cell are given the seconds of a draw and the most draws that make sense.
    """

    def count(allowed: float) -> dict[Cell, int]:
        return {
            cell: max(min(most, int(allowed * (1.0 if cell[2] == 1 else OTHERS) / max(cost, 1e-9))), int(cell[2] == 1))
            for cell, (cost, most) in costs.items()
        }

    low, high = 0.0, max(seconds, 0.0)
    for _ in range(50):
        middle = (low + high) / 2
        spent = sum(costs[cell][0] * draws for cell, draws in count(middle).items())
        low, high = (middle, high) if spent <= seconds else (low, middle)
    return count(low)


def _costs() -> dict[Cell, tuple[float, int]]:
    """Processor seconds of a draw at ε = 1, with its questions, of every cell that could be run, and its most draws."""
    found = {}
    for case, arm, epsilon in _cells():
        draw = _read_kept((case.name, arm.name, 1.0)).get("0")
        if draw is not None:
            found[case.name, arm.name, epsilon] = draw["seconds"] + draw["asking"], arm.most_draws
    return found


def _why_none(case: Case, arm: Arm) -> str:
    seconds = _costs().get((case.name, arm.name, 1.0), (math.nan, 1))[0]
    return "" if math.isnan(seconds) else f"a draw takes {seconds:.0f} processor seconds"


def _cells() -> Iterator[tuple[Case, Arm, float]]:
    for epsilon, case, arm in product(EPSILONS, _all_cases(), all_arms()):
        if arm.fits(case) and (arm.every_epsilon or epsilon == 1):
            yield case, arm, epsilon


def _read_kept(cell: Cell) -> dict[str, Any]:
    kept = _kept_file(*cell)
    return dict(json.loads(kept.read_text())) if kept.exists() else {}


def _kept_file(table: str, arm: str, epsilon: float) -> Any:
    return BUILD / "judged" / f"{table}-{arm}-{epsilon:g}.json".replace(" ", "_").replace(",", "")


def _run_task(task: tuple[Cell, int]) -> None:
    """In a process that has the tables from the task before."""
    (table, name, epsilon), draws = task
    cases, arms = {case.name: case for case in _all_cases()}, {arm.name: arm for arm in all_arms()}
    run_draws(cases[table], arms[name], epsilon, draws)


@cache
def _all_cases() -> list[Case]:
    return load_cases()


def summarise(values: list[float]) -> tuple[float, float]:
    """The mean, and half of its 95 % interval by Student's t; none for a single draw."""
    mean = float(np.mean(values))
    if len(values) < 2 or not np.isfinite(values).all():
        return mean, float("nan")
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return mean, float(student.ppf(0.975, len(values) - 1)) * spread


def write_results() -> None:
    """The CSVs: the figures of every cell, and why some have none. What is not drawn now stays as it was."""
    before, reasons, results, failures = read_lines(RESULTS), read_lines(FAILURES), [], []
    for case, arm, epsilon in sorted(_cells(), key=lambda cell: (_all_cases().index(cell[0]), cell[2])):
        found = _read_kept((case.name, arm.name, epsilon))
        reason = found.pop("failed", "")
        key = {"table": case.name, "epsilon": f"{epsilon:g}", "arm": arm.name}
        lines = [] if found or reason else [line for line in before if key.items() <= line.items()]
        for name in NAMES:
            values = [draw[name] for draw in found.values() if draw.get(name) is not None]
            if values:
                mean, half = summarise(values)
                shown = "" if math.isnan(half) else f"{half:.3g}"
                drawn = {"draws": str(len(values)), "question": name, "mean": f"{mean:.5g}", "half_width": shown}
                lines.append({**key, "promise": arm.promise, **drawn})
        results += lines
        if not lines:
            told = [line["reason"] for line in reasons if key.items() <= line.items()]
            failures.append({**key, "reason": reason or _why_none(case, arm) or (told or ["it was not drawn"])[0]})
    for path, lines in ((RESULTS, results), (FAILURES, failures)):
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


def main(words: list[str]) -> None:
    """Draw, and write the page; or the page alone."""
    if "--page" not in words:
        options, cores = dict(zip(words, [*words[1:], ""], strict=True)), len(os.sched_getaffinity(0))
        seconds = DRAWING * 60 * cores * float(options.get("--minutes", "60"))
        with ProcessPoolExecutor(cores, get_context("spawn")) as pool:
            only = options.get("--only", "")
            cells = [(case.name, arm.name, epsilon) for case, arm, epsilon in _cells() if only in arm.name]
            list(pool.map(_run_task, [(cell, 1) for cell in cells if cell[2] == 1]))
            costs = _costs()
            plan = plan_draws({cell: costs[cell] for cell in cells if cell in costs}, seconds)
            for most in (FEW, MOST):
                list(pool.map(_run_task, [(cell, min(draws, most)) for cell, draws in plan.items()]))
        write_results()
    write_page()


if __name__ == "__main__":
    main(sys.argv[1:])
