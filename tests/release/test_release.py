"""Releases in memory and on disk: what is published, what is said about it, and that nothing else gets out."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privacyfunnel import LDP, LIP, SRLIP, Information, Joint, SealedProtocol, Statistics
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.model.promises import Promise
from privacyfunnel.release.sanitise import sanitise, sanitise_file
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.coding.bins import Bins
from tests.commands import files_of


@pytest.fixture(scope="session")
def people(adult: Path) -> pl.DataFrame:
    return pl.read_csv(adult, infer_schema=False)


def order(**changed: Any) -> ReleaseSpec:
    asked: dict[str, Any] = {
        "prior": "table",
        "secret": ("occupation",),
        "publish": ("education",),
        "promise": LIP(1),
        "method": "randomised-response",
        "seed": 1,
    }
    return ReleaseSpec(**{**asked, **changed})


def unjudged(keep: str) -> ReleaseSpec:
    return ReleaseSpec(keep=keep or (), accept_kept=True)


def test_only_what_was_named_is_published_and_the_secret_never(people: pl.DataFrame) -> None:
    release = sanitise(
        people, unjudged("race"), prior="table", secret="occupation", publish="education", promise=LIP(1)
    )
    assert release.table.columns == ["education", "outcome", "race"]
    assert release.order is not None
    assert release.table["race"].equals(people["race"][release.order])
    assert release.kept == ("race",)
    assert release.dropped == ("workclass", "marital-status", "relationship", "sex", "native-country", "income")
    assert any(
        "Kept as they are: race; the promise does not cover them" in sentence for sentence in release.not_promised
    )


def test_the_best_protocol_for_statistics_is_the_default_and_comes_with_its_bound(people: pl.DataFrame) -> None:
    release = sanitise(people, prior="table", secret="occupation", publish="education", promise=LIP(1))
    assert release.worth.use == Statistics()
    assert release.worth.value == pytest.approx(0.3859, rel=1.5e-3)
    assert release.worth.bound is not None
    assert release.worth.bound <= release.worth.value <= release.worth.bound * 1.002
    assert release.short is None
    assert release.sealed.epsilon <= 1


def test_the_most_informative_protocol_is_had_for_the_asking(people: pl.DataFrame) -> None:
    release = sanitise(
        people, prior="table", secret="occupation", publish="education", promise=LIP(1), use=Information()
    )
    assert release.information == pytest.approx(1.7766, abs=5e-5)
    assert release.sealed.bound is not None
    assert release.information <= release.sealed.bound <= release.information + 2e-6
    assert release.sealed.epsilon <= 1


@pytest.mark.parametrize("promise", [LIP(0.5), LDP(1), SRLIP(1)])
@pytest.mark.parametrize("method", ["optimal", "randomised-response"])
def test_what_is_certified_never_exceeds_what_was_asked(people: pl.DataFrame, promise: Promise, method: str) -> None:
    release = sanitise(
        people, ReleaseSpec(prior="table", secret="income", publish=["race", "sex"], promise=promise, method=method)
    )
    assert 0 < release.sealed.epsilon <= promise.epsilon
    assert 0 < release.share_kept <= 1


@pytest.mark.parametrize(
    ("method", "as_"),
    [(m, as_) for m in ("optimal", "randomised-response", "conditional-reporting") for as_ in ("labels", "values")],
)
def test_as_many_rows_stay_unchanged_as_the_law_expects(people: pl.DataFrame, method: str, as_: str) -> None:
    asked: dict[str, Any] = {"prior": "table", "secret": "occupation", "publish": "education", "promise": LIP(1)}
    release = sanitise(people, ReleaseSpec(**asked, method=method, as_=as_, keep_order=True))
    same = float((release.table["education"] == people["education"]).mean())
    assert release.unchanged == pytest.approx(same)
    # six standard deviations: a false alarm in 10⁹ runs
    assert abs(release.unchanged - release.unchanged_expected) < 6 * np.sqrt(0.25 / len(people))


def test_values_are_original_categories_distributed_as_before(people: pl.DataFrame) -> None:
    release = sanitise(
        people,
        ReleaseSpec(prior="table", secret="occupation", publish=["education", "sex"], promise=LIP(1), as_="values"),
    )
    for column in ("education", "sex"):
        before, after = (frame[column].value_counts() for frame in (people, release.table))
        both = before.join(after, on=column, how="full", suffix="_after").fill_null(0)
        assert set(both[column]) == set(people[column])
        n = both["count"].cast(pl.Int64).to_numpy()
        assert (np.abs(both["count_after"].cast(pl.Int64).to_numpy() - n) < 8 * np.sqrt(n) + 8).all()


def test_labels_of_the_optimum_name_groups_of_values(people: pl.DataFrame) -> None:
    release = sanitise(
        people, ReleaseSpec(prior="table", secret="occupation", publish="education", promise=LIP(1), as_="labels")
    )
    known = set(people["education"])
    labels = set(release.table["education"])
    assert any(" | " in label for label in labels)
    assert all(part.split(" ")[0] in known for label in labels for part in label.split(" | ") if part[0] != "…")


@pytest.mark.parametrize("keep", ["", "race"])
@pytest.mark.parametrize("columns", [["income"], ["income", "who"], ["number"]])
def test_an_index_that_holds_the_secret_or_names_is_not_passed_on(
    people: pl.DataFrame, columns: list[str], keep: str
) -> None:
    frame = people.head(300).with_columns(who=pl.Series([f"name {i}" for i in range(300)])).to_pandas()
    frame = frame.assign(number=range(300, 600)).set_index(columns, drop=False)
    frame.index.names = [f"my {name}" for name in columns]
    frame.attrs = {"note": "told in confidence"}
    release = sanitise(frame, unjudged(keep), prior="table", secret="income", publish="sex", promise=LIP(0.1))
    assert release.table.index.equals(pd.RangeIndex(300))
    assert release.table.index.names == [None]
    assert release.table.columns.tolist() == ["sex", "outcome", *([keep] if keep else [])]
    assert release.table.attrs == {}
    assert release.dropped[-len(columns) :] == tuple(frame.index.names)
    called = " & ".join(f"'{name}'" for name in frame.index.names)
    assert release.beside == (f"the index {called}", "the frame's attrs")
    assert any(f"the index {called}, the frame's attrs" in sentence for sentence in release.not_promised)


def test_an_index_that_was_made_a_column_is_kept_as_one(people: pl.DataFrame) -> None:
    frame = people.head(300).to_pandas().set_index(pd.Index([f"name {i}" for i in range(300)], name="who"))
    release = sanitise(
        frame.reset_index(), unjudged("who"), prior="table", secret="income", publish="sex", promise=LIP(0.1)
    )
    assert release.table["who"].tolist() == frame.index[release.order].tolist()
    assert release.kept == ("who",)
    assert release.beside == ()
    assert not any("Not passed on" in sentence for sentence in release.not_promised)


@pytest.mark.parametrize("index", [list(range(300))[::-1], pd.RangeIndex(5, 305), pd.RangeIndex(300, name="who")])
def test_an_index_of_numbers_or_without_a_name_is_not_passed_on_either(people: pl.DataFrame, index: Any) -> None:
    frame = people.head(300).to_pandas().set_axis(pd.Index(index), axis=0)
    release = sanitise(frame, prior="table", secret="income", publish="sex", promise=LIP(0.1))
    assert release.table.index.equals(pd.RangeIndex(300))
    assert release.table.index.name is None
    assert [words.startswith("the index") for words in release.beside] == [True]


@pytest.mark.parametrize("keep", ["", "race"])
def test_metadata_of_an_arrow_table_is_not_passed_on(people: pl.DataFrame, keep: str) -> None:
    plain = people.head(300).to_arrow()
    of_table = plain.replace_schema_metadata({"note": "told in confidence"})
    of_fields = plain.cast(pa.schema([field.with_metadata({"note": "confidence"}) for field in plain.schema]))
    for frame in (of_table, of_fields):
        release = sanitise(frame, unjudged(keep), prior="table", secret="income", publish="sex", promise=LIP(0.1))
        assert release.table.column_names == ["sex", "outcome", *([keep] if keep else [])]
        assert not release.table.schema.metadata
        assert not any(field.metadata for field in release.table.schema)
        assert release.beside == ("the schema's metadata",)
    assert sanitise(plain, prior="table", secret="income", publish="sex", promise=LIP(0.1)).beside == ()


@pytest.mark.parametrize("convert", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, lambda frame: frame])
def test_a_frame_comes_back_as_the_kind_it_was(people: pl.DataFrame, convert: Any) -> None:
    frame = convert(people.head(2000))
    release = sanitise(
        frame,
        ReleaseSpec(
            prior="table", secret="sex", publish="race", promise=LIP(0.1), seed=5, keep="income", accept_kept=True
        ),
    )
    assert type(release.table) is type(frame)
    ours = sanitise(
        people.head(2000),
        ReleaseSpec(
            prior="table", secret="sex", publish="race", promise=LIP(0.1), seed=5, keep="income", accept_kept=True
        ),
    ).table
    theirs = release.table
    if isinstance(theirs, pd.DataFrame):
        theirs = pl.from_pandas(theirs)
    elif isinstance(theirs, pa.Table):
        theirs = pl.DataFrame(pl.from_arrow(theirs))
    assert theirs.equals(ours)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet", ".arrow"])
def test_every_format_holds_the_same_release(people: pl.DataFrame, adult: Path, tmp_path: Path, suffix: str) -> None:
    release = sanitise_file(adult, replace(order(keep=("sex",), accept_kept=True), into=tmp_path, format=suffix[1:]))
    path = tmp_path / "public" / f"sanitised{suffix}"
    assert release.table == path
    readers = {".parquet": pl.read_parquet, ".arrow": pl.read_ipc}
    found = (
        readers[suffix](path)
        if suffix in readers
        else pl.read_csv(path, infer_schema=False, separator="\t" if "tsv" in suffix else ",")
    )
    memory = sanitise(
        people,
        ReleaseSpec(
            prior="table",
            secret="occupation",
            publish="education",
            promise=LIP(1),
            method="randomised-response",
            seed=1,
        ),
    )
    assert found["education"].cast(pl.String).equals(memory.table["education"])
    assert memory.order is not None
    assert found["sex"].cast(pl.String).equals(people["sex"][memory.order])
    assert files_of(path.parent.parent) == {"owner/protocol.json", "owner/report.html", f"public/{path.name}"}


@pytest.mark.parametrize("method", ["optimal", "conditional-reporting"])
def test_every_row_has_a_draw_of_its_own_however_the_table_is_cut(
    adult: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    asked = order(method=method, publish=("race",), promise=LIP(0.5), keep=("sex",), accept_kept=True)
    sanitise_file(adult, replace(asked, into=tmp_path / "whole"))
    monkeypatch.setattr("privacyfunnel.tables.coding.encoding.CHUNK_ROWS", 5000)
    monkeypatch.setattr("privacyfunnel.tables.readers.delimited.BATCH_ROWS", 5000)
    monkeypatch.setattr("privacyfunnel.release.output_layout.ROWS_AT_ONCE", 999)
    sanitise_file(adult, replace(asked, into=tmp_path / "cut"))
    both = [(tmp_path / name / "public" / "sanitised.csv").read_bytes() for name in ("whole", "cut")]
    assert both[0] == both[1]


def test_a_seed_marks_the_release_as_not_for_publication(adult: Path, tmp_path: Path) -> None:
    seeded = sanitise_file(adult, replace(order(), into=tmp_path / "seeded"))
    assert "NOT FOR PUBLICATION" in seeded.not_promised[0]
    assert json.loads((tmp_path / "seeded/owner/protocol.json").read_text())["for_publication"] is False
    assert not SealedProtocol.load(tmp_path / "seeded/owner/protocol.json").for_publication
    sanitise_file(adult, replace(order(seed=None), into=tmp_path / "fresh"))
    assert SealedProtocol.load(tmp_path / "fresh/owner/protocol.json").for_publication


def test_fresh_releases_differ_and_seeded_ones_agree(adult: Path, tmp_path: Path) -> None:
    tables = []
    for name, seed in (("a", None), ("b", None), ("c", 7), ("d", 7)):
        sanitise_file(adult, replace(order(seed=seed), into=tmp_path / name, again=True))
        tables.append((tmp_path / name / "public" / "sanitised.csv").read_bytes())
    assert tables[0] != tables[1]
    assert tables[2] == tables[3]


def test_a_protocol_that_sees_the_secret_says_what_lip_does_not_cover(people: pl.DataFrame) -> None:
    loud = sanitise(
        people, ReleaseSpec(prior="table", secret="income", publish="sex", promise=LIP(0.2), sees_secret=True)
    )
    assert loud.known_values_leak is not None
    assert loud.known_values_leak > 0.2
    assert "already knows a person's sex" in loud.not_promised[0]
    covered = sanitise(
        people, ReleaseSpec(prior="table", secret="income", publish="sex", promise=SRLIP(0.2), sees_secret=True)
    )
    assert covered.known_values_leak is not None
    assert covered.known_values_leak <= 0.2
    assert not any("already knows" in sentence for sentence in covered.not_promised)
    assert loud.information > covered.information


def test_several_secrets_are_one_and_numbers_are_binned(people: pl.DataFrame) -> None:
    ages = people.with_columns(age=pl.int_range(pl.len()) % 60 + 17)
    release = sanitise(
        ages,
        prior="table",
        secret=[["sex", "income"]],
        publish=["age", "race"],
        promise=LIP(0.3),
        bins=[Bins("age", edges=(30.0, 50.0))],
    )
    assert release.sealed.domain.secret_columns == ("sex", "income")
    assert release.sealed.domain.bins == {"age": (30.0, 50.0)}
    labels = {part for text in release.table["age"] for part in text.split(" | ")}
    assert {"under 30", "30–49", "50+"} <= {label.split(" (")[0] for label in labels}
    joint = Joint.from_table(ages, secret=["sex", "income"], publish="race")
    assert joint.c == 4


def test_missing_entries_are_a_category() -> None:
    frame = pl.DataFrame({"s": ["a", "a", "b", "b"] * 100, "x": ["u", None] * 200})
    release = sanitise(frame, ReleaseSpec(prior="table", secret="s", publish="x", promise=LIP(5), keep_order=True))
    assert release.table["x"].to_list() == ["u", "(missing)"] * 200
    assert release.unchanged == 1


def test_an_order_that_cannot_be_is_refused_at_birth() -> None:
    with pytest.raises(ColumnError, match="cannot be kept"):
        order(keep=("occupation",))
    with pytest.raises(ColumnError, match="at least one published column"):
        order(publish=()).require_columns()
    with pytest.raises(ParameterError, match="as_ must be one of outcomes, labels, values; got 'pictures'"):
        order(as_="pictures")
