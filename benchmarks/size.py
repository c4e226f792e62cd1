"""Tables of sizes that people have: how far each is proved, in how much time and memory, and how time grows.

python -m benchmarks size                       every case: about half an hour
python -m benchmarks.size lip growth --seeds 1  the cases whose name has one of these words, with so many tables each
python -m benchmarks.size --seconds 5           every case with so many seconds, to see that it runs

Names begin with lip, srlip, estimate, statistics, population, limit or growth. Each case runs in a process of
its own, so that its peak memory is its own. Gaps are shares of H(X), for statistics of the error. Seconds are those of
the processor.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import polars as pl

from benchmarks import limits, srlip, uses
from benchmarks.goals.case import Case, Found, Line, Work, chosen, printed
from benchmarks.goals.zipf import zipf
from privacyfunnel.designs.baselines import randomised_response
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.estimation import estimate, impute
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.information import entropy
from privacyfunnel.model.promises import LIP

GROWTH, GROWTH_GAP, GROWTH_SECONDS = (250, 500, 1000, 2000, 4000), 0.02, 120.0
ESTIMATED, ESTIMATED_SECONDS = (500, 1000), 10.0
SEEDS = 3


def solved(secrets: int, values: int, seed: int, seconds: float, *, gap: float = 0.0, people: bool = False) -> Work:
    """The optimum on a table of very many values, for its rows or for the people whom they are a sample of."""
    joint = zipf(secrets, values, seed)
    h_x = entropy(joint.p_x)
    promise = LIP(1.0).for_population(joint, 0.95) if people else LIP(1.0)

    def solve() -> Found:
        best = optimal(joint, promise, gap=max(1e-6, gap * h_x), time_limit=seconds)
        said = f"H = {h_x:.4f}, I = {best.utility:.4f} of at most {best.bound:.4f} nats"
        return Found(said, (best.bound - best.utility) / h_x, stopped=best.stopped.value)

    return solve


def estimated(values: int, seconds: float) -> Work:
    """The shares of very many values with their intervals, and a completed table, from randomised response."""
    joint = zipf(10, values, 0)
    sealed = seal(randomised_response(joint, LIP(1.0)), LIP(1.0), joint)
    column, codes = joint.attributes[0], np.repeat(np.arange(joint.a), joint.weights.sum(axis=0).astype(np.int64))
    shown = sealed.mechanism.label_codes(sealed.sample(codes, KeyStream.from_seed(0)))[:, 0]
    frame = pl.DataFrame({column.name: pl.Series(column.labels).gather(shown)})

    def tell() -> Found:
        table = estimate(sealed, frame).table(column.name)
        impute(sealed, frame, 1)
        place = {label: x for x, label in enumerate(column.labels)}
        p = joint.p_x[[place[cell.labels[0]] for cell in table.cells]]
        told = np.array([(cell.share or 0.0, cell.lower, cell.upper) for cell in table.cells])
        covered = float(np.mean((told[:, 1] <= p) & (p <= told[:, 2])))
        off = float(np.abs(told[:, 0] - p).sum())
        return Found(f"{joint.total:,} rows, {covered:.1%} of intervals hold their share, {off:.4f} off in all")

    return tell


def cases(seeds: int = SEEDS) -> Iterator[Case]:
    """The table of goals."""
    for values, seconds, gap in ((1000, 60.0, 0.01), (4000, 60.0, 0.02), (20_000, 120.0, 0.05)):
        for seed in range(seeds):
            yield Case(f"lip zipf 10 × {values:,} seed {seed}", partial(solved, 10, values, seed), seconds, gap)
    yield from srlip.cases()
    for values in ESTIMATED:
        yield Case(f"estimate zipf 10 × {values:,}", partial(estimated, values), ESTIMATED_SECONDS, gigabytes=1.0)
    yield from uses.cases(seeds)
    for seed in range(seeds):
        yield Case(f"population zipf 5 × 200 seed {seed}", partial(solved, 5, 200, seed, people=True), 120.0, 0.02)
    yield from limits.cases()
    for values in GROWTH:
        work = partial(solved, 10, values, 0, gap=GROWTH_GAP)
        yield Case(f"growth zipf 10 × {values:,}", work, GROWTH_SECONDS, GROWTH_GAP)


def print_growth(lines: Mapping[str, Line]) -> None:
    """How many times as long each doubling of values takes to come as near."""
    took = {values: lines[name] for values in GROWTH if (name := f"growth zipf 10 × {values:,}") in lines}
    for (few, before), (many, after) in pairwise(took.items()):
        times = (
            f"{after.seconds / before.seconds:.1f} times as long" if before.reached and after.reached else "not known"
        )
        print(f"growth from {few:,} to {many:,} values, until the gap is {GROWTH_GAP:.0%}: {times}")


def main(words: list[str] | None = None) -> None:
    """Print the table, or the lines of the cases that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.size", description="Tables of many values, with goals.")
    parser.add_argument("words", nargs="*", help="of the names of cases")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="tables of each kind")
    parser.add_argument("--seconds", type=float, help="for every case, in place of its own")
    asked = parser.parse_args(words or [])
    few = chosen(cases(asked.seeds), asked.words)
    if asked.seconds is not None:
        few = [replace(case, seconds=asked.seconds) for case in few]
    print_growth(printed(few))


if __name__ == "__main__":
    main(sys.argv[1:])
