"""The ε of the people whom a table stands for: it covers the truth, agrees with the certificate, and is the owner's."""

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.errors import ParameterError
from privacyfunnel.formatting import format_epsilon, format_factor
from privacyfunnel.mechanisms.sealing import build_mechanism, seal
from privacyfunnel.model.comparisons import Comparisons, compare_groups
from privacyfunnel.model.credal.sample_rule import RARE
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.release.design import design
from privacyfunnel.release.findings.findings import Findings
from privacyfunnel.release.findings.population import population_bound
from privacyfunnel.release.sanitise import Release, sanitise
from privacyfunnel.report.release_page import Occasion, owner_page
from privacyfunnel.spec import ReleaseSpec
from tests.model.test_population import leakage_alone
from tests.report.released import readme
from tests.strategies import joints, protocols_for

OCCASION = Occasion(datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "people.csv", "privacyfunnel sanitise people.csv")
TRUTH = Joint.from_counts([[30, 20, 10], [10, 20, 30], [3, 2, 1]])
QUIET = Protocol(np.array([[0.6, 0.4], [0.5, 0.5], [0.3, 0.7]]))


@given(st.data(), joints(min_c=2, min_a=2), st.sampled_from([LIP(1.0), LDP(1.0), SRLIP(1.0)]), st.booleans())
@settings(max_examples=15)
def test_the_statement_is_the_measure_of_a_promise_for_the_population_rounded_outwards(
    data: st.DataObject, joint: Joint, promise: Promise, sees_secret: bool
) -> None:
    law = build_mechanism(data.draw(protocols_for(joint, sees_secret)), joint, 0.0)
    found = population_bound(law, promise, joint)
    assert found is not None
    assert not found.is_certificate
    assert found.rows == joint.total
    if joint.weights.sum(axis=1).max() == joint.total or np.sort(joint.weights.sum(axis=1))[:-1].sum() < RARE:
        assert math.isinf(found.epsilon)
        return
    exact = law.worst_credal_leak(promise.for_population(joint).credal_sets(joint, sees_secret)).leak.epsilon
    assert exact <= found.epsilon
    assert found.epsilon <= exact + 1e-5 * math.exp(min(exact, 700.0))  # bounds next to 0 are rounded


@pytest.mark.parametrize("promise", [LIP(1.0), LDP(1.0)])
def test_the_people_are_covered_as_often_as_it_says(promise: Promise) -> None:
    """Of 150 samples at most 7.5 may fail on average; more than 25 would with a chance below one in a million."""
    rng = np.random.default_rng(3)
    law = build_mechanism(QUIET, TRUTH, 0.0)
    failed = beyond = 0
    for _ in range(150):
        table = Joint.from_counts(rng.multinomial(8000, TRUTH.p_sx.ravel()).reshape(3, 3))
        found = population_bound(law, promise, table)
        assert found is not None
        true = promise.leakage(TRUTH, law.protocol)
        failed += true > found.epsilon
        beyond += true > promise.leakage(table, law.protocol)
    assert failed <= 25
    assert beyond > 30  # what the table itself says is often below the truth


def test_a_promise_for_the_population_is_its_own_certificate() -> None:
    joint = Joint.from_counts(TRUTH.weights * 60)
    promise = LIP(1.0).for_population(joint)
    sealed = seal(QUIET, promise, joint)
    found = population_bound(sealed.mechanism, promise, joint)
    assert found is not None
    assert found.is_certificate
    assert (
        found.epsilon == sealed.mechanism.worst_credal_leak(promise.credal_sets(joint)).leak.epsilon <= sealed.epsilon
    )
    assert found.describe_with_table(sealed.epsilon).endswith("(certified)")


def test_rare_secrets_count_together_and_each_is_measured_alone() -> None:
    joint = Joint.from_counts(TRUTH.weights * 30)  # 180 rows have the third secret
    law = build_mechanism(QUIET, joint, 0.0)
    found = population_bound(law, LIP(1.0), joint)
    assert found is not None
    assert list(found.alone) == [joint.secrets[2]]
    assert found.alone[joint.secrets[2]] == pytest.approx(leakage_alone(LIP(1.0), 2, joint, law.protocol), abs=1e-6)
    assert found.rare_alone == (
        f"population ε pools secrets with fewer than {found.rare} rows; alone {joint.secrets[2]} "
        f"{format_epsilon(found.alone[joint.secrets[2]])}"
    )
    many = population_bound(law, LIP(1.0), Joint.from_counts(TRUTH.weights * 60))
    assert many is not None
    assert (many.alone, many.rare_alone) == ({}, "")


def test_too_few_rows_bound_nothing_and_it_is_said() -> None:
    found = population_bound(build_mechanism(QUIET, TRUTH, 0.0), LIP(1.0), TRUTH)
    assert found is not None
    assert found.to_dict()["epsilon"] is None
    assert found.statement == "unbounded with 95 % confidence, secrets of fewer than 200 rows together"
    assert found.to_dict()["because"].startswith("they are too few")


def test_what_would_take_too_long_is_not_computed() -> None:
    law = build_mechanism(QUIET, TRUTH, 0.0)
    assert population_bound(law, LIP(1.0), TRUTH, most=10) is None
    assert population_bound(law, LIP(1.0), TRUTH, most=10**4) is not None


class Own(Promise, named=False):
    """A promise that does not say which groups it compares."""

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        yield compare_groups(joint, sees_secret, np.eye(joint.c, dtype=bool), [[0, 1]])


def test_a_promise_of_ones_own_stands_without_it() -> None:
    assert population_bound(build_mechanism(QUIET, TRUTH, 0.0), Own(1.0), TRUTH) is None


@pytest.fixture(scope="module")
def release() -> Release:
    rng = np.random.default_rng(1)
    s = rng.choice(["a", "b", "few"], p=[0.6, 0.38, 0.02], size=6000)
    x = np.where(rng.random(6000) < 0.4, np.where(s == "a", "u", "v"), rng.choice(["u", "v", "w"], size=6000))
    frame = pl.DataFrame({"s": s, "x": x})
    return sanitise(
        frame,
        ReleaseSpec(prior="table", secret="s", publish="x", promise=LIP(0.5), method="randomised-response", seed=1),
    )


def test_the_figure_is_in_the_owners_report_and_in_nothing_public(release: Release) -> None:
    assert release.people is not None
    other = Findings(release.design, release.spec)
    vars(other)["people"] = None
    without = replace(release, findings=other)
    assert readme(release) == readme(without)
    owners = owner_page(release, OCCASION)
    assert "Measured: a factor of at most" in owners
    assert "alone few " in owners
    assert owners != owner_page(without, OCCASION)
    assert not any("worst case" in sentence for sentence in release.not_promised)
    said = [sentence for sentence in release.not_promised_to_owner if "For others like them it may not" in sentence]
    assert len(said) == 1
    assert f"(worst case ×{format_factor(release.people.epsilon)})" in said[0]
    assert len(release.not_promised) == len(release.not_promised_to_owner)


def test_what_depends_on_counts_is_said_to_the_owner_only_and_both_files_are_named() -> None:
    random = np.random.default_rng(6)
    s = random.integers(0, 2, 600)
    frame = pl.DataFrame({"s": s.astype(str), "x": np.where(random.random(600) < 0.6, s, 1 - s).astype(str)})
    seeing = sanitise(
        frame, ReleaseSpec(prior="table", secret="s", publish="x", promise=LIP(0.3), method="conditional-reporting")
    )
    assert seeing.known_values_leak is not None
    figure = f"up to ε = {format_epsilon(seeing.known_values_leak)};"
    assert any(figure in sentence for sentence in seeing.not_promised_to_owner)
    assert not any("up to ε" in sentence for sentence in seeing.not_promised)
    assert any("reads s." in sentence for sentence in seeing.not_promised)
    assert any(sentence.startswith("protocol.json was made from the counts") for sentence in seeing.not_promised)
    coded = sanitise(frame, prior="table", secret="s", publish="x", promise=LIP(0.1))
    assert coded.codebook is not None
    files = "protocol.json and codebook.csv were made from the counts themselves"
    assert any(sentence.startswith(files) and "Only you" in sentence for sentence in coded.not_promised_to_owner)
    assert any(sentence.startswith(files) and "Only you" not in sentence for sentence in coded.not_promised)


@pytest.mark.parametrize("labels", [{"merge_rare": 10}, {"bins": {"age": 4}}])
def test_labels_chosen_by_the_counts_are_promised_to_nobody_beyond_the_table(labels: dict[str, Any]) -> None:
    """Credal sets hold for labels that were fixed beforehand. `auto` keeps the promise for the table, and says why."""
    draw = np.random.default_rng(3)
    frame = pl.DataFrame({"ill": draw.choice(["yes", "no"], 3000), "age": draw.integers(20, 60, 3000)})
    spec = ReleaseSpec(prior="table", secret="ill", publish="age", epsilon=1.0, population="95%", **labels)
    with pytest.raises(ParameterError, match="needs labels that do not depend on the counts"):
        design(frame, spec)
    assert design(frame, replace(spec, population="auto")).promise.population is None
    fixed = ReleaseSpec(
        prior="table", secret="ill", publish="age", epsilon=1.0, population="95%", bins={"age": [30, 40, 50]}
    )
    assert design(frame, fixed).promise.population is not None
