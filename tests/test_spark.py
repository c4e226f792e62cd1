"""Rows drawn on a real Spark are those that one machine draws, however they are cut, and when tasks die."""

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import privacyfunnel
from privacyfunnel import LIP, spark
from privacyfunnel.cli.application import main
from privacyfunnel.cli.spark_commands import PROGRAM_NAME, commands
from privacyfunnel.errors import ColumnError, GuaranteeError, LedgerError, OutputError, ParameterError, TableError
from privacyfunnel.mechanisms.sampling import RowKey
from privacyfunnel.release.ledger.ledger_file import FINISHED, SHARED, Ledger
from privacyfunnel.spark.counting import check_ids
from privacyfunnel.spark.output_folder import check_attempts
from privacyfunnel.spec import ReleaseSpec

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
ROWS = 3000
# Java compiles little and Spark compiles nothing: no query here is worth it.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUICK: dict[str, Any] = {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.driver.host": "127.0.0.1",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.port": "0",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.broadcast.UDFCompressionThreshold": "2k",  # from which on Spark writes what it sends to disk
}


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
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that Spark writes by itself."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def session(disk: Path) -> Iterator[Any]:
    """A task may fail once."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    where = {"spark.local.dir": str(disk), "spark.eventLog.dir": disk.as_uri()}
    found = SparkSession.builder.master("local[2,2]").config(map={**QUICK, **where}).getOrCreate()
    yield found
    found.stop()


@pytest.fixture(scope="module")
def df(session: Any, people: pl.DataFrame) -> Any:
    return session.createDataFrame(_arrow(people)).repartition(3).cache()


def _arrow(people: pl.DataFrame) -> Any:
    texts = [(name, pa.int64() if dtype == pl.Int64 else pa.string()) for name, dtype in people.schema.items()]
    return pa.table(people.to_arrow().cast(pa.schema(texts)))


def _rows(found: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in found.table.collect())


class Dying:
    """Rows that pass, and a process that dies when the last ones have gone on, at first, in every other partition."""

    def __init__(self, marks: Path) -> None:
        self.marks = str(marks)

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        yield from batches
        if task.partitionId() % 2 and not task.attemptNumber():
            Path(self.marks, f"died-{task.taskAttemptId()}").touch()
            os._exit(9)


BINS = {"the.age": [0, 30, 60]}
ASKED: dict[str, dict[str, Any]] = {
    "channel": {"publish": "town", "method": "optimal", "prior": "table"},
    "published model": {"publish": "town", "promise": LIP(2.0)},
    "values": {"publish": "town", "method": "randomised-response", "as_": "values"},
    "records": {"publish": ["town", "the.age", "sex"], "bins": BINS, "prior": "model", "promise": LIP(8), "seed": 1},
    "two columns": {"prior": "table", "publish": ["town", "the.age"], "method": "optimal", "bins": BINS},
}


@pytest.mark.parametrize("law", ASKED)
def test_spark_designs_and_draws_what_one_machine_does(law: str, df: Any, people: pl.DataFrame) -> None:
    asked: dict[str, Any] = {"secret": "job", "promise": LIP(0.7), "seed": 3, **ASKED[law]}
    sealed = spark.design(df, ReleaseSpec(**asked))
    assert sealed.to_text() == privacyfunnel.design(people, ReleaseSpec(**asked)).to_text()
    key = RowKey.generate()
    drawn = ReleaseSpec(row_id="id", key_file=key, keep="id", accept_kept=True, keep_order=True)
    here = privacyfunnel.apply(sealed, people, drawn)
    there = spark.apply(sealed, df, replace(drawn, keep_order=law != "channel"))
    assert _rows(there) == sorted(here.table.rows())
    assert there.table.columns == here.table.columns
    assert (there.rows, there.measured, there.dropped) == (here.rows, here.measured, here.dropped)


@pytest.fixture(scope="module")
def sealed(people: pl.DataFrame) -> Any:
    return privacyfunnel.design(people, prior="table", secret="job", publish="town", promise=LIP(0.5))


def test_cut_otherwise_and_with_workers_that_die_rows_are_the_same(
    df: Any, sealed: Any, people: pl.DataFrame, tmp_path: Path
) -> None:
    key = RowKey.generate()
    few = df.select("id", "town")
    cut = few.repartition(2).mapInArrow(Dying(tmp_path), few.schema)
    again = spark.apply(sealed, cut, ReleaseSpec(row_id="id", key_file=key, keep="id", accept_kept=True))
    counted = len([*tmp_path.iterdir()])
    once = privacyfunnel.apply(
        sealed, people, ReleaseSpec(row_id="id", key_file=key, keep="id", accept_kept=True)
    ).table.rows()
    assert _rows(again) == sorted(once)
    assert len([*tmp_path.iterdir()]) > counted > 0
    assert _rows(spark.apply(sealed, df, ReleaseSpec(row_id="id", keep="id", accept_kept=True))) != sorted(
        once
    )  # with a fresh key


def test_ids_that_spark_holds_as_floats_are_the_same_people(df: Any, sealed: Any, people: pl.DataFrame) -> None:
    key = RowKey.generate()
    asked = ReleaseSpec(row_id="id", key_file=key, keep="id", accept_kept=True)
    once = privacyfunnel.apply(sealed, people.with_columns(pl.col("id").str.slice(1).cast(int)), asked).table.rows()
    floats = df.selectExpr("cast(substr(id, 2) as double) as id", "town")
    assert _rows(spark.apply(sealed, floats, asked)) == sorted(once)
    with pytest.raises(ColumnError, match=f"small enough to be exact; {ROWS:,} of {ROWS:,} in 'id' are not"):
        spark.apply(sealed, floats.selectExpr("id + 0.5 as id", "town"), row_id="id")


def test_a_release_is_the_same_every_time_it_is_looked_at_and_in_an_order_of_its_own(df: Any) -> None:
    found = spark.sanitise(
        df,
        ReleaseSpec(
            prior="table",
            secret="job",
            publish="town",
            promise=LIP(0.5),
            row_id="id",
            keep=["id", "the.age"],
            accept_kept=True,
        ),
    )
    one, two = ([tuple(row) for row in found.table.collect()] for _ in range(2))
    assert one == two
    assert [row[-2] for row in one] != [row["id"] for row in df.collect()]
    assert found.table.schema["the.age"] == df.schema["the.age"]
    assert found.sealed.epsilon <= 0.5


def test_without_ids_every_row_is_published_once_though_workers_die(
    df: Any, sealed: Any, people: pl.DataFrame, tmp_path: Path
) -> None:
    marks, out = tmp_path / "marks", tmp_path / "out"
    marks.mkdir()
    few = df.select("id", "town")
    cut = few.repartition(2).mapInArrow(Dying(marks), few.schema)
    first = spark.apply(sealed, cut, ReleaseSpec(keep="id", accept_kept=True), into=str(out / "rows"))
    assert first.table == str(out / "rows")
    assert [*marks.iterdir()]
    assert [path.name for path in out.iterdir()] == ["rows"]
    rows = pl.read_parquet(out / "rows" / "*.parquet")
    assert rows.columns == [*privacyfunnel.apply(sealed, people).table.columns, "id"]
    assert sorted(rows["id"]) == sorted(people["id"])
    again = spark.apply(sealed, df, ReleaseSpec(keep="id", accept_kept=True), into=str(out / "rows"), force=True)
    assert again.table == str(out / "rows")
    assert [path.name for path in out.iterdir()] == ["rows"]
    assert not pl.read_parquet(out / "rows" / "*.parquet").sort("id").equals(rows.sort("id"))


def test_without_ids_rows_are_drawn_as_the_protocol_says_and_keep_their_order_if_asked(
    df: Any, people: pl.DataFrame, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {"prior": "table", "secret": "job", "publish": "town", "promise": LIP(0.5)}
    asked |= {"keep": "id", "accept_kept": True}
    found = spark.sanitise(df, ReleaseSpec(**asked, keep_order=True), into=str(tmp_path / "rows"), file_format="csv")
    found.sealed.save(tmp_path / "protocol.json")
    order = [row["id"] for row in df.collect()]
    rows = pl.concat(map(pl.read_csv, sorted((tmp_path / "rows").glob("*.csv"))))
    assert rows["id"].to_list() == order
    pl.DataFrame({"id": order}).join(people, on="id", maintain_order="left").write_parquet(tmp_path / "people.parquet")
    files = [tmp_path / name for name in ("protocol.json", "people.parquet")]
    with pytest.raises(GuaranteeError, match="must hold for all that is published of a record"):
        privacyfunnel.audit(*files, secret=["job"], sanitised=tmp_path / "rows", keep_order=True, keep=["id"])
    rows.drop("id").write_csv(tmp_path / "outputs.csv")
    audit = privacyfunnel.audit(*files, secret=["job"], sanitised=tmp_path / "outputs.csv", keep_order=True)
    assert audit.draw is not None  # with a chance of 1e-6 a true draw is refused
    assert audit.draw.paired


def test_two_attempts_at_a_task_or_a_changed_table_are_never_published() -> None:
    with pytest.raises(GuaranteeError, match="of 1 tasks two did"):
        check_attempts(np.array([0, 1, 1]), np.array([4, 8, 9]), np.array([3, 2, 1]), 6)
    with pytest.raises(TableError, match="6 rows were counted and 5 drawn"):
        check_attempts(np.array([0, 1]), np.array([4, 8]), np.array([3, 2]), 6)


def test_a_job_that_fails_or_has_no_place_leaves_nothing(df: Any, sealed: Any, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    into = str(tmp_path / "rows")
    with pytest.raises(PySparkException):  # CSV has no place for a list, which is seen when rows are drawn already
        spark.apply(sealed, df.selectExpr("town", "array(id) as ids"), keep="ids", into=into, file_format="csv")
    assert not [*tmp_path.iterdir()]
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="is there already"):
        spark.apply(sealed, df, into=str(tmp_path / "file"))
    with pytest.raises(OutputError, match="a folder that Spark can write"):
        spark.apply(sealed, df, into=str(tmp_path / "file" / "rows"))
    with pytest.raises(ParameterError, match="one of parquet, csv"):
        spark.apply(sealed, df, into=into, file_format="xls")
    with pytest.raises(ParameterError, match="drawn once, into files"):
        spark.apply(sealed, df)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_a_protocol_does_not_know_is_refused_blurred_or_dropped(
    df: Any, people: pl.DataFrame, tmp_path: Path
) -> None:
    known = people.filter(pl.col("town").ne_missing("Brno"))
    sealed = privacyfunnel.design(known, prior="table", secret="job", publish="town", promise=LIP(0.5))
    strange = len(people) - len(known)
    with pytest.raises(TableError, match=f"{strange:,} of {ROWS:,} have others .{strange:,} in town"):
        spark.apply(sealed, df, row_id="id")
    for fate in ("blur", "drop"):
        key = RowKey.generate()
        drawn = ReleaseSpec(row_id="id", key_file=key, keep="id", accept_kept=True, unknown=fate)
        for apply, rows in ((spark.apply, df), (privacyfunnel.apply, people)):
            with pytest.raises(GuaranteeError, match=r"must hold on these rows; there the protocol leaks"):
                apply(sealed, rows, drawn)
        drawn = replace(drawn, accept_drift=True)
        there, here = _rows(spark.apply(sealed, df, drawn)), privacyfunnel.apply(sealed, people, drawn)
        assert there == sorted(here.table.rows())
    spark.apply(sealed, df, ReleaseSpec(unknown="drop", accept_drift=True), into=str(tmp_path / "rows"))
    assert (tmp_path / "rows" / "_notice.txt").read_text() == f"{here.notice}\n"
    with pytest.raises(TableError, match=f"knows none of {strange:,}"):
        spark.apply(sealed, df.where("town = 'Brno'"), row_id="id", unknown="drop")


def test_ids_and_columns_that_cannot_be_are_refused(df: Any, sealed: Any, people: pl.DataFrame) -> None:
    with pytest.raises(ColumnError, match="of 3,000 rows have an id of 'sex'"):
        spark.apply(sealed, df, row_id="sex")
    with pytest.raises(ColumnError, match="'home' is missing in"):
        spark.apply(sealed, df.withColumn("home", df["town"]), row_id="home")
    with pytest.raises(ColumnError, match="a row id has at most 256 bytes; 3,000 of 'long' have more"):
        spark.apply(sealed, df.selectExpr("*", "repeat(id, 200) as long"), row_id="long")
    with pytest.raises(ColumnError, match="'town' cannot identify rows and be secret or published"):
        spark.apply(sealed, df, row_id="town")
    with pytest.raises(ColumnError, match="'job' cannot be kept as it is and be secret or published"):
        spark.apply(sealed, df, row_id="id", keep="job")
    with pytest.raises(ColumnError, match="Did you mean"):
        spark.apply(sealed, df, row_id="idd")
    with pytest.raises(ColumnError, match="Did you mean"):
        spark.design(df, prior="table", secret="jobs", publish="town", promise=LIP(0.5))
    seeing = privacyfunnel.design(
        people, ReleaseSpec(prior="table", secret="job", publish="town", promise=LIP(0.5), sees_secret=True)
    )
    with pytest.raises(ParameterError, match="looks at the secret"):
        spark.apply(seeing, df, row_id="id")


def test_nobody_else_can_enter_the_folders_where_a_local_spark_keeps_counts_of_secrets(df: Any, disk: Path) -> None:
    blocks = list(disk.glob("**/blockmgr-*"))
    assert blocks
    for ask in (
        lambda: spark.design(df, prior="table", secret="job", publish="town", promise=LIP(0.5)),
        lambda: check_ids(df, "id"),
    ):
        for folder in blocks:
            folder.chmod(0o755)
        ask()
        assert {folder.stat().st_mode & 0o777 for folder in blocks} == {0o700}


def test_a_key_is_in_no_plan_log_setting_or_file(df: Any, disk: Path, people: pl.DataFrame) -> None:
    asked: dict[str, Any] = {"prior": "table", "secret": "job", "promise": LIP(0.7), **ASKED["two columns"]}
    large = privacyfunnel.design(people, ReleaseSpec(**asked | {"bins": {"the.age": [0, 15, 30, 45, 60, 75]}}))
    assert len(large.to_text()) > 2048
    key = RowKey.generate()
    drawn = spark.apply(large, df, ReleaseSpec(row_id="id", key_file=key, accept_drift=True)).table
    drawn.collect()
    words = key.derive_words(large.digest, "id")
    told = drawn._jdf.queryExecution().toString() + repr(df.sparkSession.sparkContext.getConf().getAll())
    written = [path for path in disk.rglob("*") if path.is_file()]
    assert any("events" in path.name for path in written)
    assert any("Job" in path.read_text("utf-8", "replace") for path in written if "events" in path.name)
    for secret in (key._key, words._tag_key, words._word_key):
        forms = [secret, secret.hex().encode(), base64.b64encode(secret)[:40], repr(secret)[2:-1].encode()]
        assert not [form for form in forms if form in told.encode()]
        assert not [path for path in written for form in forms if form in path.read_bytes()]


def test_over_spark_connect_rows_are_the_same(
    session: Any, sealed: Any, people: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.connect.session import SparkSession

    service = getattr(session._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    remote = SparkSession.builder.remote(f"sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}").create()
    df = remote.createDataFrame(_arrow(people))
    assert spark.design(df, prior="table", secret="job", publish="town", promise=LIP(0.5)).to_text() == sealed.to_text()
    key = RowKey.generate()
    here = privacyfunnel.apply(sealed, people, ReleaseSpec(row_id="id", key_file=key, keep="id", accept_kept=True))
    there = spark.apply(sealed, df, ReleaseSpec(row_id="id", key_file=key, keep="id", accept_kept=True))
    assert _rows(there) == sorted(here.table.rows())
    with pytest.raises(ParameterError, match="Over Spark Connect"):
        spark.apply(sealed, df, into=str(tmp_path / "rows"))
    remote.stop()


ASKED_FOR = ["--secret", "job", "--publish", "town", "--epsilon", 0.5]


@pytest.fixture
def told(session: Any, capsys: pytest.CaptureFixture[str]) -> Any:
    """`python -m privacyfunnel.spark WORDS …` in this session: its exit code, what it printed and complained of."""

    def run(*asked: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(word) for word in asked], commands, PROGRAM_NAME)
        return (code, *capsys.readouterr())

    return run


def test_the_command_designs_applies_and_sanitises(told: Any, people: pl.DataFrame, tmp_path: Path) -> None:
    table, out, protocol = tmp_path / "people.parquet", tmp_path / "out", tmp_path / "protocol.json"
    people.write_parquet(table)
    asked = ASKED_FOR
    code, said, _ = told("design", "--prior=table", table, *asked, "--into", protocol)
    assert code == 0
    assert "designed on 3,000 rows, nothing was drawn" in said
    assert "Next       python -m privacyfunnel.spark apply" in said
    key = RowKey.generate()
    key.save(tmp_path / "key")
    ids = ["--row-id", "id", "--key-file", tmp_path / "key", "--keep", "id", "--accept-kept", "--format", "csv"]
    code, said, _ = told("apply", protocol, table, *ids, "--details", "--into", tmp_path / "rows")
    assert code == 0
    assert "drawn as before" in said
    here = privacyfunnel.apply(
        protocol, people, ReleaseSpec(row_id="id", key_file=key, keep="id", accept_kept=True)
    ).table
    assert pl.read_csv(tmp_path / "rows" / "*.csv", infer_schema=False).sort("id").equals(here.sort("id"))
    code, said, _ = told(
        "sanitise", "--prior=table", "--query", f"select * from parquet.`{table}`", *asked, "--into", out, "--json"
    )
    assert code == 0
    assert json.loads(said)["rows"] == ROWS
    assert [path.name for path in (out / "public").iterdir()] == ["sanitised.parquet"]
    assert sorted(path.name for path in (out / "owner").iterdir()) == ["codebook.csv", "protocol.json"]
    assert (out / "owner").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (out / "owner").iterdir()} == {0o600}
    assert privacyfunnel.estimate(out, out / "public" / "sanitised.parquet").table("town").rows == ROWS


def test_one_ledger_knows_the_rows_of_spark_and_of_one_machine(
    told: Any, df: Any, people: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, one, elsewhere = tmp_path / "people.parquet", tmp_path / "one", tmp_path / "elsewhere.csv"
    people.write_parquet(table)
    people.reverse().write_csv(elsewhere)
    monkeypatch.setenv(SHARED, str(tmp_path / "ledger.json"))
    asked = ["--secret", "job", "--publish", "town,sex", "--epsilon", 0.5, "--prior", "table"]
    assert told("sanitise", table, *asked, "--into", one)[0] == 0
    for words in (["sanitise", table, *asked], ["apply", one / "owner" / "protocol.json", table]):
        code, _, complaint = told(*words, "--into", tmp_path / "two")
        assert (code, "LedgerError: These rows were released before" in complaint) == (2, True)
    spec = ReleaseSpec(secret="job", publish="town", epsilon=0.5, prior="table", into=tmp_path / "two")
    with pytest.raises(LedgerError, match="were released before"):  # neither name nor order of rows tells
        privacyfunnel.sanitise_file(elsewhere, spec)
    with pytest.raises(LedgerError, match="were released before"):
        spark.apply(one / "owner" / "protocol.json", df, into=str(tmp_path / "two"))
    assert not (tmp_path / "two").exists()
    assert [entry.state for entry in Ledger(tmp_path / "ledger.json").entries()] == [FINISHED]


def test_the_command_is_refused_in_one_sentence_and_writes_nothing(
    told: Any, sealed: Any, people: pl.DataFrame, tmp_path: Path
) -> None:
    table, protocol = tmp_path / "people.csv", tmp_path / "protocol.json"
    people.write_csv(table)
    sealed.save(protocol)
    into = ["--into", tmp_path / "rows"]
    (tmp_path / "ragged.csv").write_text("town,id\nBrno,1,2,3\n")
    asked, keyed = ["--prior=table", *ASKED_FOR], ["--row-id", "id", "--key-file", protocol]
    for words, sentence in (
        (["apply", protocol, tmp_path / "none.csv", *into], "TableError: .* Spark says PATH_NOT_FOUND"),
        (["apply", protocol, "no_such_table", *into], "TableError: .* Spark says TABLE_OR_VIEW_NOT_FOUND"),
        (["apply", protocol, tmp_path / "ragged.csv", *into], "TableError: .* Spark says "),
        (["apply", protocol, "--query", "select town frm x", *into], "TableError: .* Spark says PARSE_SYNTAX_ERROR"),
        (["apply", protocol, *into], "ParameterError: Rows come from a table or from a query"),
        (["apply", protocol, table, *into, "--key-file", protocol], "ParameterError: --key-file needs --row-id"),
        (["apply", protocol, table, *into, *keyed], "ParameterError: .* must hold a key for rows"),
        (["apply", protocol, table, "--into", protocol], "OutputError: .* is there already"),
        (["apply", protocol, table, *into, "--row-id", "sex"], "ColumnError: a row id must tell"),
        (["apply", table, table, *into], "ProtocolFileError"),
        (["sanitise", table, *asked, "--bin", "the.age=quantiles:4", *into], "ColumnError|ParameterError"),
        (["sanitise", table, "--secret", "job", "--publish", "twn", "--epsilon", 1, *into], "Did you mean 'town'"),
        (["design", table, *asked, "--into", protocol.parent / "protocol"], "OutputError: a protocol file must be"),
    ):
        code, said, complaint = told(*words)
        assert (code, said) == (2, ""), complaint
        assert re.search(sentence, complaint), complaint
        assert complaint.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "protocol.json", "ragged.csv"]


def test_the_command_has_a_door_of_its_own() -> None:
    command = [sys.executable, "-m", "privacyfunnel.spark", "apply", "none.json", "none.csv", "--into", "none"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("ProtocolFileError: ")
