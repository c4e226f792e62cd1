"""How fast rows are drawn, on one core, as ratios within one run.

Drawing from a sealed 16 × 16 channel (randomised response at ε = 1) is set against `numpy.take`, which only looks one
number up per row, and against two libraries of local differential privacy, which draw the same channel row by row.
The key stream is set against numpy's default generator, which is fast but not cryptographic.
"""

import importlib.util
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
from rich.console import Console
from rich.table import Table

from privacyfunnel.mechanisms.alias_tables import AliasTables, sample
from privacyfunnel.mechanisms.sampling import KeyStream

VALUES = 16
EPSILON = 1.0
ROWS = 10_000_000
ROWS_ONE_BY_ONE = 100_000


@dataclass(frozen=True, slots=True)
class Line:
    what: str
    rows: int
    seconds: float
    other: str
    other_rows: int
    other_seconds: float
    goal: str

    @property
    def rate(self) -> float:
        return self.rows / self.seconds

    @property
    def slowdown(self) -> float:
        """Our time for a row over the other's: below 1 we are faster."""
        return self.other_rows / self.other_seconds / self.rate


def best_time(job: Callable[[], object], repeats: int = 7) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def pure_ldp_client(epsilon: float, values: int) -> Any:
    """pure-ldp's client of randomised response, from its file alone: its package asks for scikit-learn as well."""
    package = importlib.util.find_spec("pure_ldp")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("pure-ldp is missing; install the extra 'bench'.")
    path = Path(package.origin).parent / "frequency_oracles" / "direct_encoding" / "de_client.py"
    spec = importlib.util.spec_from_file_location("pure_ldp_de_client", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.DEClient(epsilon, values, index_mapper=lambda value: value)


def response_rows(values: int, epsilon: float) -> list[list[tuple[int, int]]]:
    """Randomised response in integers: 1 / (e^ε + a − 1) for every other value, the rest for one's own."""
    other = int(2**64 / (math.exp(epsilon) + values - 1))
    own = (1 << 64) - (values - 1) * other
    return [[(y, own if x == y else other) for y in range(values)] for x in range(values)]


def lines() -> list[Line]:
    stream = KeyStream.generate()
    tables = AliasTables.from_rows(response_rows(VALUES, EPSILON))
    rng = np.random.default_rng(1)
    codes = rng.integers(0, VALUES, ROWS, dtype=np.int32)
    codes_64 = codes.astype(np.int64)
    labels = np.arange(VALUES, dtype=np.int32)
    few = codes[:ROWS_ONE_BY_ONE].tolist()
    client = pure_ldp_client(EPSILON, VALUES)
    GRR_Client(0, VALUES, EPSILON)  # compiles itself on its first call

    ours = best_time(lambda: sample(tables, codes, stream.rows(0, ROWS)))
    ours_64 = best_time(lambda: sample(tables, codes_64, stream.rows(0, ROWS)))
    take = best_time(lambda: np.take(labels, codes))
    take_64 = best_time(lambda: np.take(labels, codes_64))
    frequency = best_time(lambda: [GRR_Client(value, VALUES, EPSILON) for value in few], 3)
    pure = best_time(lambda: [client.privatise(value) for value in few], 3)
    words = best_time(lambda: stream.words(0, ROWS))
    generator = best_time(lambda: rng.integers(0, 2**64, ROWS, dtype=np.uint64))

    drawn = f"draw {VALUES} × {VALUES}"
    return [
        Line(f"{drawn}, int32 codes", ROWS, ours, "numpy.take", ROWS, take, "at most 4× its time"),
        Line(f"{drawn}, int64 codes", ROWS, ours_64, "numpy.take", ROWS, take_64, "at most 4× its time"),
        Line(drawn, ROWS, ours, "multi-freq-ldpy GRR_Client", len(few), frequency, "20× faster"),
        Line(drawn, ROWS, ours, "pure-ldp DEClient", len(few), pure, "20× faster"),
        Line("key stream, words", ROWS, words, "numpy default_rng", ROWS, generator, ""),
    ]


def main() -> None:
    table = Table(title="Sampling, one core")
    for heading in ("ours", "M per second", "against", "M per second", "ratio", "goal"):
        table.add_column(heading, justify="right" if heading in ("M per second", "ratio") else "left")
    for line in lines():
        ratio = line.slowdown
        table.add_row(
            line.what,
            f"{line.rate / 1e6:,.0f}",
            line.other,
            f"{line.other_rows / line.other_seconds / 1e6:,.2f}",
            f"{ratio:.1f}× its time" if ratio >= 1 else f"{1 / ratio:,.1f}× faster",
            line.goal,
        )
    Console(width=140).print(table)
    print("One word is 8 bytes. The key stream is AES-256 in counter mode; numpy's generator is not cryptographic.")


if __name__ == "__main__":
    main()
