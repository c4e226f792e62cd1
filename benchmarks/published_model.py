"""How well a published tree model describes the census data, by ε_c; and how fast it gives ratios and draws records.

Quality is the mean of five models with noise from fixed seeds: the log-loss of p̃(s | x) in nats, against p(s) alone and
against naive Bayes without noise; the mean error of a share in points; the total variation of two-way tables.

Speed is on one core, for models of the sizes of the census data and 2 or 15 secrets, and set against `numpy.take` of as
many numbers as the records have codes, which only looks them up.
"""

import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.published.measurement import CodedTable, NoisePlan, TreeMeasurement, add_noise, measure_edges
from privacyfunnel.model.published.model_quality import measure_quality
from privacyfunnel.model.published.noise import NoiseSource, OwnNoise
from privacyfunnel.model.published.tree_fit import smooth_tree
from privacyfunnel.model.published.tree_model import TreeModel
from privacyfunnel.tables.readers.adult import write_adult_csv

SIZES = (9, 16, 7, 15, 6, 5, 2, 42)
PARENTS = (3, 3, 4, None, 6, 7, 3, 1)
RECORDS = 1_000_000
COLUMNS = (8, 40, 200)
BUDGETS = tuple(map(Fraction, ("0.05", "0.1", "0.2", "0.5", "1", "10")))
SEEDS = 5


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


def code_frame(frame: pl.DataFrame, secret: str) -> CodedTable:
    """A frame as codes, one of its columns being the secret."""
    columns = {name: np.unique(frame[name].to_numpy(), return_inverse=True) for name in frame.columns}
    attributes = {name: Attribute(name, tuple(map(str, labels))) for name, (labels, _) in columns.items()}
    others = [name for name in frame.columns if name != secret]
    codes = np.column_stack([columns[name][1] for name in others])
    return CodedTable(attributes[secret], tuple(attributes[name] for name in others), columns[secret][1], codes)


def naive_bayes_loss(table: CodedTable) -> float:
    """The mean of −ln p(s | x) under independence given s; half a row is added to every cell."""
    counts = np.bincount(table.secrets, minlength=len(table.secret.labels))
    scores = np.tile(np.log(counts + 0.5), (table.rows, 1))
    for j in range(len(table.attributes)):
        cells = table.count([j], by_secret=True) + 0.5
        scores += np.log(cells / cells.sum(axis=1, keepdims=True))[:, table.codes[:, j]].T
    scores -= scores.max(axis=1, keepdims=True)
    own = scores[np.arange(table.rows), table.secrets]
    return float((np.log(np.exp(scores).sum(axis=1)) - own).mean())


def measure_tree(table: CodedTable, epsilon: Fraction, source: Callable[[Fraction], NoiseSource]) -> TreeMeasurement:
    """Measure a table whose labels are given with noise from this source."""
    plan = NoisePlan.divide(epsilon, table.rows, len(table.attributes))
    noise = source(plan.rate)
    pairs = tuple(add_noise(table.count([j], by_secret=True), noise) for j in range(len(table.attributes)))
    return measure_edges(table, pairs, plan, epsilon, source)


def fit_tree_model(table: CodedTable, epsilon: Fraction, source: Callable[[Fraction], NoiseSource]) -> TreeModel:
    """An ε_c-differentially private model of a table."""
    return smooth_tree(measure_tree(table, epsilon, source), table.secret, table.attributes)


def print_quality(frame: pl.DataFrame, secrets: tuple[str, ...]) -> None:
    table = Table(title=f"Published tree model, {len(frame):,} rows, {frame.width - 1} columns")
    for heading in (
        "secret",
        "ε_c",
        "log-loss",
        "base",
        "naive Bayes",
        "one-way, points",
        "two-way",
        "edges",
        "seconds",
    ):
        table.add_column(heading, justify="right")
    for secret in secrets:
        coded = code_frame(frame, secret)
        for epsilon in BUDGETS:
            start = time.perf_counter()
            models = [
                fit_tree_model(coded, epsilon, partial(OwnNoise, randbelow=Random(seed).randrange))
                for seed in range(SEEDS)
            ]
            seconds = (time.perf_counter() - start) / SEEDS
            found = [measure_quality(model, coded) for model in models]
            losses = [quality.log_loss for quality in found]
            table.add_row(
                secret,
                f"{float(epsilon):g}",
                f"{np.mean(losses):.4f} ± {np.std(losses):.4f}",
                f"{found[0].base:.4f}",
                f"{naive_bayes_loss(coded):.4f}",
                f"{100 * np.mean([quality.one_way for quality in found]):.3f}",
                f"{100 * np.mean([quality.two_way for quality in found]):.2f} %",
                str(sum(parent is not None for parent in models[0].parents)),
                f"{seconds:.2f}",
            )
    Console(width=140).print(table)


def print_speed() -> None:
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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.csv"
        write_adult_csv(path)
        print_quality(pl.read_csv(path), ("income", "occupation"))
    print_speed()


if __name__ == "__main__":
    main()
