"""Outputs and kept columns together: measured as by hand, and refused beyond ε."""

from collections.abc import Callable
from fractions import Fraction
from math import exp, inf, log

import numpy as np
import pytest

from privacyfunnel import LDP, LIP, SRLIP, Joint
from privacyfunnel.designs.baselines import conditional_reporting, randomised_response
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.kept_leakage import kept_leakage
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.kept_promise import KeptCounts
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol

RNG = np.random.default_rng(4)
S = RNG.choice(3, 4000, p=[0.5, 0.3, 0.2])
X = (S + RNG.choice(4, 4000, p=[0.4, 0.3, 0.2, 0.1])) % 4
K = (S + RNG.choice(3, 4000, p=[0.5, 0.3, 0.2])) % 3
JOINT = Joint.from_counts([[int(np.sum((s == S) & (x == X))) for x in range(4)] for s in range(3)])


def counts(s: np.ndarray, x: np.ndarray, k: np.ndarray) -> KeptCounts:
    cells, weights = np.unique(np.column_stack([s, x, k]), axis=0, return_counts=True)
    return KeptCounts(("k",), cells, weights)


def by_definition(q: dict[tuple[int, int], list[int]], kept: np.ndarray, promise: Promise) -> float:
    """max |ln P(y, k | s) / P(y, k | …)| in fractions, over every output and kept value that occur."""
    outputs = len(next(iter(q.values())))
    chance: dict[tuple[int, int, int], Fraction] = {}
    for s, x, k in zip(S.tolist(), X.tolist(), kept.tolist(), strict=True):
        for y in range(outputs):
            chance[s, y, k] = chance.get((s, y, k), Fraction(0)) + Fraction(q[s, x][y], 2**64)
    rows = [int(np.sum(s == S)) for s in range(3)]
    worst = 0.0
    for y in range(outputs):
        for k in set(kept.tolist()):
            given = [chance.get((s, y, k), Fraction(0)) / rows[s] for s in range(3)]
            everybody = sum(chance.get((s, y, k), Fraction(0)) for s in range(3)) / len(S)
            pairs = [(a, b) for a in given for b in given] if promise.name == "LDP" else [(a, everybody) for a in given]
            for a, b in pairs:
                if a or b:
                    worst = max(worst, abs(log(a / b)) if a and b else inf)
    return worst


@pytest.mark.parametrize("promise", [LIP(0.4), LDP(0.9)])
@pytest.mark.parametrize("method", [randomised_response, conditional_reporting])
def test_output_and_kept_column_leak_what_fractions_say(promise: Promise, method: Callable[..., Protocol]) -> None:
    sealed = seal(method(JOINT, promise), promise, JOINT)
    assert isinstance(sealed.mechanism, ChannelMechanism)
    table = [sealed.mechanism.column(y) for y in range(len(sealed.mechanism.outputs))]
    q = {
        (s, x): [column[s * 4 + x if sealed.sees_secret else x] for column in table] for s in range(3) for x in range(4)
    }
    for kept in (K, np.zeros_like(K), X):
        found = kept_leakage(sealed.mechanism, promise, JOINT, counts(S, X, kept))
        exact = by_definition(q, kept, promise)
        assert found.epsilon == pytest.approx(exact, rel=1e-9)
        assert found.keeps == (exact <= promise.epsilon * (1 + 1e-12))
    assert kept_leakage(sealed.mechanism, promise, JOINT, counts(S, X, 0 * K)).keeps
    assert not kept_leakage(sealed.mechanism, promise, JOINT, counts(S, X, K)).keeps


def test_a_kept_copy_of_the_secret_and_an_id_leak_without_bound() -> None:
    sealed = seal(randomised_response(JOINT, LIP(0.4)), LIP(0.4), JOINT)
    for kept in (S, np.arange(len(S))):
        found = kept_leakage(sealed.mechanism, LIP(0.4), JOINT, counts(S, X, kept))
        assert found.epsilon == inf
        assert not found.keeps


def test_several_columns_are_measured_with_their_kept_column() -> None:
    joint = Joint.from_counts(np.array([[[60, 25], [10, 5]], [[10, 10], [25, 55]]]))
    promise = SRLIP(0.5)
    law = seal(optimal(joint, promise).protocol, promise, joint).mechanism
    rows = np.repeat(np.arange(joint.weights.size), joint.weights.reshape(-1))
    s, x = np.divmod(rows, joint.a)
    nothing = kept_leakage(law, promise, joint, counts(s, x, 0 * s))
    assert nothing.epsilon == pytest.approx(promise.leakage(joint, law.protocol), abs=1e-9)
    assert not kept_leakage(law, promise, joint, counts(s, x, s)).keeps


def test_a_promise_of_exactly_the_leak_is_kept() -> None:
    joint = Joint.from_counts([[3, 1], [1, 3]])
    rows = np.repeat(np.arange(4), joint.weights.reshape(-1))
    s, x = np.divmod(rows, 2)
    for epsilon in (0.3, 0.3 + 1e-12, exp(-1)):
        law = seal(randomised_response(joint, LIP(epsilon)), LIP(epsilon), joint).mechanism
        found = kept_leakage(law, LIP(epsilon), joint, counts(s, x, 0 * s))
        assert found.keeps
        assert found.epsilon <= epsilon
