"""Other tools' disclosure models against LIP and LDP: each line of the table in docs/theory.md, or its refutation."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import DistributionError
from privacyfunnel.model.disclosure_models import DisclosureMeasures, measure_disclosure

SHAPES = st.tuples(st.integers(2, 4), st.integers(2, 5))
TABLES = SHAPES.flatmap(lambda shape: arrays.arrays(np.int64, shape, elements=st.integers(0, 12)))
FULL_TABLES = SHAPES.flatmap(lambda shape: arrays.arrays(np.int64, shape, elements=st.integers(1, 12)))
ROUNDING = 1 + 1e-12  # of one logarithm and one exponential


def likelihood_ratio(counts: IntArray) -> Fraction:
    """e^ε of LDP about S, by its definition; of tables without zeros."""
    rows = counts.sum(axis=1)
    chances = [[Fraction(int(cell), int(of)) for cell in row] for row, of in zip(counts, rows, strict=True)]
    return max(a[y] / b[y] for a in chances for b in chances for y in range(counts.shape[1]))


def belief_ratio(counts: IntArray) -> Fraction:
    """e^ε of LIP, by its definition: the largest of p(s|y)/p(s) and p(s)/p(s|y); of tables without zeros."""
    n = int(counts.sum())
    ratios = [
        Fraction(int(counts[s, y]) * n, int(counts[s].sum()) * int(counts[:, y].sum()))
        for s, y in np.ndindex(counts.shape)
    ]
    return max(*ratios, 1 / min(ratios))


@given(FULL_TABLES)
def test_delta_disclosure_is_lip_by_another_name(counts: IntArray) -> None:
    assert math.exp(measure_disclosure(counts).delta_disclosure) == pytest.approx(float(belief_ratio(counts)))


@given(TABLES)
def test_a_secret_that_a_class_rules_out_makes_delta_disclosure_infinite(counts: IntArray) -> None:
    assume((counts.sum(axis=0) > 0).all() and (counts.sum(axis=1) > 0).all())
    assert math.isinf(measure_disclosure(counts).delta_disclosure) == bool((counts == 0).any())


@given(FULL_TABLES)
def test_lip_implies_likeness_closeness_diversity_and_leakage(counts: IntArray) -> None:
    found, ratio = measure_disclosure(counts), belief_ratio(counts)
    assert found.beta_likeness <= ratio - 1
    assert found.t_closeness <= (ratio - 1) / (ratio + 1)  # tanh(ε/2)
    assert found.distinct_secrets == len(counts)
    assert math.exp(found.maximal_leakage) <= ratio * ROUNDING
    assert found.maximal_leakage <= math.log1p(found.beta_likeness) * ROUNDING + 1e-15
    blind = max(Fraction(int(secret), int(counts.sum())) for secret in counts.sum(axis=1))
    assert blind <= found.bayes_vulnerability <= blind * ratio


@given(FULL_TABLES)
def test_ldp_about_the_secret_implies_lip_and_lip_implies_twice_the_ldp(counts: IntArray) -> None:
    assert belief_ratio(counts) <= likelihood_ratio(counts) <= belief_ratio(counts) ** 2


def test_the_bound_on_t_closeness_is_reached() -> None:
    counts = np.array([[4, 2], [2, 10]])  # e^ε = 2: a third of the table has twice its share in the first class
    assert belief_ratio(counts) == 2
    assert measure_disclosure(counts).t_closeness == Fraction(1, 3)


@pytest.mark.parametrize(
    ("counts", "holds", "breaks"),
    [
        # t-closeness and β-likeness are small, and yet a class rules out the rare secret.
        ([[990, 1000], [10, 0]], lambda found: found.t_closeness < 0.01 and found.beta_likeness <= 1, "delta"),
        # 3 different secrets in every class, and yet 98 % of a class share one that 2 % of the others have.
        ([[98, 2], [1, 97], [1, 1]], lambda found: found.distinct_secrets == 3, "likely"),
        # k = 1000, and yet the class has one secret only.
        ([[1000, 0], [0, 1000]], lambda found: found.k == 1000, "delta"),
        # Maximal leakage is small on average, and yet one output in a thousand names the secret.
        ([[500_000, 499_000, 1000], [500_000, 500_000, 0]], lambda found: found.maximal_leakage < 0.002, "delta"),
    ],
)
def test_other_models_do_not_imply_lip(
    counts: list[list[int]], holds: Callable[[DisclosureMeasures], bool], breaks: str
) -> None:
    found = measure_disclosure(np.array(counts))
    assert holds(found)
    broken = {"delta": math.isinf(found.delta_disclosure), "likely": found.likeliest_secret >= Fraction(98, 100)}
    assert broken[breaks]


def test_local_privacy_of_the_record_implies_ldp_about_the_secret_and_not_the_reverse() -> None:
    channel = np.array([[3, 1], [1, 3]])  # ε = ln 3 about X, of records X = S with probability 3/4
    joint = np.array([[3, 1], [1, 3]])
    assert likelihood_ratio(joint @ channel) <= 3
    as_it_is = np.array([[5, 5], [5, 5]])  # X says nothing about S: published as it is, S is safe and X is not
    assert likelihood_ratio(as_it_is) == 1


@given(TABLES)
def test_labels_that_no_row_has_change_nothing(counts: IntArray) -> None:
    assume(counts.sum() > 0)
    wider = np.pad(counts, ((0, 1), (0, 1)))
    assert measure_disclosure(wider) == measure_disclosure(counts)


@pytest.mark.parametrize("counts", [np.zeros((2, 2), dtype=np.int64), np.array([[1, -1], [2, 3]]), np.array([1, 2])])
def test_no_table_is_refused(counts: IntArray) -> None:
    with pytest.raises(DistributionError, match="must fill a table"):
        measure_disclosure(counts)


@pytest.mark.parametrize("counts", [[[7, 3]], [[7], [3]]])
def test_one_class_or_one_secret_tells_nothing(counts: list[list[int]]) -> None:
    found = measure_disclosure(np.array(counts))
    assert found.delta_disclosure == 0
    assert found.beta_likeness == 0
    assert found.t_closeness == 0
