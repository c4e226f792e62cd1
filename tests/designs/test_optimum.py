"""The optimum: kept, proved, and equal to what exhaustive enumeration finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.designs.baselines import randomised_response
from privacyfunnel.designs.interface import LARGEST_DIVIDED
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import ParameterError, SizeError
from privacyfunnel.model.information import entropy, mutual_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.uses.linear_use import Values
from privacyfunnel.tables.readers.adult import adult_counts
from tests.enumeration import best_over_gamma, best_over_posteriors
from tests.strategies import joints

EPSILONS = st.floats(0.05, 3)
PROMISES = st.sampled_from([LIP, LDP, SRLIP])
COIN = Joint.from_counts([[1, 0], [0, 1]])


def adult(secret: str, publish: str) -> Joint:
    counts, _ = adult_counts(secret, publish)
    return Joint.from_counts(counts)


@given(joint=joints(), kind=PROMISES, epsilon=EPSILONS)
@settings(max_examples=60, deadline=None)
def test_the_optimum_keeps_its_promise_and_is_proved_best(joint: Joint, kind: type[Promise], epsilon: float) -> None:
    best = optimal(joint, kind(epsilon))
    assert kind(epsilon).leakage(joint, best.protocol) <= epsilon
    assert best.utility == mutual_information(joint, best.protocol)
    assert best.utility - 1e-12 <= best.bound <= best.utility + 1e-6 + 1e-7


@given(joint=joints(max_c=3, max_a=3, attributes=2, min_c=2), epsilon=EPSILONS)
@settings(max_examples=15, deadline=None)
def test_several_attributes_are_kept_and_proved(joint: Joint, epsilon: float) -> None:
    best = optimal(joint, SRLIP(epsilon), gap=1e-4)
    assert SRLIP(epsilon).leakage(joint, best.protocol) <= epsilon
    assert best.bound - best.utility <= 1.1e-4


@given(joint=joints(max_c=3, max_a=4), kind=PROMISES, epsilon=EPSILONS)
@settings(max_examples=40, deadline=None)
def test_it_equals_the_best_over_all_vertices_of_the_polytope(
    joint: Joint, kind: type[Promise], epsilon: float
) -> None:
    best = optimal(joint, kind(epsilon))
    reference = best_over_posteriors(joint, kind(epsilon))
    assert best.utility <= reference + 1e-8
    assert best.bound >= reference - 1e-8
    assert best.utility == pytest.approx(reference, abs=2e-6)


@pytest.mark.parametrize("seed", [0, 1])
def test_it_equals_the_best_over_all_vertices_of_the_papers_gamma(seed: int) -> None:
    joint = Joint.from_counts(np.random.default_rng(seed).integers(1, 100, (2, 3)))
    assert optimal(joint, LDP(0.5)).utility == pytest.approx(best_over_gamma(joint, 0.5), abs=2e-6)


@given(joint=joints(min_c=2), kind=PROMISES, epsilon=EPSILONS)
@settings(max_examples=25, deadline=None)
def test_it_is_never_below_randomised_response(joint: Joint, kind: type[Promise], epsilon: float) -> None:
    simple = randomised_response(joint, kind(epsilon))
    assert optimal(joint, kind(epsilon)).bound >= mutual_information(joint, simple) - 1e-12


@given(joint=joints(min_c=2), kind=PROMISES, epsilon=EPSILONS, more=st.floats(0, 1))
@settings(max_examples=25, deadline=None)
def test_more_is_kept_for_a_larger_epsilon(joint: Joint, kind: type[Promise], epsilon: float, more: float) -> None:
    assert optimal(joint, kind(epsilon)).utility <= optimal(joint, kind(epsilon + more)).bound + 1e-12


@given(joint=joints(min_c=2), epsilon=EPSILONS)
@settings(max_examples=25, deadline=None)
def test_ldp_keeps_less_than_lip_and_lip_less_than_ldp_of_twice_the_size(joint: Joint, epsilon: float) -> None:
    lip = optimal(joint, LIP(epsilon))
    assert optimal(joint, LDP(epsilon)).utility <= lip.bound + 1e-12
    assert lip.utility <= optimal(joint, LDP(2 * epsilon)).bound + 1e-12


@given(joint=joints(min_c=2), kind=PROMISES, epsilon=EPSILONS, data=st.data())
@settings(max_examples=25, deadline=None)
def test_the_order_of_values_and_secrets_does_not_matter(
    joint: Joint, kind: type[Promise], epsilon: float, data: st.DataObject
) -> None:
    values = data.draw(st.permutations(range(joint.a)))
    secrets = data.draw(st.permutations(range(joint.c)))
    shuffled = Joint.from_counts(joint.weights[np.ix_(secrets, values)])
    here, there = optimal(joint, kind(epsilon)), optimal(shuffled, kind(epsilon))
    assert here.utility <= there.bound + 1e-12
    assert there.utility <= here.bound + 1e-12


@given(joint=joints(min_c=2), kind=st.sampled_from([LIP, LDP]), epsilon=EPSILONS, parts=st.integers(2, 4))
@settings(max_examples=25, deadline=None)
def test_splitting_a_value_adds_exactly_the_entropy_of_the_split(
    joint: Joint, kind: type[Promise], epsilon: float, parts: int
) -> None:
    shares = np.arange(1, parts + 1)
    weights = np.concatenate([joint.weights[:, 1:] * shares.sum(), joint.weights[:, :1] * shares], axis=1)
    added = float(joint.p_x[0]) * entropy(shares / shares.sum())
    whole, split = optimal(joint, kind(epsilon)), optimal(Joint.from_counts(weights), kind(epsilon))
    assert split.utility == pytest.approx(whole.utility + added, abs=2e-6)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_a_fair_coin_is_flipped_with_half_the_exponential_under_lip(epsilon: float) -> None:
    flip = np.exp(-epsilon) / 2
    best = optimal(COIN, LIP(epsilon), gap=1e-9)
    assert sorted(set(np.round(best.protocol.channel.ravel(), 8))) == pytest.approx([flip, 1 - flip], abs=1e-7)


def test_a_large_epsilon_keeps_everything_when_no_cell_is_empty() -> None:
    joint = Joint.from_counts([[5, 3, 1], [2, 2, 9]])
    best = optimal(joint, LDP(4))
    assert best.utility == best.bound == pytest.approx(entropy(joint.p_x), abs=1e-14)


def test_epsilon_zero_keeps_what_is_independent_of_the_secret() -> None:
    joint = Joint.from_counts([[2, 1, 1], [2, 3, 1]])
    best = optimal(joint, LIP(0))
    assert best.bound - best.utility <= 1e-6
    assert LIP(0).leakage(joint, best.protocol) < 2.0**-40
    assert best.utility > 0.1


REFERENCE = [
    ("marital-status", "education", LIP(0.5), 1.8223),
    ("marital-status", "education", LIP(1), 1.9230),
    ("marital-status", "education", LIP(2), 1.9930),
    ("marital-status", "education", LDP(0.5), 1.7422),
    ("marital-status", "education", LDP(1), 1.8816),
    ("marital-status", "education", LDP(2), 1.9660),
    ("occupation", "education", LIP(0.5), 1.5153),
    ("occupation", "education", LIP(1), 1.7766),
    ("occupation", "education", LIP(2), 1.9878),
    ("occupation", "education", LDP(2), 1.8468),
    ("marital-status", "relationship", LIP(1), 0.9290),
    ("marital-status", "relationship", LDP(1), 0.6549),
    ("occupation", "relationship", LIP(1), 1.2786),
    ("occupation", "relationship", LDP(1), 1.0764),
    ("marital-status", "race", LIP(1), 0.5148),
    ("marital-status", "race", LDP(1), 0.4253),
]


@pytest.mark.parametrize(("secret", "publish", "promise", "value"), REFERENCE, ids=str)
def test_adult_gives_the_reference_values(secret: str, publish: str, promise: Promise, value: float) -> None:
    joint = adult(secret, publish)
    best = optimal(joint, promise, gap=1e-5)
    assert best.utility == pytest.approx(value, abs=6e-5)
    assert best.bound - best.utility <= 1.1e-5
    assert promise.leakage(joint, best.protocol) <= promise.epsilon


def test_at_the_time_limit_the_protocol_is_valid_and_the_bound_holds() -> None:
    weights = np.random.default_rng(3).integers(1, 10**6, (6, 60))
    joint = Joint.from_counts(weights)
    hasty = optimal(joint, LIP(0.3), gap=1e-9, time_limit=0.2)
    patient = optimal(joint, LIP(0.3), gap=1e-2)
    assert LIP(0.3).leakage(joint, hasty.protocol) <= 0.3
    assert hasty.utility <= patient.bound
    assert patient.utility <= hasty.bound


def test_an_interrupt_is_handed_on_and_nothing_is_returned() -> None:
    joint = Joint.from_counts(np.random.default_rng(3).integers(1, 1000, (4, 20)))
    calls = []

    def interrupt(utility: float, bound: float) -> None:
        calls.append((utility, bound))
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimal(joint, LIP(0.3), gap=1e-9, progress=interrupt)
    assert len(calls) == 3


def test_progress_never_goes_back() -> None:
    said: list[tuple[float, float]] = []
    joint = adult("occupation", "education")
    best = optimal(joint, LIP(0.5), progress=lambda utility, bound: said.append((utility, bound)))
    utilities, bounds = np.array(said).T
    assert (np.diff(utilities) >= -1e-9).all()
    assert (np.diff(bounds) <= 0).all()
    assert bounds[-1] >= best.utility


def test_a_promise_for_several_priors_is_kept_for_each() -> None:
    joint = Joint.from_counts([[4, 3, 2], [1, 3, 5]])
    other = Joint.from_counts([[2, 3, 2], [3, 1, 5]])
    promise = LIP(0.3).for_priors([other])
    best = optimal(joint, promise)
    assert LIP(0.3).leakage(joint, best.protocol) <= 0.3
    assert LIP(0.3).leakage(other, best.protocol) <= 0.3
    assert best.utility <= optimal(joint, LIP(0.3)).bound


@pytest.mark.parametrize("gap", [0.0, -1.0, float("nan")])
def test_a_gap_must_be_positive(gap: float) -> None:
    with pytest.raises(ParameterError, match="gap must be a finite number above 0"):
        optimal(COIN, LIP(0.5), gap=gap)


def test_a_time_limit_must_be_positive() -> None:
    with pytest.raises(ParameterError, match="time limit must be"):
        optimal(COIN, LIP(0.5), time_limit=0)


def test_more_values_than_blocks_are_solved_for_are_refused_at_once_with_what_to_do() -> None:
    many = Joint.from_counts(np.ones((2, LARGEST_DIVIDED + 1), dtype=np.int64))
    with pytest.raises(SizeError, match=r"at most 20,000 values; this table has 20,001\. Merge rare values"):
        optimal(many, LIP(1.0))
    with pytest.raises(SizeError, match="at most 5,000 values"):
        optimal(many, LIP(1.0), Values())
