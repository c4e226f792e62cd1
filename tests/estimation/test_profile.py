"""Profile intervals: what they minimise, what they never leave, and that they cover value by value."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import binom

from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.estimation.identification import RowSpace, frequency_band, identify
from privacyfunnel.estimation.likelihood import maximum_likelihood
from privacyfunnel.estimation.observation import ChannelModel, round_counts
from privacyfunnel.estimation.profile import CLOSE, CertainBounds, Profile
from privacyfunnel.estimation.share_estimates import EstimationSettings, Fit
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.tables.readers.adult import adult_counts

Z = 1.959963984540054


def channel(rng: np.random.Generator, a: int, d: int, *, holes: bool = False) -> FloatArray:
    q = rng.dirichlet(np.full(d, 0.5), size=a) + 0.02
    if holes:
        q = np.where(rng.random((a, d)) < 0.4, 0.0, q)
        q[np.arange(a), rng.integers(0, d, a)] += 0.3
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def profile(q: FloatArray, counts: FloatArray) -> Profile:
    seen = counts > 0
    q, counts = q[:, seen], counts[seen]
    return Profile(q, counts, maximum_likelihood(q, counts).p)


def least_rate(q: FloatArray, c: FloatArray, members: FloatArray, share: float | None) -> float:
    """min K over the ways N (a × d) with column sums c, and with this share of the members: by a general solver."""
    a, d = q.shape

    def rate(flat: FloatArray) -> float:
        n = np.maximum(flat.reshape(a, d), 1e-300)
        return float((n * np.log(n / (n.sum(axis=1, keepdims=True) * q))).sum())

    def slope(flat: FloatArray) -> FloatArray:
        n = np.maximum(flat.reshape(a, d), 1e-300)
        return np.asarray(np.log(n / (n.sum(axis=1, keepdims=True) * q))).ravel()

    rules: list[dict[str, Any]] = [{"type": "eq", "fun": lambda flat: flat.reshape(a, d).sum(axis=0) - c}]
    if share is not None:
        rules.append({"type": "eq", "fun": lambda flat: members @ flat.reshape(a, d).sum(axis=1) - share})
    solver: Any = minimize
    found = solver(
        rate,
        (np.full((a, 1), 1 / a) * c).ravel(),
        jac=slope,
        constraints=rules,
        bounds=[(1e-12, 1)] * (a * d),
        options={"maxiter": 500, "ftol": 1e-11},
    )
    assert found.success
    return float(found.fun)


@pytest.mark.parametrize("seed", range(6))
def test_the_tilted_solve_is_the_profile_of_the_tables_rate(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, rows = channel(rng, 3, 4), 400
    counts = rng.multinomial(rows, rng.dirichlet(np.ones(3)) @ q).astype(np.float64) + 1
    mine, c = profile(q, counts), counts / counts.sum()
    members = np.array([True, False, False])
    least = least_rate(q, c, members, None)
    _, held = mine._start(members[None, :])
    for tilt in (0.05, -0.05, 0.2):
        share, surprise = mine._tilt(members[None, :], np.array([tilt]), held, fixed=True)
        expected = 2 * counts.sum() * (least_rate(q, c, members, float(share[0])) - least)
        assert surprise[0] ** 2 == pytest.approx(expected, abs=2e-2 + 2e-3 * expected)


@pytest.mark.parametrize("seen", [3, 300, 995])
def test_the_interval_of_a_plain_frequency_in_a_population_is_that_of_the_likelihood_ratio(seen: int) -> None:
    rows = 1000
    counts = np.array([seen, rows - seen], dtype=np.float64)
    found = profile(np.eye(2), counts).intervals(np.eye(2)[:, :1], np.array([0.01]), Z, fixed=False)
    for end in np.concatenate(found):
        ratio = 2 * (seen * np.log(seen / rows / end) + (rows - seen) * np.log((1 - seen / rows) / (1 - end)))
        assert np.sqrt(ratio) == pytest.approx(Z, abs=3 * CLOSE)
    assert found[0][0] < seen / rows < found[1][0]


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(2, 6), st.sampled_from([60, 1000]))
@settings(max_examples=40, deadline=None)
def test_what_outputs_guarantee_holds_the_table_and_intervals_stay_inside(seed: int, a: int, d: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    q = channel(rng, a, d, holes=True)
    model = ChannelModel(q)
    truth = round_counts(rng.dirichlet(np.full(a, 0.5)), rows, rng) / rows
    observed = model.simulate(truth, rows, rng, fixed=True)
    certain = CertainBounds.from_likelihood(model.likelihood(observed), observed.counts, np.eye(a))
    assert (certain.lower <= truth + 1e-12).all()
    assert (truth <= certain.upper + 1e-12).all()
    space = RowSpace.from_means(model.means)
    shares = Fit.from_observed(model, space, observed, EstimationSettings("ml")).shares(
        np.eye(a), identify(space, np.eye(a)).identified
    )
    assert (certain.lower - 1e-12 <= shares.lower).all()
    assert (shares.lower <= shares.upper).all()
    assert (shares.upper <= certain.upper + 1e-12).all()


def blurred() -> tuple[FloatArray, FloatArray]:
    """A channel like those of optima: most outputs allow two or three values, conditioned badly."""
    counts, _ = adult_counts("occupation", "education")
    joint = Joint.from_counts(counts)
    return joint.p_x, np.asarray(optimal(joint, LIP(1.0), gap=1e-3).protocol.channel)


def regular() -> tuple[FloatArray, FloatArray]:
    return np.array([0.5, 0.3, 0.15, 0.05]), 0.5 * np.eye(4) + 0.125


@pytest.mark.parametrize("target", ["table", "population"])
@pytest.mark.parametrize("case", [blurred, regular])
def test_intervals_cover_every_single_value(target: str, case: Any) -> None:
    p, q = case()
    rng, tables, rows = np.random.default_rng(5), 60, 4000
    model, chosen = ChannelModel(q), EstimationSettings("ml", target=target)
    space, a = RowSpace.from_means(q), len(p)
    covered, width = np.zeros(a), np.zeros(a)
    for _ in range(tables):
        truth = round_counts(p, rows, rng) / rows if chosen.fixed else p
        fit = Fit.from_observed(model, space, model.simulate(truth, rows, rng, fixed=chosen.fixed), chosen)
        shares = fit.shares(np.eye(a), np.ones(a, dtype=np.bool_))
        covered += (shares.lower <= truth + 1e-12) & (truth <= shares.upper + 1e-12)
        width += shares.upper - shares.lower
    # False alarm of all values together at most 1e-4 if each is covered at 95 %.
    assert covered.min() >= binom.ppf(1e-4 / a, tables, 0.95)
    # Not by saying nothing: all together an interval tells far more than that a share is one.
    assert (width / tables).mean() < 0.1


def test_intervals_of_several_columns_hold_in_each_of_them() -> None:
    """Margins of a joint protocol over two columns, of which some pairs are rare."""
    rng = np.random.default_rng(9)
    p = rng.dirichlet(np.full(12, 0.4))
    q = channel(rng, 12, 20, holes=True)
    model, tables, rows = ChannelModel(q), 50, 1500
    first, second = np.repeat(np.eye(3), 4, axis=0), np.tile(np.eye(4), (3, 1))
    functions = np.hstack([first, second])
    space = RowSpace.from_means(q)
    known = identify(space, functions).identified
    covered = np.zeros(7)
    for _ in range(tables):
        truth = round_counts(p, rows, rng) / rows
        fit = Fit.from_observed(model, space, model.simulate(truth, rows, rng, fixed=True), EstimationSettings("ml"))
        shares = fit.shares(functions, known)
        inside = (shares.lower <= truth @ functions + 1e-12) & (truth @ functions <= shares.upper + 1e-12)
        covered += inside
    assert covered.min() >= binom.ppf(1e-4 / 7, tables, 0.95)


def test_a_share_that_is_not_identified_gets_an_interval_that_holds_all_that_fits() -> None:
    q = np.array([[0.8, 0.2, 0.0], [0.1, 0.5, 0.4], [0.1, 0.5, 0.4]])
    model, rows = ChannelModel(q), 10**6
    observed = model.observe(np.round(rows * (np.array([0.5, 0.3, 0.2]) @ q)))
    space = RowSpace.from_means(q)
    shares = Fit.from_observed(model, space, observed, EstimationSettings("ml", target="population")).shares(
        np.eye(3), identify(space, np.eye(3)).identified
    )
    assert shares.lower[1:].max() < 1e-6
    np.testing.assert_allclose(shares.upper[1:], 0.5, atol=5e-3)
    assert shares.upper[1:].min() > 0.5


def test_the_band_of_a_frequency_holds_for_rare_outputs() -> None:
    low, high = frequency_band(np.array([0.0, 0.001, 0.5, 1.0]), 1000, 0.95)
    tail = 0.05 / 8
    assert low[0] == 0
    assert high[3] == 1
    assert (1 - high[0]) ** 1000 == pytest.approx(tail)
    assert 1 - (1 - low[1]) ** 1000 == pytest.approx(tail)
    assert low[2] == pytest.approx(1 - high[2])
