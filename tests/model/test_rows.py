"""Rows: their numbers are those of the definition, and the structure they claim is there and nowhere else."""

from collections.abc import Iterator
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import BoolArray, FloatArray, dense
from privacyfunnel.model.comparisons import Comparisons, compare_groups
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise, pairs_with_everybody, secret_pairs
from tests.enumeration import corners
from tests.strategies import joints, tables

EPSILON = 0.4


class AgainstTheRest(Promise):
    """Each secret against everyone else: a promise that no other file knows."""

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        c = joint.c
        if c > 1:
            groups = np.concatenate([np.eye(c, dtype=bool), ~np.eye(c, dtype=bool)])
            yield compare_groups(joint, sees_secret, groups, [[s, c + s] for s in range(c)])


PROMISES = st.sampled_from([LIP, LDP, SRLIP, AgainstTheRest])
TABLES = st.one_of(joints(min_c=2), joints(max_c=3, max_a=3, attributes=2, min_c=2))


def event(joint: Joint, prior: Joint, held: BoolArray, among: BoolArray, sees_secret: bool) -> FloatArray:
    """P(z | S is held, X is among) / p(z), from the definition; P under the prior, z over what occurs in the joint."""
    mass = prior.p_sx * held[:, None] * among
    mass /= mass.sum()
    p_z = joint.p_sx.ravel() if sees_secret else joint.p_x
    occurs = p_z > 0
    return np.asarray((mass.ravel() if sees_secret else mass.sum(axis=0))[occurs] / p_z[occurs])


def by_definition(joint: Joint, prior: Joint, kind: type[Promise], sees_secret: bool) -> list[FloatArray]:
    """Both functionals, one after the other, of every pair that the promise compares."""
    c, everyone = prior.c, np.ones(prior.c, dtype=bool)
    one = [np.arange(c) == s for s in range(c)]
    attributes: list[tuple[int, ...]] = [()]
    if kind is SRLIP:
        most = joint.m if sees_secret else joint.m - 1
        attributes = list(chain.from_iterable(combinations(range(joint.m), k) for k in range(most + 1)))
    found = []
    for known in attributes:
        labels = {tuple(combo) for combo in joint.combos[:, known].tolist()}
        for label in labels:
            among = (joint.combos[:, known] == label).all(axis=1)
            present = (prior.p_sx * among).sum(axis=1) > 0
            here = np.flatnonzero(present)
            if kind is LDP:
                pairs = [(one[s], one[t]) for s, t in combinations(here, 2)]
            elif kind is AgainstTheRest:
                pairs = [(one[s], ~one[s]) for s in here]
            else:
                pairs = [(one[s], everyone) for s in here if len(here) > 1]
            for e, f in pairs:
                found.append(np.concatenate([event(joint, prior, g, among, sees_secret) for g in (e, f)]))
    return found


def assert_same_rows(ours: FloatArray, expected: FloatArray) -> None:
    """The same rows in whatever order."""
    assert ours.shape == expected.shape
    if not len(ours):
        return
    distance = np.abs(ours[:, None] - expected).max(axis=2) / np.maximum(np.abs(expected).max(axis=1), 1)
    assert (distance.min(axis=0) < 1e-12).all()
    assert (distance.min(axis=1) < 1e-12).all()


@given(joint=TABLES, kind=PROMISES, sees_secret=st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_numbers_are_those_of_the_definition(joint: Joint, kind: type[Promise], sees_secret: bool) -> None:
    rows = kind(EPSILON).constraints(joint, sees_secret)
    expected = by_definition(joint, joint, kind, sees_secret)
    assert len(rows) == len(expected) == kind(EPSILON).count(joint, sees_secret)
    ours = np.hstack(rows.dense)
    assert_same_rows(ours, np.array(expected).reshape(-1, 2 * rows.inputs))
    prior = joint.p_sx[joint.p_sx > 0] if sees_secret else joint.p_x
    assert np.abs(rows.functionals @ prior - 1).max(initial=0) < 1e-12  # at the prior every functional is 1


@given(shape=st.sampled_from([(2, 3), (3, 3), (2, 2, 2)]), kind=PROMISES, data=st.data())
@settings(max_examples=40, deadline=None)
def test_of_several_priors_each_has_its_own_events(
    shape: tuple[int, ...], kind: type[Promise], data: st.DataObject
) -> None:
    joint, other = (Joint.from_counts(data.draw(tables(shape)) + 1) for _ in range(2))
    rows = kind(EPSILON).for_priors([other]).constraints(joint)
    expected = [*by_definition(joint, joint, kind, False), *by_definition(joint, other, kind, False)]
    assert_same_rows(np.hstack(rows.dense), np.array(expected))
    assert not rows.is_one_dimensional or rows.inputs <= 2
    if not np.array_equal(joint.p_x, other.p_x):
        assert not rows.compares_with_everybody
    assert rows.group_secrets(np.eye(joint.c, dtype=bool)) is None


@given(joint=TABLES, kind=PROMISES, sees_secret=st.booleans())
@settings(max_examples=80, deadline=None)
def test_an_event_holds_its_secrets_in_its_class_which_they_share(
    joint: Joint, kind: type[Promise], sees_secret: bool
) -> None:
    rows = kind(EPSILON).constraints(joint, sees_secret)
    p_z = joint.p_sx.ravel() if sees_secret else joint.p_x
    value = np.flatnonzero(p_z) % joint.a
    for number, members in enumerate(rows.members):
        among = np.isin(np.arange(joint.a), value[members])
        share = (joint.p_sx * among).sum(axis=1)
        np.testing.assert_allclose(rows.share[number], share / share.sum(), atol=1e-12)
        for i in np.flatnonzero(rows.of_class == number):
            L = dense(rows.functionals[[i]])[0]
            np.testing.assert_allclose(L, event(joint, joint, rows.secrets[i], among, sees_secret), rtol=1e-12)
            assert not L[~members].any()


@given(joint=TABLES, kind=PROMISES, sees_secret=st.booleans(), data=st.data())
@settings(max_examples=80, deadline=None)
def test_structure_that_is_claimed_is_in_the_numbers(
    joint: Joint, kind: type[Promise], sees_secret: bool, data: st.DataObject
) -> None:
    """Of all rows, of some of them, as some inputs see them, and as parts of inputs do."""
    rows = kind(EPSILON).constraints(joint, sees_secret)
    assume(len(rows))
    choice = data.draw(st.sampled_from(["all", "some", "on", "averaged"]))
    if choice == "some":
        rows = rows.select_pairs(np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=4))))
    elif choice == "on":
        rows = rows.restrict(
            np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=rows.inputs, max_size=rows.inputs)))
        )
    elif choice == "averaged":
        part_of = np.array(data.draw(st.lists(st.integers(0, 2), min_size=rows.inputs, max_size=rows.inputs)))
        part_of = np.unique(part_of, return_inverse=True)[1].reshape(-1)
        p_z = joint.p_sx[joint.p_sx > 0] if sees_secret else joint.p_x
        rows = rows.average(part_of, p_z / np.bincount(part_of, p_z)[part_of])
    N, D = rows.dense
    if rows.compares_with_everybody:
        assert np.abs(D - 1).max(initial=0) < 1e-12
    L = rows.mutual_functionals
    if L is not None:
        pairs = {tuple(np.round(np.concatenate(pair), 9)) for pair in zip(N, D, strict=True)}
        every = [np.round(np.concatenate(pair), 9) for pair in combinations(L, 2)]
        assert all(tuple(pair) in pairs or tuple(np.roll(pair, rows.inputs)) in pairs for pair in every)
    if rows.is_one_dimensional and rows.inputs > 2:
        spread = np.concatenate([N, D]) - np.concatenate([N, D])[:, :1]
        assert np.linalg.matrix_rank(spread, tol=1e-9 * max(1.0, np.abs(spread).max())) <= 1
    if not rows.is_local:
        assert rows.members[rows.of_class[rows.pairs].ravel()].all()
    for i in range(len(rows)):
        seen = rows.members[rows.of_class[rows.pairs[i, 0]]]
        assert not N[i, ~seen].any()
        assert not D[i, ~seen].any()


def test_each_promise_says_what_it_is() -> None:
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 9, (3, 2, 3)))
    other = Joint.from_counts(np.random.default_rng(1).integers(1, 9, (3, 2, 3)))
    lip, ldp, srlip = (kind(EPSILON).constraints(joint) for kind in (LIP, LDP, SRLIP))
    rest, priors = AgainstTheRest(EPSILON).constraints(joint), LIP(EPSILON).for_priors([other]).constraints(joint)
    bare = LinearConstraints.from_pairs(*lip.dense)
    assert [rows.compares_with_everybody for rows in (lip, ldp, srlip, rest, priors, bare)] == [True] + [False] * 5
    every = (lip, ldp, srlip, rest, priors, bare)
    assert [rows.mutual_functionals is not None for rows in every] == [False, True] + [False] * 4
    assert [rows.is_local for rows in (lip, ldp, srlip, rest, priors, bare)] == [
        False,
        False,
        True,
        False,
        False,
        False,
    ]
    assert not any(rows.is_one_dimensional for rows in (lip, ldp, srlip, rest, priors, bare))
    divided = np.array([[True, False, False], [False, True, True]])
    can = [rows.group_secrets(divided) is not None for rows in (lip, ldp, srlip, rest, priors, bare)]
    assert can == [True, True, False, True, False, False]


@pytest.mark.parametrize("kind", [LIP, LDP, SRLIP, AgainstTheRest])
def test_two_secrets_that_share_everybody_are_one_number(kind: type[Promise]) -> None:
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 9, (2, 5)))
    assert kind(EPSILON).constraints(joint).is_one_dimensional
    assert kind(EPSILON).constraints(joint, sees_secret=True).is_one_dimensional == (
        kind is not SRLIP
    )  # who know the value are guarded


def test_two_functionals_compared_are_no_promise_about_each_other() -> None:
    """With two, a floor is no smaller than the pair itself; a pair compared twice, or one that is missing, counts."""
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 9, (3, 4)))
    rows = LDP(EPSILON).constraints(joint)
    assert rows.select_pairs(np.array([0])).mutual_functionals is None
    assert rows.select_pairs(np.array([0, 1])).mutual_functionals is None
    again = rows.select_pairs(np.array([2, 0, 1, 0])).mutual_functionals
    assert again is not None
    np.testing.assert_array_equal(again, rows.mutual_functionals)


def keeps(rows: LinearConstraints, atoms: FloatArray) -> bool:
    N, D = rows.dense
    e = np.exp(EPSILON) * (1 + 1e-9)
    one, other = N @ atoms.T, D @ atoms.T
    return bool(((one <= e * other + 1e-12) & (other <= e * one + 1e-12)).all())


@given(data=st.data(), c=st.integers(3, 4), a=st.integers(2, 4), kind=st.sampled_from([LIP, LDP, AgainstTheRest]))
@settings(max_examples=30, deadline=None)
def test_what_groups_allow_holds_what_secrets_allow(data: st.DataObject, c: int, a: int, kind: type[Promise]) -> None:
    joint = Joint.from_counts(data.draw(tables((c, a))))
    rows = kind(EPSILON).constraints(joint)
    of_secret = np.array(data.draw(st.lists(st.integers(0, c - 2), min_size=c, max_size=c)))
    groups = np.array([of_secret == g for g in np.unique(of_secret)])
    assume(len(groups) > 1)
    grouped = rows.group_secrets(groups)
    if grouped is None:
        return
    weights = np.array([joint.weights[group].sum(axis=0) for group in groups])
    small = Joint.from_counts(weights)
    if kind is not AgainstTheRest:  # those follow for the groups as if they were the secrets
        expected = kind(EPSILON).constraints(small)
        assert_same_rows(np.hstack(grouped.dense), np.hstack(expected.dense).reshape(-1, 2 * a))
    assert grouped.is_one_dimensional == (len(groups) == 2 or a <= 2)
    N, D = rows.dense
    e = np.exp(EPSILON)
    assert keeps(grouped, corners(np.concatenate([N - e * D, D - e * N])))


def test_groups_of_pairs_that_do_not_fit_say_nothing() -> None:
    """Of "s against everyone else" only the pairs of groups' own unions follow."""
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 9, (4, 3)))
    rows = AgainstTheRest(EPSILON).constraints(joint)
    two_and_two = np.array([[True, True, False, False], [False, False, True, True]])
    assert rows.group_secrets(two_and_two) is None
    one_and_three = np.array([[True, False, False, False], [False, True, True, True]])
    found = rows.group_secrets(one_and_three)
    assert found is not None
    assert len(found) == 1


@given(joint=joints(max_c=3, max_a=3, attributes=2, min_c=2, min_a=2), data=st.data())
@settings(max_examples=40, deadline=None)
def test_within_a_class_srlip_is_lip_of_those_who_are_in_it(joint: Joint, data: st.DataObject) -> None:
    rows = SRLIP(EPSILON).constraints(joint)
    assume(len(rows.compared_classes))
    number = int(data.draw(st.sampled_from(rows.compared_classes.tolist())))
    members = rows.members[number]
    part = rows.restrict_to_classes(
        np.flatnonzero(members), (rows.members == members).all(axis=1), float(joint.p_x[members].sum())
    )
    weights = joint.weights[:, members]
    expected = LIP(EPSILON).constraints(Joint.from_counts(weights[weights.any(axis=1)]))
    assert_same_rows(np.hstack(part.dense), np.hstack(expected.dense))
    assert part.compares_with_everybody
    assert not part.is_local


@given(joint=joints(min_c=2, min_a=2, max_a=6), kind=st.sampled_from([LIP, LDP, AgainstTheRest]), data=st.data())
@settings(max_examples=40, deadline=None)
def test_averaged_over_parts_they_are_the_rows_of_the_table_of_parts(
    joint: Joint, kind: type[Promise], data: st.DataObject
) -> None:
    part_of = np.array(data.draw(st.lists(st.integers(0, 3), min_size=joint.a, max_size=joint.a)))
    part_of = np.unique(part_of, return_inverse=True)[1].reshape(-1)
    share = joint.p_x / np.bincount(part_of, joint.p_x)[part_of]
    weights = np.array([joint.weights[:, part_of == part].sum(axis=1) for part in range(part_of.max() + 1)]).T
    rows, expected = (
        kind(EPSILON).constraints(joint).average(part_of, share),
        kind(EPSILON).constraints(Joint.from_counts(weights)),
    )
    assert_same_rows(np.hstack(rows.dense), np.hstack(expected.dense))
    assert rows.compares_with_everybody == expected.compares_with_everybody
    assert rows.is_one_dimensional == expected.is_one_dimensional


def test_a_part_that_lies_half_in_a_class_is_seen_unevenly() -> None:
    """Both parts touch the class, yet the class is not everybody: what it compares with is not 1."""
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 9, (3, 2, 2)))
    rows = SRLIP(EPSILON).constraints(joint)
    first = next(i for i in rows.compared_classes if rows.members[i].tolist() == [True, True, False, False])
    part_of = np.array([0, 1, 0, 1])
    halves = rows.average(part_of, joint.p_x / np.bincount(part_of, joint.p_x)[part_of])
    assert halves.members[first].all()
    own = halves.select_pairs(halves.of_class[halves.pairs[:, 0]] == first)
    assert not own.compares_with_everybody
    assert np.abs(own.dense[1] - 1).max() > 0.01


def test_disjoint_classes_are_those_of_one_side_channel() -> None:
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 9, (2, 2, 3)))
    rows = SRLIP(EPSILON).constraints(joint)
    ways = set(rows.disjoint_classes(rows.compared_classes))
    covers = [rows.members[list(way)].astype(int).sum(axis=0) for way in ways]
    assert all((cover <= 1).all() for cover in covers)
    assert sorted(len(way) for way in ways) == [1, 2, 3]  # nothing known, the first known, the second known
    assert all((cover == 1).all() for cover in covers)


def test_a_class_lies_inside_the_part_that_holds_all_of_it() -> None:
    """Nobody knows anything: across both parts. The first attribute is known: inside one each. The second: across."""
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 9, (2, 2, 3)))
    rows = SRLIP(EPSILON).constraints(joint)
    assert rows.side_channel.tolist() == [0, 1, 1, 2, 2, 2]
    assert rows.enclosing_parts(joint.combos[:, 0]).tolist() == [-1, 0, 1, -1, -1, -1]
    assert rows.enclosing_parts(np.arange(6)).tolist() == [-1] * 6
    assert rows.enclosing_parts(np.zeros(6, dtype=np.int64)).tolist() == [0] * 6


def test_rows_joined_keep_their_events_apart() -> None:
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 9, (3, 4)))
    lip, ldp = LIP(EPSILON).constraints(joint), LDP(EPSILON).constraints(joint)
    both = LinearConstraints.concatenate([lip, ldp])
    for ours, (one, other) in zip(both.dense, zip(lip.dense, ldp.dense, strict=True), strict=True):
        np.testing.assert_array_equal(ours, np.concatenate([one, other]))
    assert not both.compares_with_everybody
    assert both.mutual_functionals is None
    assert not both.is_one_dimensional
    assert LinearConstraints.concatenate([lip]) is lip
    assert len(LinearConstraints.concatenate([], 4)) == 0
    assert LinearConstraints.concatenate([], 4).inputs == 4


@given(seed=st.integers(0, 999), c=st.integers(2, 5), a=st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_rows_about_secrets_are_those_of_the_promise(seed: int, c: int, a: int) -> None:
    joint = Joint.from_counts(np.random.default_rng(seed).integers(1, 99, (c, a)))
    ratio = joint.p_s_given_x / joint.p_s[:, None]
    for kind, what in ((LIP, pairs_with_everybody), (LDP, secret_pairs)):
        ours, expected = LinearConstraints.from_groups(ratio, joint.p_s, *what(c)), kind(EPSILON).constraints(joint)
        assert_same_rows(np.hstack(ours.dense), np.hstack(expected.dense))
        assert ours.compares_with_everybody == expected.compares_with_everybody
        assert (ours.mutual_functionals is None) == (expected.mutual_functionals is None)
        assert ours.is_one_dimensional == expected.is_one_dimensional
