"""Columns with very many values: how far the optimum is proved, in how much time and memory, and how both grow.

python -m benchmarks size                       every case, at the first seed
python -m benchmarks.size lip growth --seeds 3  the cases whose name has one of these words, at seeds 0, 1 and 2

Each case runs in a process of its own, so that its peak memory is its own. Gaps are shares of H(X).
"""

import argparse
import multiprocessing
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from privacyfunnel.designs.optimum import optimal
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP, Promise

ROWS = 2_000_000  # drawn for each table
CONCENTRATION = 30.0  # of p(s|x) around p(s): what it is worth in observations
GROWTH = (250, 500, 1000, 2000, 4000)
SLACK = 1.1, 2.0  # a limit may be overrun by a tenth, or by so many seconds


@dataclass(frozen=True)
class Case:
    """What to solve within which seconds and gigabytes, and the gap to reach, a share of H(X); None where none is."""

    name: str
    joint: Callable[[int], Joint]  # from a seed
    promise: Promise
    seconds: float
    goal: float | None
    gigabytes: float = 4.0
    confidence: float | None = None  # with which the promise is kept for the people whom the rows stand for


def zipf(secrets: int, values: int, seed: int) -> Joint:
    """A table of rows drawn from p(x) ∝ 1/rank, p(s) ~ Dirichlet(2), p(s|x) ~ Dirichlet(30 p(s)), values that occur."""
    random = np.random.default_rng(seed)
    p_x = 1.0 / np.arange(1, values + 1)
    p_s = random.dirichlet(np.full(secrets, 2.0))
    p_s_given_x = random.dirichlet(CONCENTRATION * p_s, values)
    p = (p_x / p_x.sum())[:, None] * p_s_given_x
    counts = random.multinomial(ROWS, (p / p.sum()).ravel()).reshape(values, secrets).T
    return Joint.from_counts(counts[:, counts.sum(axis=0) > 0])


def cases() -> Iterator[Case]:
    """The table of goals."""
    yield Case("lip 10 × 1,000", partial(zipf, 10, 1000), LIP(1.0), 60.0, 0.01)
    yield Case("lip 10 × 4,000", partial(zipf, 10, 4000), LIP(1.0), 60.0, 0.02)
    yield Case("lip 10 × 20,000", partial(zipf, 10, 20_000), LIP(1.0), 120.0, 0.05)
    yield Case("population 5 × 200", partial(zipf, 5, 200), LIP(1.0), 120.0, 0.02, confidence=0.95)
    yield Case("limit 2 × 5,000", partial(zipf, 2, 5000), LIP(1.0), 5.0, None)
    yield Case("limit 30 × 2,000", partial(zipf, 30, 2000), LIP(1.0), 5.0, None)
    yield Case("limit 10 × 20,000", partial(zipf, 10, 20_000), LIP(1.0), 10.0, None)
    for values in GROWTH:
        yield Case(f"growth 10 × {values:,}", partial(zipf, 10, values), LIP(1.0), 20.0, None)


def measured(case: Case, seed: int) -> str:
    """Solve a case, and say how far it came, and whether its goal was reached."""
    joint = case.joint(seed)
    h_x = entropy(joint.p_x)
    promise = case.promise if case.confidence is None else case.promise.for_population(joint, case.confidence)
    begun, from_processor = time.perf_counter(), time.process_time()
    best = optimal(joint, promise, time_limit=case.seconds)
    seconds, processor = time.perf_counter() - begun, time.process_time() - from_processor
    gap, memory = (best.bound - best.utility) / h_x, peak()
    on_time = processor <= max(SLACK[0] * case.seconds, case.seconds + SLACK[1])
    reached = on_time and memory <= case.gigabytes and (case.goal is None or gap <= case.goal)
    return (
        f"H = {h_x:.4f}  I = {best.utility:.4f} of at most {best.bound:.4f}  gap {100 * gap:5.2f} %"
        f"{'       ' if case.goal is None else f' of {100 * case.goal:g} %'}  {processor:6.1f} s processor, "
        f"{seconds:6.1f} s of {case.seconds:g}  {memory:.2f} GB  {'reached' if reached else 'MISSED'}"
    )


def peak() -> float:
    """Gigabytes that this process held at most. Not ru_maxrss, which begins with what its parent used."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    return int(found[1]) / 2**20 if found else np.nan


def alone(work: Callable[[], str]) -> str:
    """What that says, in a process of its own."""
    processes = multiprocessing.get_context("fork")
    mine, theirs = processes.Pipe(duplex=False)

    def run(answer: Connection) -> None:
        answer.send(work())

    child = processes.Process(target=run, args=(theirs,))
    child.start()
    theirs.close()
    try:
        return str(mine.recv())
    except EOFError:
        return "ended without an answer  MISSED"
    finally:
        child.join()


def main(words: list[str] | None = None) -> None:
    """Print the table, or the lines of the cases that are asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seeds", type=int, default=1)
    asked = parser.parse_args(words or [])
    for case in cases():
        if not asked.words or any(word in case.name for word in asked.words):
            for seed in range(asked.seeds):
                print(f"{case.name:<18} seed {seed}  {alone(partial(measured, case, seed))}", flush=True)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
