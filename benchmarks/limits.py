"""Whether a time limit holds: processor seconds where five were allowed, on tables that would take far longer.

python -m benchmarks.limits                 every case
python -m benchmarks.limits secrets curve   the cases whose name has one of these words
"""

import sys
import time
from collections.abc import Callable

import numpy as np

from privacyfunnel.designs.curve import curve
from privacyfunnel.designs.funnel import funnel
from privacyfunnel.designs.methods import Effort, Options, method
from privacyfunnel.designs.optimum import optimal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP
from privacyfunnel.model.uses.statistics import Statistics

LIMIT = 5.0
OVER = 2.0  # seconds, or a tenth


def dirichlet(*shape: int) -> Joint:
    """p ~ Dirichlet(½)."""
    p = np.random.default_rng(0).dirichlet(np.full(int(np.prod(shape)), 0.5)).reshape(shape)
    return Joint.from_probabilities(p)


def by_product() -> None:
    """Three columns, each by itself."""
    method("product").design(dirichlet(8, 12, 10, 8), SRLIP(1.0), Options(effort=Effort(1e-6, LIMIT)))


def for_people() -> None:
    """Five secrets among two hundred values, promised to the people whom the rows are a sample of."""
    p_sx = dirichlet(5, 200).p_sx
    rows = np.random.default_rng(0).multinomial(50_000, p_sx.ravel()).reshape(p_sx.shape)
    joint = Joint.from_counts(rows)
    optimal(joint, LIP(1.0).for_population(joint), time_limit=LIMIT)


CASES: dict[str, Callable[[], object]] = {
    "60 secrets × 60 values, LIP": lambda: optimal(dirichlet(60, 60), LIP(1.0), time_limit=LIMIT),
    "2,000 secrets × 30 values, LIP": lambda: optimal(dirichlet(2000, 30), LIP(1.0), time_limit=LIMIT),
    "30 secrets × 2,000 values, LIP": lambda: optimal(dirichlet(30, 2000), LIP(1.0), time_limit=LIMIT),
    "10 secrets × 1,000 values, LDP": lambda: optimal(dirichlet(10, 1000), LDP(1.0), time_limit=LIMIT),
    "SRLIP at ε = 1e-3, (3, 5, 5, 4)": lambda: optimal(dirichlet(3, 5, 5, 4), SRLIP(1e-3), time_limit=LIMIT),
    "product, (8, 12, 10, 8)": by_product,
    "sees secret, 12 × 40": lambda: optimal(dirichlet(12, 40), LIP(1.0), sees_secret=True, time_limit=LIMIT),
    "statistics, 5 × 1,000": lambda: optimal(dirichlet(5, 1000), LIP(1.0), Statistics(), time_limit=LIMIT),
    "statistics, 2,000 × 30": lambda: optimal(dirichlet(2000, 30), LIP(1.0), Statistics(), time_limit=LIMIT),
    "population, 5 × 200": for_people,
    "curve of two ε, 20 × 200": lambda: curve(
        dirichlet(20, 200), epsilons=(0.5, 1.0), methods=["optimal"], within=LIMIT
    ),
    "funnel, 60 × 60": lambda: funnel(dirichlet(60, 60), time_limit=LIMIT),
}


def main(words: list[str] | None = None) -> None:
    """A line per case."""
    for name, run in CASES.items():
        if words and not any(word in name for word in words):
            continue
        begun = time.process_time()
        run()
        seconds = time.process_time() - begun
        held = seconds <= max(1.1 * LIMIT, LIMIT + OVER)
        print(f"{name:<34} {seconds:6.1f} s of {LIMIT:g}  {'held' if held else 'OVERRUN'}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
