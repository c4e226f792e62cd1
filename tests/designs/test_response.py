"""Forced response: the most truth there can be, certified on integers, and what shares cost."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.designs.baselines import randomised_response
from privacyfunnel.designs.forced_response_design import assess_forced_response, forced_response, total_squared_error
from privacyfunnel.designs.methods import Options, find_method
from privacyfunnel.errors import ParameterError
from privacyfunnel.estimation.expected_precision import expected_precision
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.forced_mechanism import ForcedResponseMechanism
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.protocols.forced_response import ForcedResponse
from privacyfunnel.model.uses.linear_use import Values
from privacyfunnel.model.uses.statistics_use import Statistics
from tests.strategies import joints

PROMISES = st.builds(
    lambda kind, epsilon: kind(epsilon), st.sampled_from([LIP, LDP, SRLIP]), st.sampled_from([0.05, 0.4, 1.0, 3.0])
)


def written_out(protocol: ForcedResponse) -> Protocol:
    return Protocol(protocol.truth * np.eye(len(protocol.noise)) + protocol.noise)


@settings(max_examples=80, deadline=None)
@given(joint=joints(max_c=3, max_a=3, attributes=2, min_c=2), promise=PROMISES, seed=st.integers(0, 99))
def test_a_forced_response_keeps_its_promise_and_no_noise_allows_more_truth(
    joint: Joint, promise: Promise, seed: int
) -> None:
    found = forced_response(joint, promise)
    plain = written_out(found)
    assert promise.leakage(joint, found) == pytest.approx(promise.leakage(joint, plain), abs=1e-9)
    assert found.mutual_information(joint) == pytest.approx(plain.mutual_information(joint), abs=1e-9)
    sealed = seal(found, promise, joint)
    assert sealed.epsilon <= promise.epsilon
    # Other noise, as near to it as it may be: with a little more truth the promise is broken.
    if found.truth < 0.999:
        random = np.random.default_rng(seed)
        other = found.noise * random.uniform(0.9, 1.1, joint.a) + random.choice([0.0, 1e-3]) * random.random(joint.a)
        more = min(found.truth + 1e-4, 0.9999)
        louder = ForcedResponse(more, other * (1 - more) / other.sum(), found.record, found.labels, found.combos)
        assert promise.leakage(joint, louder) > promise.epsilon


@settings(max_examples=40, deadline=None)
@given(joint=joints(max_c=3, max_a=4, min_c=2), epsilon=st.sampled_from([0.1, 0.7, 2.0]))
def test_the_integers_keep_the_promise_in_fractions(joint: Joint, epsilon: float) -> None:
    sealed = seal(forced_response(joint, LIP(epsilon)), LIP(epsilon), joint)
    law = sealed.mechanism
    assert isinstance(law, ForcedResponseMechanism)
    assert law.truth + sum(law.noise.tolist()) == 2**64
    w, limit = joint.weights.tolist(), exp_below(sealed.epsilon) * (1 + Fraction(1, 10**15))
    for y in range(joint.a):
        given_s = [Fraction(law.truth * int(row[y]), int(sum(row))) + law.noise[y] for row in w]
        everybody = Fraction(law.truth * int(sum(row[y] for row in w)), joint.total) + law.noise[y]
        for one in given_s:
            assert one == everybody == 0 or (one <= limit * everybody and everybody <= limit * one)


def test_one_part_in_a_million_more_truth_is_refused() -> None:
    joint = Joint.from_counts([[30, 10, 5], [10, 30, 7]])
    found = forced_response(joint, LIP(0.2))
    more = found.truth + 2e-6
    louder = ForcedResponse(
        more, found.noise * (1 - more) / (1 - found.truth), found.record, found.labels, found.combos
    )
    seal(found, LIP(0.2), joint)
    with pytest.raises(Exception, match=r"LIP promised ε = 0\.2"):
        seal(louder, LIP(0.2), joint)


@settings(max_examples=40, deadline=None)
@given(joint=joints(max_c=3, max_a=3, attributes=2, min_c=2, min_a=2), promise=PROMISES)
def test_its_error_is_that_of_the_written_out_channel_and_at_most_that_of_randomised_response(
    joint: Joint, promise: Promise
) -> None:
    found = forced_response(joint, promise)
    for use in (Statistics(), Statistics(columns=("X1",)), Statistics(population=True)):
        if found.truth > 1e-3:
            assert total_squared_error(joint, found, use) == pytest.approx(
                use.value(joint, written_out(found)), rel=1e-6, abs=1e-6
            )
    classic = Statistics().value(joint, randomised_response(joint, promise))
    most = joint.a / (joint.a - 1) * classic if joint.a > 1 else classic
    assert total_squared_error(joint, found, Statistics()) <= most * (1 + 1e-6) + 1e-6


@settings(max_examples=30, deadline=None)
@given(joint=joints(max_c=3, max_a=4, attributes=2, min_c=2))
def test_truth_never_falls_in_epsilon(joint: Joint) -> None:
    truths = [forced_response(joint, LIP(epsilon)).truth for epsilon in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)]
    assert (np.diff(truths) >= -1e-12).all()


def large() -> Joint:
    random = np.random.default_rng(3)
    counts = random.poisson(4 * random.dirichlet(np.full(120, 0.4), size=3) * 120).reshape(3, 10, 4, 3)
    return Joint.from_counts(counts, names=("a", "b", "c"))


def test_columns_of_a_forced_response_are_one_and_estimates_are_as_near_as_was_said() -> None:
    joint = large()
    sealed = assess_forced_response(joint, LIP(1.0), Statistics()).seal()
    law, _ = sealed.mechanism.restrict_attributes([1])
    assert isinstance(law, ForcedResponseMechanism)
    told = expected_precision(sealed, joint, joint.total, [joint.attributes[1].name])
    codes = np.repeat(np.arange(joint.a), joint.weights.sum(axis=0).astype(np.int64))
    truth, off = np.bincount(joint.combos[codes, 1]) / len(codes), []
    for seed in range(200):
        shown = law.observation_codes(sealed.sample(codes, KeyStream.from_seed(seed))[:, [1]])[:, 0]
        seen = np.bincount(shown, minlength=4) / len(codes)
        noise = np.array([int(n) for n in law.noise]) / 2**64
        off.append((seen - noise) / (law.truth / 2**64) - truth)
    spread = 1.96 * np.sqrt(np.mean(np.square(off), axis=0))
    assert spread == pytest.approx(told.half_widths, rel=0.2)  # 200 draws: four standard errors


def test_what_it_is_not_made_for_is_refused() -> None:
    joint = large()
    with pytest.raises(ParameterError, match="forced-response is not made for 'values'"):
        find_method("forced-response").design(joint, LIP(1.0), Options(use=Values()))
    with pytest.raises(ParameterError, match="a promise for a population was asked"):
        forced_response(joint, LIP(1.0).for_population(joint, 0.95))
