"""Draws on a real Spark with two cores, against `mapInArrow` that hands the same columns back as they came.

python -m benchmarks cluster            10⁷ rows
python -m benchmarks.cluster 1000000    so many

Both take turns within one session, and medians of three are compared, in which the first turn hardly shows, when Java
compiles and Python imports: of seconds, and of seconds of processor, which other programs disturb less.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from privacyfunnel import LIP, SealedProtocol, apply_file, spark
from privacyfunnel import design as designed_here
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.readers.adult import write_adult_csv

ROWS = int(os.environ.get("ROWS", "10000000"))
TURNS = 3
GOAL = 1.3
SECRET, PUBLISH, FOUR = "occupation", "education", ["education", "workclass", "marital-status", "race"]
EIGHT = [*FOUR, "relationship", "sex", "native-country", "income"]  # real or synthetic
GOAL_OF_EIGHT = 1.4
TICKS = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """What some work took."""

    seconds: float
    processor: float


def large(folder: Path, rows: int) -> tuple[pl.DataFrame, Path]:
    """Adult; and Adult repeated until it has so many rows, with an id for each, in eight files."""
    write_adult_csv(folder / "adult.csv")
    adult = pl.read_csv(folder / "adult.csv", infer_schema=False).select(SECRET, *EIGHT)
    part, path = -(-rows // 8), folder / "people.parquet"
    path.mkdir()
    for i in range(8):
        mine = min(part, rows - i * part)
        copies = pl.concat([adult] * -(-mine // len(adult)))[:mine]
        copies.with_columns(pl.int_range(i * part, i * part + mine).alias("id")).write_parquet(path / f"{i}.parquet")
    return adult, path


def identity(batches: Iterator[Any]) -> Iterator[Any]:
    """Rows as they came."""
    yield from batches


def processor(root: int) -> float:
    """Seconds of processor that a process, those that it started and those that ended among them took."""
    parents, spent = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(stat.parent.name)
        parents[pid], spent[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    mine = {root}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(spent[pid] for pid in mine) / TICKS


class Cluster:
    """A session of Spark, and what work in it costs."""

    def __init__(self, folder: Path) -> None:
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        quiet: dict[str, Any] = {"spark.ui.enabled": "false", "spark.log.level": "OFF"}
        quiet |= {"spark.ui.showConsoleProgress": "false"}
        quiet |= {"spark.local.dir": str(folder), "spark.driver.memory": "4g", "spark.driver.host": "127.0.0.1"}
        self.session: Any = SparkSession.builder.master("local[2]").config(map=quiet).getOrCreate()
        gateway: Any = self.session._sc._gateway
        self._java: int = gateway.proc.pid

    def cost(self, work: Callable[[], object]) -> Cost:
        """What it took this time; what is done here counts too."""
        start, before = time.perf_counter(), processor(self._java) + time.process_time()
        work()
        return Cost(time.perf_counter() - start, processor(self._java) + time.process_time() - before)

    def compare(self, *pairs: tuple[str, Callable[[], object]]) -> None:
        """Works by name, in turn; printed with their ratios to the first."""
        costs: dict[str, list[Cost]] = {name: [] for name, _ in pairs}
        for _ in range(TURNS):
            for name, work in pairs:
                costs[name].append(self.cost(work))
        base: Cost | None = None
        for name, found in costs.items():
            median = Cost(*(statistics.median(values) for values in zip(*found, strict=True)))
            base = base or median
            print(
                f"{name:<58}{median.seconds:7.2f} s {median.seconds / base.seconds:5.2f} ×   processor "
                f"{median.processor:7.2f} s {median.processor / base.processor:5.2f} ×",
                flush=True,
            )


def nowhere(frame: Any) -> Callable[[], object]:
    """The frame evaluated, and its rows thrown away."""
    return lambda: frame.write.format("noop").mode("overwrite").save()


def main(rows: int = ROWS) -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        adult, people = large(folder, rows)
        cluster = Cluster(folder)
        df = cluster.session.read.parquet(str(people))
        print(f"{rows:,} rows, local[2]; goal: a draw ≤ {GOAL} × the identity on the same columns")
        sealed = designed_here(
            adult,
            ReleaseSpec(prior="table", secret=SECRET, publish=PUBLISH, promise=LIP(1), method="randomised-response"),
        )
        same = df.select(PUBLISH, "id")
        handed = same.mapInArrow(identity, same.schema)
        by_ids = {
            order: spark.apply(sealed, df, ReleaseSpec(row_id="id", keep_order=order)).table for order in (True, False)
        }
        cluster.compare(
            ("identity on the column and the id", nowhere(handed)),
            ("drawn by ids, in the order of the frame", nowhere(by_ids[True])),
        )
        cluster.compare(
            ("identity, put into another order by id", nowhere(handed.repartition("id").sortWithinPartitions("id"))),
            ("drawn by ids, in a random order", nowhere(by_ids[False])),
        )
        one = df.select(PUBLISH)
        copied, drawn = str(folder / "copied"), str(folder / "drawn")
        cluster.compare(
            (
                "identity on the column, written",
                lambda: one.mapInArrow(identity, one.schema).write.mode("overwrite").parquet(copied),
            ),
            (
                "drawn once without ids: counted, drawn, ordered, written",
                lambda: spark.apply(sealed, df, into=drawn, force=True),
            ),
        )
        eight_columns(cluster, adult, df)
        four_columns(cluster, folder, adult, df)
        cluster.session.stop()


def eight_columns(cluster: Cluster, adult: pl.DataFrame, df: Any) -> None:
    """Records that are real or synthetic, drawn by ids."""
    print(f"{len(EIGHT)} columns, real or synthetic records; goal {GOAL_OF_EIGHT} ×")
    same = df.select(*EIGHT, "id")
    handed = same.mapInArrow(identity, same.schema)
    labels = [SECRET, *EIGHT]
    sealed = designed_here(adult, ReleaseSpec(secret=SECRET, publish=EIGHT, promise=LIP(1), public_labels=labels))
    drawn = spark.apply(sealed, df, ReleaseSpec(row_id="id", keep_order=True)).table
    cluster.compare(
        ("identity on these columns and the id", nowhere(handed)),
        ("drawn by ids, in the order of the frame", nowhere(drawn)),
    )


def four_columns(cluster: Cluster, folder: Path, adult: pl.DataFrame, df: Any) -> None:
    """Four columns, on one machine without Spark and on Spark."""
    sealed: SealedProtocol = designed_here(
        adult,
        ReleaseSpec(
            prior="table", secret=SECRET, publish=FOUR, promise=LIP(1), method="optimal", gap=0.01, time_limit=30.0
        ),
    )
    sealed.save(folder / "protocol.json")
    here, there = folder / "here", folder / "there"
    same = df.select(*FOUR)

    def alone() -> None:
        shutil.rmtree(here, ignore_errors=True)
        apply_file(
            folder / "owner" / "protocol.json", folder / "people.parquet", replace(ReleaseSpec(), into=here, again=True)
        )

    cluster.compare(
        (f"{len(FOUR)} columns, one machine without Spark", alone),
        ("the same on Spark, once without ids", lambda: spark.apply(sealed, df, into=str(there), force=True)),
        (
            "identity on these columns, written",
            lambda: same.mapInArrow(identity, same.schema).write.mode("overwrite").parquet(str(folder / "copied")),
        ),
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
