"""Merging through the command: what is merged stands in no public file, and the owner's audit reads the table alike."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privacyfunnel import LIP, sanitise
from privacyfunnel.spec import ReleaseSpec
from tests.commands import found_by, said, turned_down

RARE = ["Liechtenstein", "Tuvalu", "Nauru", "Palau"]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A thousand people: four countries of one person each, and a job that three of them have."""
    draw = random.Random(4)
    n = 1000
    rows: dict[str, list[Any]] = {
        "country": [draw.choice(["A", "B", "C"]) for _ in range(n - 4)] + RARE,
        "job": ["spy"] * 3 + [draw.choice(["cook", "clerk", "nurse"]) for _ in range(n - 3)],
        "town": [draw.choice("klmn") for _ in range(n)],
    }
    rows["country"][:3] = ["A"] * 3
    rows["town"][:3] = ["k"] * 3
    pl.DataFrame(rows).write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv"


def asked(people: Path, into: Path, *more: object) -> list[object]:
    return [
        *(
            "sanitise",
            "--prior=table",
            people,
            "--secret",
            "job",
            "--publish",
            "country",
            "--epsilon",
            1,
        ),
        *("--into", into, "--no-report", "--again", *more),
    ]


def test_rare_values_are_said_and_merged_on_request(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = found_by(capsys, *asked(people, tmp_path / "plain"))
    assert plain["rare"][0] == (
        "4 values of country are so rare (fewer than 5 people) that they may point to a person. --merge-rare 5 merges "
        "rare values; fewer columns make fewer combinations."
    )
    assert "Tuvalu" in (tmp_path / "plain" / "owner" / "protocol.json").read_text()
    out = tmp_path / "out"
    merged = found_by(capsys, *asked(people, out, "--merge-rare", 10))
    assert not [sentence for sentence in merged["rare"] if "country" in sentence]
    text = (out / "owner" / "protocol.json").read_text() + (out / "public" / "sanitised.csv").read_text()
    assert not [country for country in RARE if country in text]
    stated = json.loads((out / "owner" / "protocol.json").read_text())["publish"][0]
    assert (len(stated["labels"]), stated["rest"]) == (3, "other")
    audit = [
        "audit",
        out / "owner" / "protocol.json",
        people,
        "--secret",
        "job",
        "--sanitised",
        out / "public" / "sanitised.csv",
    ]
    assert found_by(capsys, *audit)["draw"]["consistent"]
    together = found_by(capsys, *audit[:5], "--with", out / "owner" / "protocol.json")["together"]
    assert together["releases"] == 2
    both = found_by(capsys, *audit[:5], "--with", tmp_path / "plain" / "owner" / "protocol.json")["together"]
    assert both["releases"] == 2  # one merged, one not
    assert both["alone"][0] == pytest.approx(together["alone"][0], abs=1e-9)
    known = [*asked(people, tmp_path / "known"), "--promise", "srlip", "--merge-rare", 10]
    found_by(capsys, *known)
    audit[1] = tmp_path / "known" / "owner" / "protocol.json"
    assert "under SRLIP must merge the same values of 'country'" in turned_down(
        capsys, *audit[:5], "--with", tmp_path / "plain" / "owner" / "protocol.json"
    )
    shares = found_by(capsys, "estimate", out / "owner" / "protocol.json", out / "public" / "sanitised.csv")
    assert "other" in json.dumps(shares)


def test_merged_secrets_are_audited_as_they_were_merged_and_only_so(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    merge = ["--merge-secrets", "spy,cook=other"]
    release = found_by(capsys, *asked(people, out, *merge))
    assert "Values of job were merged: which of them it is is not protected." in release["not_promised"]
    assert "spy" not in (out / "owner" / "protocol.json").read_text()
    audit = ["audit", out / "owner" / "protocol.json", people, "--secret", "job"]
    assert "its file says that some were. Name --merge-secrets" in turned_down(capsys, *audit)
    assert found_by(capsys, *audit, *merge)["holds"]
    assert found_by(capsys, *audit, *merge, "--with", out / "owner" / "protocol.json")["together"]["releases"] == 2
    found_by(capsys, *asked(people, tmp_path / "plain"))
    audit[1] = tmp_path / "plain" / "owner" / "protocol.json"
    assert "says that none were. Leave out --merge-secrets" in turned_down(capsys, *audit, *merge)


def test_the_secret_that_sees_itself_merged_is_published_merged(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    found_by(capsys, *asked(people, out, "--sees-secret", "--merge-secrets", "spy,cook=rest of them"))
    labels = json.loads((out / "owner" / "protocol.json").read_text())["secret"]["labels"]
    assert labels == ["clerk", "nurse", "rest of them"]
    audit = [
        "audit",
        out / "owner" / "protocol.json",
        people,
        "--secret",
        "job",
        "--sanitised",
        out / "public" / "sanitised.csv",
    ]
    assert found_by(capsys, *audit, "--merge-secrets", "spy,cook=rest of them")["holds"]


def test_a_rare_secret_is_pointed_out_with_what_merging_it_gives(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = found_by(capsys, "scan", people, "--secret", "job")
    rare = found["rare_secrets"]
    assert "spy" in rare["merged"]
    assert rare["leaks"]["town"][0] is None
    assert rare["leaks"]["town"][1] < 0.5
    code, text, _ = said(capsys, "scan", people, "--secret", "job")
    assert code == 0
    assert f"1 of 4 values is held by few rows. With {rare['option']}, 1 instead of 2 of 2 columns" in text
    option = rare["option"].split(maxsplit=1)
    merged = found_by(capsys, "scan", people, "--secret", "job", *option)
    assert merged["secrets"] == 3
    assert merged["rare_secrets"] is None
    after = {look["column"]: look["lip"] for look in merged["columns"]}
    assert after["town"] == pytest.approx(rare["leaks"]["town"][1])
    words = asked(people, tmp_path / "out")
    words[6] = "town"
    release = found_by(capsys, *words)
    assert any("--merge-secrets" in sentence for sentence in release["rare"])
    words[10] = tmp_path / "merged"
    again = found_by(capsys, *words, *option)
    assert again["information_nats"] > release["information_nats"]


def test_a_scan_merges_what_it_looks_at_and_survives_a_column_of_which_nothing_is_left(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pl.read_csv(people).with_columns(number=pl.Series([f"P{i}" for i in range(1000)]))
    frame.write_csv(tmp_path / "numbered.csv")
    words = ["scan", tmp_path / "numbered.csv", "--secret", "job"]
    before, after = (
        {look["column"]: look for look in found_by(capsys, *words, *more)["columns"]}
        for more in ([], ["--merge-rare", 10])
    )
    assert (before["country"]["values"], after["country"]["values"]) == (7, 3)
    assert after["number"]["note"] == "one value is left when its rare ones are merged"
    assert not after["number"]["safe"]


def test_rare_combinations_and_missing_numbers_are_said_without_promising_that_merging_mends_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    countries = ["k", "l", "l", "k"] * 29 + ["k", "k", "l", "l"]
    pay = [*[1, 3] * 59, None, None]
    frame = pl.DataFrame({"job": ["a", "b"] * 60, "country": countries, "pay": pay})
    frame.write_csv(tmp_path / "people.csv")
    words = asked(tmp_path / "people.csv", tmp_path / "out", "--publish", "pay", "--bin", "pay=2")
    said_of = found_by(capsys, *words)["rare"][0]
    assert said_of.startswith("1 combination is so rare (fewer than 5 people)")
    assert said_of.endswith("fewer columns make fewer combinations.")


def test_common_secrets_and_values_are_not_spoken_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"job": ["a", "b"] * 50, "country": ["k", "l", "l", "k"] * 25}).write_csv(tmp_path / "people.csv")
    assert found_by(capsys, "scan", tmp_path / "people.csv", "--secret", "job")["rare_secrets"] is None
    assert found_by(capsys, *asked(tmp_path / "people.csv", tmp_path / "out"))["rare"] == []


def test_bad_rules_are_refused_in_one_sentence_and_nothing_is_written(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "out"
    assert "--merge-rare must be a whole number; got 'few'" in turned_down(
        capsys, *asked(people, into, "--merge-rare", "few")
    )
    assert "'town' is not" in turned_down(capsys, *asked(people, into, "--merge-rare", "town=10"))
    assert "must keep two values" in turned_down(capsys, *asked(people, into, "--merge-rare", "900"))
    assert "1 of 1 are not" in turned_down(capsys, *asked(people, into, "--merge-secrets", "Spy=other"))
    assert not into.exists()


def kinds() -> list[Any]:
    names = ["Ada", "Bob", "NOBODY-HERE"]
    rows = ["Ada", "Bob"] * 20
    polars = pl.DataFrame({"who": pl.Series(rows, dtype=pl.Enum(names))})
    categories = pl.DataFrame({"who": pl.Series([*rows, "NOBODY-HERE"], dtype=pl.Categorical)})[:40]
    arrow = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 20), pa.array(names))
    return [
        polars,
        categories,
        pd.DataFrame({"who": pd.Categorical(rows, categories=names)}),
        pa.table({"who": arrow}),
    ]


def arrow_of(table: Any) -> Any:
    if isinstance(table, pd.DataFrame):
        return pa.Table.from_pandas(table)
    return table.to_arrow() if isinstance(table, pl.DataFrame) else table


@pytest.mark.parametrize("frame", kinds(), ids=["enum", "categorical", "pandas", "arrow"])
def test_categories_that_no_row_has_are_not_passed_on(frame: Any, tmp_path: Path) -> None:
    more = {"s": ["a", "a", "b", "b"] * 10, "x": ["k", "l"] * 20}
    if isinstance(frame, pl.DataFrame):
        frame = frame.with_columns(**{name: pl.Series(column) for name, column in more.items()})
    elif isinstance(frame, pd.DataFrame):
        frame = frame.assign(**more)
    else:
        frame = pa.table({"who": frame["who"], **more})
    for order in ({"publish": "x", "keep": "who"}, {"publish": ["who", "x"]}):
        release = sanitise(
            frame, ReleaseSpec(prior="table", secret="s", promise=LIP(1), method="randomised-response", **order)
        )
        table = release.table
        file = tmp_path / "out.arrow"
        whole = arrow_of(table)
        with pa.ipc.new_file(file, whole.schema) as sink:
            sink.write_table(whole)
        assert b"Ada" in file.read_bytes()
        assert b"NOBODY-HERE" not in file.read_bytes()
        assert "NOBODY-HERE" not in release.sealed.to_text()


def test_categories_that_no_row_has_are_in_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for frame in kinds()[:2]:
        whole = frame.with_columns(job=pl.Series(["a", "a", "b", "b"] * 10), country=pl.Series(["k", "l"] * 20))
        for suffix, write in ((".parquet", whole.write_parquet), (".arrow", whole.write_ipc)):
            write(tmp_path / f"people{suffix}")
            out = tmp_path / "out"
            found_by(capsys, *asked(tmp_path / f"people{suffix}", out, "--keep", "who", "--accept-kept", "--force"))
            path = out / "public" / f"sanitised{suffix}"
            assert b"NOBODY-HERE" not in path.read_bytes()
            kept = (pl.read_parquet if suffix == ".parquet" else pl.read_ipc)(path)["who"]
            assert sorted(kept.unique().to_list()) == ["Ada", "Bob"]


@pytest.mark.parametrize("text", ["", "x", "zip=", "=10", "1e3", "-4", "1", "0", "country=1", "9" * 5000, "\x1d"])
def test_what_is_no_rule_for_rare_values_is_refused(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    code, _, err = said(capsys, *asked(people, tmp_path / "out", f"--merge-rare={text}"))
    assert code == 2
    assert "--merge-rare" in err
    assert not (tmp_path / "out").exists()
