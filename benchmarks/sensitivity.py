"""What thresholds of the engine are worth: instances solved with each of them halved and doubled.

python -m benchmarks.sensitivity                 measure all that are marked [sensitivity] in engine/settings.py
python -m benchmarks.sensitivity moments.light   measure some

Limits are nominal seconds of counted work, so that a row is the same on every machine. Results are kept in
benchmarks/goals/sensitivity.csv: the changes of value and gap, in per cent of the scale, and of counted steps.
"""

import csv
import re
import sys
from functools import partial
from pathlib import Path

from benchmarks.ablation import FAILED, Row, alone, instances, measure
from privacyfunnel.engine import settings
from privacyfunnel.engine.clock import clock_for
from privacyfunnel.engine.settings import SETTINGS

FILE = Path(__file__).parent / "goals" / "sensitivity.csv"
# Instances, with their nominal seconds, for the thresholds of a group or for a single one.
INSTANCES = {
    "driver": (("lip-10x200", 1.0), ("srlip-3-skewed", 1.0)),
    "slack": (("lip-10x600", 1.0), ("lip-10x50", 4.0)),
    "moments": (("statistics-lip-5x100", 10.0), ("statistics-sees", 0.8)),
    "moments.slack_share": (("balanced-census", 1.0),),
    "moments.least_slack": (("balanced-census", 1.0),),
    "averages": (("average-5x16", 0.3),),
    "search": (("lip-10x200", 1.0),),
    "proofs": (("srlip-3-columns", 2.0),),
    "bounds": (("srlip-3-skewed", 1.0),),
}
FACTORS = (0.5, 2.0)


def marked() -> list[str]:
    """The thresholds whose comment says that they are measured here."""
    text = Path(settings.__file__).read_text(encoding="utf-8")
    groups = {type(group).__name__: name for name, group in vars(SETTINGS).items()}
    found, group = [], ""
    for line in text.splitlines():
        if begun := re.match(r"class (\w+):", line):
            group = groups.get(begun[1], "")
        elif "[sensitivity" in line and (name := re.match(r"    (\w+):", line)):
            found.append(f"{group}.{name[1]}")
    return found


def solve(name: str, seconds: float, threshold: str = "", factor: float = 1.0) -> Row:
    """One instance in a process of its own, its limit in counted work."""
    instance = next(each for each in instances() if each.name == name)
    joint = instance.table()

    def work() -> Row:
        if threshold:
            group, _, field = threshold.partition(".")
            values = vars(getattr(SETTINGS, group))
            values[field] = type(values[field])(values[field] * factor)
        with clock_for(None):
            limited = type(instance)(instance.name, seconds, instance.table, instance.solve)
            return measure(limited, joint, None, name)

    found = alone(partial(work), 60.0)
    return found if isinstance(found, Row) else Row(name, threshold, f"{FAILED}: {found}")


def main(names: list[str]) -> None:
    """Measure, print and write."""
    kept: dict[tuple[str, ...], list[str]] = {}
    if FILE.exists():
        with FILE.open(encoding="utf-8", newline="") as file:
            kept = {tuple(row[:3]): row for row in list(csv.reader(file))[1:]}
    bases: dict[str, Row] = {}
    for threshold in names or marked():
        for name, seconds in INSTANCES.get(threshold, INSTANCES[threshold.split(".")[0]]):
            base = bases.setdefault(name, solve(name, seconds))
            for factor in FACTORS:
                row = solve(name, seconds, threshold, factor)
                sign = 1.0 if base.upwards else -1.0
                value, gap = sign * (row.value - base.value) / base.scale, row.gap - base.gap
                steps = row.steps / max(base.steps, 1) - 1
                changes = [f"{value:+.3%}", f"{gap:+.3%}", f"{steps:+.1%}"] if row.measured else [FAILED] * 3
                line = [threshold, f"{factor:g}", name, *changes]
                print(*line, flush=True)
                kept[tuple(line[:3])] = line
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["threshold", "factor", "instance", "value", "gap", "steps"])
        writer.writerows(kept[key] for key in sorted(kept))


if __name__ == "__main__":
    main(sys.argv[1:])
