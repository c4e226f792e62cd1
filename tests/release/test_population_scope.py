"""For whom a release is promised where that is left open: the people if possible, else these rows, and why."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privacyfunnel.errors import ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.model.promises import LIP
from privacyfunnel.release.release import Release
from privacyfunnel.release.sanitise import sanitise
from privacyfunnel.spec import ReleaseSpec
from tests.commands import said


def table(rows: int, values: int = 3, seed: int = 1) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    s = random.integers(0, 2, rows)
    x = np.where(random.random(rows) < 0.7, s, random.integers(0, values, rows))
    z = random.integers(0, 200, rows)
    return pl.DataFrame({name: [f"{name}{code}" for code in codes] for name, codes in (("s", s), ("x", x), ("z", z))})


def released(frame: pl.DataFrame, **more: Any) -> Release:
    spec: dict[str, Any] = {"method": "randomised-response", "publish": "x", **more}
    return sanitise(frame, ReleaseSpec(prior="table", secret="s", promise=LIP(1.0), **spec))


def test_the_people_are_promised_where_their_rows_allow_it_and_the_price_is_told() -> None:
    open_, asked, none = (released(table(3000), population=said) for said in ("auto", 0.95, None))
    assert open_.sealed.promise == asked.sealed.promise != none.sealed.promise
    assert open_.sealed.promise.population is not None
    assert open_.not_for_people == ""
    assert open_.rows_alone is not None
    assert open_.rows_alone.value == pytest.approx(none.information, abs=1e-9)
    assert open_.rows_alone.value > open_.information
    assert asked.rows_alone is None  # who asked knows why


@pytest.mark.parametrize(
    ("frame", "more", "why"),
    [
        (table(300), {}, "these 300 rows are too few"),
        (table(9000, 1500), {"method": "randomised-response"}, "more than 4,000 shares"),
        (table(3000), {"method": "conditional-reporting", "population": "auto"}, ""),
    ],
    ids=["small", "large", "seeing"],
)
def test_where_they_cannot_be_these_rows_are_and_one_sentence_says_why(
    frame: pl.DataFrame, more: dict[str, object], why: str
) -> None:
    release = released(frame, **{"population": "auto", **more})
    assert why in release.not_for_people
    assert (release.sealed.promise.population is None) == bool(why)
    assert release.not_for_people not in " ".join(release.not_promised) or not why  # it tells of secrets
    assert (release.rows_alone is None) == bool(why)


def test_what_was_asked_for_is_never_fallen_back_from_and_a_fault_of_the_order_is_told() -> None:
    with pytest.raises(ParameterError, match="too few"):
        released(table(300), population=0.95)
    with pytest.raises(ParameterError, match="between 0 and 1"):
        released(table(3000), population="often")


def test_the_command_says_for_whom_and_what_it_would_be_for_these_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = tmp_path / "people.csv"
    table(3000).write_csv(people)
    words = [
        "sanitise",
        "--prior=table",
        people,
        "--secret",
        "s",
        "--publish",
        "x",
        "-e",
        1,
        "--no-report",
        "--method",
    ]
    words += ["randomised-response", "--ledger", tmp_path / "ledger", "--again"]
    code, out, _ = said(capsys, *words, "--population", "auto", "--into", tmp_path / "auto", "--json")
    assert code == 0
    assert json.loads(out)["rows_alone"] > 0
    code, out, _ = said(capsys, *words, "--population", "none", "--into", tmp_path / "none", "--json")
    found = json.loads(out)
    assert (code, found["population"], found["not_for_people"], found["rows_alone"]) == (0, None, "", None)
    table(300).write_csv(people)
    code, out, _ = said(capsys, *words, "--population", "auto", "--into", tmp_path / "small", "--details")
    assert code == 0
    assert "not promised: A promise for a population needs two secrets" in out
    public = json.loads((tmp_path / "small" / "owner" / "protocol.json").read_text())
    assert "population" not in public["promise"]


def test_what_rare_secrets_cost_the_population_and_what_pooling_them_saves_is_told() -> None:
    random = np.random.default_rng(3)
    s = random.choice(6, 20_000, p=[0.3, 0.3, 0.2, 0.17, 0.02, 0.01])
    x = np.where(random.random(20_000) < 0.3, s % 5, random.integers(0, 5, 20_000))
    frame = pl.DataFrame({"s": [f"s{code}" for code in s], "x": [f"x{code}" for code in x]})
    asked: dict[str, Any] = {"method": "optimal", "use": "statistics", "time_limit": 20}
    release = released(frame, population=0.95, **asked)
    found = [said for said in release.rare if "for the population" in said]
    assert len(found) == 1
    population, alone, pooled = (float(text) for text in re.findall(r"([0-9.e-]+)(?: for the pop| or less)", found[0]))
    assert population == pytest.approx(release.worth.value, rel=1e-2)
    assert alone < pooled < population
    assert hint("merge_secrets", "s4,s5=other") in found[0]
    merged = released(frame, population=0.95, merge_secrets={"other": ["s4", "s5"]}, **asked)
    assert merged.worth.value <= pooled * 1.01  # as told, or less
    assert not any("for the population" in said for said in merged.rare)  # nothing more to pool
    assert not any("for the population" in said for said in released(frame, population=None, **asked).rare)
