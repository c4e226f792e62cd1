"""What the ledger recognises: the same rows though they are written otherwise, other people, and noise drawn before."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privacyfunnel import design_file
from privacyfunnel.errors import GuaranteeError, LedgerError
from privacyfunnel.release.ledger import ledger_file
from privacyfunnel.release.ledger.ledger_file import NAME
from privacyfunnel.spec import ReleaseSpec
from tests.commands import refused, told
from tests.release.test_ledger import noted, people, release

__all__ = ["people"]


def rewritten(people: Path, name: str, *columns: pl.Expr, **renamed: str) -> Path:
    path = people.with_name(name)
    pl.read_csv(people, infer_schema=False).with_columns(*columns).rename(renamed).write_csv(path)
    return path


FIRST = pl.int_range(pl.len()) == 0
CHANGES: dict[str, list[pl.Expr]] = {
    "case and blanks": [pl.concat_str(pl.lit(" "), pl.col("occupation").str.to_uppercase(), pl.lit(" "))],
    "one value": [pl.when(FIRST).then(pl.lit("Sales")).otherwise("occupation").alias("occupation")],
    "one value of a person": [pl.when(FIRST).then(pl.lit("Other")).otherwise("sex").alias("sex")],
    "one whole row": [
        pl.when(FIRST).then(pl.col(name).last()).otherwise(name).alias(name) for name in ("occupation", "sex")
    ],
}


@pytest.mark.parametrize("what", CHANGES)
def test_rows_are_recognised_though_written_otherwise_or_changed_in_one_place(people: Path, what: str) -> None:
    release(people)
    columns = [column.alias("occupation") if what == "case and blanks" else column for column in CHANGES[what]]
    with pytest.raises(LedgerError, match="were released before"):
        release(rewritten(people, "other.csv", *columns), "two")


def test_a_column_that_is_made_coarser_and_a_header_in_capitals_hide_nothing(people: Path) -> None:
    release(people, publish=("education",), bins={"education": "prefix:3"})
    other = rewritten(people, "other.csv", occupation="OCCUPATION")
    with pytest.raises(LedgerError, match="were released before"):
        release(other, "two", secret=("OCCUPATION",), publish=("education",), bins={"education": "prefix:1"})


def test_other_people_are_no_repeat_though_a_column_has_the_same_counts(people: Path) -> None:
    release(people)
    jobs = pl.read_csv(people, infer_schema=False)["occupation"].unique().sort().to_list()
    moved = dict(zip(jobs, [*jobs[1:], jobs[0]], strict=True))
    others = rewritten(people, "other.csv", pl.col("sex").shuffle(1), pl.col("occupation").replace(moved))
    assert noted(others, "two").repeats == ()


def test_batches_of_other_people_from_one_register_are_no_repeats(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    for day in range(12):
        table = tmp_path / "data" / f"day{day}.csv"
        table.parent.mkdir(exist_ok=True)
        towns = random.choice(["a", "b", "c"], 60, p=[0.5, 0.3, 0.2])
        ill = np.where(random.random(60) < np.where(towns == "a", 0.3, 0.6), "ill", "well")
        pl.DataFrame({"occupation": ill, "sex": towns}).write_csv(table)
        assert noted(table, f"out{day}").repeats == (), day


def test_tables_in_other_folders_share_the_ledger_that_the_environment_names(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ledger_file.SHARED, str(tmp_path / "all.json"))
    release(people)
    assert not (people.parent / NAME).exists()
    copy = tmp_path / "elsewhere" / "copy.csv"
    copy.parent.mkdir()
    copy.write_bytes(people.read_bytes())
    with pytest.raises(LedgerError, match="were released before"):
        release(copy, "two")


DOMAIN = {"occupation": {"labels": ["ill", "well"], "missing": False}, "sex": {"labels": ["a", "b"], "missing": False}}


@pytest.fixture
def ward(tmp_path: Path) -> Path:
    """A small table, and its domain beside it."""
    table = tmp_path / "data" / "ward.csv"
    table.parent.mkdir()
    rows = [("ill" if i % 3 == 0 else "well", "ab"[i % 5 > 1]) for i in range(3000)]
    pl.DataFrame(rows, schema=["occupation", "sex"], orient="row").write_csv(table)
    content = {"format": "privacyfunnel domain", "version": 1, "columns": DOMAIN}
    table.with_name("domain.json").write_text(json.dumps(content))
    return table


def private(ward: Path, into: Path, *more: object) -> list[object]:
    words = [
        "-s",
        "occupation",
        "-p",
        "sex",
        "-e",
        1,
        "--prior=population",
        "--design-epsilon",
        0.5,
        "--domain",
        ward.with_name("domain.json"),
    ]
    return [ward, *words, "--into", into, *more]


def test_private_designs_of_the_same_rows_add_up_whichever_command_made_them(ward: Path, tmp_path: Path) -> None:
    first = told("design", *private(ward, tmp_path / "one.json"))
    assert "noise of ε = 0.5: together" in " ".join(first["not_promised"])
    for words in (["design", *private(ward, tmp_path / "two.json")], ["sanitise", *private(ward, tmp_path / "out")]):
        refused(words, "LedgerError", "These rows were designed for before, once", "spend ε = 1 together", "--again")
    second = told("sanitise", *private(ward, tmp_path / "out", "--no-report", "--again"))
    assert "after designs of ε = 0.5 for the same rows" in " ".join(second["not_promised"])
    assert "by e^1.5 at most" in " ".join(second["not_promised"])
    third = told("design", *private(ward, tmp_path / "three.json", "--again"))
    assert "after designs of ε = 1 for the same rows" in " ".join(third["not_promised"])
    assert "by e^2 at most" in " ".join(third["not_promised"])


def test_noise_of_a_design_that_was_refused_or_replaced_counts_and_that_of_a_seed_does_not(
    ward: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any) -> Any:
        raise GuaranteeError("not this time")

    told("sanitise", *private(ward, tmp_path / "out", "--seed", 1, "--no-report"))
    spec = ReleaseSpec(
        secret="occupation",
        publish="sex",
        epsilon=1,
        prior="population",
        design_epsilon=0.5,
        domain=ward.with_name("domain.json"),
        into=tmp_path / "one.json",
    )
    with monkeypatch.context() as patch:
        patch.setattr("privacyfunnel.release.design.run_method", fail)
        with pytest.raises(GuaranteeError):
            design_file(ward, spec)
    refused(["design", *private(ward, tmp_path / "one.json")], "LedgerError", "before, once")
    told("design", *private(ward, tmp_path / "one.json", "--again"))
    refused(["design", *private(ward, tmp_path / "one.json", "--force")], "LedgerError", "before, 2 times", "ε = 1.5")
