import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.baselines import BASELINES, LARGEST_ALPHA, conditional_reporting, randomised_response
from privacyfunnel.errors import GuaranteeError, SizeError
from privacyfunnel.experiments import adult_curves as unary_room
from privacyfunnel.experiments.adult_curves import UnaryEncoding, unary_encoding
from privacyfunnel.model.comparisons import Comparisons, Leak, log_ratio
from privacyfunnel.model.information import entropy, information, mutual_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.tables.readers.adult import adult_counts
from tests.strategies import joints

KINDS = (LIP, LDP, SRLIP)
SEEING_VALUES = (randomised_response, unary_encoding)  # of these, α = 0 is constant
Family = Callable[[Joint, Promise], Protocol | UnaryEncoding]
epsilons = st.one_of(st.floats(0.01, 4), st.sampled_from([1e-9, 0.5, 20.0]))


def grr(a: int, alpha: float) -> FloatArray:
    """The paper's matrix."""
    weights = np.exp(alpha * np.eye(a))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def cr(joint: Joint, alpha: float) -> FloatArray:
    """The paper's matrix, entry by entry, with the [x = y] that its appendix loses."""
    p, c, a = joint.p_x_given_s, joint.c, joint.a
    q = np.zeros((c, a, a))
    for s in range(c):
        for x in range(a):
            for y in range(a):
                others = sum(p[t, y] for t in range(c) if t != s)
                q[s, x, y] = (math.exp(alpha) * (x == y) + others) / (math.exp(alpha) + c - 1)
    return q.reshape(c * a, a)


def oue(a: int, q: float) -> FloatArray:
    """P(set | x) for all 2^a sets; bit x' of a set's number says whether x' is in it."""
    member = (np.arange(2**a)[:, None] >> np.arange(a)) & 1
    rows = []
    for x in range(a):
        chance = np.full(a, q)
        chance[x] = 0.5
        rows.append(np.where(member == 1, chance, 1 - chance).prod(axis=1))
    return np.array(rows)


def louder(family: Family, joint: Joint, alpha: float) -> Protocol | UnaryEncoding:
    """The member with that α, from the paper's formulas."""
    if family is randomised_response:
        return Protocol(grr(joint.a, alpha))
    if family is conditional_reporting:
        return Protocol(cr(joint, alpha), sees_secret=True)
    return UnaryEncoding(joint.a, alpha)


def calibrated(family: Family, joint: Joint, promise: Promise) -> Protocol | UnaryEncoding:
    """The family's member; a joint for which no conditional reporting keeps the promise is passed over."""
    try:
        return family(joint, promise)
    except GuaranteeError:
        assert family is conditional_reporting
        assume(False)
        raise


# -- the values of the notes ----------------------------------------------------------------------------------

REFERENCE = [
    ("marital-status", "education", 0.5, [0.4806, 0.2973, 0.2297]),
    ("marital-status", "education", 1.0, [0.9620, 0.7362, 0.4389]),
    ("marital-status", "education", 2.0, [1.5449, 1.4098, 0.7069]),
    ("occupation", "education", 0.5, [0.0885, 0.0706, 0.0909]),
    ("occupation", "education", 1.0, [0.4083, 0.2308, 0.3222]),
    ("occupation", "education", 2.0, [1.6612, 1.1507, 0.7009]),
    ("marital-status", "relationship", 1.0, [0.2132, 0.1802, 0.1557]),
    ("occupation", "relationship", 1.0, [0.2809, 0.5361, 0.2166]),
    ("marital-status", "race", 1.0, [0.4475, 0.2560, 0.2228]),
]
FIVE_TENTHS = [
    ("marital-status", "sex", 0.1045, 0.1252),
    ("marital-status", "relationship", 0.0501, 0.0705),
    ("occupation", "relationship", 0.0819, 0.1530),
    ("occupation", "sex", 0.0594, 0.0701),
]


def adult(secret: str, publish: str) -> Joint:
    counts, (secrets, values) = adult_counts(secret, publish)
    return Joint.from_counts(counts, secret=secrets, values=values)


@pytest.mark.parametrize(("secret", "publish", "epsilon", "reference"), REFERENCE)
def test_adult_keeps_the_information_that_the_reference_says(
    secret: str, publish: str, epsilon: float, reference: list[float]
) -> None:
    joint = adult(secret, publish)
    kept = [
        round(mutual_information(joint, family(joint, LIP(epsilon))), 4)
        for family in (randomised_response, conditional_reporting, unary_encoding)
    ]
    assert kept == reference


@pytest.mark.parametrize(("secret", "publish", "by_grr", "by_cr"), FIVE_TENTHS)
def test_adult_at_five_tenths(secret: str, publish: str, by_grr: float, by_cr: float) -> None:
    joint = adult(secret, publish)
    kept = [
        round(mutual_information(joint, family(joint, LIP(0.5))), 4)
        for family in (randomised_response, conditional_reporting)
    ]
    assert kept == [by_grr, by_cr]


@pytest.mark.parametrize(("column", "nats"), [("education", 2.0314), ("relationship", 1.4938), ("race", 0.5512)])
def test_adult_holds_the_entropy_that_the_reference_says(column: str, nats: float) -> None:
    assert round(entropy(adult("sex", column).p_x), 4) == nats


# -- what a calibrated protocol is ----------------------------------------------------------------------------


@given(joint=joints(max_c=3, max_a=4, min_c=2, min_a=2), epsilon=st.floats(0.05, 3))
@settings(max_examples=60, deadline=None)
def test_members_are_the_matrices_of_the_paper(joint: Joint, epsilon: float) -> None:
    response = randomised_response(joint, LIP(epsilon))
    assert response.alpha is not None
    if math.isfinite(response.alpha):
        assert response.channel == pytest.approx(grr(joint.a, response.alpha), abs=1e-13)
    else:
        assert (response.channel == np.eye(joint.a)).all()
    assert response.outputs == joint.values
    assert not response.sees_secret
    reporting = conditional_reporting(joint, LIP(epsilon))
    assert reporting.alpha is not None
    if math.isfinite(reporting.alpha):
        assert reporting.channel == pytest.approx(cr(joint, reporting.alpha), abs=1e-13)
    else:
        assert (reporting.channel == np.tile(np.eye(joint.a), (joint.c, 1))).all()
    assert reporting.outputs == joint.values
    assert reporting.sees_secret


@given(joint=joints(max_c=3, max_a=4, attributes=2), epsilon=epsilons, kind=st.sampled_from(KINDS))
@settings(max_examples=80, deadline=None)
def test_every_family_keeps_every_promise_without_tolerance(joint: Joint, epsilon: float, kind: type[Promise]) -> None:
    for name, family in BASELINES.items():
        try:
            protocol = family(joint, kind(epsilon))
        except GuaranteeError:
            assert name == "conditional-reporting"
            assert kind is SRLIP or epsilon < 1e-8
            continue
        assert kind(epsilon).leakage(joint, protocol) <= epsilon


@given(
    joint=joints(max_c=3, max_a=4, min_c=2, min_a=2),
    epsilon=st.floats(0.01, 4),
    kind=st.sampled_from(KINDS),
    family=st.sampled_from(list(BASELINES.values())),
)
@settings(max_examples=120, deadline=None)
def test_a_hair_less_random_breaks_the_promise(
    joint: Joint, epsilon: float, kind: type[Promise], family: Family
) -> None:
    protocol = calibrated(family, joint, kind(epsilon))
    assert protocol.alpha is not None
    assume(math.isfinite(protocol.alpha))
    hair = louder(family, joint, protocol.alpha * (1 + 1e-6) + 1e-9)
    leakage, saturated = kind(epsilon).leakage(joint, hair), kind(epsilon).leakage(joint, louder(family, joint, 40))
    # Where ε is all but what the identity leaks, leakage hardly grows with α any more and rounding hides the hair.
    assert leakage > epsilon or saturated - epsilon < 1e-6


@given(joint=joints(max_c=3, max_a=4, attributes=2), kind=st.sampled_from(KINDS))
@settings(max_examples=80, deadline=None)
def test_leakage_grows_with_alpha_where_alpha_0_tells_nothing(joint: Joint, kind: type[Promise]) -> None:
    families: list[Family] = [randomised_response, unary_encoding]
    if kind is not SRLIP:
        families.append(conditional_reporting)
    for family in families:
        leakages = [kind(1).leakage(joint, louder(family, joint, alpha)) for alpha in (0, 0.1, 0.5, 1, 2, 4, 8, 16)]
        assert leakages[0] <= 1e-14
        assert all(low <= high + 1e-12 for low, high in pairwise(leakages))


@given(joint=joints(max_c=3, max_a=3, attributes=2, min_c=2))
@settings(max_examples=40, deadline=None)
def test_srlip_of_conditional_reporting_falls_first_and_then_grows(joint: Joint) -> None:
    leakages = [SRLIP(1).leakage(joint, louder(conditional_reporting, joint, a / 2)) for a in range(24)]
    lowest = int(np.argmin(leakages))
    assert all(high >= low - 1e-12 for high, low in pairwise(leakages[: lowest + 1]))
    assert all(low <= high + 1e-12 for low, high in pairwise(leakages[lowest:]))


@given(joint=joints(max_c=3, max_a=3, attributes=2, min_c=2), epsilon=st.floats(0.05, 4))
@settings(max_examples=40, deadline=None)
def test_conditional_reporting_refuses_only_what_no_alpha_keeps(joint: Joint, epsilon: float) -> None:
    alphas = [*np.linspace(0, 12, 25), 40.0]
    kept = [a for a in alphas if SRLIP(1).leakage(joint, louder(conditional_reporting, joint, a)) <= epsilon - 1e-9]
    try:
        alpha = conditional_reporting(joint, SRLIP(epsilon)).alpha
    except GuaranteeError:
        assert not kept
    else:
        assert alpha is not None
        assert alpha >= max(kept, default=0)


def test_a_refusal_says_what_to_do() -> None:
    joint = Joint.from_counts([[9, 1], [1, 9]])
    with pytest.raises(
        GuaranteeError,
        match=r"^SRLIP promised ε = 0\.01; conditional reporting leaks more at every α\. Ask for a larger ε, or use",
    ):
        conditional_reporting(joint, SRLIP(0.01))


@given(data=st.data(), epsilon=st.floats(0.05, 3), kind=st.sampled_from(KINDS))
@settings(max_examples=40, deadline=None)
def test_several_priors_are_kept_together(data: st.DataObject, epsilon: float, kind: type[Promise]) -> None:
    joint, prior = (data.draw(joints(max_c=3, min_c=2, min_a=3, max_a=3)) for _ in range(2))
    promise = kind(epsilon).for_priors([prior])
    for family in SEEING_VALUES:
        protocol = family(joint, promise)
        assert promise.leakage(joint, protocol) <= epsilon
        single = [family(j, kind(epsilon)).alpha for j in (joint, prior)]
        assert protocol.alpha == pytest.approx(min(a for a in single if a is not None), rel=1e-6)


def test_another_prior_may_leave_conditional_reporting_nothing_to_offer() -> None:
    joint, prior = Joint.from_counts([[9, 1], [1, 9]]), Joint.from_counts([[1, 9], [9, 1]])
    with pytest.raises(GuaranteeError, match=r"LIP promised ε = 0\.01"):
        conditional_reporting(joint, LIP(0.01).for_priors([prior]))
    protocol = conditional_reporting(joint, LIP(3).for_priors([prior]))
    assert LIP(3).for_priors([prior]).leakage(joint, protocol) <= 3


# -- the ends of the range ------------------------------------------------------------------------------------


@given(joint=joints(max_c=3, max_a=4, attributes=2), kind=st.sampled_from(KINDS))
@settings(max_examples=60, deadline=None)
def test_epsilon_0_leaks_nothing_at_all(joint: Joint, kind: type[Promise]) -> None:
    independent = kind(0).leakage(joint, Protocol(np.eye(joint.a))) == 0
    for family in SEEING_VALUES:
        protocol = family(joint, kind(0))
        assert kind(0).leakage(joint, protocol) == 0
        if not independent:  # else rounding may hide that it may be published as it is
            assert protocol.alpha == 0
            assert mutual_information(joint, protocol) <= 1e-15


@pytest.mark.parametrize("kind", KINDS)
def test_what_tells_nothing_is_published_as_it_is_at_epsilon_0(kind: type[Promise]) -> None:
    for family in SEEING_VALUES:
        assert family(Joint.from_counts([[1, 2, 1], [2, 4, 2]]), kind(0)).alpha == math.inf


def test_at_alpha_0_conditional_reporting_tells_of_the_value_and_not_of_the_secret() -> None:
    joint = Joint.from_counts([[3, 1], [1, 3]])  # sums of quarters: no rounding
    protocol = conditional_reporting(joint, LDP(0))
    assert protocol.alpha == 0
    assert information(protocol.joint_with_secret(joint)) == 0
    assert mutual_information(joint, protocol) > 0.01


def test_where_even_the_identity_keeps_the_promise_it_is_returned() -> None:
    joint = Joint.from_counts([[4, 6], [6, 4]])
    for kind in KINDS:
        leaks = kind(1).leakage(joint, Protocol(np.eye(2)))
        for family in BASELINES.values():
            assert family(joint, kind(leaks)).alpha == math.inf
            if not (kind is SRLIP and family is conditional_reporting):
                below = family(joint, kind(leaks * (1 - 1e-9))).alpha
                assert below is not None
                assert 15 < below < 50
    assert (randomised_response(joint, LIP(1)).channel == np.eye(2)).all()
    assert mutual_information(joint, unary_encoding(joint, LIP(1))) == pytest.approx(math.log(2) / 2)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_cell_keeps_alpha_finite_however_large_epsilon_is(kind: type[Promise]) -> None:
    joint = Joint.from_counts([[5, 0, 1], [5, 5, 1], [1, 2, 3]])
    for family in SEEING_VALUES:
        alphas = []
        for epsilon in (0.5, 5.0, 50.0, 500.0, 5000.0):
            protocol = family(joint, kind(epsilon))
            assert kind(epsilon).leakage(joint, protocol) <= epsilon
            assert protocol.alpha is not None
            alphas.append(protocol.alpha)
        assert alphas == sorted(alphas)
        assert alphas[2] == pytest.approx(50, abs=3)
        assert alphas[4] == LARGEST_ALPHA


def test_a_tiny_epsilon_is_kept() -> None:
    joint = Joint.from_counts([[5, 2, 1], [5, 5, 1], [1, 2, 3]])
    for epsilon in (1e-6, 1e-12, 1e-15, 1e-18, 1e-100, 5e-324):
        for kind in KINDS:
            for family in SEEING_VALUES:
                protocol = family(joint, kind(epsilon))
                assert kind(epsilon).leakage(joint, protocol) <= epsilon


@pytest.mark.parametrize("counts", [[[3, 4, 5]], [[3], [4]], [[2]]])
def test_one_secret_value_or_one_published_value_is_published_as_it_is(counts: list[list[int]]) -> None:
    joint = Joint.from_counts(counts)
    for kind in KINDS:
        for family in BASELINES.values():
            protocol = family(joint, kind(0))
            assert protocol.alpha == math.inf
            assert kind(0).leakage(joint, protocol) == 0


def test_tables_that_would_not_fit_are_refused_with_what_to_do() -> None:
    wide = Joint.from_counts(np.ones((2, 10**6), dtype=np.int64))
    for family in (randomised_response, conditional_reporting):
        with pytest.raises(SizeError, match=r"1,000,000 probabilities.*or publish fewer columns"):
            family(wide, LIP(1))
    assert unary_encoding(wide, LIP(1)).alpha == math.inf


# -- unary encoding: sets without 2^a -------------------------------------------------------------------------


@given(
    joint=st.one_of(joints(max_c=3, max_a=7), joints(max_c=3, max_a=3, attributes=2)),
    alpha=st.one_of(st.floats(0, 8), st.sampled_from([1e-9, 20.0, math.inf])),
    kind=st.sampled_from(KINDS),
)
@settings(max_examples=100, deadline=None)
def test_prefixes_find_the_worst_of_all_sets(joint: Joint, alpha: float, kind: type[Promise]) -> None:
    encoding = UnaryEncoding(joint.a, alpha)
    every_set = Protocol(oue(joint.a, encoding.foreign))
    leak = kind(1).worst(joint, encoding)
    assert leak.epsilon == pytest.approx(kind(1).leakage(joint, every_set), rel=1e-9, abs=1e-14)
    if 0 < leak.epsilon < math.inf:
        # The set that is named has that leak, at the place that is named.
        number = sum(1 << x for x in leak.output)
        for block in kind(1).comparisons(joint, False):
            p_y = block.distributions @ every_set.channel[:, number]
            ratios = log_ratio(p_y[block.pairs[:, 0]], p_y[block.pairs[:, 1]])
            named = [block.leak(0, i, None) for i in range(len(block.pairs))]
            for ratio, place in zip(ratios, named, strict=True):
                if (place.secrets, place.against, place.known) == (leak.secrets, leak.against, leak.known):
                    assert ratio == pytest.approx(leak.epsilon, rel=1e-9, abs=1e-14)


@given(joint=joints(max_c=2, max_a=9), alpha=st.one_of(st.floats(0, 30), st.sampled_from([1e-7, math.inf])))
@settings(max_examples=100, deadline=None)
def test_its_information_is_the_sum_over_all_sets(joint: Joint, alpha: float) -> None:
    encoding = UnaryEncoding(joint.a, alpha)
    by_sets = mutual_information(joint, Protocol(oue(joint.a, encoding.foreign)))
    assert mutual_information(joint, encoding) == pytest.approx(by_sets, abs=1e-12)


def test_its_information_for_16_values_is_the_sum_over_65536_sets() -> None:
    joint = adult("marital-status", "education")
    encoding = unary_encoding(joint, LIP(0.5))
    by_sets = mutual_information(joint, Protocol(oue(joint.a, encoding.foreign)))
    assert mutual_information(joint, encoding) == pytest.approx(by_sets, abs=1e-12)


@pytest.mark.parametrize(("a", "alpha"), [(60, 1.0), (400, 3.0), (3000, 6.0)])
def test_its_information_for_many_even_values_is_a_binomial_sum(a: int, alpha: float) -> None:
    # All p_x = 1/a: given its size n, every set is as likely, so that I = α/2 - E[ln(1 + k n/a)].
    joint = Joint.from_counts(np.ones((2, a), dtype=np.int64))
    q, k = 1 / (math.exp(alpha) + 1), math.expm1(alpha)
    n = np.arange(a)
    choose = math.lgamma(a) - np.array([math.lgamma(i + 1) + math.lgamma(a - i) for i in n])
    foreign = np.exp(choose + n * math.log(q) + (a - 1 - n) * math.log1p(-q))
    mean_log = float((foreign * (np.log1p(k * n / a) + np.log1p(k * (n + 1) / a))).sum()) / 2
    assert mutual_information(joint, UnaryEncoding(a, alpha)) == pytest.approx(alpha / 2 - mean_log, abs=1e-10)


def test_its_information_nears_half_the_entropy() -> None:
    joint = adult("sex", "education")
    kept = [mutual_information(joint, UnaryEncoding(joint.a, alpha)) for alpha in (0.0, 5.0, 50.0, 700.0, math.inf)]
    assert kept[:3] == sorted(kept[:3])
    assert kept[0] == 0
    assert kept[2:] == pytest.approx([entropy(joint.p_x) / 2] * 3, abs=1e-11)


def test_thousands_of_values_are_calibrated_by_sorting() -> None:
    rng = np.random.default_rng(3)
    joint = Joint.from_counts(rng.integers(1, 100, (8, 4000)))
    encoding = unary_encoding(joint, LIP(1))
    leak = LIP(1).worst(joint, encoding)
    assert 1 - 1e-9 < leak.epsilon <= 1
    inside = list(leak.output)
    k = math.expm1(encoding.alpha)
    p, r = joint.p_x_given_s[leak.secrets[0], inside].sum(), joint.p_x[inside].sum()
    assert abs(math.log((1 + k * p) / (1 + k * r))) == pytest.approx(leak.epsilon, abs=1e-9)


def test_pairs_looked_at_in_chunks_give_the_same_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = Joint.from_counts(np.random.default_rng(5).integers(0, 9, (4, 6)) + 1)
    encoding = UnaryEncoding(6, 1.5)
    at_once = [kind(1).worst(joint, encoding) for kind in KINDS]
    kept = mutual_information(joint, encoding)
    monkeypatch.setattr(unary_room, "_CHUNK", 1)
    monkeypatch.setattr("privacyfunnel.model.comparisons.PAIRED_AT_ONCE", 1)
    assert [kind(1).worst(joint, encoding) for kind in KINDS] == at_once
    assert mutual_information(joint, encoding) == pytest.approx(kept, abs=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_calibration_measures_at_most_fifty_members(
    kind: type[Promise], epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    joint, measured, worst = adult("occupation", "education"), [], Protocol.worst

    def counted(protocol: Protocol, block: Comparisons) -> Leak:
        measured.append(protocol.alpha)
        return worst(protocol, block)

    monkeypatch.setattr(Protocol, "worst", counted)
    randomised_response(joint, kind(epsilon))
    assert len(measured) <= 50
