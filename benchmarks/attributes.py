"""Several attributes: what chains and the joint optimum keep, and what it takes, beside the goals.

python -m benchmarks.attributes               every case
python -m benchmarks.attributes chain SRLIP  the cases whose name has one of these words
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

from privacyfunnel.designs.chain.step_order import chain_protocol
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.release.sanitise import sanitise
from privacyfunnel.spec import ReleaseSpec
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


def chain_on_four(promise: Promise) -> str:
    """A chain on four columns, for every row."""
    joint = adult_joint("occupation", *FOUR)
    sealed = chain_protocol(joint, promise).seal()
    return f"{sealed.information:.3f} of {entropy(joint.p_x):.3f} nats, certified ε = {sealed.epsilon:.9f}"


def chain_on_eight() -> str:
    """The whole table sanitised by a chain."""
    done = sanitise(
        adult(),
        ReleaseSpec(prior="table", secret="occupation", publish=EIGHT, promise=LIP(1.0), method="chain", seed=0),
    )
    return (
        f"{done.information:.3f} of {done.sealed.entropy:.3f} nats ({done.share_kept:.0%}), {done.rows:,} rows, "
        f"certified ε = {done.sealed.epsilon:.9f}"
    )


def tied_pairs() -> str:
    """Of each column the pairs of values, by their weight, which somebody who knows all other columns can tell apart by
    secrets that no other row of theirs has: of such a pair a step that keeps SRLIP may hardly say which it is."""
    joint = adult_joint("occupation", *EIGHT)
    there, found = joint.weights > 0, []
    for j, attribute in enumerate(joint.attributes):
        rest = np.unique(np.delete(joint.combos, j, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        tied = np.zeros((len(attribute.labels),) * 2, dtype=bool)
        for known in np.split(np.argsort(rest, kind="stable"), np.cumsum(np.bincount(rest))[:-1]):
            alone = (there[:, known] & (there[:, known].sum(axis=1, keepdims=True) == 1)).any(axis=0)
            values = joint.combos[known[alone], j]
            tied[np.ix_(values, values)] = True
        p = np.bincount(joint.combos[:, j], joint.p_x)
        both = np.outer(p, p) * ~np.eye(len(p), dtype=bool)
        found.append(f"{attribute.name} {(both * tied).sum() / both.sum():.0%}")
    return ", ".join(found)


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
    "chain LIP, Adult occupation, four columns": ("120 s", lambda: chain_on_four(LIP(1.0))),
    "chain LDP, Adult occupation, four columns": ("120 s", lambda: chain_on_four(LDP(1.0))),
    "chain LIP, Adult occupation, eight columns": ("300 s", chain_on_eight),
    "SRLIP by a chain, Adult, eight columns: pairs tied": ("few", tied_pairs),
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
