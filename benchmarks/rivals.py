"""Ways of publishing a table, side by side: the same tables, the same attackers, the same questions.

Rivals run in environments of their own, installed from the package registry into `build/rivals`, where results are kept
too: what was drawn once is not drawn again, and a run that was stopped goes on. `python -m benchmarks rivals` draws,
one draw of everything first, in as many processes as there are cores, and writes `docs/rivals/results.csv`, the figures
beside it and `docs/rivals.md`; with `--page` it draws nothing, and makes the page and the figures of the CSV.
`--minutes N` begins no draw after so many minutes; `--only TEXT` draws arms whose names contain a text, `--again TEXT`
forgets first what is kept of them.
"""

from __future__ import annotations

import csv
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, fields
from functools import cache, partial
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

# Up to how many draws, at which ε, for how many processor seconds of one arm on one table; what is asked most is first.
# The first draw at ε = 1 is always made.
OTHERS = (0.5, 2.0)
PLAN = ((1, (1.0,), 100.0), (3, (1.0,), 100.0), (1, OTHERS, 80.0), (20, (1.0,), 100.0), (20, OTHERS, 80.0))
NAMES = [field.name for field in fields(Judgement)]
Task = tuple[str, str, float, int, float]  # table, arm, ε, draws, processor seconds


def run_draws(case: Case, arm: Arm, epsilon: float, draws: int, seconds: float) -> None:
    """So many draws of an arm on a table, as far as they take so many seconds, or why it could not be run: kept."""
    kept = _kept_file(case, arm, epsilon)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with alone(kept):
        found: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
        if draws > 1 or epsilon != 1:
            draws = min(draws, int(seconds / max(_cost(case, arm), 1e-9)))
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


def _cost(case: Case, arm: Arm) -> float:
    """Processor seconds of a draw at ε = 1, as far as known."""
    kept = _kept_file(case, arm, 1.0)
    draws = json.loads(kept.read_text()).values() if kept.exists() else ()
    return float(np.mean([draw["seconds"] for draw in draws if isinstance(draw, dict)] or [0.0]))


def _kept_file(case: Case, arm: Arm, epsilon: float) -> Any:
    return BUILD / "judged" / f"{case.name}-{arm.name}-{epsilon:g}.json".replace(" ", "_").replace(",", "")


def _run_task(end: float, task: Task) -> None:
    """In a process that has the tables from the task before."""
    if time.time() < end:
        cases, arms = {case.name: case for case in _all_cases()}, {arm.name: arm for arm in all_arms()}
        run_draws(cases[task[0]], arms[task[1]], *task[2:])


@cache
def _all_cases() -> list[Case]:
    return load_cases()


def _tasks(cases: list[Case], arms: list[Arm]) -> Iterator[Task]:
    for draws, epsilons, seconds in PLAN:
        for epsilon, case, arm in product(epsilons, cases, arms):
            if arm.fits(case) and (arm.heeds_epsilon or epsilon == 1):
                yield case.name, arm.name, epsilon, draws, seconds


def _summaries(cases: list[Case]) -> Iterator[tuple[tuple[str, str, str], list[dict[str, str]], str]]:
    """What is kept of every arm: its lines of the CSV, or why there are none."""
    for case in cases:
        for epsilon in sorted((1.0, *OTHERS)):
            for arm in all_arms():
                kept = _kept_file(case, arm, epsilon)
                if not arm.fits(case) or not kept.exists():
                    continue
                found = json.loads(kept.read_text())
                failed = found.pop("failed", "")
                key = {"table": case.name, "epsilon": f"{epsilon:g}", "arm": arm.name, "promise": arm.promise}
                lines = []
                for name in NAMES:
                    values = [draw[name] for draw in found.values() if draw.get(name) is not None]
                    if values:
                        mean, half = summarise(values)
                        shown = "" if math.isnan(half) else f"{half:.3g}"
                        drawn = {"draws": str(len(values)), "question": name, "mean": f"{mean:.5g}"}
                        lines.append({**key, **drawn, "half_width": shown})
                yield (case.name, f"{epsilon:g}", arm.name), lines, failed


def summarise(values: list[float]) -> tuple[float, float]:
    """The mean, and half of its 95 % interval by Student's t; none for a single draw."""
    mean = float(np.mean(values))
    if len(values) < 2 or not np.isfinite(values).all():
        return mean, float("nan")
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return mean, float(student.ppf(0.975, len(values) - 1)) * spread


def write_results(cases: list[Case]) -> None:
    """The CSVs: what was measured before stays until it is measured again."""
    results, failures = read_lines(RESULTS), read_lines(FAILURES)
    for key, lines, failed in _summaries(cases):
        if lines or failed:
            results = [line for line in results if _key(line) != key] + lines
            failures = [line for line in failures if _key(line) != key]
        if failed:
            failures.append(dict(zip(("table", "epsilon", "arm", "reason"), (*key, failed), strict=True)))
    order = {case.name: place for place, case in enumerate(cases)}, {arm.name: i for i, arm in enumerate(all_arms())}

    def place(line: Mapping[str, Any]) -> tuple[int, float, int]:
        return order[0].get(line["table"], 99), float(line["epsilon"]), order[1].get(line["arm"], 99)

    for path, lines in ((RESULTS, results), (FAILURES, failures)):
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(sorted(lines, key=place))


def _key(line: dict[str, str]) -> tuple[str, str, str]:
    return line["table"], line["epsilon"], line["arm"]


def main(words: list[str]) -> None:
    """Draw, and write the page; or the page alone."""
    options = dict(zip(words, [*words[1:], ""], strict=True))
    if "--page" not in words:
        cases = _all_cases()
        for case, arm, epsilon in product(cases, all_arms(), (1.0, *OTHERS)):
            if "--again" in words and options["--again"] in arm.name:
                _kept_file(case, arm, epsilon).unlink(missing_ok=True)
        arms = [arm for arm in all_arms() if options.get("--only", options.get("--again", "")) in arm.name]
        end = time.time() + 60 * float(options.get("--minutes", "600"))
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
            list(pool.map(partial(_run_task, end), _tasks(cases, arms)))
        write_results(cases)
    write_page()


if __name__ == "__main__":
    main(sys.argv[1:])
