"""SRLIP on real tables: what is kept within a minute, its proved bound, processor seconds and peak memory.

python -m benchmarks.srlip               both tables
python -m benchmarks.srlip occupation    the tables whose name has one of these words
"""

import resource
import sys
import time

from benchmarks.attributes import FOUR, adult_joint
from privacyfunnel.designs.optimum import optimal
from privacyfunnel.model.information import entropy
from privacyfunnel.model.promises import SRLIP

SECONDS, GOAL = 60.0, 0.05
TABLES = {
    "occupation × (relationship, race, sex)": ("occupation", ("relationship", "race", "sex")),
    "income × (education, relationship, race, sex)": ("income", FOUR),
}


def main(words: list[str] | None = None) -> None:
    """A line per table, at ε = 1."""
    for name, (secret, columns) in TABLES.items():
        if words and not any(word in name for word in words):
            continue
        joint = adult_joint(secret, *columns)
        h_x = entropy(joint.p_x)
        begun = time.process_time()
        best = optimal(joint, SRLIP(1.0), gap=GOAL * h_x, time_limit=SECONDS)
        seconds = time.process_time() - begun
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        gap = (best.bound - best.utility) / h_x
        print(
            f"{name:<46} {best.utility:.3f} of at most {best.bound:.3f} nats, gap {gap:.1%} of H(X), goal {GOAL:.0%}"
            f", {seconds:.0f} s, {peak:.2f} GB, stopped by {best.stopped.value}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
