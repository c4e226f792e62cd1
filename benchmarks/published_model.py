"""How fast a published tree model gives ratios and draws records, on one core, as ratios within one run.

The model has 8 columns of the sizes of the census data and 2 or 15 secrets. Both are set against `numpy.take` of as
many numbers as the records have codes, which only looks them up.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.published.tree_model import TreeModel

SIZES = (9, 16, 7, 15, 6, 5, 2, 42)
PARENTS = (3, 3, 4, None, 6, 7, 3, 1)
RECORDS = 1_000_000
COLUMNS = (8, 40, 200)


def best_time(job: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def make_model(c: int, m: int, rng: np.random.Generator) -> TreeModel:
    """A model of the census columns, repeated until there are m."""
    sizes = [SIZES[j % 8] for j in range(m)]
    parents: list[int | None] = []
    for j in range(m):
        parent = PARENTS[j % 8]
        parents.append(None if parent is None else j - j % 8 + parent)
    contexts = [1 if parent is None else sizes[parent] for parent in parents]
    tables = [rng.dirichlet(np.ones(k), (c, rows)) for k, rows in zip(sizes, contexts, strict=True)]
    attributes = [Attribute(f"x{j}", tuple(map(str, range(k)))) for j, k in enumerate(sizes)]
    return TreeModel.from_weights(
        Attribute("s", tuple(map(str, range(c)))), attributes, rng.dirichlet(np.ones(c)), parents, tables
    )


def main() -> None:
    table = Table(title="Published tree model, one core")
    for heading in ("secrets", "columns", "job", "records per second", "against numpy.take"):
        table.add_column(heading, justify="right")
    rng = np.random.default_rng(0)
    for c in (2, 15):
        for m in COLUMNS:
            model, n = make_model(c, m, rng), RECORDS * 8 // m
            words = rng.integers(0, 2**64, (model.words_per_record, n), dtype=np.uint64)
            codes = model.sample(words)
            labels = np.arange(64, dtype=np.int32)
            take = best_time(partial(np.take, labels, codes))
            for name, job in (("ratios", partial(model.ratios, codes)), ("sample", partial(model.sample, words))):
                seconds = best_time(job)
                table.add_row(str(c), str(m), name, f"{n / seconds:,.0f}", f"{seconds / take:.1f}× its time")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
