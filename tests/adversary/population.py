"""Promises about a population: samples are drawn from one that is known, and protocols are judged on all of it.

With a confidence of 95 % a sample in twenty may mislead. What is stated is the bound that more samples are above than a
coin of one in twenty explains.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from tests.adversary.attacks import Attack, Setting, Verdict, refused
from tests.adversary.estimator import chance_at_least, measure
from tests.adversary.interface import read_rows, run, write_table
from tests.adversary.tables import Generator

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Population:
    """The chances of all pairs of a secret and a value, and how many rows a sample of it has."""

    chances: Floats
    sample: int
    epsilon: float = 0.5
    people: int = 60_000  # rows that stand for all of it

    def draw(self, rng: Generator) -> pl.DataFrame:
        """A sample."""
        pairs = rng.choice(self.chances.size, size=self.sample, p=self.chances.ravel() / self.chances.sum())
        return self._rows(pairs)

    def everybody(self) -> pl.DataFrame:
        """Rows in which every pair occurs as often as in the population."""
        times = np.rint(self.chances.ravel() / self.chances.sum() * self.people).astype(np.int64)
        return self._rows(np.repeat(np.arange(self.chances.size), times))

    def _rows(self, pairs: npt.NDArray[np.int64]) -> pl.DataFrame:
        s, x = np.divmod(pairs, self.chances.shape[1])
        return pl.DataFrame({"s": [f"secret {i}" for i in s], "x": [f"v{i}" for i in x]})


def typical_values() -> Population:
    """Two secrets, four values, none of them rare."""
    return Population(np.array([[30.0, 10, 5, 5], [5, 10, 15, 20]]), 1_500)


def rare_secrets() -> Population:
    """Two common secrets, forty rare ones that every sample meets, and two thousand of which it meets one in five.

    Those that were met by chance have more rows in the sample than in the population.
    """
    common = np.array([[800.0, 300, 300], [300.0, 300, 800]])
    often, seldom = np.tile([8.0, 1, 1], (40, 1)), np.tile([0.025, 0.025, 0.2], (2_000, 1))
    return Population(np.vstack([common, often, seldom]), 3_700, 0.2)


NOBODY = "nobody's secret"  # of people of whom nothing is promised
Naming = Callable[[Sequence[str], pl.DataFrame], list[str]]


def each_secret(secrets: Sequence[str], sample: pl.DataFrame) -> list[str]:
    """Every secret is promised for."""
    return list(secrets)


def pool_of_all(secrets: Sequence[str], sample: pl.DataFrame) -> list[str]:
    """All secrets but the two common ones are promised for together, whether the sample met them or not."""
    return [text if text in ("secret 0", "secret 1") else "rare" for text in secrets]


def pool_of_those_met(secrets: Sequence[str], sample: pl.DataFrame) -> list[str]:
    """Likewise, but only those of the sample are in the pool; of the others nothing is promised."""
    met = set(sample["s"])
    return [text if text in ("secret 0", "secret 1") else "rare" if text in met else NOBODY for text in secrets]


def by_samples(
    of: Callable[[], Population], words: Sequence[object], *, promise: str = "lip", naming: Naming = each_secret
) -> Attack:
    """A protocol for 95 % of the samples, measured on the whole population."""

    def attack(setting: Setting) -> Verdict:
        population, bounds, records = of(), [], 0
        epsilon, everybody, samples, views = population.epsilon, population.everybody(), 4 * setting.releases, 0
        write_table(everybody.drop("s"), setting.folder / "people.csv")
        each = setting.error / samples / 2
        for _ in range(samples):
            sample = population.draw(setting.rng)
            write_table(sample, setting.folder / "sample.csv")
            done = run(
                setting.folder,
                *("design", "--prior=table", "sample.csv", "-s", "s", "-p", "x", "-e", epsilon, "--promise", promise),
                *("--population", "95%", "--into", "design.json", "--force", "--time-limit", 5, *words),
            )
            if not done.refused:
                fixed = ("--into", "drawn.csv", "--force", "--again", "--keep-order", "--unknown", "blur")
                done = run(setting.folder, "apply", "design.json", "people.csv", *fixed)
            if done.refused:
                return refused(done.err, epsilon)
            names, shown = naming(list(everybody["s"]), sample), read_rows(setting.folder / "drawn.csv").rows()
            leak = measure(names, shown, promise=promise, error=each, unprotected=NOBODY)
            bounds.append(leak.lower)
            views, records = max(views, leak.views), records + leak.records
        enough = next((k for k in range(1, samples + 1) if chance_at_least(k, samples, 0.05) <= setting.error / 2), 0)
        lower = sorted(bounds, reverse=True)[enough - 1] if enough else 0.0
        above = sum(bound > epsilon for bound in bounds)
        found = f"{above} of {samples} samples above, the largest {max(bounds):.3f}"
        return Verdict(
            samples,
            views,
            records,
            lower,
            epsilon,
            found,
        )

    return attack
