"""SRLIP on real tables: what is kept within a minute, its proved bound, processor seconds and peak memory.

python -m benchmarks.srlip               both tables
python -m benchmarks.srlip occupation    the tables whose name has one of these words
"""

import sys
from collections.abc import Iterator
from functools import partial

from benchmarks.attributes import FOUR, adult_joint
from benchmarks.goals.case import Case, Found, Work, chosen, printed
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.model.information import entropy
from privacyfunnel.model.promises import SRLIP

SECONDS, GOAL = 60.0, 0.05
TABLES = {
    "occupation × (relationship, race, sex)": ("occupation", ("relationship", "race", "sex")),
    "income × (education, relationship, race, sex)": ("income", FOUR),
}


def solved(secret: str, columns: tuple[str, ...], seconds: float) -> Work:
    """The optimum at ε = 1, as near as the goal."""
    joint = adult_joint(secret, *columns)
    h_x = entropy(joint.p_x)

    def solve() -> Found:
        best = optimal(joint, SRLIP(1.0), gap=GOAL * h_x, time_limit=seconds)
        gap = (best.bound - best.utility) / h_x
        return Found(f"I = {best.utility:.3f} of at most {best.bound:.3f} nats", gap, stopped=best.stopped.value)

    return solve


def cases() -> Iterator[Case]:
    """Both tables."""
    for name, (secret, columns) in TABLES.items():
        yield Case(f"srlip {name}", partial(solved, secret, columns), SECONDS, GOAL)


def main(words: list[str] | None = None) -> None:
    """A line per table."""
    printed(chosen(cases(), words or []))


if __name__ == "__main__":
    main(sys.argv[1:])
