import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.errors import DistributionError, ParameterError
from privacyfunnel.model.comparisons import EVERYBODY, Leak
from privacyfunnel.model.information import information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise, find_promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from tests.strategies import identity, joints, protocols_for

SLACK = 1e-12  # for rounding in the quantities that are compared, never in a promise

Mass = dict[int, Fraction]  # input -> mass


def test_a_promise_needs_a_finite_epsilon_of_at_least_0() -> None:
    for epsilon in (-0.1, math.inf, math.nan, True):
        with pytest.raises(ParameterError, match="ε must be"):
            LIP(epsilon)
    assert LDP(0).epsilon == 0
    assert find_promise("SRLIP", 2) == SRLIP(2)
    with pytest.raises(ParameterError, match="one of lip, pml, ldp, srlip, "):
        find_promise("lpi", 1)


# -- each promise, from its definition ------------------------------------------------------------------------


def events(joint: Joint, sees_secret: bool, s: int | None, known: dict[int, int]) -> Mass:
    """The mass that inputs have among the records with secret s (or any) and these labels."""
    mass: Mass = {}
    for secret, x in product(range(joint.c), range(joint.a)):
        if s in (None, secret) and all(joint.combos[x, j] == label for j, label in known.items()):
            z = secret * joint.a + x if sees_secret else x
            mass[z] = mass.get(z, Fraction(0)) + int(joint.weights[secret, x])
    return mass


def compared(promise: Promise, joint: Joint, sees_secret: bool) -> Iterator[tuple[Mass, Mass]]:
    everyone = range(joint.c)
    if isinstance(promise, LDP):
        for s, t in product(everyone, everyone):
            yield events(joint, sees_secret, s, {}), events(joint, sees_secret, t, {})
        return
    attributes = range(joint.m) if isinstance(promise, SRLIP) else ()
    for size in range(len(attributes) + 1):
        for subset in combinations(attributes, size):
            for labels in product(*(range(len(joint.attributes[j].labels)) for j in subset)):
                known = dict(zip(subset, labels, strict=True))
                for s in everyone:
                    yield events(joint, sees_secret, s, known), events(joint, sees_secret, None, known)


def by_definition(promise: Promise, joint: Joint, protocol: Protocol) -> float:
    """The smallest ε, from rational numbers and loops."""
    q = [[Fraction(float(entry)) for entry in row] for row in protocol.channel]
    largest = Fraction(1)
    for one, other in compared(promise, joint, protocol.sees_secret):
        if not sum(one.values()) or not sum(other.values()):
            continue
        for y in range(len(q[0])):
            p, r = (sum((w * q[z][y] for z, w in e.items()), Fraction(0)) / sum(e.values()) for e in (one, other))
            if (p == 0) != (r == 0):
                return math.inf
            if p > 0:
                largest = max(largest, Fraction(p / r), Fraction(r / p))
    return math.log(largest)


@given(
    data=st.data(),
    joint=st.one_of(joints(max_c=3, max_a=4), joints(max_c=3, max_a=3, attributes=2), joints(2, 2, attributes=3)),
    sees_secret=st.booleans(),
    kind=st.sampled_from([LIP, LDP, SRLIP]),
)
@settings(max_examples=250, deadline=None)
def test_the_measured_leakage_is_that_of_the_definition(
    data: st.DataObject, joint: Joint, sees_secret: bool, kind: type[Promise]
) -> None:
    protocol = data.draw(protocols_for(joint, sees_secret))
    measured, defined = kind(1).leakage(joint, protocol), by_definition(kind(1), joint, protocol)
    assert measured == pytest.approx(defined, rel=1e-12, abs=1e-14)


@given(data=st.data(), joint=joints(max_c=3, max_a=3, attributes=2), sees_secret=st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_worst_place_has_the_leak_it_is_named_with(data: st.DataObject, joint: Joint, sees_secret: bool) -> None:
    protocol = data.draw(protocols_for(joint, sees_secret))
    for kind in (LIP, LDP, SRLIP):
        leak = kind(1).worst(joint, protocol)
        if leak.output is None:
            assert leak.epsilon == 0
            continue
        one = events(joint, sees_secret, leak.secrets[0], dict(leak.known))
        other = events(joint, sees_secret, None if leak.against == EVERYBODY else leak.against[0], dict(leak.known))
        p, r = (
            sum(float(w) * protocol.channel[z, leak.output] for z, w in e.items()) / float(sum(e.values()))
            for e in (one, other)
        )
        if math.isinf(leak.epsilon):
            assert (p == 0) != (r == 0)
        elif p > 0:
            assert abs(math.log(p / r)) == pytest.approx(leak.epsilon, abs=SLACK)
        else:
            assert leak.epsilon == r == 0


# -- how the promises imply each other ------------------------------------------------------------------------


@given(data=st.data(), joint=joints(), sees_secret=st.booleans())
@settings(max_examples=150, deadline=None)
def test_lemma_1_ldp_implies_lip_and_lip_implies_twice_ldp(
    data: st.DataObject, joint: Joint, sees_secret: bool
) -> None:
    protocol = data.draw(protocols_for(joint, sees_secret))
    lip, ldp = LIP(1).leakage(joint, protocol), LDP(1).leakage(joint, protocol)
    assert lip <= ldp + SLACK
    assert ldp <= 2 * lip + SLACK


@given(data=st.data(), joint=joints(), sees_secret=st.booleans())
@settings(max_examples=150, deadline=None)
def test_lip_bounds_the_information_about_the_secret_by_epsilon_tanh_half_epsilon(
    data: st.DataObject, joint: Joint, sees_secret: bool
) -> None:
    protocol = data.draw(protocols_for(joint, sees_secret))
    epsilon = LIP(1).leakage(joint, protocol)
    assert information(protocol.joint_with_secret(joint)) <= epsilon * math.tanh(epsilon / 2) + SLACK


@pytest.mark.parametrize("n", [3, 4, 10])
def test_epsilon_tanh_half_epsilon_is_reached(n: int) -> None:
    # Of n secrets, each output makes one n - 1 times likelier and every other one n - 1 times less likely.
    joint = Joint.from_counts(np.full((n, n), 1) + ((n - 1) ** 2 - 1) * np.eye(n, dtype=np.int64))
    epsilon = LIP(1).leakage(joint, identity(joint))
    assert epsilon == pytest.approx(math.log(n - 1))
    assert information(joint.p_sx) == pytest.approx(epsilon * math.tanh(epsilon / 2))


@given(data=st.data(), joint=joints(max_c=3, max_a=3, attributes=2), sees_secret=st.booleans())
@settings(max_examples=100, deadline=None)
def test_lemma_2_srlip_implies_lip(data: st.DataObject, joint: Joint, sees_secret: bool) -> None:
    protocol = data.draw(protocols_for(joint, sees_secret))
    assert LIP(1).leakage(joint, protocol) <= SRLIP(1).leakage(joint, protocol)


@given(data=st.data(), joint=joints(max_a=4))
@settings(max_examples=50, deadline=None)
def test_for_one_attribute_and_no_sight_of_the_secret_srlip_is_lip(data: st.DataObject, joint: Joint) -> None:
    protocol = data.draw(protocols_for(joint))
    assert SRLIP(1).leakage(joint, protocol) == LIP(1).leakage(joint, protocol)


# -- what each promise is about -------------------------------------------------------------------------------


def test_x_xor_s_keeps_lip_and_gives_the_secret_to_whoever_knows_x() -> None:
    joint = Joint.from_counts([[1, 1], [1, 1]])
    xor = Protocol(np.array([[1.0, 0], [0, 1], [0, 1], [1, 0]]), sees_secret=True)
    assert LIP(0).leakage(joint, xor) == 0
    assert LDP(0).leakage(joint, xor) == 0
    leak = SRLIP(0).worst(joint, xor)
    assert leak.epsilon == math.inf
    assert [attribute for attribute, _ in leak.known] == [0]
    assert leak.describe(joint).startswith("someone who knows X = ")


def test_an_empty_cell_published_as_it_is_leaks_without_bound() -> None:
    joint = Joint.from_counts([[5, 0], [5, 5]], secret=["ill", "well"], values=["a", "b"], secret_name="health")
    for kind in (LIP, LDP, SRLIP):
        leak = kind(1).worst(joint, identity(joint))
        assert leak.epsilon == math.inf
        assert leak.output == 1
        assert leak.secrets == (0,)
    assert "output b, about health = ill rather than well" in LDP(1).worst(joint, identity(joint)).describe(joint, "b")


def test_an_output_that_never_comes_and_a_secret_with_one_value_leak_nothing() -> None:
    joint = Joint.from_counts([[1, 2], [2, 4]])
    never = Protocol(np.array([[1.0, 0, 0], [0, 1, 0]]))
    alone = Joint.from_counts([[3, 4]])
    for kind in (LIP, LDP, SRLIP):
        assert kind(0).leakage(joint, never) == 0
        assert kind(0).leakage(alone, identity(alone)) == 0


@given(joint=joints(max_c=4, max_a=3, attributes=2), sees_secret=st.booleans(), b=st.integers(1, 7))
@settings(max_examples=50, deadline=None)
def test_an_output_that_does_not_depend_on_the_input_leaks_exactly_nothing(
    joint: Joint, sees_secret: bool, b: int
) -> None:
    n = joint.a * (joint.c if sees_secret else 1)
    constant = Protocol(np.full((n, b), 1 / b), sees_secret=sees_secret)
    for kind in (LIP, LDP, SRLIP):
        assert kind(0).leakage(joint, constant) == 0


def test_the_worst_place_is_named() -> None:
    joint = Joint.from_counts([[90, 10], [50, 50], [50, 50]], secret=["u", "v", "w"], values=["a", "b"])
    leak = LIP(1).worst(joint, identity(joint))
    assert (leak.output, leak.secrets, leak.against, leak.known) == (1, (0,), EVERYBODY, ())
    assert leak.epsilon == pytest.approx(math.log(110 / 30))
    leak = LDP(1).worst(joint, identity(joint))
    assert (leak.output, leak.secrets, leak.against) == (1, (0,), (1,))
    assert leak.epsilon == pytest.approx(math.log(5))


def test_srlip_names_what_the_attacker_knew() -> None:
    # S is the parity of two fair bits, but for a few: the first bit tells nothing, unless the second is known.
    counts = np.array([[[9, 1], [1, 9]], [[1, 9], [9, 1]]])
    joint = Joint.from_counts(counts, names=["height", "weight"])
    first = Protocol(np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]]))
    assert LIP(1).leakage(joint, first) == 0
    leak = SRLIP(1).worst(joint, first)
    assert leak.epsilon == pytest.approx(math.log(5))
    assert leak.known[0][0] == 1
    assert leak.describe(joint).startswith("someone who knows weight = ")


# -- columns that are randomised apart: the paper's theorem of budgets is false ------------------------------


def doubled(p_sx: list[list[int]]) -> Joint:
    """X¹ = X² = X."""
    c, a = np.shape(p_sx)
    counts = np.zeros((c, a, a), dtype=np.int64)
    counts[:, range(a), range(a)] = p_sx
    return Joint.from_counts(counts)


def alone_and_together(first: list[list[float]], second: list[list[float]]) -> tuple[Protocol, Protocol, Protocol]:
    q, r = np.array(first), np.array(second)
    return Protocol(q), Protocol(r), Protocol(np.einsum("xy,xz->xyz", q, r).reshape(len(q), -1))


def test_two_flips_of_the_secret_itself_leak_ln_5_where_the_budget_says_ln_4() -> None:
    joint = doubled([[1, 0], [0, 1]])
    flip = [[0.75, 0.25], [0.25, 0.75]]
    one, two, both = alone_and_together(flip, flip)
    assert SRLIP(1).leakage(joint, one) == SRLIP(1).leakage(joint, two) == pytest.approx(math.log(2), abs=1e-15)
    assert SRLIP(1).leakage(joint, both) == pytest.approx(math.log(5), abs=1e-15)


def test_two_halves_that_leak_nothing_reveal_the_secret_together() -> None:
    joint = doubled([[1, 0, 0, 1], [0, 1, 1, 0]])  # X = (b₁, b₂), S = b₁ xor b₂
    one, two, both = alone_and_together([[1, 0], [1, 0], [0, 1], [0, 1]], [[1, 0], [0, 1], [1, 0], [0, 1]])
    assert SRLIP(0).leakage(joint, one) == SRLIP(0).leakage(joint, two) == 0
    assert SRLIP(0).leakage(joint, both) == math.inf


@pytest.mark.parametrize("percent", [1, 10, 30])
def test_a_rare_value_published_twice_leaks_far_more_than_its_budget(percent: int) -> None:
    pi = percent / 100
    joint = doubled([[0, 100 - percent], [2 * percent, 100 - percent]])  # X = 0 forces S = 1, X = 1 makes S fair
    q = [[1.0, 0.0], [pi, 1 - pi]]
    one, _, both = alone_and_together(q, q)
    assert 2 * SRLIP(1).leakage(joint, one) == pytest.approx(2 * math.log(2 - pi), abs=SLACK)
    assert SRLIP(1).leakage(joint, both) == pytest.approx(math.log((1 + pi - pi**2) / pi), abs=SLACK)


# -- several priors, rows, misfits ----------------------------------------------------------------------------


@given(data=st.data(), kind=st.sampled_from([LIP, LDP, SRLIP]))
@settings(max_examples=50, deadline=None)
def test_for_several_priors_the_leakage_is_the_largest_of_theirs(data: st.DataObject, kind: type[Promise]) -> None:
    joint, prior = (data.draw(joints(max_c=3, min_c=2, min_a=3, max_a=3)) for _ in range(2))
    protocol = data.draw(protocols_for(joint))
    both = kind(1).for_priors([prior])
    assert both.name == kind.__name__
    assert both.epsilon == 1
    assert both.leakage(joint, protocol) == max(kind(1).leakage(joint, protocol), kind(1).leakage(prior, protocol))


def test_priors_over_other_values_or_with_other_pairs_are_refused() -> None:
    joint = Joint.from_counts([[1, 1], [1, 0]])
    with pytest.raises(ParameterError, match="same values"):
        LIP(1).for_priors([Joint.from_counts([[1, 1, 1], [1, 1, 1]])]).leakage(joint, identity(joint))
    seeing = Protocol(np.full((4, 2), 0.5), sees_secret=True)
    with pytest.raises(ParameterError, match="one has others"):
        LIP(1).for_priors([Joint.from_counts([[1, 1], [1, 1]])]).leakage(joint, seeing)


@given(data=st.data(), joint=joints(max_c=3, max_a=3, attributes=2), sees_secret=st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_rows_allow_exactly_the_posteriors_of_protocols_that_keep_the_promise(
    data: st.DataObject, joint: Joint, sees_secret: bool
) -> None:
    protocol = data.draw(protocols_for(joint, sees_secret))
    p_z = joint.p_sx.ravel() if sees_secret else joint.p_x
    p_zy = p_z[:, None] * protocol.channel
    p_zy = p_zy[p_z > 0]
    posteriors = (p_zy / np.where(p_zy.sum(axis=0) > 0, p_zy.sum(axis=0), 1))[:, p_zy.sum(axis=0) > 0]
    for kind in (LIP, LDP, SRLIP):
        rows = kind(1).constraints(joint, sees_secret)
        n, d = rows.numerators, rows.denominators
        leakage = kind(1).leakage(joint, protocol)
        if math.isinf(leakage):
            assert (((n @ posteriors) > 0) != ((d @ posteriors) > 0)).any()
            continue
        for epsilon, allowed in ((leakage + 1e-9, True), (leakage - 1e-6, False)):
            if epsilon > 0:
                above = (n @ posteriors <= math.exp(epsilon) * (d @ posteriors)).all()
                below = (d @ posteriors <= math.exp(epsilon) * (n @ posteriors)).all()
                assert bool(above and below) is allowed


def test_a_protocol_for_other_inputs_is_refused() -> None:
    with pytest.raises(DistributionError, match="it has 3, the table 2"):
        LIP(1).leakage(Joint.from_counts([[1, 2], [2, 1]]), Protocol(np.eye(3)))


def test_an_output_with_a_very_long_name_is_told_by_its_beginning() -> None:
    told = Leak(1.0, output=0, secrets=(0,)).describe(Joint.from_counts([[1, 0], [0, 1]]), "a | b | " * 1000)
    assert len(told) < 250
    assert "for output a | b | a" in told
    assert "…, about" in told
