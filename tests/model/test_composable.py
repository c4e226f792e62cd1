"""Releases after each other: all of them together keep ε, by exhaustion in fractions; those that add up by their A."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import GuaranteeError, ParameterError
from privacyfunnel.mechanisms.certificate import promise_from_json, promise_to_json
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.composable import AfterPromise, ComposablePromise, most_information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import ALIP, LDP, LIP, PML, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.uses.linear_use import Values
from tests.enumeration import best_over_posteriors


def chances(mechanism: Mechanism) -> list[list[int]]:
    """A row of integers per output."""
    numbers = mechanism.numerators(10**6)
    assert numbers is not None
    return [[int(n) for n in row] for row in numbers]


def test_what_is_left_is_the_optimum_of_enumeration() -> None:
    """After an output of the first release, under both beliefs about what changed since; both sides of each promise."""
    rng = np.random.default_rng(8)
    promises: tuple[tuple[Promise, Promise], ...] = ((LIP(0.2), LIP(0.6)), (PML(0.2), PML(0.6)), (LDP(0.3), LDP(0.8)))
    for small, large in (*promises, (ALIP(0.2, 0.1), ALIP(0.6, 0.4))):
        joint = Joint.from_counts(rng.integers(1, 9, (3, 3)))
        first = np.array(chances(seal(optimal(joint, small).protocol, small, joint).mechanism)[-1], dtype=object)
        totals = joint.weights.astype(object).sum(axis=1)
        common = math.lcm(*map(int, totals))
        kept = joint.weights * first * common
        anew = joint.weights * np.array([common // int(n) for n in totals])[:, None]
        anew = anew * (joint.weights * first).sum(axis=1)[:, None]
        promise = AfterPromise(large, tuple(int(n) * common * 20 * 2**64 for n in totals), (kept * 20, anew * 20))
        given = Joint.from_counts(kept * 19 + anew)
        best = optimal(given, promise)
        assert best.bound - best.utility <= 1e-5
        assert best.utility == pytest.approx(best_over_posteriors(given, promise), abs=1e-5)
        assert seal(best.protocol, promise, given).epsilon <= large.epsilon
    with pytest.raises(ParameterError, match="Use LIP, PML, ALIP or LDP"):
        optimal(Joint.from_counts(rng.integers(1, 9, (2, 2, 2))), AfterPromise(SRLIP(0.5), (9, 9)))


def test_independent_releases_add_up_by_their_composable_limit() -> None:
    """All tables with counts of 1 and 3 of a secret and two columns, five pairs of channels in quarters, in fractions.

    The second release is of another column, and nothing is known of how it goes with the first.
    """
    rows = [Fraction(n, 4) for n in (1, 2, 3)]
    channels = [((p, 1 - p), (r, 1 - r)) for p, r in product(rows, repeat=2)]
    for counts in product((1, 3), repeat=8):
        n = dict(zip(product(range(2), repeat=3), counts, strict=True))  # (s, x, z)
        for q, other in ((channels[i], channels[(5 * i + 2) % 9]) for i in (0, 2, 5, 6, 7)):
            limit = max(other[z][y] / other[w][y] for z, w, y in product(range(2), repeat=3))
            alone = worst = Fraction(1)
            for y in range(2):
                mass = [sum(n[s, x, z] * q[x][y] for x, z in product(range(2), repeat=2)) for s in range(2)]
                alone = max(alone, *ratios(n, mass))
                for v in range(2):
                    both = [
                        sum(n[s, x, z] * q[x][y] * other[z][v] for x, z in product(range(2), repeat=2))
                        for s in range(2)
                    ]
                    worst = max(worst, *ratios(n, both))
            assert worst <= alone * limit


def ratios(n: dict[tuple[int, ...], int], mass: Sequence[Fraction | int]) -> list[Fraction]:
    """P(y|s) / P(y) of every s, and one over it."""
    shares = [sum(count for (s, _, _), count in n.items() if s == secret) for secret in range(2)]
    found = [Fraction(m) * sum(shares) / (sum(mass) * share) for m, share in zip(mass, shares, strict=True)]
    return [*found, *(1 / ratio for ratio in found)]


def test_a_composable_mechanism_is_optimal_and_one_too_loud_is_refused() -> None:
    rng = np.random.default_rng(2)
    joint = Joint.from_counts(rng.integers(1, 9, (2, 3)))
    promise = ComposablePromise(LIP(0.4), 1.0)
    best = optimal(joint, promise)
    assert best.utility == pytest.approx(best_over_posteriors(joint, promise), abs=2e-6)
    sealed = seal(best.protocol, promise, joint)
    limit = exp_below(1.0)
    assert all(max(row) <= limit * min(row) for row in chances(sealed.mechanism))
    again = promise_from_json(promise_to_json(promise), Domain.from_joint(joint, False))
    assert again == promise
    assert optimal(joint, LIP(0.4), Values()).value <= optimal(joint, promise, Values()).value
    loud = Protocol(np.array([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]]))
    assert LIP(2.0).leakage(joint, loud) < 2.0
    assert seal(loud, ComposablePromise(LIP(2.0), math.log(3) + 1e-9), joint).epsilon <= 2.0
    with pytest.raises(GuaranteeError):
        seal(loud, ComposablePromise(LIP(2.0), math.log(3) - 1e-3), joint)


def test_no_output_tells_more_of_the_value_than_the_composable_limit_allows() -> None:
    """Random outputs within the limit stay below it, some output reaches it, and the best mechanism is proved by it."""
    rng = np.random.default_rng(0)
    for limit in (0.1, 1.0, 3.0):
        most, nearest = most_information(limit), 0.0
        for _ in range(2000):
            p = rng.dirichlet(np.ones(int(rng.integers(2, 6))))
            ratios = np.exp(limit * rng.choice([rng.random(len(p)), rng.integers(0, 2, len(p))]))
            ratios /= p @ ratios
            told = float((p * ratios) @ np.log(ratios))
            assert told <= most * (1 + 1e-12)
            nearest = max(nearest, told)
        assert nearest > 0.99 * most
    joint = Joint.from_counts([[30, 10, 5, 4], [10, 30, 4, 5]])
    best = optimal(joint, ComposablePromise(LIP(2.0), 1.0))
    assert best.value <= best.bound <= most_information(1.0)
