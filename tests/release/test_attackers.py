"""Who knows better than the prior: five questions, computed once, on the page, in JSON, and short in the summary."""

from __future__ import annotations

import html
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privacyfunnel.cli.release_summary import content, format_summary
from privacyfunnel.errors import ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP
from privacyfunnel.release.findings import attacker_leaks
from privacyfunnel.release.findings.attacker_leaks import classifier_leak
from privacyfunnel.release.findings.findings import Attacker, warn_of_attackers
from privacyfunnel.release.release import Release
from privacyfunnel.release.sanitise import sanitise
from privacyfunnel.report.release_page import owner_page
from privacyfunnel.spec import ReleaseSpec
from tests.report.released import OCCASION, released

FIVE = ["model", "frequencies", "population", "columns", "classifier"]


def people(rows: int = 20_000) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    ill, old = rng.random(rows) < 0.3, rng.random(rows) < 0.4
    town = np.where(ill & (rng.random(rows) < 0.6), 0, rng.integers(0, 4, size=rows))
    return pl.DataFrame({"illness": ill.astype(str), "town": town.astype(str), "old": old.astype(str)})


def release(**more: Any) -> Release:
    asked: dict[str, Any] = {
        "prior": "table",
        "secret": "illness",
        "publish": "town",
        "epsilon": 0.5,
        "seed": 1,
        "gap": 1e-2,
    }
    return sanitise(people(), ReleaseSpec(**asked | more))


@pytest.fixture(scope="module")
def by_model() -> Release:
    return release(prior="model")


def test_five_questions_are_answered_on_the_page_and_in_json(by_model: Release) -> None:
    found = by_model.findings.attackers
    assert [each.name for each in found] == FIVE
    shown = html.unescape(owner_page(by_model, OCCASION))
    assert all(each.who in shown and each.answer in shown for each in found)
    assert [each["name"] for each in content(by_model)["attackers"]] == FIVE
    assert [each.promised is not None for each in found] == [True, False, False, True, False]
    assert found[0].epsilon is not None
    assert found[0].epsilon <= 0.5


@pytest.mark.parametrize(("share", "most"), [(0.87, True), (0.5, False), (None, False)])
def test_that_most_rows_are_not_protected_from_a_classifier_is_said_in_words(share: float | None, most: bool) -> None:
    found = Attacker("classifier", "somebody", None, 4.28, "Not promised.", share)
    line = warn_of_attackers((found,), 1.0)
    assert line.startswith("more than ×2.72 for some: whoever fitted a classifier to the raw rows ×72.3")
    assert ("Most rows are not protected from them" in line) is most
    assert (hint("robust", 1.25) in line) is most


def test_the_summary_names_only_those_who_learn_more_than_was_promised(by_model: Release) -> None:
    worse = [each.name for each in by_model.findings.attackers if each.exceeds(0.5)]
    assert worse
    line = by_model.findings.knows_better
    assert line in format_summary(by_model)
    assert ("exact frequencies" in line) == ("frequencies" in worse)
    generous = release(prior="table", epsilon=5, publish="old")
    assert generous.findings.knows_better == ""
    assert "not promised to" not in format_summary(generous)


def test_by_the_table_its_own_frequencies_are_promised() -> None:
    found = release(prior="table").findings.attackers
    assert [each.name for each in found] == FIVE[1:]
    assert found[0].promised == 0.5


def test_with_robust_those_with_other_odds_are_promised_the_same() -> None:
    made = release(prior="model", robust=2)
    odds = next(each for each in made.findings.attackers if each.name == "robust")
    assert odds.promised == 0.5
    assert "differ by a factor of at most 2" in odds.who
    plain = release(prior="model").findings.classifier
    assert plain is not None
    assert made.findings.classifier is not None
    assert made.findings.classifier.epsilon < plain.epsilon
    assert made.findings.classifier.share == 0  # whose odds are well within 2 of the model's


def test_a_classifier_moves_as_far_as_its_own_belief_says() -> None:
    """With many rows per value a fold's classifier is the table, nearly: so is what leaks, and for whom."""
    counts = np.array([[60_000, 30_000, 10_000], [20_000, 20_000, 60_000]])
    joint = Joint.from_counts(counts, ["s", "t"], ["x", "y", "z"])
    made = released(LIP(0.5), ("city",)).sealed.mechanism
    law = made.restrict_inputs(np.arange(3))
    listed = law.explicit_protocol(10**6)
    assert listed is not None
    q = np.asarray(listed.channel.todense())
    by_secret, everybody = joint.p_sx @ q / joint.p_s[:, None], joint.p_x @ q
    ratio = np.log(by_secret / everybody)
    found = classifier_leak(law, LIP(0.2), joint)
    assert found is not None
    assert math.isclose(found.up, ratio.max(), abs_tol=0.02)
    assert math.isclose(found.down, -ratio.min(), abs_tol=0.02)
    rises = (ratio > 0.2).any(axis=0)
    assert math.isclose(found.share_up, float(everybody[rises].sum()), abs_tol=0.02)
    odds = classifier_leak(law, LDP(0.2), joint)
    assert odds is not None
    assert math.isclose(odds.epsilon, np.abs(ratio[0] - ratio[1]).max(), abs_tol=0.04)


def test_several_columns_are_learned_from_together() -> None:
    """Where no pair of rows agrees, a regression on the columns still predicts; a table of counts does not."""
    rng = np.random.default_rng(3)
    combos = np.stack(np.meshgrid(range(12), range(12), indexing="ij"), axis=-1).reshape(-1, 2)
    chance = 1 / (1 + np.exp(-(combos.sum(axis=1) - 11) / 2))
    counts = np.stack([ill := rng.binomial(4, chance), 4 - ill])
    wide = attacker_leaks._logistic(combos, counts)
    assert (
        np.abs(wide[0] - chance).mean()
        < np.abs(attacker_leaks._smooth(counts, attacker_leaks._shares(counts), 1.0)[0] - chance).mean()
    )


def test_what_takes_too_long_is_said_to_be_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attacker_leaks, "MOST_NUMBERS", 1)
    found = release(prior="table").findings.attackers[-1]
    assert found.epsilon is None
    assert "Not measured" in found.answer


def test_who_knows_the_values_of_a_person_finds_their_record_by_the_likeliest_output() -> None:
    """Somebody who knows a person's values picks a row of the output that points at them most."""
    counts = np.array([[3, 1, 0], [2, 0, 4]])
    joint = Joint.from_counts(counts, ["s", "t"], ["x", "y", "z"])
    law = released(LIP(0.5), ("city",)).sealed.mechanism.restrict_inputs(np.arange(3))
    found = attacker_leaks.measure_linkage(law, joint)
    assert (found.rows, found.unique, found.smallest) == (10, 1, 1)
    listed = law.explicit_protocol(10**6)
    assert listed is not None
    q = np.asarray(listed.channel.todense())
    seen = np.maximum(counts.sum(axis=0) @ q, 1.0)
    best = (q / seen).max(axis=1)
    assert math.isclose(found.found or 0.0, float(best @ counts.sum(axis=0)) / 10)
    assert found.found_most == best.max()


def test_the_disclosure_record_has_approval_criteria_and_model(tmp_path: Path) -> None:
    board = {
        "approved_by": "Board 7",
        "purpose": "teaching",
        "contact": "data@example.org",
        "valid_until": "2027-12-31",
    }
    made = release(prior="model", **board)
    record = json.loads((made.save(tmp_path / "out") / "owner" / "disclosure-record.json").read_text(encoding="utf-8"))
    assert record["egress"] | board == record["egress"]
    assert record["registry"]["privacy_model"] == "LIP about illness, not DP"
    assert [each["name"] for each in record["criteria"]["inference"]] == FIVE
    assert record["criteria"]["singling_out_and_linkability"]["unique"] == 0
    page = html.unescape((tmp_path / "out" / "owner" / "report.html").read_text(encoding="utf-8"))
    assert all(text in page for text in board.values())
    assert "Who is in the table is not protected" in page
    public = [
        path.read_text(encoding="utf-8") for path in (tmp_path / "out" / "public").glob("*") if path.suffix != ".sig"
    ]
    assert not any("Board 7" in text for text in public)
    with pytest.raises(ParameterError, match="valid_until must be a date"):
        ReleaseSpec(valid_until="next year")
