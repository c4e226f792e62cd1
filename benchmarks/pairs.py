"""Every use on the pairs of columns of the paper's Adult experiments: value, bound and processor seconds.

python -m benchmarks pairs
python -m benchmarks.pairs occupation LDP     the lines whose name has all of these words

Linear uses (values, distances) are to take a second each, statistics and balanced twenty. The values of a column are
taken to stand in the order of their labels where a distance is measured.
"""

import sys
import time

from benchmarks.uses import SECONDS, adult
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.model.promises import LDP, LIP, Promise
from privacyfunnel.model.uses.linear_use import ABSOLUTE, SQUARED, Distance, LinearUse, Values
from privacyfunnel.model.uses.statistics_use import Balanced, Statistics
from privacyfunnel.model.uses.use import Information, Use

SECRETS, PUBLISHED = ("marital-status", "occupation"), ("education", "relationship", "race", "sex")
PROMISES: tuple[Promise, ...] = (LIP(1.0), LDP(1.0))
LINEAR_SECONDS = 1.0


def uses(labels: tuple[str, ...], column: str) -> tuple[Use, ...]:
    """All of them; the labels in their order."""
    order = ((column, labels),)
    return (
        Information(),
        Statistics(),
        Balanced(),
        Values(),
        Values(margin=True),
        Distance(ABSOLUTE, orders=order),
        Distance(SQUARED, orders=order),
        Distance(ABSOLUTE, margin=True, orders=order),
    )


def measured(secret: str, publish: str, promise: Promise) -> None:
    """One line."""
    joint = adult(secret, publish)
    said, late = [], []
    for use in uses(joint.attributes[0].labels, joint.attributes[0].name):
        begun = time.process_time()
        best = optimal(joint, promise, use, time_limit=SECONDS)
        worked = time.process_time() - begun
        said.append(f"{use.full_name} {best.value:.4g} [{best.bound:.4g}] {worked:.2f} s")
        if worked > (LINEAR_SECONDS if isinstance(use, LinearUse) else SECONDS):
            late.append(use.full_name)
    print(
        f"{secret} × {publish} {promise.name}({promise.epsilon:g})  {'  '.join(said)}  "
        f"{'LATE: ' + ', '.join(late) if late else 'all in time'}",
        flush=True,
    )


def main(words: list[str] | None = None) -> None:
    """Print every line, or those that are asked for."""
    for secret in SECRETS:
        for publish in PUBLISHED:
            for promise in PROMISES:
                if all(word in f"{secret} {publish} {promise.name}" for word in words or []):
                    measured(secret, publish, promise)


if __name__ == "__main__":
    main(sys.argv[1:])
