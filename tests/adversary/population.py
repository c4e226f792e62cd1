"""Promises about a population: samples are drawn from one that is known, and protocols are judged on all of it.

A protocol file states the chances of every output, so that what leaks in the population is computed and not estimated.
With a confidence of 95 % a sample in twenty may mislead: a case is broken if more samples are above ε than a coin of
one in twenty explains.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from tests.adversary.attacks import Attack, Setting, Verdict, refused
from tests.adversary.estimator import chance_at_least
from tests.adversary.interface import run, write_table
from tests.adversary.tables import Generator

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
FEWEST = 4  # rows of a value that is not merged
OTHER = "other"  # what rare values are merged into


@dataclass(frozen=True, slots=True)
class Population:
    """The weights of all pairs of a secret and a value, and how many rows a sample of it has."""

    weights: Floats
    sample: int
    epsilon: float = 0.5

    def draw(self, rng: Generator) -> pl.DataFrame:
        """A sample."""
        pairs = rng.choice(self.weights.size, size=self.sample, p=self.weights.ravel() / self.weights.sum())
        s, x = np.divmod(pairs, self.weights.shape[1])
        return pl.DataFrame({"s": [f"secret {i}" for i in s], "x": [f"v{i}" for i in x]})

    def leak(self, channel: Floats, groups: Sequence[Bools], promise: str) -> float:
        """What a channel leaks about groups of secrets: LIP against everybody, LDP against each other."""
        everybody = self.weights.sum(axis=0) / self.weights.sum() @ channel
        told = [some.sum(axis=0) / some.sum() @ channel for some in (self.weights[group] for group in groups)]
        against = [everybody] if promise == "lip" else told
        return max(float(np.abs(np.log(one / other)).max()) for one in told for other in against)


def typical_values() -> Population:
    """Two secrets, four values, none of them rare."""
    return Population(np.array([[30.0, 10, 5, 5], [5, 10, 15, 20]]), 1_500)


def rare_secrets() -> Population:
    """Two common secrets, a rare one that every sample meets, and 100,000 of which a sample meets one in five hundred.

    Of these 200 have a row in a sample of 2,000, twice as many as the rare one has rows. In the population the rare one
    has nearly all people of those secrets that were met, and one value: what a sample says of them together is not so.
    """
    values, often, seldom = 6, 100.0, 100_000
    others = np.eye(values)[1 + np.arange(seldom) % (values - 1)] * 2 * often / seldom
    return Population(np.vstack([np.full((2, values), 850 / values), [often, *[0.0] * (values - 1)], others]), 2_000)


def values_near_the_limit() -> Population:
    """Hundreds of values of one secret that a sample has three rows of on average, and thousands of the other.

    Where values of fewer than four rows are merged, one of these is where the sample happens to have few rows of it:
    the first secret's share of what is merged is smaller in the sample than in the population. The other's values are
    so rare that nearly all are merged, as they are where the sample has none of them.
    """
    first = np.r_[np.full(400, 3.0), np.zeros(2_000), 150.0, 150.0]
    second = np.r_[np.zeros(400), np.full(2_000, 0.3), 1_500.0, 1_500.0]
    return Population(np.vstack([first, second]), 5_100, 0.3)


Grouping = Callable[[Population, pl.DataFrame], list[Bools]]


def each_secret(population: Population, sample: pl.DataFrame) -> list[Bools]:
    """Every secret is promised for."""
    return list(np.eye(len(population.weights), dtype=bool))


def pool_of_all(population: Population, sample: pl.DataFrame) -> list[Bools]:
    """All secrets but the two common ones are promised for together, whether the sample met them or not."""
    number = np.arange(len(population.weights))
    return [number == 0, number == 1, number > 1]


def pool_of_those_met(population: Population, sample: pl.DataFrame) -> list[Bools]:
    """Likewise, but only those of the sample are in the pool; of the others nothing is promised."""
    first, second, rare = pool_of_all(population, sample)
    met = np.zeros(len(rare), dtype=bool)
    met[[int(text.removeprefix("secret ")) for text in set(sample["s"])]] = True
    return [first, second, rare & met]


def read_channel(path: Path, values: int) -> Floats:
    """The chances of all outputs for each value of the population, from a protocol file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    labels, law = content["publish"][0]["labels"], content["law"]
    rows = np.zeros((len(law["rows"]), len(law["outputs"])))
    for row, pairs in zip(rows, law["rows"], strict=True):
        for y, numerator in pairs:
            row[y] = int(numerator) / 2.0 ** law["bits"]
    place = {label: x for x, label in enumerate(labels)}
    anything_else = place.get(OTHER, len(rows) - 1)
    return rows[[place.get(f"v{x}", anything_else) for x in range(values)]]


def by_samples(
    of: Callable[[], Population], words: Sequence[object], *, promise: str = "lip", grouping: Grouping = each_secret
) -> Attack:
    """A protocol for 95 % of the samples, judged on the whole population."""

    def attack(setting: Setting) -> Verdict:
        population, samples = of(), 4 * setting.releases
        epsilon, leaks = population.epsilon, []
        for _ in range(samples):
            sample = population.draw(setting.rng)
            write_table(sample, setting.folder / "sample.csv")
            done = run(
                setting.folder,
                *(
                    "design",
                    "sample.csv",
                    "--prior",
                    "table",
                    "-s",
                    "s",
                    "-p",
                    "x",
                    "-e",
                    epsilon,
                    "--promise",
                    promise,
                ),
                *("--population", "95%", "--into", "design.json", "--force", "--time-limit", 0.3, *words),
            )
            if done.refused:
                return refused(done.err, epsilon)
            channel = read_channel(setting.folder / "design.json", population.weights.shape[1])
            leaks.append(population.leak(channel, grouping(population, sample), promise))
        leaks.sort(reverse=True)
        enough = next((k for k in range(1, samples + 1) if chance_at_least(k, samples, 0.05) <= setting.error), 0)
        lower = leaks[enough - 1] if enough else 0.0
        found = f"{sum(leak > epsilon for leak in leaks)} of {samples} samples above, the largest {leaks[0]:.3f}"
        return Verdict(samples, channel.shape[1], samples * population.sample, lower, epsilon, found)

    return attack
