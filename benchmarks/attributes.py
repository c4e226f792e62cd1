"""Several attributes: what the joint optimum keeps, and what it takes, beside the goals.

python -m benchmarks.attributes               every case
python -m benchmarks.attributes LIP SRLIP  the cases whose name has one of these words
"""

import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.tables.readers.adult import ADULT_COLUMNS, write_adult_csv

TABLES = 10
FOUR = ("education", "relationship", "race", "sex")
EIGHT = tuple(name for name in ADULT_COLUMNS if name != "occupation")


@cache
def adult() -> pl.DataFrame:
    """All records."""
    with TemporaryDirectory() as folder:
        write_adult_csv(Path(folder) / "adult.csv")
        return pl.read_csv(Path(folder) / "adult.csv")


@cache
def adult_joint(secret: str, *publish: str) -> Joint:
    """p(secret, publish) of all records."""
    return Joint.from_table(adult(), secret=secret, publish=list(publish))


def random_joints() -> list[Joint]:
    """c = 2, (3, 3, 4), uniform random p."""
    tables = [np.random.default_rng(seed).random((2, 3, 3, 4)) for seed in range(TABLES)]
    return [Joint.from_probabilities(p / p.sum()) for p in tables]


def joints_together(epsilon: float) -> str:
    """Mean I(X;Y) of the joint optimum, and the largest gap."""
    best = [optimal(joint, SRLIP(epsilon), gap=1e-3, time_limit=60) for joint in random_joints()]
    gap = max(found.bound - found.utility for found in best)
    return f"{np.mean([found.utility for found in best]):.3f} nats, gap at most {gap:.1e}"


def joint_on_adult(secret: str, promise: Promise, columns: Sequence[str] = FOUR) -> str:
    """The joint optimum on some columns within a minute, and its gap."""
    joint = adult_joint(secret, *columns)
    h = entropy(joint.p_x)
    found = optimal(joint, promise, gap=0.005 * h, time_limit=60)
    gap = (found.bound - found.utility) / h
    return f"{found.utility:.3f} of {h:.3f} nats, gap {gap:.2%} of H(X), {joint.a} combinations"


CASES: dict[str, tuple[str, Callable[[], str]]] = {
    "joint SRLIP, c = 2, (3, 3, 4), ε = 0.5": ("≥ 2.75, gap 1e-3", lambda: joints_together(0.5)),
    "joint SRLIP, c = 2, (3, 3, 4), ε = 1": ("≥ 3.2, gap 1e-3", lambda: joints_together(1.0)),
    "joint LIP, Adult income, four columns": ("gap ≤ 1 % in 60 s", lambda: joint_on_adult("income", LIP(1.0))),
    "joint LIP, Adult occupation, four columns": ("gap reported", lambda: joint_on_adult("occupation", LIP(1.0))),
    "joint LDP, Adult occupation, four columns": ("gap reported", lambda: joint_on_adult("occupation", LDP(1.0))),
    "joint SRLIP, Adult income, four columns": ("gap reported", lambda: joint_on_adult("income", SRLIP(1.0))),
    "joint SRLIP, Adult occupation, three columns": (
        "gap reported",
        lambda: joint_on_adult("occupation", SRLIP(1.0), ("relationship", "race", "sex")),
    ),
}


def main(words: tuple[str, ...] = ()) -> None:
    """Run the cases and print them."""
    table = Table("case", "goal", "reached", "seconds")
    for name, (goal, run) in CASES.items():
        if not words or any(word in name for word in words):
            start = time.perf_counter()
            reached = run()
            table.add_row(name, goal, reached, f"{time.perf_counter() - start:.1f}")
    Console(width=200).print(table)


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
