"""The five lines of a release say the certified factor, whom it covers and what it costs, and no jargon."""

import re

import polars as pl
import pytest

from privacyfunnel.formatting import format_factor, format_percent
from privacyfunnel.hints import word_for_command_line
from privacyfunnel.release.sanitise import sanitise
from privacyfunnel.report.summary_lines import format_within, summary_lines, warnings
from privacyfunnel.spec import ReleaseSpec
from tests.report.released import KINDS, released

JARGON = re.compile(r"nats|squared error|\[\d|entropy|I\(S;Y\)|certif|promise LIP|not known")


@pytest.mark.parametrize("kind", KINDS)
def test_five_lines_come_first_and_hold_no_jargon(kind: str) -> None:
    lines = summary_lines(released(*KINDS[kind]))
    names = [name for name, _ in lines if name]
    assert names == ["Published", "Stays here", "Protects", "Accuracy", "Warnings"]
    for _, text in lines:
        assert not JARGON.search(text), text


@pytest.mark.parametrize("kind", ["one column", "several", "side channels", "odds"])
def test_what_is_protected_follows_the_certified_epsilon_and_says_whom_it_covers(kind: str) -> None:
    release = released(*KINDS[kind])
    said = word_for_command_line(dict(summary_lines(release))["Protects"])
    joint, sealed = release.joint, release.sealed
    most = sealed.promise.belief_bounds(float(joint.p_s.max()), sealed.certified_total)[1]
    assert f"×{format_factor(sealed.certified_total)} " in said
    assert f"→ at most {format_percent(most, up=True)})" in said
    assert ("NOT covered (--promise srlip covers them)" in said) == (kind == "several")


def test_a_seed_is_the_first_warning() -> None:
    warnings = dict(summary_lines(released(*KINDS["one column"])))["Warnings"]
    assert warnings.endswith("NOT FOR PUBLICATION")


def test_many_columns_are_one_range() -> None:
    assert format_within([0.05, 0.001, 0.02]) == "within ±0.1 to ±5 points"


@pytest.mark.parametrize("spies", [0, 12])
def test_values_of_the_secret_about_which_nothing_is_promised_are_a_warning(spies: int) -> None:
    jobs = ["clerk", "miner"] * 2000 + ["spy"] * spies
    people = pl.DataFrame({"job": jobs, "town": ["u", "v", "v"] * (len(jobs) // 3) + ["u"] * (len(jobs) % 3)})
    spec = ReleaseSpec(secret="job", publish="town", epsilon=1.0, prior="model", seed=1)
    said = [text for text in warnings(sanitise(people, spec)) if "too rare for the model" in text]
    rare = "1 of 3 values of job (0.30 % of rows) are too rare for the model: nothing is promised about one of them"
    assert said == ([rare] if spies else [])
