"""Promises for the people that a table is a sample of: sets of priors, and what protocols leak over them."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from privacyfunnel.errors import ParameterError
from privacyfunnel.model.credal.clopper_pearson import SCALE, exact_lower_bound
from privacyfunnel.model.credal.credal_sets import CredalSets
from privacyfunnel.model.credal.sample_rule import SampleRule, check_confidence
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol

PROMISES = (LIP, LDP, SRLIP)


@st.composite
def samples(draw: st.DrawFn, several: bool = False) -> Joint:
    shape = draw(st.sampled_from([(2, 2, 2), (3, 2, 2), (2, 3, 2)] if several else [(2, 2), (2, 4), (3, 3), (4, 2)]))
    counts = draw(st.lists(st.integers(1, 400), min_size=math.prod(shape), max_size=math.prod(shape)))
    return Joint.from_counts(np.array(counts).reshape(shape))


@st.composite
def channels(draw: st.DrawFn, inputs: int) -> np.ndarray:
    rows = draw(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=inputs, max_size=inputs))
    table = np.array(rows, dtype=float)
    table[:, 0] += table.sum(axis=1) == 0
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def by_programmes(sets: CredalSets, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """max and min of P·f over every set, by linear programmes."""
    solve: Any = linprog
    ends = []
    for sign in (-1, 1):
        found = [
            solve(sign * f, A_eq=np.ones((1, f.size)), b_eq=[1], bounds=np.stack([low, high], axis=1) / SCALE).fun
            for low, high in zip(sets.low, sets.high, strict=True)
        ]
        ends.append(sign * np.array(found))
    return ends[0], ends[1]


@settings(max_examples=12)
@given(data=st.data(), kind=st.sampled_from(PROMISES), several=st.booleans())
def test_the_greedy_members_are_the_worst_ones(data: st.DataObject, kind: type[Promise], several: bool) -> None:
    joint = data.draw(samples(several))
    sets = kind(1.0).for_population(joint, rare=0).credal_sets(joint)
    f = data.draw(channels(joint.a))[:, [0]]
    highest, lowest = sets.extremes(f)
    most, least = by_programmes(sets, f[:, 0])
    assert np.allclose(highest[:, 0], most, atol=1e-9)
    assert np.allclose(lowest[:, 0], least, atol=1e-9)


@settings(max_examples=12)
@given(data=st.data(), kind=st.sampled_from(PROMISES), several=st.booleans(), sees=st.booleans())
def test_the_table_is_in_its_sets_so_it_leaks_no_more(
    data: st.DataObject, kind: type[Promise], several: bool, sees: bool
) -> None:
    joint = data.draw(samples(several))
    promise = kind(1.0).for_population(joint, rare=0)
    sets = promise.credal_sets(joint, sees)
    protocol = Protocol(data.draw(channels(sets.inputs)), sees_secret=sees)
    on_the_table, there = kind(1.0).leakage(joint, protocol), protocol.worst_credal_leak(sets).epsilon
    assert there >= on_the_table * (1 - 1e-12)
    assert promise.leakage(joint, protocol) == max(on_the_table, there)


def test_what_can_fail_adds_up_to_what_the_confidence_leaves() -> None:
    """Every bound is a Clopper–Pearson bound at a level of its own, and the levels' sum is at most β."""
    levels: list[Fraction] = []

    class Noted:
        def box(self, counts: np.ndarray, level: Fraction) -> tuple[np.ndarray, np.ndarray]:
            levels.extend([level] * 2 * (1 if len(counts) == 2 else len(counts)))
            return np.zeros_like(counts), np.full_like(counts, SCALE)

        def least_share(self, some: int, others: int, level: Fraction) -> int:
            levels.append(level)
            return 0

    joint = Joint.from_counts(np.arange(1, 37).reshape(3, 3, 2, 2))
    for kind in PROMISES:
        levels.clear()
        rule = SampleRule(Fraction(19, 20), rare=0, bounds=Noted())
        promise = kind(1.0)
        rule.credal_sets(lambda c, promise=promise: promise.group_pairs(c, joint.m, False), joint, False)  # type: ignore[misc]
        assert Fraction(49, 1000) < sum(levels) <= Fraction(1, 20)


def test_rare_secrets_are_promised_together_with_the_next_until_they_are_not_rare() -> None:
    joint = Joint.from_counts([[20, 17], [300, 328], [900, 900], [5, 5]])
    groups = SampleRule(Fraction(19, 20)).groups(joint)
    assert groups.tolist() == [[True, True, False, True], [False, False, True, False]]
    assert SampleRule(Fraction(19, 20), rare=30).groups(joint).sum(axis=1).tolist() == [2, 1, 1]
    assert SampleRule(Fraction(19, 20), rare=0).groups(joint).sum(axis=1).tolist() == [1, 1, 1, 1]


def leakage_alone(promise: Promise, secret: int, joint: Joint, protocol: Any) -> float:
    """The ε of the population for one secret by itself, however few rows it has, by sets of their own."""
    rule = SampleRule(Fraction(19, 20), rare=0)
    sets = rule.credal_sets(lambda c: promise.group_pairs(c, joint.m, False), joint, False)
    return float(protocol.worst_credal_leak(sets.select_secret(secret)).epsilon)


def test_each_rare_secret_is_still_kept_on_the_table() -> None:
    joint = Joint.from_counts([[30, 0], [200, 600], [900, 900]])
    promise = LIP(0.5).for_population(joint)
    tells = Protocol(np.array([[0.6, 0.4], [0.4, 0.6]]))
    assert promise.leakage(joint, tells) >= LIP(0.5).leakage(joint, tells)
    assert leakage_alone(LIP(0.5), 0, joint, tells) > promise.leakage(joint, tells)


def test_a_sample_too_small_for_any_promise_says_which_would_do() -> None:
    joint = Joint.from_counts([[30, 10], [30, 30]])
    with pytest.raises(ParameterError, match="A sample of 500 such rows would do"):
        LIP(1.0).for_population(joint)
    larger = Joint.from_counts([[150, 50], [150, 150]])
    assert LIP(1.0).for_population(larger).population.rows == 500


def test_probabilities_are_no_sample() -> None:
    with pytest.raises(ParameterError, match="needs the counts of a sample"):
        LIP(1.0).for_population(Joint.from_probabilities([[0.1, 0.4], [0.3, 0.2]]))


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.5, math.nan, "often", True])
def test_a_confidence_lies_between_0_and_1(confidence: float) -> None:
    with pytest.raises(ParameterError, match="between 0 and 1"):
        check_confidence(confidence)


def test_a_secret_never_seen_in_a_class_may_be_anyone_there() -> None:
    joint = Joint.from_counts([[[5, 3], [400, 300]], [[0, 0], [300, 400]]])
    sets = SRLIP(1.0).for_population(joint, rare=0).credal_sets(joint)
    there = [
        i for i, known in enumerate(sets.known) if known == ((0, 0),) and sets.secrets[i].tolist() == [False, True]
    ]
    assert [(sets.low[i].tolist(), sets.high[i].tolist()) for i in there] == [([0] * 4, [SCALE, SCALE, 0, 0])]


def test_shares_are_bounds_of_their_own() -> None:
    joint = Joint.from_counts([[300, 200], [300, 400], [400, 100]])
    sets = LIP(1.0).for_population(joint, 0.9, rare=0).credal_sets(joint)
    level = Fraction(math.floor(Fraction(2, 1000) / 3 * 2**60), 2**60)
    assert sets.share.tolist() == [exact_lower_bound(n, 1700, level) for n in (500, 700, 500)]


def misses(confidence: float, tables: int) -> int:
    """In how many chance tables, drawn from one known distribution, the sets do not hold it."""
    random = np.random.default_rng(7)
    p_sx = random.dirichlet(np.full(9, 2.0)).reshape(3, 3)
    events = [*np.eye(3, dtype=bool), *~np.eye(3, dtype=bool)]
    missed = 0
    for _ in range(tables):
        joint = Joint.from_counts(random.multinomial(3000, p_sx.ravel()).reshape(3, 3))
        sets = LIP(1.0).for_population(joint, confidence, rare=0).credal_sets(joint)
        held = True
        for low, high, secrets in zip(sets.low, sets.high, sets.secrets, strict=True):
            assert any((secrets == event).all() for event in events)
            p = p_sx[secrets].sum(axis=0) / p_sx[secrets].sum()
            held &= bool((low / SCALE <= p).all() and (p <= high / SCALE).all())
        held &= bool((sets.share / SCALE <= p_sx.sum(axis=1)).all())
        missed += not held
    return missed


def test_the_sets_hold_the_population_as_often_as_they_say() -> None:
    """At 95 % more than 7 misses in 25 have a chance below 1 in 10,000; where less is asked, they do miss."""
    assert misses(0.95, 25) <= 7
    assert misses(0.01, 12) > 0
