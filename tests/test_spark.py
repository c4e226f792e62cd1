"""Rows drawn on a real Spark are those that one machine draws, however they are cut, and when tasks die."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import privacyfunnel
from privacyfunnel import LIP, spark
from privacyfunnel.errors import ColumnError, ParameterError, TableError
from privacyfunnel.laws.identified import RowKey

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
ROWS = 3000


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    """Rows whose ids do not tell their order."""
    return pl.DataFrame(
        {
            "id": [f"p{i * 7919 % ROWS}" for i in range(ROWS)],
            "job": ["nurse" if i % 7 == 0 else "clerk" if i % 3 == 0 else "none" for i in range(ROWS)],
            "town": ["01" if i % 5 == 0 or i % 7 == 0 else "Brno" if i % 2 else None for i in range(ROWS)],
            "the.age": [i * 31 % 90 for i in range(ROWS)],
            "sex": ["f" if i * i % 11 < 5 else "m" for i in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """A task may fail three times."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    quiet: dict[str, Any] = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"}
    found = SparkSession.builder.master("local[2,4]").config(map=quiet).getOrCreate()
    yield found
    found.stop()


@pytest.fixture(scope="module")
def df(session: Any, people: pl.DataFrame) -> Any:
    return session.createDataFrame(pa.table(people.to_arrow().cast(_narrow(people)))).repartition(4).cache()


def _narrow(people: pl.DataFrame) -> Any:
    texts = [(name, pa.int64() if dtype == pl.Int64 else pa.string()) for name, dtype in people.schema.items()]
    return pa.schema(texts)


def _rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


ASKED: dict[str, dict[str, Any]] = {
    "channel": {"publish": "town", "method": "optimal"},
    "values": {"publish": "town", "method": "randomised-response", "as_": "values"},
    "sets": {"publish": "town", "method": "unary-encoding"},
    "product": {"publish": ["town", "sex"], "method": "product"},
    "chain": {"publish": ["town", "the.age"], "method": "chain", "bins": {"the.age": [0, 30, 60]}},
}


@pytest.mark.parametrize("law", ASKED)
def test_spark_designs_and_draws_what_one_machine_does(law: str, df: Any, people: pl.DataFrame) -> None:
    asked: dict[str, Any] = {"secret": "job", "promise": LIP(0.7), **ASKED[law]}
    sealed = spark.design(df, **asked)
    assert sealed.to_text() == privacyfunnel.design(people, **asked).to_text()
    key = RowKey.fresh()
    here = privacyfunnel.apply(sealed, people, row_id="id", key=key, keep="id", keep_order=True)
    there = spark.apply(sealed, df, row_id="id", key=key, keep="id", keep_order=law != "channel")
    assert _rows(there) == sorted(here.table.rows())
    assert there.columns == here.table.columns


def test_cut_otherwise_and_with_workers_that_die_rows_are_the_same(df: Any, tmp_path: Path) -> None:
    sealed = spark.design(df, secret="job", publish="town", promise=LIP(0.5))
    key = RowKey.fresh()
    once = _rows(spark.apply(sealed, df, row_id="id", key=key, keep="id"))
    marks = str(tmp_path)

    def dying(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        yield from batches
        if task.partitionId() % 2 and not task.attemptNumber():
            Path(marks, f"died-{task.partitionId()}").touch()
            os._exit(9)  # after its rows went on to be drawn

    few = df.select("id", "town")
    cut = few.repartition(6).mapInArrow(dying, few.schema)
    again = spark.apply(sealed, cut, row_id="id", key=key, keep="id")
    assert _rows(again) == once
    assert len([*tmp_path.iterdir()]) >= 2
    assert _rows(spark.apply(sealed, df, row_id="id", keep="id")) != once  # with a fresh key


def test_a_release_is_the_same_every_time_it_is_looked_at_and_in_an_order_of_its_own(df: Any) -> None:
    found = spark.sanitise(df, secret="job", publish="town", promise=LIP(0.5), row_id="id", keep=["id", "the.age"])
    one, two = ([tuple(row) for row in found.table.collect()] for _ in range(2))
    assert one == two
    assert [row[-2] for row in one] != [row["id"] for row in df.collect()]
    assert found.table.schema["the.age"] == df.schema["the.age"]
    assert found.sealed.epsilon <= 0.5


def test_what_a_protocol_does_not_know_is_refused_blurred_or_dropped(df: Any, people: pl.DataFrame) -> None:
    known = people.filter(pl.col("town").ne_missing("Brno"))
    sealed = privacyfunnel.design(known, secret="job", publish="town", promise=LIP(0.5))
    strange = len(people) - len(known)
    with pytest.raises(TableError, match=f"{strange:,} of {ROWS:,} do not .{strange:,} in town"):
        spark.apply(sealed, df, row_id="id")
    for fate in ("blur", "drop"):
        key = RowKey.fresh()
        there = _rows(spark.apply(sealed, df, row_id="id", key=key, keep="id", unknown=fate))
        here = privacyfunnel.apply(sealed, people, row_id="id", key=key, keep="id", unknown=fate)
        assert there == sorted(here.table.rows())


def test_ids_and_columns_that_cannot_be_are_refused(df: Any) -> None:
    sealed = spark.design(df, secret="job", publish="town", promise=LIP(0.5))
    with pytest.raises(ColumnError, match="of 3,000 rows have an id of 'sex'"):
        spark.apply(sealed, df, row_id="sex")
    with pytest.raises(ColumnError, match=r"'town' is missing|published column cannot be the row id"):
        spark.apply(sealed, df, row_id="town")
    with pytest.raises(ColumnError, match="Did you mean"):
        spark.apply(sealed, df, row_id="idd")
    with pytest.raises(ColumnError, match="Did you mean"):
        spark.design(df, secret="jobs", publish="town", promise=LIP(0.5))
    seeing = spark.design(df, secret="job", publish="town", promise=LIP(0.5), sees_secret=True)
    with pytest.raises(ParameterError, match="looks at the secret"):
        spark.apply(seeing, df, row_id="id")
