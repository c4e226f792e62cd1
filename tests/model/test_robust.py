"""Theorem 70: odds near the model's, every prior at the vertices of the set, every secret and output, in fractions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from privacyfunnel.arrays import IntArray
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.errors import GuaranteeError, ParameterError
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.exact_arithmetic import exp_below
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify, exact_worst_leak, seal
from privacyfunnel.model.credal.events import OddsRange
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise, RobustPromise
from privacyfunnel.spec import ReleaseSpec

RANGES = ("1", "5/4", "2", "4", "any")
WHOLE = 2**64
ROUNDED = Fraction(1, 2**30)  # boxes are multiples of 2⁻⁴⁰, and shares of these tables at least 1/100

Prior = list[list[Fraction]]  # p′(s, x)
Rows = list[list[int]]  # integers of a mechanism


def random_joint(rng: np.random.Generator, c: int, a: int, least: int = 1) -> Joint:
    return Joint.from_counts(
        rng.integers(least, 12, size=(c, a)), [f"s{s}" for s in range(c)], [f"x{x}" for x in range(a)]
    )


def vertices(
    low: list[Fraction], high: list[Fraction], mass: list[Fraction], total: Fraction
) -> Iterator[list[Fraction]]:
    """Of {low ≤ b ≤ high, Σ mass b = total} the vertices: all but one entry at an end."""
    n = len(low)
    for free in range(n):
        for ends in product((0, 1), repeat=n - 1):
            found, sides = [Fraction(0)] * n, iter(ends)
            for x in range(n):
                if x != free:
                    found[x] = high[x] if next(sides) else low[x]
            found[free] = (total - sum(m * b for m, b in zip(mass, found, strict=True))) / mass[free]
            if low[free] <= found[free] <= high[free]:
                yield found


def priors(weights: IntArray, odds: OddsRange, s: int) -> Iterator[Prior]:
    """Every p′ at a vertex of the set for secret s: its margins are the model's, others keep their odds among them."""
    exact = [[Fraction(int(w), int(weights.sum())) for w in row] for row in weights]
    p_x = [sum(column) for column in zip(*exact, strict=True)]
    mine = [exact[s][x] / p_x[x] for x in range(len(p_x))]
    ends = []
    for share in mine:
        if odds.factor is None:
            ends.append((Fraction(0), Fraction(1)))
        else:
            ends.append(tuple(f * share / (f * share + 1 - share) for f in (1 / odds.factor, odds.factor)))
    for b in vertices([low for low, _ in ends], [high for _, high in ends], p_x, sum(exact[s], Fraction(0))):
        scale = [(1 - b[x]) / (1 - mine[x]) for x in range(len(p_x))]
        yield [
            [p_x[x] * b[x] if t == s else exact[t][x] * scale[x] for x in range(len(p_x))] for t in range(len(exact))
        ]


def output_ratios(prior: Prior, rows: Rows, s: int) -> Iterator[Fraction | None]:
    """P′(y | s) / P′(y) and its inverse for every output; None where one is infinite."""
    share = sum(prior[s])
    p_x = [sum(column) for column in zip(*prior, strict=True)]
    for y in range(len(rows[0])):
        mine = sum(p * row[y] for p, row in zip(prior[s], rows, strict=True)) / share
        everybody = sum(p * row[y] for p, row in zip(p_x, rows, strict=True))
        if everybody:
            yield mine / everybody
            yield everybody / mine if mine else None


def integer_rows(rng: np.random.Generator, inputs: int, outputs: int) -> Rows:
    """A random mechanism, with chances of 0 among it."""
    rows = []
    for _ in range(inputs):
        shares = rng.integers(0, 4, size=outputs)
        shares[rng.integers(outputs)] += 1
        each = [int(w) * WHOLE // int(shares.sum()) for w in shares]
        each[int(shares.argmax())] += WHOLE - sum(each)
        rows.append(each)
    return rows


def mechanism(rows: Rows, columns: int = 1) -> ChannelMechanism:
    listed = [[[y, str(n)] for y, n in enumerate(row) if n] for row in rows]
    content = {"outputs": [[f"y{y}"] * columns for y in range(len(rows[0]))], "rows": listed}
    return ChannelMechanism.from_json(content, False, np.zeros((len(rows), columns), dtype=np.int64))


def sealed_optimum(joint: Joint, promise: Promise) -> SealedProtocol:
    return seal(optimal(joint, promise, gap=1e-3).protocol, promise, joint)


def test_the_certificate_is_the_worst_prior() -> None:
    """On 240 random tables: never below the worst vertex of any secret, and above it by rounding alone."""
    rng = np.random.default_rng(70)
    unbounded = 0
    for number in range(240):
        c, a, odds = int(rng.integers(2, 4)), int(rng.integers(2, 5)), OddsRange.parse(RANGES[number % len(RANGES)])
        joint, rows = random_joint(rng, c, a), integer_rows(rng, a, int(rng.integers(2, 4)))
        found = exact_worst_leak(mechanism(rows), RobustPromise(LIP(1), odds), joint).ratio
        each = [
            ratio
            for s in range(c)
            for prior in priors(joint.weights, odds, s)
            for ratio in output_ratios(prior, rows, s)
        ]
        if None in each:
            unbounded += 1
            assert found is None
            continue
        worst = max(ratio for ratio in each if ratio is not None)
        assert found is None or worst <= found <= worst * (1 + ROUNDED)
        assert found is not None or worst > WHOLE // 2**30  # a sliver that rounding of boxes takes away
    assert 10 < unbounded < 230


def test_priors_of_the_set_are_as_the_theorem_says() -> None:
    """The margins of the model, and odds between any two secrets within the factor."""
    rng = np.random.default_rng(1)
    joint, odds = random_joint(rng, 3, 3), OddsRange(Fraction(2))
    model = [[Fraction(int(w), joint.total) for w in row] for row in joint.weights]
    for s in range(3):
        for prior in priors(joint.weights, odds, s):
            assert [sum(column) for column in zip(*prior, strict=True)] == [
                sum(column) for column in zip(*model, strict=True)
            ]
            assert sum(prior[s]) == sum(model[s])
            for t, u, x in product(range(3), range(3), range(3)):
                assert Fraction(1, 2) <= (prior[t][x] / prior[u][x]) / (model[t][x] / model[u][x]) <= 2


@pytest.mark.parametrize("promise", [LIP(0.7), LDP(0.7)], ids=["LIP", "LDP"])
def test_what_the_engine_makes_holds_for_every_prior(promise: Promise) -> None:
    rng = np.random.default_rng(7)
    limit = exp_below(promise.epsilon)
    for number in range(10):
        odds = OddsRange.parse(RANGES[number % len(RANGES)])
        c = int(rng.integers(2, 4)) if promise.name == "LIP" else 2  # of three, a vertex keeps the share of one alone
        joint = random_joint(rng, c, int(rng.integers(2, 5)))
        law = sealed_optimum(joint, RobustPromise(promise, odds)).mechanism
        assert isinstance(law, ChannelMechanism)
        rows = [list(row) for row in zip(*(law.column(y) for y in range(len(law.outputs))), strict=True)]
        for s in range(joint.c):
            for prior in priors(joint.weights, odds, s):
                if promise.name == "LIP":
                    assert all(ratio is not None and ratio <= limit for ratio in output_ratios(prior, rows, s))
                else:
                    assert _pairwise(prior, rows) <= limit


def _pairwise(prior: Prior, rows: Rows) -> Fraction:
    chances = [
        [sum((p * row[y] for p, row in zip(mine, rows, strict=True)), Fraction(0)) / sum(mine) for mine in prior]
        for y in range(len(rows[0]))
    ]
    return max((max(each) / min(each) for each in chances if any(each)), default=Fraction(1))


def test_who_knows_a_column_has_odds_of_their_own() -> None:
    """SRLIP: within each class, the same set around the model among its people."""
    counts = np.array([[5, 3, 2, 6], [2, 7, 4, 1]])
    attributes = (Attribute("a", ("0", "1")), Attribute("b", ("0", "1")))
    joint = Joint(counts, ("s", "t"), attributes, np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), "secret")
    odds = OddsRange(Fraction(3, 2))
    rows = [
        [WHOLE // 2, WHOLE // 2],
        [WHOLE // 4, 3 * WHOLE // 4],
        [WHOLE // 8, 7 * WHOLE // 8],
        [WHOLE // 16, 15 * WHOLE // 16],
    ]
    found = exact_worst_leak(mechanism(rows, 2), RobustPromise(SRLIP(1), odds), joint).ratio
    each: list[Fraction] = []
    for values in ((0, 1, 2, 3), (0, 1), (2, 3), (0, 2), (1, 3)):
        for s in range(2):
            for prior in priors(counts[:, values], odds, s):
                each += (ratio for ratio in output_ratios(prior, [rows[x] for x in values], s) if ratio is not None)
    assert found is not None
    assert max(each) <= found <= max(each) * (1 + ROUNDED)


def test_one_is_the_prior_alone_and_more_costs_more() -> None:
    joint = random_joint(np.random.default_rng(3), 2, 5)
    plain = optimal(joint, LIP(0.5)).value
    kept = [optimal(joint, RobustPromise(LIP(0.5), OddsRange.parse(text))).value for text in RANGES]
    assert math.isclose(plain, kept[0], abs_tol=1e-6)
    assert all(one >= other - 1e-6 for one, other in pairwise(kept))
    assert kept[-1] < kept[0]


def test_a_file_states_the_factor_and_refuses_a_law_that_breaks_it() -> None:
    joint = random_joint(np.random.default_rng(5), 2, 3)
    promise = RobustPromise(LIP(0.5), OddsRange.parse("2"))
    sealed = sealed_optimum(joint, promise)
    again = SealedProtocol.from_text(sealed.to_text())
    assert again.promise == promise
    assert certify(again.mechanism, again.promise, joint) <= 0.5
    plain = sealed_optimum(joint, LIP(0.5))
    with pytest.raises(GuaranteeError):
        certify(plain.mechanism, promise, joint)


def test_what_it_does_not_go_with() -> None:
    assert ReleaseSpec(robust=2).robust == "2"
    assert ReleaseSpec(robust="none").robust is None
    for wrong in (0.5, "some", True):
        with pytest.raises(ParameterError, match="robust must be a number of at least 1, or any"):
            ReleaseSpec(robust=wrong)
    for other in ({"population": 0.95}, {"prior": "population"}, {"sees_secret": True}, {"keep": "year"}):
        with pytest.raises(ParameterError, match="robust does not go with"):
            ReleaseSpec(robust=2, **other)
    with pytest.raises(ParameterError, match="around one prior"):
        RobustPromise(LIP(1).for_priors([]), OddsRange(None))
