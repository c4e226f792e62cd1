"""Forced responses: what a formula says of any number of values is what their channel says of few."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import FloatArray, dense
from privacyfunnel.designs.forced_response_design import forced_response
from privacyfunnel.errors import SizeError
from privacyfunnel.estimation import estimate, forced_response_model, impute, observation_models, posterior
from privacyfunnel.estimation.expected_precision import counting_error, expected_precision_by_column
from privacyfunnel.estimation.forced_response_model import ForcedModel, ForcedResponseEstimator
from privacyfunnel.estimation.identification import RowSpace
from privacyfunnel.estimation.intervals import spread
from privacyfunnel.estimation.inversion import unbiased_weights
from privacyfunnel.estimation.many_values import Weights, estimate_many_shares
from privacyfunnel.estimation.observation import Cells
from privacyfunnel.estimation.observation_models import ChannelModel
from privacyfunnel.estimation.profile import CertainBounds
from privacyfunnel.estimation.share_estimates import EstimationSettings, Fit
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.release.sanitise import Release, sanitise
from privacyfunnel.spec import ReleaseSpec

SEEDS = st.integers(0, 10**6)


def response(random: np.random.Generator) -> ForcedModel:
    """A few values, some of which noise never shows."""
    a, truth = int(random.integers(2, 8)), float(random.uniform(0.1, 1.0))
    noise = random.dirichlet(np.ones(a)) * random.choice([0.0, 1.0], size=a, p=[0.3, 0.7])
    noise[0] += 1e-3
    return ForcedModel(truth, noise / noise.sum() * (1 - truth))


def written_out(model: ForcedModel) -> ChannelModel:
    chances = [[model.truth * (x == y) + r for y, r in enumerate(model.noise)] for x in range(model.inputs)]
    return ChannelModel(np.array(chances))


def some_cells(random: np.random.Generator, a: int) -> Cells:
    number = np.unique(random.integers(0, a, size=a), return_inverse=True)[1].reshape(-1)
    return Cells(tuple((str(c),) for c in range(number.max() + 1)), number)


def shares(random: np.random.Generator, a: int) -> FloatArray:
    return random.dirichlet(np.full(a, 0.7))


@given(seed=SEEDS, fixed=st.booleans())
@settings(max_examples=60, deadline=None)
def test_estimates_and_their_spread_are_those_of_the_channel_written_out(seed: int, fixed: bool) -> None:
    random = np.random.default_rng(seed)
    model = response(random)
    channel, cells, p = written_out(model), some_cells(random, model.inputs), shares(random, model.inputs)
    seen = channel.simulate(p, 5000, random, fixed=False)
    found = ForcedResponseEstimator(model.truth, model.noise, p).estimate(cells, seen, fixed=fixed)
    functions = dense(cells.functions)
    g = unbiased_weights(channel, RowSpace.from_means(channel.means), functions, (p + 0.1) / (p + 0.1).sum())
    around = spread(channel, g, p, seen.rows, fixed=fixed)
    certain = CertainBounds.from_likelihood(channel.likelihood(seen), seen.counts, functions)
    assert found.identified.all()
    assert found.share == pytest.approx(seen.statistics @ g, abs=1e-10)
    assert found.variance == pytest.approx(around.variance, rel=1e-10, abs=1e-16)
    assert found.slope == pytest.approx(around.slope, rel=1e-8, abs=1e-10)
    assert found.ranges == pytest.approx(channel.ranges(g), rel=1e-10, abs=1e-10)
    assert found.least == pytest.approx(certain.lower, abs=1e-12)
    assert found.most == pytest.approx(certain.upper, abs=1e-12)
    factorised = Weights.from_shares(channel, (p + 1e-3) / (p + 1e-3).sum()).estimate(cells, seen, fixed=fixed)
    assert found.share == pytest.approx(factorised.share, abs=1e-6)


@given(seed=SEEDS, method=st.sampled_from(["projection", "inversion"]), rows=st.sampled_from([40, 3000]))
@settings(max_examples=60, deadline=None)
def test_tables_are_those_of_the_channel_written_out(seed: int, method: str, rows: int) -> None:
    random = np.random.default_rng(seed)
    model = response(random)
    channel, cells = written_out(model), some_cells(random, model.inputs)
    seen = channel.simulate(shares(random, model.inputs), rows, random, fixed=True)
    usual = Fit.from_observed(channel, RowSpace.from_means(channel.means), seen, EstimationSettings(method)).shares(
        dense(cells.functions), np.ones(len(cells.labels), dtype=np.bool_)
    )
    found = estimate_many_shares(model.unbiased_estimator(seen, method), seen, cells, 0.95, fixed=True)
    share = found.share if method == "inversion" else np.clip(found.share, found.lower, found.upper)
    assert share == pytest.approx(usual.share, abs=1e-10)
    assert found.error == pytest.approx(usual.standard_error, rel=1e-8, abs=1e-10)
    assert found.lower == pytest.approx(usual.lower, abs=1e-10)
    assert found.upper == pytest.approx(usual.upper, abs=1e-10)


@given(seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_no_shares_make_what_was_seen_likelier_than_those_called_most_likely(seed: int) -> None:
    random = np.random.default_rng(seed)
    model = response(random)
    seen = written_out(model).simulate(shares(random, model.inputs), 50, random, fixed=False)
    p = model.unbiased_estimator(seen, "ml").fitted_shares
    assert p is not None
    assert (p >= 0).all()
    assert p.sum() == pytest.approx(1.0)
    chance = p @ model.channel
    drawn = seen.statistics > 0
    # The missing log-likelihood is at most n (max D − 1), docs/estimation.md.
    assert (model.channel[:, drawn] @ (seen.statistics[drawn] / chance[drawn])).max() <= 1 + 1e-12


@given(seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_records_are_completed_as_by_the_channel_written_out(seed: int) -> None:
    random = np.random.default_rng(seed)
    model = response(random)
    prior = shares(random, model.inputs) * random.choice([0.0, 1.0], size=model.inputs, p=[0.3, 0.7])
    prior[0] += 1e-3
    prior /= prior.sum()
    outputs, uniform = random.integers(0, model.inputs, size=400), random.random(400)
    found = model.impute_values(prior, outputs, uniform)
    assert (found == observation_models.posterior_quantiles(written_out(model), prior, outputs, uniform)).all()


@given(seed=SEEDS)
@settings(max_examples=40, deadline=None)
def test_how_near_estimates_come_is_as_by_the_channel_written_out(seed: int) -> None:
    random = np.random.default_rng(seed)
    model = response(random)
    tables, p = [some_cells(random, model.inputs) for _ in range(2)], random.dirichlet(np.full(model.inputs, 5.0))
    for one, other in zip(model.precision(p, tables), written_out(model).precision(p, tables), strict=True):
        assert one.variance == pytest.approx(other.variance, rel=1e-6, abs=2e-9)
        assert one.least == pytest.approx(other.least, abs=1e-12)
        assert one.most == pytest.approx(other.most, abs=1e-12)


def test_without_truth_nothing_is_told_but_that_all_cells_are_everything() -> None:
    model = ForcedModel(0.0, np.array([0.2, 0.3, 0.5]))
    seen = model.observe(np.array([2000, 3000, 5000]))
    apart, whole = Cells((("u",), ("v",)), np.array([0, 1, 1])), Cells((("all",),), np.zeros(3, dtype=np.int64))
    found = estimate_many_shares(model.unbiased_estimator(seen, "ml"), seen, apart, 0.95, fixed=True)
    assert not found.identified.any()
    assert found.lower.tolist() == [0, 0]
    assert found.upper.tolist() == [1, 1]
    assert estimate_many_shares(model.unbiased_estimator(seen, "ml"), seen, whole, 0.95, fixed=True).lower.tolist() == [
        1
    ]
    assert model.unbiased_estimator(seen, "ml").hidden_count() == 3
    (near,) = model.precision(np.full(3, 1 / 3), [apart])
    assert np.isinf(near.variance).all()


def released() -> Release:
    random = np.random.default_rng(0)
    job = random.choice(["a", "b"], size=3000)
    city = np.where(random.random(3000) < 0.5, np.where(job == "a", "u", "v"), random.choice(list("uvw"), size=3000))
    frame = pl.DataFrame({"job": job, "city": city, "sex": random.choice(["f", "m"], size=3000)})
    return sanitise(
        frame,
        ReleaseSpec(
            prior="table", secret="job", publish=["city", "sex"], promise=LIP(0.5), method="forced-response", seed=1
        ),
    )


@pytest.mark.parametrize("method", ["ml", "projection", "inversion"])
def test_a_release_is_estimated_and_completed_by_formula_as_by_its_channel(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, asked = released(), ["city", ("city", "sex")]
    usual = estimate(release, columns=asked, method=method)
    records, prior = impute(release.sealed, release.table, 4), posterior(release.sealed, release.table)
    monkeypatch.setattr(forced_response_model, "MANY", 0)
    monkeypatch.setattr(ForcedModel, "channel", property(lambda _: pytest.fail("written out")))
    found = estimate(release, columns=asked, method=method)
    assert found.methods == usual.methods == (method,)
    for one, other in zip(found.tables, usual.tables, strict=True):
        assert not one.notes
        for mine, theirs in zip(one.cells, other.cells, strict=True):
            assert mine.labels == theirs.labels
            assert mine.share == pytest.approx(theirs.share, abs=1e-10 if method != "ml" else 1e-3)
            assert mine.standard_error == pytest.approx(theirs.standard_error, abs=1e-10 if method != "ml" else 1e-4)
            assert mine.lower == pytest.approx(theirs.lower, abs=1e-10 if method != "ml" else 5e-3)
            assert mine.upper == pytest.approx(theirs.upper, abs=1e-10 if method != "ml" else 5e-3)
    assert posterior(release.sealed, release.table).probabilities == pytest.approx(prior.probabilities, abs=1e-3)
    for again, before in zip(impute(release.sealed, release.table, 4), records, strict=True):
        changed = (again["city"] != before["city"]).mean()
        assert changed < 0.02  # the same draws, from all but the same priors


def test_a_column_of_thousands_of_values_is_told_without_its_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ForcedModel, "channel", property(lambda _: pytest.fail("written out")))
    random, values = np.random.default_rng(0), 9000
    zipf = 1 / np.arange(1, values + 1)
    part = random.beta(3, 3, size=values)
    p = np.concatenate([zipf * part, zipf * (1 - part)]) / zipf.sum()
    joint = Joint.from_counts(1 + random.multinomial(300_000, p).reshape(2, values))
    sealed = seal(forced_response(joint, LIP(0.5)), LIP(0.5), joint)
    name, labels = joint.attributes[0].name, np.array(joint.attributes[0].labels)
    counting = counting_error(sealed, joint, joint.total)
    assert counting is not None
    assert counting.column == name
    (near,) = expected_precision_by_column(sealed, joint, joint.total)
    codes = np.repeat(np.arange(joint.a), joint.weights.sum(axis=0).astype(np.int64))
    shown = pl.DataFrame(
        {name: labels[sealed.mechanism.label_codes(sealed.sample(codes, KeyStream.from_seed(1)))[:, 0]]}
    )
    table = estimate(sealed, shown).table(name)
    share, lower, upper = np.array([(cell.share, cell.lower, cell.upper) for cell in table.cells]).T
    held, told = (
        dict(zip(of, p.tolist(), strict=True)) for of, p in ((joint.values, joint.p_x), (near.labels, near.half_widths))
    )
    p, within = (np.array([of[cell.labels] for cell in table.cells]) for of in (held, told))
    assert table.method == "inversion"
    assert share.sum() == pytest.approx(1.0)
    assert ((lower <= p) & (p <= upper)).mean() > 0.94
    assert (np.abs(share - p) <= within).mean() > 0.9  # what is expected is a normal law, of few rows each
    (full,) = impute(sealed, shown, 1)
    assert len(full) == joint.total
    with pytest.raises(SizeError, match=r"A table of posteriors has at most 33,554,432 entries; .* × 9,000 values"):
        posterior(sealed, shown)
