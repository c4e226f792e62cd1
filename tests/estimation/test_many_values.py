"""Estimates over many values by one factorisation: unbiased, as wide as they should be, silent on what is hidden."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.cli.estimate_command import format_summary
from privacyfunnel.errors import ParameterError
from privacyfunnel.estimation import impute, observation, posterior, tabulation
from privacyfunnel.estimation.identification import RowSpace, identify
from privacyfunnel.estimation.intervals import spread
from privacyfunnel.estimation.inversion import project_on_simplex, unbiased_weights
from privacyfunnel.estimation.linear import likely_shares
from privacyfunnel.estimation.many_values import Weights, estimate_many_shares
from privacyfunnel.estimation.observation import Cells, ChannelModel
from privacyfunnel.estimation.results import Cell, Estimates, ShareTable
from privacyfunnel.estimation.share_estimates import EstimationSettings
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.release.sanitise import Release, sanitise
from privacyfunnel.spec import ReleaseSpec


def each_value(a: int) -> Cells:
    return Cells(tuple((str(x),) for x in range(a)), np.arange(a))


@given(seed=st.integers(0, 10**6), a=st.integers(2, 6), more=st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_estimates_are_those_of_least_variance_and_what_is_not_identified_is_not_told(
    seed: int, a: int, more: int
) -> None:
    random = np.random.default_rng(seed)
    channel = random.dirichlet(np.ones(a + more), a) * random.choice([0.0, 1.0], size=(a, a + more), p=[0.3, 0.7])
    channel[:, 0] += 0.1
    if random.random() < 0.5:
        channel[-1] = channel[0]  # nothing tells these two apart
    channel /= channel.sum(axis=1, keepdims=True)
    model = ChannelModel(channel)
    chances = random.dirichlet(np.ones(a)) @ channel
    seen = model.observe(random.multinomial(5000, chances / np.nextafter(chances.sum(), 2)))
    weights, asked = Weights.from_observed(model, seen), EstimationSettings("inversion")
    found, told = estimate_many_shares(weights, seen, each_value(a), asked)
    space = RowSpace.from_means(channel)
    known = identify(space, np.eye(a)).identified
    assert not (told & ~known).any()
    # The other way round rounding may hide what is all but hidden.
    clear = known & (np.linalg.svd(channel)[1].min() > 1e-2 if space.complete else False)
    assert told[clear].all()
    p = (seen.rows * likely_shares(model, seen) + 1) / (seen.rows + a)
    g = unbiased_weights(model, space, np.eye(a)[:, told], p)
    expected = np.sqrt(spread(model, g, p, seen.rows, fixed=True).variance)
    assert found.standard_error[told] == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert (found.lower <= found.upper).all()


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_weights_that_are_called_unbiased_are(seed: int) -> None:
    random = np.random.default_rng(seed)
    channel = random.dirichlet(np.full(6, 0.5), 5)
    g, told = Weights.from_shares(ChannelModel(channel), np.full(5, 0.2)).solve(np.eye(5))
    assert np.abs(channel @ g - np.eye(5))[:, told].max(initial=0.0) <= 1e-6


def released() -> Release:
    random = np.random.default_rng(0)
    job = random.choice(["a", "b"], size=3000)
    city = np.where(random.random(3000) < 0.5, np.where(job == "a", "u", "v"), random.choice(list("uvw"), size=3000))
    frame = pl.DataFrame({"job": job, "city": city})
    return sanitise(frame, ReleaseSpec(prior="table", secret="job", publish="city", promise=LIP(0.5), seed=1))


def test_a_table_of_many_values_is_told_by_one_factorisation_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    release = released()
    usual = tabulation.estimate(release).table("city")
    monkeypatch.setattr(observation, "MOST_ALGEBRA", 0)
    estimates = tabulation.estimate(release)
    found = estimates.table("city")
    assert estimates.method == found.method == "inversion"
    assert "Shares in the original table, by inversion, with 95 % intervals" in format_summary(estimates, [])
    assert "unbiased estimate by itself" in found.notes[0]
    for one, other in zip(found.cells, usual.cells, strict=True):
        if one.share is not None and other.share is not None:
            assert one.share == pytest.approx(other.share, abs=0.02)
            assert one.lower <= other.share <= one.upper


def test_tables_that_are_estimated_by_different_methods_each_say_by_which() -> None:
    cells = (Cell(("u",), 1.0, 0.0, 1.0, 1.0),)
    one, other = (
        ShareTable((name,), (), 9, cells, (), (), method) for name, method in (("x", "ml"), ("y", "inversion"))
    )
    text = format_summary(Estimates((one, other), 0.95, "table", ()), [])
    assert "by maximum likelihood and inversion, with" in text
    assert "9 rows, by maximum likelihood" in text
    assert "9 rows, by inversion" in text


@given(seed=st.integers(0, 10**6), a=st.integers(2, 6), more=st.integers(0, 4))
@settings(max_examples=30, deadline=None)
def test_records_of_many_values_are_completed_by_the_distribution_nearest_to_the_estimates(
    seed: int, a: int, more: int
) -> None:
    random = np.random.default_rng(seed)
    channel = 0.7 * np.eye(a, a + more) + 0.3 * random.dirichlet(np.ones(a + more), a)
    model = ChannelModel(channel)
    chances = random.dirichlet(np.ones(a)) @ channel
    seen = model.observe(random.multinomial(300, chances / np.nextafter(chances.sum(), 2)))
    weights = Weights.from_observed(model, seen)
    assert weights.hidden_count() == 0
    g = unbiased_weights(model, RowSpace.from_means(channel), np.eye(a), weights.p)
    assert weights.project(seen.statistics) == pytest.approx(project_on_simplex(seen.statistics @ g), abs=1e-9)
    hiding = np.vstack([channel, channel[:1]])
    assert Weights.from_observed(ChannelModel(hiding), seen).hidden_count() == 2


def test_many_values_are_imputed_by_one_factorisation_as_few_are_by_singular_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = released()
    usual, prior = impute(release.sealed, release.table, 8), posterior(release.sealed, release.table).prior
    monkeypatch.setattr(observation, "MOST_ALGEBRA", 0)
    monkeypatch.setattr(RowSpace, "from_means", None)  # what would take minutes is not asked
    found, many = impute(release.sealed, release.table, 8), posterior(release.sealed, release.table).prior
    assert many == pytest.approx(prior, abs=1e-3)
    for city in "uvw":
        shares = [[(frame["city"] == city).mean() for frame in frames] for frames in (found, usual)]
        assert np.mean(shares[0]) == pytest.approx(np.mean(shares[1]), abs=0.01)
        assert 0.2 < np.std(shares[0]) / np.std(shares[1]) < 5  # they differ by as much as the prior is uncertain


def test_many_values_some_of_which_are_hidden_are_not_imputed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observation, "MOST_ALGEBRA", 0)
    joint = Joint.from_counts([[30, 10, 10], [10, 20, 20]], values=["u", "v", "w"])
    sealed = seal(Protocol(np.array([[0.6, 0.4], [0.5, 0.5], [0.5, 0.5]]), (("u",), ("v",))), LIP(1), joint)
    frame = pl.DataFrame({sealed.domain.attributes[0].name: ["u", "v"] * 50})
    with pytest.raises(ParameterError, match=r"this protocol hides 2 of 3 shares\. Use estimate"):
        impute(sealed, frame, 1)
