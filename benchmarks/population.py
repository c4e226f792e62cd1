"""A promise for the people: how often it holds at the truth, what it costs, and how that fades as tables grow.

python -m benchmarks population                   coverage of 1,000 tables per case, growth, table and costs: some hours
python -m benchmarks.population coverage 100      one part, with so many tables per case
python -m benchmarks.population coverage kept=f   what each table gave is kept in the file f, and a later run goes on
python -m benchmarks.population table seconds=20  one part, with so many seconds for every optimum

Truth is Adult's own distribution. A table is n independent draws from it; its owner makes a protocol for ε = 1, plain
or for the population with 95 % confidence, and ε is measured at the truth, of which the owner knows nothing. What is
promised for the population are groups of secrets where some are rare; so those are what is measured.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.designs.optimal.optimum import Optimum, optimal
from privacyfunnel.formatting import format_epsilon
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.credal.clopper_pearson import SCALE, exact_lower_bound, exact_upper_bound
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, Promise
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.release.findings.population import population_bound
from privacyfunnel.tables.readers.adult import adult_counts

TABLES, SECONDS = 1000, 20.0
GAP = 0.04  # of H(X) from the optimum, where the truth is what is asked about: proofs change nothing there
SMALL = (("income", "education"), ("marital-status", "relationship"))
LARGE = (("occupation", "sex"), ("marital-status", "education"), ("occupation", "education"))
CROWDED = ("native-country", "education")  # dozens of secrets have about 200 rows
PUBLISHED = ("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country")
PROMISES = (LIP, LDP)


@dataclass(frozen=True)
class Budget:
    """How many tables are drawn per case, and how long an optimum may take."""

    tables: int = TABLES
    seconds: float = SECONDS
    kept: Path | None = None  # where each table's ε at the truth is written down, so that a run can be taken up again


@cache
def adult(secret: str, publish: str) -> Joint:
    """Adult, all rows."""
    return Joint.from_counts(adult_counts(secret, publish)[0])


def sample(truth: Joint, rows: int, rng: np.random.Generator) -> Joint:
    """A table of so many independent rows."""
    return Joint.from_counts(rng.multinomial(rows, truth.p_sx.ravel()).reshape(truth.c, truth.a))


def in_groups(truth: Joint, sampled: Joint, promise: Promise) -> Joint:
    """The truth about the groups of secrets that the population is promised."""
    population = promise.population
    groups: IntArray = np.eye(truth.c, dtype=np.int64)
    if population is not None:
        groups = population.rule.groups(sampled).astype(np.int64)
    return Joint.from_counts(groups @ truth.weights)


def interval(some: int, of: int) -> str:
    """A 95 % interval for a share, exact."""
    level = Fraction(25, 1000)
    low = exact_lower_bound(some, of, level) if some else 0
    high = exact_upper_bound(some, of, level) if some < of else SCALE
    return f"{100 * low / SCALE:.1f}–{100 * high / SCALE:.1f} %"


def print_coverage(budget: Budget) -> None:
    """How often ε is exceeded at the truth, by plain promises and by promises for the population."""
    cases = [(*pair, kind, found) for pair in SMALL for kind in PROMISES for found in (False, True)]
    known = _known(budget)
    for i in range(budget.tables):  # table by table, so that a run that is cut short has as many of every case
        for case in cases:
            if (_called(*case), i) not in known:
                known[_called(*case), i] = _at_truth(*case, i)
                _keep(budget, _called(*case), i, known[_called(*case), i])
    print("   ε = 1, tables of Adult's size: above ε at the truth (95 % interval); ε there, median and largest")
    for case in cases:
        sizes = [known[_called(*case), i] for i in range(budget.tables)]
        above, whole = sum(size > 1.0 for size in sizes), len(sizes)
        print(
            f"   {_called(*case):<56} {above:>5} of {whole:,} ({interval(above, whole)})   {np.median(sizes):.3f}  "
            f"{max(sizes):.3f}"
        )


def _called(secret: str, publish: str, kind: type[Promise], for_population: bool) -> str:
    return f"{f'{secret} × {publish}':<32} {kind.__name__} {'population 95 %' if for_population else 'plain'}"


def _known(budget: Budget) -> dict[tuple[str, int], float]:
    """What an earlier run found of some cases and tables."""
    if budget.kept is None or not budget.kept.exists():
        return {}
    lines = map(json.loads, budget.kept.read_text(encoding="utf-8").splitlines())
    return {(line["case"], line["table"]): line["epsilon"] for line in lines}


def _keep(budget: Budget, case: str, table: int, epsilon: float) -> None:
    if budget.kept is not None:
        with budget.kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"case": case, "table": table, "epsilon": epsilon}, ensure_ascii=False) + "\n")


def _at_truth(secret: str, publish: str, kind: type[Promise], for_population: bool, number: int) -> float:
    """ε at the truth of the protocol for one table, which is the same whoever draws it, and whenever."""
    truth = adult(secret, publish)
    table = sample(truth, truth.total, np.random.default_rng((13, number)))
    asked = kind(1.0).for_population(table) if for_population else kind(1.0)
    best = optimal(table, asked, gap=GAP * entropy(table.p_x), time_limit=600)
    return kind(1.0).leakage(in_groups(truth, table, asked), best.protocol)


def print_growth(budget: Budget) -> None:
    """What a population costs as the table grows: all counts × 1, 10 and 100, every secret by itself."""
    print("   LIP 1, all secrets by themselves, counts × 1 / 10 / 100: nats (≤ bound)")
    for secret, publish in SMALL:
        joint = adult(secret, publish)
        plain = optimal(joint, LIP(1.0), gap=1e-4).utility
        said = [f"plain {plain:.4f}"]
        for times in (1, 10, 100):
            grown = Joint.from_counts(joint.weights * times)
            said.append(f"× {times} {_shown(_for_people(grown, LIP(1.0), budget, rare=0))}")
        print(f"   {f'{secret} × {publish}':<32} {'   '.join(said)}", flush=True)


def print_table(budget: Budget) -> None:
    """The reference table: plain, for the population with all secrets by themselves, and with the rare together."""
    print("   nats (≤ bound where the gap is above 2e-4) in seconds; ε of the plain protocol for the population")
    for secret, publish in SMALL + LARGE:
        joint = adult(secret, publish)
        for kind in PROMISES:
            for epsilon in (0.5, 1.0, 2.0):
                begun = time.process_time()
                best = optimal(joint, kind(epsilon), gap=1e-4, time_limit=budget.seconds)
                spent = time.process_time() - begun
                print(
                    f"   {f'{secret} × {publish}':<32} {kind.__name__} {epsilon:<4} plain {best.utility:.4f} in "
                    f"{spent:.1f} s, {_of_people(joint, kind(epsilon), best)}   "
                    f"all {_shown(_for_people(joint, kind(epsilon), budget, rare=0))}   "
                    f"rare together {_shown(_for_people(joint, kind(epsilon), budget))}",
                    flush=True,
                )


def print_cost(budget: Budget) -> None:
    """What --population 95% would cost as the default: income secret and any other column published, and others."""
    print("   ε = 1, rare secrets together: plain, population, what it costs of H(X)")
    for secret, publish in (*(("income", publish) for publish in PUBLISHED), *SMALL[1:], *LARGE, CROWDED):
        joint = adult(secret, publish)
        for kind in PROMISES:
            cost = _cost(joint, kind(1.0), budget)
            print(f"   {f'{secret} × {publish}':<32} {kind.__name__} {cost}", flush=True)


def _cost(joint: Joint, promise: Promise, budget: Budget) -> str:
    begun = time.process_time()
    plain = optimal(joint, promise, gap=1e-4, time_limit=budget.seconds)
    spent = time.process_time() - begun
    found = _for_people(joint, promise, budget)
    lost = (plain.utility - found[0].utility) / entropy(joint.p_x)
    return (
        f"plain {plain.utility:.4f} in {spent:.1f} s, {_of_people(joint, promise, plain)}   "
        f"population {_shown(found)}   costs {100 * lost:.2f} %"
    )


def _of_people(joint: Joint, promise: Promise, best: Optimum) -> str:
    sealed = seal(best.protocol, promise, joint) if best.sealed is None else best.sealed
    found = population_bound(sealed.mechanism, promise, joint)
    return "people not measured" if found is None else f"people ≤ {format_epsilon(found.epsilon)}"


def _for_people(joint: Joint, promise: Promise, budget: Budget, **rule: int) -> tuple[Optimum, float]:
    begun = time.process_time()
    best = optimal(joint, promise.for_population(joint, **rule), gap=1e-4, time_limit=budget.seconds)
    return best, time.process_time() - begun


def _shown(found: tuple[Optimum, float]) -> str:
    best, seconds = found
    bound = f" (≤ {best.bound:.4f})" if best.bound - best.utility > 2e-4 else ""
    return f"{best.utility:.4f}{bound} in {seconds:.1f} s"


def print_elsewhere(budget: Budget) -> None:
    """What a row for values that no row of the table has costs the default use: n × total squared error of shares."""
    print("   statistics for the population: listed values alone, with a row for anything else, what that costs")
    for secret, publish in (*LARGE[1:], CROWDED):
        joint = adult(secret, publish)
        for kind in PROMISES:
            for epsilon in (0.5, 1.0, 2.0):
                listed = kind(epsilon).for_population(joint)
                closed, opened = (
                    optimal(joint, promise, Statistics(), gap=1e-6, time_limit=budget.seconds)
                    for promise in (listed, listed.cover_anything_else())
                )
                more = opened.value / closed.value - 1
                print(
                    f"   {f'{secret} × {publish}':<32} {kind.__name__} {epsilon:<4} {closed.value:.4g} "
                    f"(≥ {closed.bound:.4g})   {opened.value:.4g} (≥ {opened.bound:.4g})   {100 * more:.2f} %",
                    flush=True,
                )


PARTS = {
    "coverage": print_coverage,
    "growth": print_growth,
    "table": print_table,
    "cost": print_cost,
    "elsewhere": print_elsewhere,
}


def main(words: Sequence[str] = ()) -> None:
    """Print the parts that are named, or all."""
    tables = next((int(word) for word in words if word.isdigit()), TABLES)
    seconds = next((float(word[8:]) for word in words if word.startswith("seconds=")), SECONDS)
    kept = next((Path(word[5:]) for word in words if word.startswith("kept=")), None)
    asked = [word for word in words if not (word.isdigit() or word.startswith(("seconds=", "kept=")))] or list(PARTS)
    for name in asked:
        if name not in PARTS:
            sys.exit(f"There is no part '{name}'. There are: {', '.join(PARTS)}.")
    for name in asked:
        PARTS[name](Budget(tables, seconds, kept))


if __name__ == "__main__":
    main(sys.argv[1:])
