"""Lazy frames: counted by their own engine, drawn once, answered in kind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from privacyfunnel import Joint, apply, design, sanitise
from privacyfunnel.errors import ColumnError, TableError
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.readers.eager_frames import LazyTable, frame_table

PEOPLE = pl.DataFrame(
    {
        "job": [("a", "b", "c")[(i * 5 % 7 % 3 + (i % 5 > 2)) % 3] for i in range(300)],
        "town": ["klm"[i * 5 % 7 % 3] if i % 50 else None for i in range(300)],
        "age": [i % 4 for i in range(300)],
        "id": [f"p{i}" for i in range(300)],
    }
)
ASKED: dict[str, Any] = {
    "prior": "table",
    "secret": "job",
    "publish": "town",
    "epsilon": 0.3,
    "method": "randomised-response",
}
KINDS: dict[str, tuple[type[Any], Callable[[pl.DataFrame], Any], Callable[[Any], pl.DataFrame]]] = {
    "polars": (pl.LazyFrame, lambda rows: rows.lazy(), lambda lazy: lazy.collect()),
    "duckdb": (duckdb.DuckDBPyRelation, lambda rows: duckdb.from_arrow(rows.to_arrow()), lambda lazy: lazy.pl()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_lazy_rows_are_sanitised_and_the_answer_is_of_their_kind(kind: str) -> None:
    native, lazy, back = KINDS[kind]
    asked = {**ASKED, "as_": "values", "keep": ["age", "id"], "accept_kept": True, "keep_order": True, "seed": 1}
    release = sanitise(lazy(PEOPLE), ReleaseSpec(**asked))
    assert isinstance(release.table, native)
    assert back(release.table).equals(sanitise(PEOPLE, ReleaseSpec(**asked)).table)
    assert back(release.table).equals(back(release.table))  # drawn once, however often it is looked at


@pytest.mark.parametrize("kind", KINDS)
def test_a_lazy_frame_is_applied_to_like_one_in_memory(kind: str) -> None:
    native, lazy, back = KINDS[kind]
    protocol = design(PEOPLE, ReleaseSpec(**ASKED, as_="values"))
    applied = apply(protocol, lazy(PEOPLE.drop("job")), ReleaseSpec(row_id="id", seed=1))
    assert isinstance(applied.table, native)
    assert back(applied.table).equals(apply(protocol, PEOPLE.drop("job"), ReleaseSpec(row_id="id", seed=1)).table)


@pytest.mark.parametrize("kind", KINDS)
def test_a_design_asks_the_engine_for_counts_and_never_for_rows(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(*_: Any) -> None:
        raise AssertionError("rows were asked for")

    lazy = KINDS[kind][1](PEOPLE)
    monkeypatch.setattr(LazyTable, "batches", rows)
    spec = ReleaseSpec(**{**ASKED, "publish": ["town", "age"]}, bins={"age": [2]})
    made = design(lazy, spec)
    assert made.to_text() == design(PEOPLE, spec).to_text()
    joint = Joint.from_table(lazy, secret="job", publish="town")
    assert (joint.weights == Joint.from_table(PEOPLE, secret="job", publish="town").weights).all()


@pytest.mark.parametrize("kind", KINDS)
def test_quantiles_are_found_from_the_rows_of_a_lazy_frame(kind: str) -> None:
    lazy = KINDS[kind][1](PEOPLE)
    asked: dict[str, Any] = {**ASKED, "publish": "age", "bins": {"age": 2}}
    assert design(lazy, ReleaseSpec(**asked)).to_text() == design(PEOPLE, ReleaseSpec(**asked)).to_text()


def test_what_a_lazy_frame_cannot_give_is_said() -> None:
    with pytest.raises(ColumnError, match="no column 'jbo'"):
        design(PEOPLE.lazy(), prior="table", secret="jbo", publish="town", epsilon=1)
    with pytest.raises(TableError, match="must have rows"):
        sanitise(PEOPLE.lazy().filter(pl.col("age") > 9), ReleaseSpec(**ASKED))
    with pytest.raises(TableError, match="must be a frame"):
        frame_table(7)


def test_a_release_of_lazy_rows_is_saved(tmp_path: Path) -> None:
    release = sanitise(PEOPLE.lazy(), ReleaseSpec(**ASKED))
    release.save(tmp_path / "out")
    assert pl.read_csv(tmp_path / "out" / "public" / "sanitised.csv").height == 300
