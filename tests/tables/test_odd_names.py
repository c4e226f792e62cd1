"""Columns with names that mean something elsewhere: they are names here and nothing else."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privacyfunnel import LIP
from privacyfunnel.audits.protocol_audit import audit
from privacyfunnel.errors import TableError
from privacyfunnel.estimation import estimate, impute, posterior
from privacyfunnel.release.sanitise import sanitise, sanitise_file
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.readers.column_selection import require_columns
from privacyfunnel.tables.readers.table_files import open_table, write_table
from tests.commands import run

PATTERNS = ["*", "^.*$", "^o.*$", "a.b", " ", "^(?i)OTHER$"]
OURS = ["y", "row", "member", "position", "count", "index", "len", "#", "rows", "0", "1", "value", "literal"]
FILES = [".csv", ".csv.gz", ".parquet", ".arrow"]


def people(odd: str) -> pl.DataFrame:
    """A secret, an ordinary column, and one with an odd name; all of them different."""
    rng = np.random.default_rng(5)
    secret = rng.integers(0, 2, 400)
    return pl.DataFrame(
        {
            "other": [f"secret {s}" for s in secret],
            odd: [f"odd {(s + k) % 3}" for s, k in zip(secret, rng.integers(0, 2, 400), strict=True)],
            "plain": [f"plain {k}" for k in rng.integers(0, 3, 400)],
        }
    )


def content(path: Path) -> pl.DataFrame:
    table = open_table(path)
    return pl.concat(table.batches(table.columns))


def names(native: Any) -> list[str]:
    return list(native.column_names if isinstance(native, pa.Table) else native.columns)


def order(secret: str, *publish: str, keep: tuple[str, ...] = (), method: str = "randomised-response") -> ReleaseSpec:
    return ReleaseSpec(
        prior="table",
        secret=(secret,),
        publish=publish,
        promise=LIP(1),
        method=method,
        keep=keep,
        accept_kept=True,
        seed=1,
        keep_order=True,
    )


@pytest.mark.parametrize("suffix", FILES)
@pytest.mark.parametrize("odd", [*PATTERNS, ""])
def test_a_column_named_like_a_pattern_is_read_alone(tmp_path: Path, odd: str, suffix: str) -> None:
    frame, path = people(odd), tmp_path / f"people{suffix}"
    write_table(path, [frame])
    for columns in ([odd], ["plain", odd], [odd, "other"]):
        read = pl.concat(open_table(path).batches(columns))
        assert read.columns == columns
        for column in columns:
            assert read[column].to_list() == frame[column].to_list()


@pytest.mark.parametrize("suffix", FILES)
@pytest.mark.parametrize("odd", PATTERNS)
def test_a_kept_column_named_like_a_pattern_never_brings_the_secret_along(
    tmp_path: Path, odd: str, suffix: str
) -> None:
    frame, path = people(odd), tmp_path / f"people{suffix}"
    write_table(path, [frame])
    sanitise_file(path, replace(order("other", "plain", keep=(odd,)), into=tmp_path / "out"))
    shown = content(tmp_path / "out" / "public" / f"sanitised{suffix}")
    assert shown.columns == ["plain", odd]
    assert shown[odd].to_list() == frame[odd].to_list()


@pytest.mark.parametrize(
    ("odd", "suffix"), [*((odd, suffix) for odd in PATTERNS for suffix in FILES), *((odd, ".parquet") for odd in OURS)]
)
def test_an_odd_name_may_be_published_audited_estimated_and_imputed(tmp_path: Path, odd: str, suffix: str) -> None:
    path = tmp_path / f"people{suffix}"
    write_table(path, [people(odd)])
    for method in ("randomised-response",):
        asked = order("other", odd, "plain", method=method)
        release = sanitise_file(path, replace(asked, into=tmp_path / method))
        table = tmp_path / method / "public" / f"sanitised{suffix}"
        found = audit(tmp_path / method / "owner" / "protocol.json", path, sanitised=table)
        assert found.draw is not None
        assert estimate(release.sealed, table).tables
        assert posterior(release.sealed, table).probabilities.sum(axis=1) == pytest.approx(1)
        assert impute(release.sealed, content(table), 1)[0].columns == [odd, "plain"]


@pytest.mark.parametrize("library", [pl.DataFrame, pd.DataFrame, pa.table])
@pytest.mark.parametrize("odd", [*PATTERNS, *OURS])
def test_frames_keep_publish_and_hide_odd_names(library: Callable[..., Any], odd: str) -> None:
    frame = people(odd)
    native = library(frame.to_dict(as_series=False))
    kept = sanitise(
        native,
        ReleaseSpec(
            prior="table",
            secret="other",
            publish="plain",
            keep=odd,
            accept_kept=True,
            promise=LIP(1),
            method="randomised-response",
        ),
    )
    assert names(kept.table) == ["plain", odd]
    shown = sanitise(
        native, ReleaseSpec(prior="table", secret="other", publish=odd, promise=LIP(1), method="randomised-response")
    )
    assert names(shown.table) == [odd]
    hidden = sanitise(
        native, ReleaseSpec(prior="table", secret=odd, publish="plain", promise=LIP(1), method="randomised-response")
    )
    assert names(hidden.table) == ["plain"]
    assert hidden.sealed.domain.secret_columns == (odd,)


def test_a_batch_with_other_columns_than_those_asked_for_is_refused() -> None:
    with pytest.raises(TableError, match="it gave others"):
        require_columns(pl.DataFrame({"a": [1], "b": [2]}), ["a"], "'people.csv'")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_quotes_commas_and_line_ends_in_a_header_are_read(tmp_path: Path, suffix: str) -> None:
    odd = "e\"d'u, or\nmore"
    write_table(tmp_path / f"people{suffix}", [people(odd)])
    assert open_table(tmp_path / f"people{suffix}").columns == ("other", odd, "plain")
    assert content(tmp_path / f"people{suffix}").equals(people(odd))


def test_the_command_takes_a_name_with_a_comma_in_double_quotes(tmp_path: Path) -> None:
    write_table(tmp_path / "people.csv", [people("last, first")])
    words = [
        "sanitise",
        "--prior=table",
        tmp_path / "people.csv",
        "-s",
        "other",
        "-p",
        '"last, first",plain',
        "-e",
        1,
    ]
    done = run(*words, "--into", tmp_path / "out", "--no-report", "--method", "randomised-response")
    assert done.returncode == 0, done.stderr
    assert open_table(tmp_path / "out" / "public" / "sanitised.csv").columns == ("last, first", "plain")
