"""The optimum that may look at the secret: kept, proved, and never below what is known to be possible."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.designs.baselines import conditional_reporting
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.engine import Split, split
from privacyfunnel.errors import SizeError, SolverError
from privacyfunnel.mechanisms.sealing import SMALLEST_EPSILON, seal
from privacyfunnel.model.information import mutual_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.tables.readers.adult import adult_counts
from tests.strategies import joints

EPSILONS = st.floats(0.05, 2)


@given(joint=joints(max_c=4, max_a=4), kind=st.sampled_from([LIP, LDP, SRLIP]), epsilon=EPSILONS)
@settings(max_examples=30)
def test_it_keeps_its_promise_is_proved_and_no_worse_than_one_that_does_not_look(
    joint: Joint, kind: type[Promise], epsilon: float
) -> None:
    promise = kind(epsilon)
    best = optimal(joint, promise, sees_secret=True, gap=1e-4)
    assert best.protocol.sees_secret
    assert promise.leakage(joint, best.protocol) <= epsilon
    assert seal(best.protocol, promise, joint).epsilon <= epsilon
    assert best.bound - best.utility <= 1.1e-4
    assert best.bound >= optimal(joint, promise).utility - 1e-9


@given(joint=joints(max_c=4, max_a=4), epsilon=EPSILONS)
@settings(max_examples=30)
def test_it_is_never_below_conditional_reporting(joint: Joint, epsilon: float) -> None:
    reported = mutual_information(joint, conditional_reporting(joint, LIP(epsilon)))
    assert optimal(joint, LIP(epsilon), sees_secret=True, gap=1e-4).utility >= reported - 1e-4


def test_even_with_no_time_it_is_not_below_what_is_known() -> None:
    joint = Joint.from_counts(adult_counts("marital-status", "race")[0])
    hurried = optimal(joint, LIP(0.5), sees_secret=True, time_limit=1e-3)
    assert hurried.utility >= mutual_information(joint, conditional_reporting(joint, LIP(0.5))) - 1e-8
    assert hurried.bound >= hurried.utility
    assert LIP(0.5).leakage(joint, hurried.protocol) <= 0.5


@pytest.mark.parametrize(
    ("secret", "publish", "promise", "value"),
    [
        ("marital-status", "sex", LIP(0.5), 0.4891),
        ("marital-status", "sex", SRLIP(0.5), 0.2885),
        ("marital-status", "relationship", LIP(0.5), 0.8133),
        ("occupation", "sex", LIP(0.5), 0.4840),
        ("occupation", "sex", SRLIP(0.5), 0.2022),
    ],
)
def test_adult_gives_the_reference_values(secret: str, publish: str, promise: Promise, value: float) -> None:
    joint = Joint.from_counts(adult_counts(secret, publish)[0])
    best = optimal(joint, promise, sees_secret=True, gap=2e-5)
    assert best.utility == pytest.approx(value, abs=7e-5)
    assert best.bound - best.utility <= 2.1e-5


def test_lip_that_sees_the_secret_leaks_it_to_whoever_knows_the_value_and_srlip_does_not() -> None:
    joint = Joint.from_counts(adult_counts("marital-status", "sex")[0])
    assert SRLIP(0).leakage(joint, optimal(joint, LIP(0.5), sees_secret=True).protocol) > 0.5
    assert SRLIP(0).leakage(joint, optimal(joint, SRLIP(0.5), sees_secret=True).protocol) <= 0.5


def test_a_table_too_large_is_refused_with_its_size() -> None:
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 9, (2, 30_000)))
    with pytest.raises(SizeError, match="30,000"):
        optimal(joint, LIP(0.1))


def test_a_bound_below_the_utility_is_an_error_not_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def boastful(*args: object, **options: object) -> Split:
        found = split(*args, **options)  # type: ignore[arg-type]
        return Split(found.weights, found.atoms, found.value, found.value + 0.01)

    monkeypatch.setattr(import_module("privacyfunnel.designs.optimal.solvers"), "split", boastful)
    with pytest.raises(SolverError, match="bound"):
        optimal(Joint.from_counts([[5, 1, 3], [2, 7, 1]]), LIP(0.2))


@pytest.mark.parametrize("kind", [LIP, LDP, SRLIP])
@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-9, 1e-7])
@pytest.mark.parametrize("sees_secret", [False, True])
def test_tiny_promises_are_kept_too(kind: type[Promise], epsilon: float, sees_secret: bool) -> None:
    weights = np.array([[231, 247, 287, 387, 310, 229], [80, 250, 145, 358, 486, 990]])
    joint = Joint.from_counts(weights.reshape(2, 3, 2))
    best = optimal(joint, kind(epsilon), sees_secret=sees_secret, gap=1e-3)
    certified = seal(best.protocol, kind(epsilon), joint).epsilon
    assert certified <= max(epsilon, SMALLEST_EPSILON)
    assert best.utility <= best.bound <= best.utility + 1.1e-3


@pytest.mark.parametrize(
    ("promise", "weights"),
    [
        (LDP(50), [[2, 3, 1, 1, 0], [3, 3, 0, 0, 0], [1, 2, 0, 1, 2]]),
        (LIP(5000), [[1, 0, 4], [2, 5, 6]]),
        (SRLIP(5), [[10**15, 1, 1, 1, 1], [1, 1, 1, 1, 1]]),
        (LDP(5), [[10**11, 10**7, 10**10, 10**10, 10**5, 10**13], [1000, 1, 10**5, 10**5, 1, 10**5]]),
    ],
)
@pytest.mark.parametrize("sees_secret", [False, True])
def test_huge_promises_and_huge_counts_are_kept_too(
    promise: Promise, weights: list[list[int]], sees_secret: bool
) -> None:
    joint = Joint.from_counts(weights)
    best = optimal(joint, promise, sees_secret=sees_secret, gap=1e-3)
    assert seal(best.protocol, promise, joint).epsilon <= promise.epsilon
    assert best.utility <= best.bound
