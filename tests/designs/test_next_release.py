"""Releases after each other: all of them together keep ε, by exhaustion in fractions; those that add up by their A."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from privacyfunnel.designs.next_release import AfterPromise, History
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import GuaranteeError, ParameterError
from privacyfunnel.mechanisms.certificate import promise_from_json, promise_to_json
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.input_domain import Domain
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.composable import ComposablePromise
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import ALIP, LDP, LIP, PML, SRLIP, Promise
from privacyfunnel.model.protocols.channel_protocol import Protocol
from privacyfunnel.model.uses.linear_use import Values
from tests.enumeration import best_over_posteriors

KERNEL = [[19, 1], [1, 19]]  # one in twenty changes


def chances(mechanism: Mechanism) -> list[list[int]]:
    """A row of integers per output."""
    numbers = mechanism.numerators(10**6)
    assert numbers is not None
    return [[int(n) for n in row] for row in numbers]


def pair_masses(
    table: Sequence[Sequence[int]], first: Mechanism, after: dict[tuple[int, ...], Mechanism]
) -> dict[tuple[int, int], list[int]]:
    """P(y₁, y₂, s) up to a factor, by its definition: a sum over both values of a person."""
    found = {}
    one = chances(first)
    for y in range(len(one)):
        for z, other in enumerate(chances(after[y,])):
            found[y, z] = [
                sum(
                    n * one[y][x] * KERNEL[x][later] * other[later]
                    for (x, n), later in product(enumerate(row), range(len(row)))
                )
                for row in table
            ]
    return found


def within(masses: list[int], shares: list[int], up: Fraction, down: Fraction) -> bool:
    """LIP's two sides for a pair of outputs."""
    total, whole = sum(masses), sum(shares)
    return all(
        m * whole <= up * total * n and total * n <= down * m * whole for m, n in zip(masses, shares, strict=True)
    )


def test_two_releases_together_keep_epsilon_on_all_tables_and_outputs() -> None:
    """All tables of two secrets and two values with counts of 1, 2 and 5; no tolerance."""
    tight = 0
    for counts in product((1, 2, 5), repeat=4):
        table = [list(counts[:2]), list(counts[2:])]
        joint = Joint.from_counts(table)
        start = History.start(joint)
        first = start.design(LIP(0.2))[()].mechanism
        now = start.publish({(): first}).move(KERNEL)
        after = {h: sealed.mechanism for h, sealed in now.design(LIP(0.5)).items()}
        limit = exp_below(0.5)
        masses = pair_masses(table, first, after)
        assert sum(map(sum, masses.values())) == sum(counts) * 20 * 2**128
        for each in masses.values():
            assert within(each, [sum(row) for row in table], limit, limit)
        tight += not all(
            within(each, [sum(row) for row in table], exp_below(0.49), exp_below(0.49)) for each in masses.values()
        )
    assert tight > 20  # the budget is used where the table has something to tell


def test_a_second_release_that_ignores_the_first_does_not_keep_it() -> None:
    joint = Joint.from_counts([[5, 1], [1, 5]])
    first = History.start(joint).design(LIP(0.3))[()].mechanism
    masses = pair_masses([[5, 1], [1, 5]], first, {(y,): first for y in range(len(chances(first)))})
    limit = exp_below(0.3)
    assert not all(within(each, [6, 6], limit, limit) for each in masses.values())


def test_what_is_left_is_the_optimum_of_enumeration_and_spent_budgets_are_refused() -> None:
    rng = np.random.default_rng(8)
    promises: tuple[tuple[Promise, Promise], ...] = ((LIP(0.2), LIP(0.6)), (PML(0.2), PML(0.6)), (LDP(0.3), LDP(0.8)))
    for small, large in (*promises, (ALIP(0.2, 0.1), ALIP(0.6, 0.4))):
        joint = Joint.from_counts(rng.integers(1, 9, (3, 3)))
        start = History.start(joint)
        now = start.publish({(): start.design(small)[()].mechanism}).move(np.eye(3, dtype=np.int64) * 9 + 1)
        found = now.design(large)
        assert all(sealed.bound is not None and sealed.bound - sealed.information <= 1e-5 for sealed in found.values())
        last, sealed = list(found.items())[-1]
        given = Joint.from_counts(now.states[last])
        assert sealed.information == pytest.approx(
            best_over_posteriors(given, AfterPromise(large, now.totals)), abs=1e-5
        )
    with pytest.raises(GuaranteeError, match="what was published before leaks"):
        now.design(ALIP(0.05, 0.05))
    two = History.start(Joint.from_counts(rng.integers(1, 9, (2, 2, 2))))
    with pytest.raises(ParameterError, match="Use LIP, PML, ALIP or LDP"):
        two.design(SRLIP(0.5))
    with pytest.raises(ParameterError, match="rows sum to the same"):
        now.move(np.ones((2, 2)))


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
