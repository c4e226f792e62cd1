"""Estimation on arrays: unbiased, most likely, identified, covered."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from privacyfunnel.arrays import FloatArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.estimation.identification import RowSpace, identify, share_bounds
from privacyfunnel.estimation.intervals import Spread, interval
from privacyfunnel.estimation.inversion import covariance, project_on_simplex, unbiased_weights
from privacyfunnel.estimation.likelihood import GAP, accelerated_em, maximum_likelihood
from privacyfunnel.estimation.observation import ChannelModel, round_counts
from privacyfunnel.estimation.share_estimates import EstimationSettings, Fit

seeds = st.integers(0, 2**32 - 1)


def channel(rng: np.random.Generator, a: int, b: int) -> FloatArray:
    """A random channel without zeros."""
    return np.asarray(0.9 * rng.dirichlet(np.full(b, 0.3), size=a) + 0.1 / b)


def response(a: int, truth: float) -> FloatArray:
    """Randomised response that tells the value with chance `truth` and something uniform otherwise."""
    return truth * np.eye(a) + (1 - truth) / a


# -- inversion -----------------------------------------------------------------------------------------------------


@given(seeds, st.integers(2, 3), st.integers(0, 2))
@settings(max_examples=25, deadline=None)
def test_inversion_is_unbiased_with_its_exact_covariance_by_enumeration(seed: int, a: int, more: int) -> None:
    rng = np.random.default_rng(seed)
    q, b, rows = channel(rng, a, a + more), a + more, 3
    model, p = ChannelModel(q), rng.dirichlet(np.ones(a))
    space = RowSpace.from_means(q)
    g = unbiased_weights(model, space, np.eye(a), rng.dirichlet(np.ones(a)))
    table = rng.integers(a, size=rows)  # for a fixed table
    for fixed in (True, False):
        marginals = [q[x] if fixed else p @ q for x in table]
        truth = np.bincount(table, minlength=a) / rows if fixed else p
        chances, estimates = [], []
        for outputs in product(range(b), repeat=rows):
            chances.append(np.prod([m[y] for m, y in zip(marginals, outputs, strict=True)]))
            estimates.append(np.bincount(outputs, minlength=b) / rows @ g)
        mean = np.array(chances) @ np.array(estimates)
        off = np.array(estimates) - mean
        scale = np.abs(g).max()
        np.testing.assert_allclose(mean, truth, atol=1e-9 * scale)
        found = covariance(model, g, truth, rows, fixed=fixed)
        np.testing.assert_allclose((off.T * chances) @ off, found, atol=1e-9 * scale**2)


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_conditional_moments_of_a_channel_are_those_of_its_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, g = channel(rng, 3, 5), rng.normal(size=(5, 2))
    q[0] = [0, 1, 0, 0, 0]
    moments = ChannelModel(q).moments(g)
    for x in range(3):
        centred = g - q[x] @ g
        np.testing.assert_allclose(moments.variance[x], q[x] @ centred**2, atol=1e-12)
        np.testing.assert_allclose(moments.third[x], q[x] @ centred**3, atol=1e-12)
    assert (moments.variance[0] == 0).all()


@given(seeds, st.integers(1, 8))
@settings(max_examples=50, deadline=None)
def test_projection_is_the_nearest_distribution(seed: int, a: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.normal(size=a)
    nearest = project_on_simplex(p)
    assert nearest.min() >= 0
    assert nearest.sum() == pytest.approx(1)
    # Nearest iff (p − nearest) · (v − nearest) ≤ 0 for every corner v of the simplex.
    assert ((p - nearest) @ (np.eye(a) - nearest).T <= 1e-9).all()


# -- maximum likelihood --------------------------------------------------------------------------------------------


def gap(likelihood: FloatArray, counts: FloatArray, p: FloatArray) -> float:
    """The bound on what is missing from the largest log-likelihood, computed afresh."""
    return float((likelihood @ (counts / (p @ likelihood))).max() - counts.sum())


@given(seeds, st.integers(2, 12), st.sampled_from([10, 10**4, 10**7]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_most_likely_distribution_is_proved_so(seed: int, a: int, rows: int, deficient: bool) -> None:
    rng = np.random.default_rng(seed)
    q = channel(rng, a, int(rng.integers(1, 2 * a)))
    if deficient:
        q[0] = q[-1]
    counts = rng.multinomial(rows, np.random.default_rng(seed).dirichlet(np.full(q.shape[1], 0.5))).astype(float)
    seen = counts > 0
    best = maximum_likelihood(q[:, seen], counts[seen])
    assert best.p.min() >= 0
    assert best.p.sum() == pytest.approx(1)
    assert gap(q[:, seen], counts[seen], best.p) <= 2 * GAP


def test_accelerated_em_finds_the_same_and_never_falls_behind_its_gap() -> None:
    rng = np.random.default_rng(5)
    q = response(8, 0.4)
    counts = rng.multinomial(10**4, rng.dirichlet(np.ones(8)) @ q).astype(float)
    em, newton = accelerated_em(q, counts), maximum_likelihood(q, counts)
    assert em.gap <= GAP
    assert gap(q, counts, em.p) <= 2 * GAP
    np.testing.assert_allclose(em.p, newton.p, atol=1e-3)


def test_a_thousand_values_are_solved_to_the_same_gap() -> None:
    rng = np.random.default_rng(2)
    q = response(1000, 0.1)
    counts = rng.multinomial(10**7, rng.dirichlet(np.full(1000, 0.5)) @ q).astype(float)
    best = maximum_likelihood(q, counts)
    assert gap(q, counts, best.p) <= 2 * GAP


@given(seeds, st.integers(2, 6))
@settings(max_examples=30, deadline=None)
def test_maximum_likelihood_is_inversion_where_that_is_inside(seed: int, a: int) -> None:
    rng = np.random.default_rng(seed)
    model = ChannelModel(response(a, 0.7))
    p = 0.5 * rng.dirichlet(np.ones(a)) + 0.5 / a
    counts = np.round(10**6 * (p @ model.channel))
    observed = model.observe(counts)
    inverse = np.linalg.solve(model.channel.T, observed.statistics)
    assert inverse.min() > 0
    likely = maximum_likelihood(model.likelihood(observed), observed.counts).p
    np.testing.assert_allclose(likely, inverse, atol=1e-4)
    space = RowSpace.from_means(model.means)
    weights = unbiased_weights(model, space, np.eye(a), np.full(a, 1 / a))
    np.testing.assert_allclose(observed.statistics @ weights, inverse, atol=1e-9)


# -- identification ------------------------------------------------------------------------------------------------

BLURRED = np.array([[1, 0, 0.0], [0, 0.5, 0.5], [0, 0.5, 0.5], [0, 0.2, 0.8]])


def test_values_with_the_same_outputs_are_told_only_together() -> None:
    found = identify(RowSpace.from_means(BLURRED[:3]), np.eye(3))
    assert found.identified.tolist() == [True, False, False]
    assert found.sums == ((1, 2),)


def test_a_constant_protocol_identifies_nothing() -> None:
    found = identify(RowSpace.from_means(np.full((3, 2), 0.5)), np.eye(3))
    assert not found.identified.any()
    assert found.sums == ()


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_identified_shares_do_not_move_in_hidden_directions_and_sums_do_not_either(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = int(rng.integers(3, 8)), int(rng.integers(2, 6))
    q = rng.dirichlet(np.ones(b), size=a)
    q[1] = q[0]
    if rng.random() < 0.5:
        q = np.block([[q, np.zeros((a, 2))], [np.zeros((2, b)), np.eye(2)]])
    space = RowSpace.from_means(q)
    found = identify(space, np.eye(len(q)))
    assert np.linalg.matrix_rank(q) == space.shown.shape[1]
    np.testing.assert_allclose(q.T @ space.hidden, 0, atol=1e-12)
    np.testing.assert_allclose(space.hidden[found.identified], 0, atol=1e-7)
    for members in found.sums:
        np.testing.assert_allclose(space.hidden[list(members)].sum(axis=0), 0, atol=1e-7)
        assert all(np.abs(space.hidden[j]).max() > 1e-9 for j in members)


def test_bounds_hold_the_truth_and_close_on_all_that_fits() -> None:
    model, p = ChannelModel(BLURRED), np.array([0.4, 0.3, 0.2, 0.1])
    observed = model.observe(np.round(10**8 * (p @ BLURRED)))
    found = share_bounds(model, observed, np.eye(4), 0.95)
    assert found.fits
    assert (found.lower <= p).all()
    assert (p <= found.upper).all()
    # p₁ + p₂ = 0.5 is all that is known of them.
    np.testing.assert_allclose(found.lower, [0.4, 0, 0, 0.1], atol=2e-3)
    np.testing.assert_allclose(found.upper, [0.4, 0.5, 0.5, 0.1], atol=2e-3)


def test_rows_that_no_distribution_explains_are_called_so_and_bounded_still() -> None:
    model = ChannelModel(np.array([[0.5, 0.5], [0.6, 0.4], [0.55, 0.45]]))
    found = share_bounds(model, model.observe(np.array([9_900.0, 100.0])), np.eye(3), 0.95)
    assert not found.fits
    assert found.upper[1] == pytest.approx(1, abs=1e-4)


def test_estimates_of_what_is_not_identified_are_bounds_and_of_the_rest_numbers() -> None:
    model = ChannelModel(BLURRED[:3])
    observed = model.observe(np.array([400, 290, 310]))
    space = RowSpace.from_means(model.means)
    fit = Fit.from_observed(model, space, observed, EstimationSettings("ml"))
    shares = fit.shares(np.eye(3), identify(space, np.eye(3)).identified)
    assert shares.share[0] == pytest.approx(0.4)
    assert shares.lower[0] == pytest.approx(shares.upper[0])  # the output of value 0 is certain
    assert shares.lower[1:].max() == pytest.approx(0, abs=1e-9)
    # Each of the other 600 rows may have either value: that is certain, and no interval says less.
    np.testing.assert_allclose(shares.upper[1:], 0.6, atol=1e-12)


# -- intervals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.01, 0.03, 0.1, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("sd", [0.02, 0.5])
def test_intervals_for_a_normal_estimate_cover_at_their_level_also_at_the_boundary(share: float, sd: float) -> None:
    rows = 40_000
    estimates = np.random.default_rng(11).normal(share, sd, size=rows)
    lower, upper = interval(estimates, Spread(np.full(rows, sd**2), np.zeros(rows)), 0.95)
    covered = int(((lower <= share) & (share <= upper)).sum())
    # Within 1e-9 of a binomial tail on either side; 1e-5 allows for the ends' finite precision.
    assert binom.ppf(1e-9, rows, 0.95 - 1e-5) <= covered <= binom.ppf(1 - 1e-9, rows, 0.95 + 1e-5)
    assert (lower < upper).all()
    assert lower.min() >= 0
    assert upper.max() <= 1


@pytest.mark.parametrize("target", ["table", "population"])
def test_intervals_cover_what_they_are_said_to_cover(target: str) -> None:
    rng = np.random.default_rng(7)
    p = np.array([0.6, 0.3, 0.09, 0.01])
    model = ChannelModel(response(4, 0.5))
    space, rows, tables = RowSpace.from_means(model.means), 2000, 120
    chosen = EstimationSettings("ml", target=target)
    covered = 0
    for _ in range(tables):
        truth = round_counts(p, rows, rng) / rows if chosen.fixed else p
        fit = Fit.from_observed(model, space, model.simulate(truth, rows, rng, fixed=chosen.fixed), chosen)
        shares = fit.shares(np.eye(4), np.ones(4, dtype=np.bool_))
        covered += int(((shares.lower <= truth) & (truth <= shares.upper)).sum())
    # The four shares of one table depend on each other, so their mean coverage varies at most like that of one: with
    # 120 tables its standard deviation is at most 2 %, and 8 % off raises a false alarm at most once in 10⁴.
    assert abs(covered / (4 * tables) - 0.95) < 0.08


def test_the_tables_own_shares_are_known_better_than_the_populations() -> None:
    model = ChannelModel(response(3, 0.9))
    observed = model.observe(np.array([500, 300, 200]))
    widths = []
    for target in ("table", "population"):
        fit = Fit.from_observed(
            model, RowSpace.from_means(model.means), observed, EstimationSettings("ml", target=target)
        )
        shares = fit.shares(np.eye(3), np.ones(3, dtype=np.bool_))
        widths.append(shares.upper - shares.lower)
    assert (widths[0] < 0.8 * widths[1]).all()


@pytest.mark.parametrize("counts", [[1, 0, 0], [0, 2, 1]])
def test_a_handful_of_rows_gives_wide_intervals_and_never_nan(counts: list[int]) -> None:
    model = ChannelModel(response(3, 0.3))
    observed = model.observe(np.array(counts))
    for method in ("ml", "projection", "inversion"):
        fit = Fit.from_observed(model, RowSpace.from_means(model.means), observed, EstimationSettings(method))
        shares = fit.shares(np.eye(3), np.ones(3, dtype=np.bool_))
        assert np.isfinite([shares.share, shares.standard_error, shares.lower, shares.upper]).all()
        assert (shares.upper - shares.lower > 0.9).all()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"method": "magic"}, "method is one of ml"),
        ({"method": "ml", "target": "moon"}, "target is one of table"),
        ({"method": "ml", "level": 1.0}, "level must be"),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        EstimationSettings(**wrong)


@given(seeds, st.integers(1, 6), st.integers(0, 50))
@settings(max_examples=50, deadline=None)
def test_whole_counts_sum_up_and_are_rounded_either_way(seed: int, a: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(a))
    counts = round_counts(p, rows, rng)
    assert counts.sum() == rows
    assert (np.abs(counts - rows * p) < 1 + 1e-9).all()
