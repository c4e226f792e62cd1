from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.errors import DistributionError
from privacyfunnel.model.joint import Attribute, Joint
from tests.strategies import joints


@given(joint=joints(max_c=4, max_a=4, attributes=2))
@settings(max_examples=50, deadline=None)
def test_the_conditionals_and_marginals_are_those_of_one_distribution(joint: Joint) -> None:
    assert joint.p_sx.sum() == pytest.approx(1)
    assert joint.p_x_given_s * joint.p_s[:, None] == pytest.approx(joint.p_sx)
    assert joint.p_s_given_x * joint.p_x[None, :] == pytest.approx(joint.p_sx)


@given(joint=joints(max_c=4, max_a=4, attributes=3))
@settings(max_examples=50, deadline=None)
def test_only_combinations_that_occur_take_a_column_in_c_order(joint: Joint) -> None:
    assert (joint.p_x > 0).all()
    assert joint.m == 3
    assert joint.weights.shape == (joint.c, joint.a)
    combos = [tuple(map(int, combo)) for combo in joint.combos]
    assert combos == sorted(set(combos))
    assert joint.values == tuple(tuple(map(str, combo)) for combo in combos)


def test_several_attributes_keep_their_labels_and_names() -> None:
    joint = Joint.from_counts(
        [[[3, 0], [0, 1]], [[1, 0], [0, 2]]],
        secret=["ill", "well"],
        values=[["a", "b"], ["u", "v"]],
        names=["first", "second"],
        secret_name="health",
    )
    assert joint.values == (("a", "u"), ("b", "v"))
    assert joint.attributes == (Attribute("first", ("a", "b")), Attribute("second", ("u", "v")))
    assert joint.secrets == ("ill", "well")
    assert joint.weights.tolist() == [[3, 1], [1, 2]]
    assert joint.total == 7


@given(st.lists(st.floats(1e-300, 1.0), min_size=4, max_size=4))
@settings(max_examples=50, deadline=None)
def test_a_float_stays_the_dyadic_rational_it_is(p: list[float]) -> None:
    shares = [x / sum(p) for x in p]
    joint = Joint.from_probabilities(np.reshape(shares, (2, 2)))
    total = sum(map(Fraction, shares))
    for weight, share in zip(joint.weights.flat, shares, strict=True):
        assert Fraction(int(weight), joint.total) == Fraction(share) / total


def test_counts_of_any_size_are_held_exactly() -> None:
    huge = 10**40
    joint = Joint.from_counts(np.array([[huge, 1], [1, huge]], dtype=object))
    assert joint.weights.tolist() == [[huge, 1], [1, huge]]
    assert joint.total == 2 * huge + 2
    assert joint.p_sx[0, 1] == pytest.approx(0.5e-40)
    assert joint.p_s.tolist() == [0.5, 0.5]


def test_counts_whose_sum_overflows_64_bits_are_not_mistaken_for_none() -> None:
    joint = Joint.from_counts(np.full((4, 4), 2**62))
    assert joint.p_x.tolist() == [0.25] * 4


@given(st.lists(st.integers(2**53, 2**60 - 1), min_size=4, max_size=4))
@settings(max_examples=50, deadline=None)
def test_every_probability_is_the_nearest_float_even_where_the_weights_are_none(counts: list[int]) -> None:
    joint = Joint.from_counts(np.reshape(counts, (2, 2)))
    assert joint.weights.dtype == np.int64
    assert joint.p_sx.ravel().tolist() == [n / sum(counts) for n in counts]


def test_whole_floats_are_counts() -> None:
    assert Joint.from_counts([[2.0, 4.0], [6.0, 8.0]]).p_sx == pytest.approx(np.array([[0.1, 0.2], [0.3, 0.4]]))


def test_a_joint_cannot_be_changed() -> None:
    joint = Joint.from_counts([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="read-only"):
        joint.weights[0, 0] = 5
    with pytest.raises(AttributeError):
        joint.__setattr__("secret_name", "T")


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ([[1, 2], [0, 0]], "1 of 2 secrets and 0 of 2 values have no mass"),
        ([[1, 0], [1, 0]], "1 of the 2 values of 'X' have no mass"),
        ([[1, -1], [1, 1]], "some are negative"),
        ([[0.5, 1], [1, 1]], "use Joint.from_probabilities"),
        ([[float("nan"), 1], [1, 1]], "whole numbers"),
        ([["a", "b"], ["c", "d"]], "whole numbers"),
        ([[True, False], [False, True]], "whole numbers"),
        ([[1, 2], [3]], "differ in length"),
        ([1, 2, 3], r"shape \(3,\)"),
        ([[]], r"shape \(1, 0\)"),
    ],
)
def test_what_is_no_table_of_counts_is_refused(counts: list[list[int]], sentence: str) -> None:
    with pytest.raises(DistributionError, match=sentence):
        Joint.from_counts(counts)


@pytest.mark.parametrize(
    ("p", "sentence"),
    [
        ([[0.5, 0.4], [0.05, 0.02]], "it sums to 0.97. If these are counts, use Joint.from_counts"),
        ([[0.5, -0.5], [0.5, 0.5]], "at least 0"),
        ([[float("inf"), 0.5], [0.5, 0.5]], "finite"),
        ([["a", "b"]], "must be numbers"),
        ([[0.5, 0.5], [0.0, 0.0]], "secrets"),
    ],
)
def test_what_is_no_distribution_is_refused(p: list[list[float]], sentence: str) -> None:
    with pytest.raises(DistributionError, match=sentence):
        Joint.from_probabilities(p)


def test_labels_must_be_as_many_as_what_they_name_and_differ() -> None:
    with pytest.raises(DistributionError, match="2 secrets"):
        Joint.from_counts([[1, 2], [3, 4]], secret=["one"])
    with pytest.raises(DistributionError, match=r"there are \[3\]"):
        Joint.from_counts([[1, 2], [3, 4]], values=["a", "b", "c"])
    with pytest.raises(DistributionError, match="those of 'X' repeat"):
        Joint.from_counts([[1, 2], [3, 4]], values=["a", "a"])
    with pytest.raises(DistributionError, match="those of 'secret' repeat"):
        Joint.from_counts([[1, 2], [3, 4]], secret=["a", "a"])
    with pytest.raises(DistributionError, match="2 for 1"):
        Joint.from_counts([[1, 2], [3, 4]], names=["a", "b"])


def test_labels_may_be_numbers() -> None:
    joint = Joint.from_counts([[1, 2], [3, 4]], secret=[0, 1], values=[10, 20])  # type: ignore[list-item]
    assert joint.values == (("10",), ("20",))
    assert joint.secrets == ("0", "1")
