"""Whether a time limit holds: processor seconds where five were allowed, on tables that would take far longer.

python -m benchmarks.limits                 every case
python -m benchmarks.limits secrets curve   the cases whose name has one of these words
"""

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

import numpy as np

from benchmarks.attributes import adult
from benchmarks.goals.case import Case, Found, Work, chosen, printed
from benchmarks.goals.zipf import zipf
from privacyfunnel.designs.curve import curve
from privacyfunnel.designs.methods import Effort
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.designs.optimal.privacy_funnel import funnel
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.release.sanitise import sanitise
from privacyfunnel.report.release_page import Occasion, owner_page
from privacyfunnel.spec import ReleaseSpec

LIMIT = 5.0
LARGEST = 10.0  # for twenty thousand values, of which merely the table takes a second


def dirichlet(*shape: int) -> Joint:
    """p ~ Dirichlet(½)."""
    p = np.random.default_rng(0).dirichlet(np.full(int(np.prod(shape)), 0.5)).reshape(shape)
    return Joint.from_probabilities(p)


def sought(table: Callable[[], Joint], promise: Promise, seconds: float, *, sees_secret: bool = False) -> Work:
    """The optimum, as far as it comes."""
    joint = table()

    def solve() -> Found:
        best = optimal(joint, promise, sees_secret=sees_secret, time_limit=seconds)
        gap = (best.bound - best.utility) / entropy(joint.p_x)
        return Found(f"I = {best.utility:.3f} of at most {best.bound:.3f} nats", gap, stopped=best.stopped.value)

    return solve


def along_a_curve(seconds: float) -> Work:
    """Two ε in the seconds for both; the larger gap."""
    joint = dirichlet(20, 200)

    def solve() -> Found:
        found = curve(joint, epsilons=(0.5, 1.0), methods=["optimal"], within=seconds)
        gaps = [(point.bound or found.entropy) - (point.utility or 0.0) for point in found.points]
        return Found(", ".join(f"I = {p.utility:.3f} nats" for p in found.points), max(gaps) / found.entropy)

    return solve


def for_statistics(*shape: int) -> Callable[[float], Work]:
    """The least error of all shares."""

    def work(seconds: float) -> Work:
        joint = dirichlet(*shape)

        def solve() -> Found:
            best = optimal(joint, LIP(1.0), Statistics(), time_limit=seconds)
            gap = (best.value - best.bound) / best.value
            return Found(f"error {best.value:.3f}, at least {best.bound:.3f}", gap, stopped=best.stopped.value)

        return solve

    return work


def along_the_funnel(seconds: float) -> Work:
    """All points of the classical funnel, and the promises beside it."""
    joint = dirichlet(60, 60)

    def solve() -> Found:
        found = funnel(joint, time_limit=seconds)
        gap = max(point.bound - point.utility for point in found.points) / found.entropy
        return Found(f"{len(found.points)} points", gap)

    return solve


def for_population(seconds: float) -> Work:
    """Fifty thousand rows of five secrets and two hundred values, promised to the people they are a sample of."""
    p_sx = dirichlet(5, 200).p_sx
    joint = Joint.from_counts(np.random.default_rng(0).multinomial(50_000, p_sx.ravel()).reshape(p_sx.shape))
    return sought(lambda: joint, LIP(1.0).for_population(joint), seconds)


def with_a_report(seconds: float) -> Work:
    """A release of three columns, and the owner's page of it."""
    people = adult()

    def solve() -> Found:
        columns = ["education", "race", "sex"]
        effort = Effort(1e-6, seconds)
        release = sanitise(
            people,
            ReleaseSpec(
                prior="table",
                secret="occupation",
                publish=columns,
                epsilon=1.0,
                use="information",
                gap=effort.gap,
                time_limit=effort.time_limit,
            ),
        )
        page = owner_page(release, Occasion(datetime.now(UTC), "adult.csv", "a benchmark"))
        bound = release.sealed.bound
        gap = None if bound is None else (bound - release.information) / release.sealed.entropy
        return Found(f"{release.method}, I = {release.information:.3f} nats, a page of {len(page):,} characters", gap)

    return solve


def cases() -> Iterator[Case]:
    """Problems near what the program is made for, each with its limit."""
    yield Case("limit 60 secrets × 60 values", partial(sought, partial(dirichlet, 60, 60), LIP(1.0)), LIMIT)
    yield Case("limit 2,000 secrets × 30 values", partial(sought, partial(dirichlet, 2000, 30), LIP(1.0)), LIMIT)
    yield Case("limit 30 secrets × 2,000 values", partial(sought, partial(dirichlet, 30, 2000), LIP(1.0)), LIMIT)
    yield Case("limit 30 secrets × 2,000 values, Zipf", partial(sought, partial(zipf, 30, 2000, 0), LIP(1.0)), LIMIT)
    yield Case("limit 2 secrets × 5,000 values, Zipf", partial(sought, partial(zipf, 2, 5000, 0), LIP(1.0)), LIMIT)
    largest = partial(sought, partial(zipf, 10, 20_000, 0), LIP(1.0))
    yield Case("limit 10 secrets × 20,000 values, Zipf", largest, LARGEST)
    yield Case(
        "limit SRLIP at ε = 1e-3, (3, 5, 5, 4)", partial(sought, partial(dirichlet, 3, 5, 5, 4), SRLIP(1e-3)), LIMIT
    )
    for c, a in ((12, 40), (60, 60)):
        seeing = partial(sought, partial(dirichlet, c, a), LIP(1.0), sees_secret=True)
        yield Case(f"limit sees secret, {c} secrets × {a} values", seeing, LIMIT)
    yield Case("limit 10 secrets × 1,000 values, LDP", partial(sought, partial(dirichlet, 10, 1000), LDP(1.0)), LIMIT)
    yield Case("limit population, 5 secrets × 200 values", for_population, LIMIT)
    yield Case("limit statistics, 5 secrets × 1,000 values", for_statistics(5, 1000), LIMIT)
    yield Case("limit statistics, 2,000 secrets × 30 values", for_statistics(2000, 30), LIMIT)
    yield Case("limit curve of two ε, 20 secrets × 200 values", along_a_curve, LIMIT)
    yield Case("limit funnel, 60 secrets × 60 values", along_the_funnel, LIMIT)
    yield Case("limit release and report, Adult", with_a_report, LIMIT)


def main(words: list[str] | None = None) -> None:
    """A line per case."""
    printed(chosen(cases(), words or []))


if __name__ == "__main__":
    main(sys.argv[1:])
