"""Labels of a published model: found through noise, or public knowledge; and what a refusal after noise says."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privacyfunnel import sanitise
from privacyfunnel.errors import PrivacyFunnelError
from privacyfunnel.report.summary_lines import warnings
from privacyfunnel.spec import ReleaseSpec
from tests.commands import refused, run
from tests.release.test_model_design import DOMAIN, made, people


def test_the_owner_is_told_how_many_values_are_named() -> None:
    rng = np.random.default_rng(0)
    n = 6000
    rare = np.where(rng.random(n) < 0.05, rng.integers(0, 40, n).astype(str), rng.choice(["u", "v", "w"], n))
    people = pl.DataFrame({"s": rng.choice(["a", "b"], n), "x": rare, "z": rng.choice(["no", "yes"], n)})
    spec = ReleaseSpec(secret="s", publish=("x",), epsilon=1, seed=3)
    told = [said for said in warnings(sanitise(people, spec)) if "merged" in said]
    assert len(told) == 1
    assert told[0].startswith("rare values were merged: 40 of 43 values of x (5.2 % of rows)")
    both = warnings(sanitise(people, replace(spec, publish=("z",))))
    assert not any("merged" in said for said in both)  # both values have names
    all_named = sanitise(people, replace(spec, public_labels=("x",)))
    assert set(all_named.sealed.domain.attributes[0].labels) == set(people["x"])
    assert not any("merged" in said for said in warnings(all_named))


@pytest.mark.parametrize("publish", ["town", ["town", "sex"], ["town", "sex", "year"]])
@pytest.mark.parametrize("public", [["town"], ["town", "illness"], ["town", "illness", "sex", "year"]])
def test_labels_that_are_public_knowledge_are_all_named(publish: str | list[str], public: list[str]) -> None:
    frame = people(rows=6000).with_row_index()
    frame = frame.with_columns(sex=pl.col("index") % 2, year=pl.col("index") % 3 + 2020)
    named = [column for column in public if column == "illness" or column in publish]
    sealed = made(frame, publish=publish, public_labels=named, bins={"year": "values"} if "year" in publish else {})
    towns = sealed.domain.attributes[0]
    assert set(towns.labels) == {"Bruges", "Ghent", "Lier", "Mol", "Ostend"}
    assert "town" not in sealed.domain.rest  # what has another label next month is unknown, and not one of these
    assert sealed.model is not None
    assert ("gout" in {label for group in sealed.model.groups for label in group}) is ("illness" in named)
    assert (sealed.model.delta == 0) is ({*named} == {"illness", *([publish] if isinstance(publish, str) else publish)})
    assert sealed.certified_total <= 1


@pytest.mark.parametrize(
    "more", [{"domain": DOMAIN}, {"prior": "table"}, {"merge_rare": 5}, {"public_labels": ["twon"]}], ids=str
)
def test_public_labels_are_refused_where_they_mean_nothing(more: dict[str, object]) -> None:
    with pytest.raises(PrivacyFunnelError, match="public_labels"):
        made(people(), **{"public_labels": ["town"]} | more)


def test_a_refusal_after_noise_was_drawn_says_that_it_counts(tmp_path: Path) -> None:
    people(rows=300).write_csv(tmp_path / "people.csv")
    words = ["sanitise", tmp_path / "people.csv", "-s", "illness", "--publish", "town", "-e", "0.1", "--into"]
    counts = "Noise was drawn, and its ε is spent: the next run needs --again. --try spends nothing."
    refused([*words, tmp_path / "out"], "ParameterError", "A published model needs more rows", counts)
    refused([*words, tmp_path / "out"], "LedgerError", "These rows were designed for before, once")


@pytest.mark.parametrize(("command", "into"), [("sanitise", "out"), ("design", "protocol.json")])
@pytest.mark.parametrize("wrong", [["-e", "0.0001"], ["-e", "40"], ["-e", "0.01", "--public-labels", "illness,town"]])
def test_a_refusal_before_noise_is_drawn_counts_for_nothing(
    tmp_path: Path, command: str, into: str, wrong: list[str]
) -> None:
    people(rows=300).write_csv(tmp_path / "people.csv")
    columns = [command, tmp_path / "people.csv", "-s", "illness", "--publish", "town", "--into", tmp_path / into]
    for _ in range(2):  # the second time it is not told of a first
        done = run(*columns, *wrong)
        assert done.returncode == 2
        assert done.stderr.startswith("ParameterError: ")
        assert "Noise was drawn" not in done.stderr
    done = run(*columns, "-e", "2", "--public-labels", "illness,town")
    assert done.returncode == 0, done.stderr  # without --again


def test_no_noise_refuses_a_small_table_whose_labels_are_public() -> None:
    rows = pl.DataFrame({"illness": ["flu", "none", "none", "none"] * 200, "town": ["Bruges", "Ghent"] * 400})
    for seed in range(20):  # one of them was refused when counts got a tenth of ε
        assert made(rows, public_labels=["illness", "town"], seed=seed).certified_total <= 1
