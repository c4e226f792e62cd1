"""The best protocols for statistics: as a closed form, brute force and a reference table say; kept exactly, proved."""

from math import exp
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.baselines import conditional_reporting, randomised_response
from privacyfunnel.designs.optimal import solvers
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.designs.optimal.problem_conversion import StopReason
from privacyfunnel.errors import ColumnError, ParameterError, SizeError
from privacyfunnel.mechanisms.sealing import exact_worst_leak
from privacyfunnel.model.information import mutual_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.uses.statistics_use import Balanced, Statistics, Workload
from privacyfunnel.model.uses.use import Information
from privacyfunnel.tables.readers.adult import adult_counts
from tests.strategies import joints, protocols_for

EPSILONS = st.floats(0.3, 2)
GAP = 1e-3 * (1 + 1e-6)


def adult(secret: str, publish: str) -> Joint:
    counts, _ = adult_counts(secret, publish)
    return Joint.from_counts(counts)


def kept(joint: Joint, promise: Promise, protocol_sealed: object) -> None:
    """On the integers that are drawn, in fractions."""
    worst = exact_worst_leak(protocol_sealed.mechanism, promise, joint)  # type: ignore[attr-defined]
    assert not worst.exceeds(promise.epsilon)


@pytest.mark.parametrize(("k", "epsilon"), [(3, 1.0), (5, 0.5), (8, 1.0)])
def test_where_the_value_is_the_secret_the_closed_form_is_reached(k: int, epsilon: float) -> None:
    joint = Joint.from_counts(np.eye(k, dtype=np.int64))
    best = optimal(joint, LDP(epsilon), Statistics(population=True))
    e = exp(epsilon)
    known = min((k - 1) ** 2 * (d * e + k - d) ** 2 / (k * d * (k - d) * (e - 1) ** 2) for d in range(1, k))
    assert best.value == pytest.approx(known, rel=1e-6)
    assert known * (1 - GAP) <= best.bound <= known * (1 + 1e-9)


def test_the_closed_form_for_sixteen_values_is_the_one_of_the_reference() -> None:
    e = exp(1.0)
    assert min(15**2 * (d * e + 16 - d) ** 2 / (16 * d * (16 - d) * (e - 1) ** 2) for d in range(1, 16)) == (
        pytest.approx(51.9139, abs=1e-4)
    )
    joint = Joint.from_counts(np.eye(16, dtype=np.int64))
    grr = randomised_response(joint, LDP(1.0))
    assert Statistics(population=True).value(joint, grr) == pytest.approx(99.7, abs=0.05)


@given(joint=joints(max_c=4, max_a=5, min_c=2, min_a=2), kind=st.sampled_from([LIP, LDP, SRLIP]), epsilon=EPSILONS)
@settings(max_examples=10, deadline=None)
def test_the_optimum_keeps_its_promise_and_its_bound_holds(joint: Joint, kind: type[Promise], epsilon: float) -> None:
    promise, use = kind(epsilon), Statistics()
    best = optimal(joint, promise, use)
    assert promise.leakage(joint, best.protocol) <= epsilon
    if best.sealed is not None:
        kept(joint, promise, best.sealed)
    assert best.value == use.value(joint, best.protocol)
    # Of an error of all shares of about 1: what is below is rounding, of inputs that one in a million has.
    assert 0 <= best.value - best.bound <= GAP * best.value + 1e-5
    grr = use.value(joint, randomised_response(joint, promise))
    assert best.value <= grr * (1 + 1e-9) + 1e-6


# Adult, all rows: n × total squared error of the table's own shares, from a prototype of its own.
REFERENCE = [
    ("marital-status", "relationship", LIP(0.5), 4.660),
    ("marital-status", "relationship", LIP(1.0), 1.146),
    ("marital-status", "relationship", LIP(2.0), 0.2135),
    ("marital-status", "relationship", LDP(0.5), 14.71),
    ("marital-status", "relationship", LDP(1.0), 3.353),
    ("marital-status", "relationship", LDP(2.0), 0.5398),
    ("marital-status", "education", LIP(1.0), 0.1241),
    ("marital-status", "education", LIP(2.0), 0.02886),
    ("marital-status", "education", LDP(2.0), 0.06129),
    ("occupation", "education", LIP(2.0), 0.0257),
]


@pytest.mark.parametrize(("secret", "publish", "promise", "known"), REFERENCE)
def test_the_reference_table_is_reached(secret: str, publish: str, promise: Promise, known: float) -> None:
    best = optimal(adult(secret, publish), promise, Statistics())
    assert best.value == pytest.approx(known, rel=1.5e-3)
    assert best.value - best.bound <= GAP * best.value
    assert best.sealed is not None
    kept(adult(secret, publish), promise, best.sealed)


@given(data=st.data(), joint=joints(max_c=2, max_a=4, min_a=2), population=st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_value_is_that_of_the_inverted_channel(data: st.DataObject, joint: Joint, population: bool) -> None:
    a, use = joint.a, Statistics(population=population)
    noise = data.draw(protocols_for(joint, max_b=1)).channel  # its rows are 1
    Q = 0.5 * np.eye(a) + 0.5 * np.random.default_rng(a).dirichlet(np.ones(a), size=a) * noise
    p, G = joint.p_x, np.linalg.inv(Q)
    covariance = G.T @ np.diag(p @ Q) @ G - (np.outer(p, p) if population else np.diag(p))
    assert use.value(joint, Protocol(Q)) == pytest.approx(float(np.trace(covariance)), rel=1e-7, abs=1e-9)


@given(joint=joints(max_c=3, max_a=4, min_c=2, min_a=2))
@settings(max_examples=20, deadline=None)
def test_a_protocol_that_sees_the_secret_and_ignores_it_has_the_same_error(joint: Joint) -> None:
    blind = randomised_response(joint, LIP(1.0))
    seeing = Protocol(np.tile(blind.channel, (joint.c, 1)), blind.outputs, sees_secret=True)
    for use in (Statistics(), Statistics(population=True)):
        assert use.value(joint, seeing) == pytest.approx(use.value(joint, blind), rel=1e-6, abs=1e-7)


def test_the_error_of_the_table_is_what_repeated_draws_show() -> None:
    """10,000 tables drawn from the same 60 rows by a protocol that sees the secret; false alarm below 1 in 10⁴."""
    joint = Joint.from_counts([[10, 5, 15], [5, 20, 5]])
    protocol = conditional_reporting(joint, LIP(0.2))
    random, n, draws = np.random.default_rng(4), 60, 10_000
    p_xy = protocol.joint_with_values(joint)
    posterior = p_xy / p_xy.sum(axis=0)
    second = (p_xy / p_xy.sum(axis=0)) @ p_xy.T
    estimator = posterior.T @ np.linalg.inv(second) @ np.diag(joint.p_x)  # G = D⁻¹QᵀJ⁻¹
    counts = joint.weights.ravel()
    seen = sum(random.multinomial(c, q, size=draws) for c, q in zip(counts, protocol.channel, strict=True))
    errors = n * ((np.asarray(seen) / n @ estimator - joint.p_x) ** 2).sum(axis=1)
    assert abs(errors.mean() - Statistics().value(joint, protocol)) < 4 * errors.std() / np.sqrt(draws)


def test_outputs_that_do_not_tell_values_apart_have_infinite_error() -> None:
    joint = Joint.from_counts([[3, 1, 2], [1, 3, 2]])
    assert Statistics().value(joint, Protocol(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))) == np.inf


def test_one_query_is_served_better_alone_and_is_proved() -> None:
    joint = adult("marital-status", "relationship")
    (label, *_) = joint.values[0]
    use = Statistics(workload=Workload("one share", (label,), ((1.0,),)))
    alone, all_shares = optimal(joint, LIP(1.0), use), optimal(joint, LIP(1.0), Statistics())
    assert alone.value < 0.9 * use.value(joint, all_shares.protocol)
    assert alone.bound <= alone.value <= alone.bound * (1 + 5e-3)


def test_weights_make_a_value_count_more() -> None:
    joint = Joint.from_counts([[30, 10, 5], [10, 30, 9], [5, 9, 7]], values=["a", "b", "c"])
    even, heavy = (optimal(joint, LIP(0.5), Statistics(weights=w)) for w in ((), (("c", 50.0),)))
    only_c = Statistics(workload=Workload("c", ("c",), ((1.0,),)))
    assert only_c.value(joint, heavy.protocol) < only_c.value(joint, even.protocol)
    with pytest.raises(ColumnError, match="'d' is none"):
        optimal(joint, LIP(0.5), Statistics(weights=(("d", 1.0),)))


def test_margins_of_several_columns_are_a_workload() -> None:
    counts = np.random.default_rng(2).integers(1, 40, size=(3, 3, 2))
    joint = Joint.from_counts(counts)
    names = tuple(attribute.name for attribute in joint.attributes)
    use = Statistics(columns=names)
    assert use.queries(joint).shape == (5, 6)
    best = optimal(joint, LIP(0.5), use)
    assert best.bound <= best.value <= use.value(joint, optimal(joint, LIP(0.5), Statistics()).protocol) * (1 + GAP)
    with pytest.raises(ColumnError, match="published columns only"):
        optimal(joint, LIP(0.5), Statistics(columns=("nowhere",)))


@pytest.mark.parametrize("share", [0.99, 0.9])
def test_balanced_keeps_its_share_of_the_information_at_the_least_error(share: float) -> None:
    joint, promise = adult("marital-status", "relationship"), LIP(1.0)
    most = optimal(joint, promise, Information())
    least = optimal(joint, promise, Statistics())
    best = optimal(joint, promise, Balanced(share))
    assert best.sealed is not None
    kept(joint, promise, best.sealed)
    assert best.utility >= share * most.bound * (1 - 1e-9)
    assert best.sealed.bound is not None
    assert best.sealed.bound >= most.utility
    assert least.bound <= best.bound <= best.value <= Statistics().value(joint, most.protocol)
    assert best.value - best.bound <= 2e-3 * best.value


def test_seeing_the_secret_is_judged_by_the_population_and_helps() -> None:
    joint, promise = Joint.from_counts([[30, 10, 5], [10, 30, 9], [5, 9, 7]]), LDP(0.5)
    blind = optimal(joint, promise, Statistics(population=True))
    seeing = optimal(joint, promise, Statistics(), sees_secret=True)
    assert isinstance(seeing.use, Statistics)
    assert seeing.use.population
    assert seeing.sealed is not None
    kept(joint, promise, seeing.sealed)
    assert seeing.bound <= seeing.value <= blind.value * (1 + GAP)
    assert seeing.value - seeing.bound <= GAP * seeing.value
    with pytest.raises(SizeError, match="pairs of secret and value"):
        optimal(adult("occupation", "education"), LIP(1.0), Statistics(), sees_secret=True)


def test_what_the_promise_hides_is_refused_by_name() -> None:
    joint = Joint.from_counts([[30, 10, 5], [10, 30, 5]], values=["yes", "no", "rest"])
    with pytest.raises(ParameterError, match=r"2 of 3 are not \('yes', 'no'\), though 1 combinations"):
        optimal(joint, LIP(0.0), Statistics())
    with pytest.raises(ParameterError, match="above 0 and below 1"):
        Balanced(1.0)


def test_a_released_protocol_has_no_dust() -> None:
    best = optimal(adult("marital-status", "relationship"), LIP(1.0), Statistics())
    frequency: FloatArray = adult("marital-status", "relationship").p_x @ best.protocol.channel
    assert len(frequency) <= 21
    assert frequency.min() > 1e-7


def test_a_share_of_information_that_is_not_known_yet_is_the_owners_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(utility=0.5, bound=1.0, stopped=StopReason.TIME)
    monkeypatch.setattr(solvers, "maximise_information", lambda asked: found)
    with pytest.raises(ParameterError, match=r"it is known to 50\.0%\. Allow more time"):
        optimal(Joint.from_counts([[5, 1, 2], [1, 5, 2]]), LIP(0.5), "balanced")


SMALL = [[25, 5, 2], [25, 32, 36], [31, 18, 36], [2, 27, 21]]
RANDOM = [np.random.default_rng(seed).integers(1, 40, (4, 3)).tolist() for seed in range(18)]


@pytest.mark.parametrize("counts", [SMALL, *RANDOM], ids=["reported", *map(str, range(18))])
def test_no_protocol_with_its_share_of_the_information_has_less_error_than_balanced_says_is_possible(
    counts: list[list[int]],
) -> None:
    """At a small ε the best information is far below H(X), and a share of a bound on it is more than a share of it.

    The rival mixes the most informative protocol with the one of least error until it keeps just its share.
    """
    joint, promise, kept = Joint.from_counts(counts), LDP(0.05), 0.97
    informative = optimal(joint, promise, gap=1e-9)
    exact = optimal(joint, promise, Statistics())
    least = mutual_information(joint, exact.protocol)
    room = (informative.utility - kept * informative.bound) / max(informative.utility - least, 1e-12)
    share = min(max(room - 1e-9, 0.0), 1.0)
    rival = Protocol(np.hstack([(1 - share) * informative.protocol.channel, share * exact.protocol.channel]))
    assert mutual_information(joint, rival) >= kept * informative.bound
    balanced = optimal(joint, promise, Balanced(kept))
    assert balanced.bound <= Statistics().value(joint, rival)
    assert mutual_information(joint, balanced.protocol) >= kept * informative.utility
    assert balanced.value - balanced.bound <= 0.1 * balanced.value
