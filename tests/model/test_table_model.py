"""A model of a table from noisy counts: what is fitted, which secrets are pooled, which labels may be named."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from numpy.typing import NDArray

from privacyfunnel.errors import DistributionError
from privacyfunnel.model.published import table_model
from privacyfunnel.model.published.noise import OwnNoise, noise_sum, noise_variance
from privacyfunnel.model.published.table_model import (
    LabelTests,
    MeasuredCounts,
    TableModel,
    fit_groups,
    fit_weights,
    pool_secrets,
)

HALF = Fraction(1, 2)
MODEL = TableModel(
    weights=np.array([[3, 1], [1, 3]]),
    groups=(("a",), ("b", "c")),
    rest=1,
    rows=100,
    epsilon=Fraction(1, 10),
    delta=Fraction(1, 10**9),
    total=Fraction(1),
)


def test_without_noise_the_model_is_the_table() -> None:
    counts = np.array([[300.0, 100.0], [50.0, 250.0]])
    weights = fit_weights(counts, np.zeros_like(counts))
    assert np.abs(weights / weights.sum() - counts / counts.sum()).max() < 1e-9


def test_a_secret_that_is_all_noise_goes_with_values_as_everybody_does() -> None:
    counts = np.array([[3000.0, 1000.0, 10.0], [1.0, 5.0, 2.0]])
    fitted = fit_weights(counts, np.full_like(counts, 1e4))
    ratio = fitted[1] / fitted[0]
    assert ratio.max() / ratio.min() < 1.001
    assert fitted.min() >= 1


def test_where_secrets_differ_little_shrinking_brings_the_model_nearer_to_the_table() -> None:
    """Squared error over draws of noise: less than that of clipping alone."""
    truth = np.array([[300, 100, 40, 15], [200, 70, 30, 8], [90, 40, 20, 9]])
    errors = {"fitted": 0.0, "clipped": 0.0}
    rng = np.random.default_rng(1)
    for _ in range(200):
        cells = truth + rng.laplace(0, 20, truth.shape)
        clipped = np.maximum(cells, 0.01)
        fitted = fit_weights(cells, np.full(truth.shape, 800.0))
        for name, weights in (("fitted", fitted), ("clipped", clipped)):
            errors[name] += float(((weights / weights.sum() - truth / truth.sum()) ** 2).sum())
    assert errors["fitted"] < errors["clipped"]


def test_secrets_with_few_rows_are_one_group_with_enough_of_them() -> None:
    calm = np.full(4, 100.0)
    assert pool_secrets(np.array([900.0, 800.0, 500.0, 300.0]), calm, 10_000) == [[0], [1], [2], [3]]
    assert pool_secrets(np.array([900.0, -3.0, 500.0, 230.0]), calm, 10_000) == [[0], [2], [1, 3]]
    assert pool_secrets(np.array([900.0, 150.0, 500.0, 130.0]), calm, 10_000) == [[0], [2], [1, 3]]
    assert pool_secrets(np.array([9.0, 5.0, 7.0, 3.0]), calm, 10_000) == [[0, 1, 2, 3]]
    assert pool_secrets(np.array([9.0, 5.0, 7.0, 3.0]), np.full(4, 0.1), 24) == [[0], [1], [2], [3]]
    assert pool_secrets(np.array([900.0, 800.0, 500.0, 300.0]), np.full(4, 1e4), 10_000) == [[0], [1], [2, 3]]


def test_a_model_is_written_read_and_groups_secrets() -> None:
    again = TableModel.from_json(MODEL.to_json())
    assert again.to_json() == MODEL.to_json()
    assert (MODEL.secrets, MODEL.pooled) == (("a", "other"), ("b", "c"))
    assert MODEL.group_of(["c", "a", "new"]) == ("other", "a", "other")
    listed = replace(MODEL, groups=(("a",), ("b",)), rest=None, delta=Fraction(0))
    with pytest.raises(DistributionError, match="must list every secret"):
        listed.group_of(["new"])


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"weights": [[3, 1]]}, "a row of integers"),
        ({"weights": [[3, 0], [1, 3]]}, "able to go with every value"),
        ({"secrets": [["a"], ["a"]]}, "each secret in one"),
        ({"secrets": [[], ["a"]]}, "must list secrets"),
        ({"rest": 2}, "one of its groups"),
        ({"epsilon": "1"}, "part of the whole"),
        ({"rows": 0}, "groups of secrets apart"),
    ],
)
def test_a_model_that_is_none_is_refused(change: dict[str, object], part: str) -> None:
    with pytest.raises(DistributionError, match=part):
        TableModel.from_json(MODEL.to_json() | change)


def test_the_variance_is_that_of_the_noise() -> None:
    noise = noise_sum(HALF, 1)
    exact = 2 * sum(float(chance) * k * k for k, chance in enumerate(noise.chances))
    assert noise_variance(HALF) == pytest.approx(exact)


def test_thresholds_hold_and_those_for_many_terms_lie_above_the_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = LabelTests(HALF, Fraction(1), Fraction(1, 1000))
    exact = [tests.threshold(terms) for terms in (1, 5, 40)]
    for terms, reach in zip((1, 5, 40), exact, strict=True):
        assert noise_sum(HALF, terms).tail_bounds[reach - 1] <= tests.level  # Pr[1 + Z ≥ T] = Pr[Z > T − 2]
        assert noise_sum(HALF, terms).tail_bounds[reach - 2] > tests.level  # and no smaller one would do
    monkeypatch.setattr(table_model, "MOST_TERMS", 0)
    chernoff = [tests.threshold(terms) for terms in (1, 5, 40)]
    assert all(least <= rough <= 1.3 * least + 5 for least, rough in zip(exact, chernoff, strict=True))


def test_large_labels_are_found_and_small_ones_are_not() -> None:
    counts = np.array([[5000, 4000, 300, 1], [3000, 500, 900, 0], [0, 2, 0, 0], [160, 160, 160, 0]])
    rate = Fraction(1, 20)
    noisy = counts + np.array(OwnNoise(rate).draw(16)).reshape(4, 4)
    rows, columns = LabelTests(rate, Fraction(1)).find(counts, noisy)
    assert rows.tolist()[:3] == [True, True, False]
    assert columns.tolist() == [True, True, True, False]
    assert LabelTests(rate, Fraction(1)).find(counts, noisy, (False, True))[1].all()


# -- the lemma on labels, by exhaustion ----------------------------------------------------------------------------

T = Fraction(1, 4)  # e^{−r}, so that e^{2r} = 16 and all chances are rational
DELTA = Fraction(3, 10)
LOW, HIGH = -2, 6  # of noisy counts that are gone through; the chance of others counts as a failure
SEEN = range(LOW, HIGH + 1)


@dataclass(frozen=True)
class RationalTests(LabelTests):
    """The tests at a rate of ln 4, which is no fraction: the thresholds by its exact chances."""

    slack: int = 0

    def threshold(self, terms: int) -> int:
        """The least T with Pr[1 + Z_1 + … + Z_k ≥ T] ≤ level, by convolution."""
        return _threshold(terms) - self.slack


@cache
def _threshold(terms: int) -> int:
    reach = 40
    one = {k: (1 - T) / (1 + T) * T ** abs(k) for k in range(-reach, reach + 1)}
    total = {0: Fraction(1)}
    for _ in range(terms):
        total = {
            k: sum((total.get(k - z, Fraction(0)) * one[z] for z in one), Fraction(0)) for k in range(-reach, reach + 1)
        }
    level, k, tail = DELTA / (3 * 17), reach, Fraction(0)
    while tail + total[k] <= level:
        tail += total[k]
        k -= 1
    return k + 2


def outcomes(tests: LabelTests, counts: NDArray[np.int64]) -> dict[object, float]:
    """Which labels are found and what their counts are, with the chances given a table of two secrets and values."""
    found: dict[object, float] = {}
    chances = [[float((1 - T) / (1 + T) * T ** abs(m - n)) for m in SEEN] for n in counts.ravel().tolist()]
    for places in product(range(len(SEEN)), repeat=4):
        noisy = np.array([SEEN[i] for i in places]).reshape(2, 2)
        rows, columns = tests.find(counts, noisy)
        key = rows.tobytes(), columns.tobytes(), noisy[np.ix_(rows, columns)].tobytes()
        chance = chances[0][places[0]] * chances[1][places[1]] * chances[2][places[2]] * chances[3][places[3]]
        found[key] = found.get(key, 0.0) + chance
    return found


@pytest.mark.parametrize(("slack", "holds"), [(0, True), (5, False)])
def test_one_person_makes_a_label_appear_with_chance_delta_at_most(slack: int, holds: bool) -> None:
    """All tables of two rows and all their neighbours; and with thresholds that are five too small it shows."""
    tests = RationalTests(HALF, Fraction(1), DELTA, slack=slack)
    tables = {}
    for rows in combinations_with_replacement(range(4), 2):
        tables[rows] = outcomes(tests, np.bincount(rows, minlength=4).reshape(2, 2))
    worst = 0.0
    for one, other in product(tables, repeat=2):
        if len(set(one) & set(other)) >= 1 and one != other:
            beyond = 1 - sum(tables[one].values())
            excess = sum(max(0.0, p - 16 * tables[other].get(key, 0.0)) for key, p in tables[one].items())
            worst = max(worst, excess + beyond)
    assert (worst <= float(DELTA)) == holds
    assert worst > 0  # no ε alone does


def test_noise_must_be_as_large_as_the_models_epsilon_asks_for_and_the_model_what_noisy_counts_make_of_it() -> None:
    cells, least = np.array([[300, 100], [50, 250]]), noise_variance(MODEL.epsilon / 2)
    stated = MeasuredCounts(cells, np.full(cells.shape, least))
    fitted = replace(MODEL, rest=None, weights=fit_groups(stated, None), counts=stated)
    assert fitted.counts is stated
    with pytest.raises(DistributionError, match="as large as its ε asks for"):
        replace(fitted, epsilon=MODEL.epsilon / 2)
    with pytest.raises(DistributionError, match="what its noisy counts make of it"):
        replace(fitted, weights=fitted.weights[:, ::-1])
