"""The Spark session of a command: tables by name, and Spark errors as one sentence."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from privacyfunnel.errors import ParameterError, TableError
from privacyfunnel.hints import hint

READS = {"parquet": "parquet", "csv": "csv", "tsv": "csv", "orc": "orc", "json": "json", "jsonl": "json"}


@contextmanager
def open_session() -> Iterator[Any]:
    """The session that spark-submit or the environment says; it ends with the command, unless it was there before.

    Raises
    ------
    TableError
        If Spark cannot do what it is asked. What its own message says is not repeated, for it may quote rows.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise ParameterError(
            'Spark needs the extra "spark"; it is not installed. Run pip install ".[spark]".'
        ) from None
    from py4j.protocol import Py4JError

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # an interpreter that has this package
    before = session = None
    try:
        before = SparkSession.getActiveSession()
        session = SparkSession.builder.appName("privacyfunnel").getOrCreate()
        yield session
    except (PySparkException, Py4JError) as error:
        raise TableError(
            f"The job failed; Spark says {_condition(error)}. Nothing was published. Repair the table or the cluster; "
            "Spark's logs have the details."
        ) from error
    finally:
        if session is not None and before is None:
            with suppress(PySparkException, Py4JError, OSError):
                session.stop()


def _condition(error: Any) -> str:
    """What Spark calls what went wrong."""
    condition = getattr(error, "getCondition", lambda: None)()
    java = getattr(error, "java_exception", None)
    return condition or (type(error).__name__ if java is None else java.getClass().getSimpleName())


def read_table(session: Any, name: str | None, query: str | None, delimiter: str | None) -> Any:
    """The rows of a query, or of files by the end of their name, or of a table that the session knows.

    Columns of text files are read as text, as they are on one machine.
    """
    if query is not None and name is None:
        return session.sql(query)
    if query is not None or name is None:
        raise ParameterError(f"Rows come from a table or from a query. Name a table, or use {hint('query')}, not both.")
    kind = name.rstrip("/").lower().removesuffix(".gz").rpartition(".")[2]
    if kind not in READS:
        return session.table(name)
    reading = session.read.format(READS[kind])
    if READS[kind] == "csv":
        separator = delimiter or ("\t" if kind == "tsv" else ",")
        # A line break within quotes is no end of a row, and a quote there is written twice.
        how = {"header": True, "sep": separator, "escape": '"', "multiLine": True, "mode": "FAILFAST"}
        reading = reading.options(**how)
    return reading.load(name)
