"""Tables too large for the best protocol for statistics: promise kept, well conditioned, and said to be unproved."""

from fractions import Fraction

import numpy as np
import pytest

from privacyfunnel.designs import statistics
from privacyfunnel.designs.choice import Choice, by_default
from privacyfunnel.designs.explicit import randomised_response
from privacyfunnel.designs.methods import Options
from privacyfunnel.designs.optimum import optimal
from privacyfunnel.laws.exact import exp_below
from privacyfunnel.laws.sealing import exact_worst
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, Promise
from privacyfunnel.model.uses.statistics import Statistics
from privacyfunnel.model.uses.use import Information


def joint(secrets: int, values: int) -> Joint:
    random = np.random.default_rng(values)
    shares = random.dirichlet(np.full(values, 0.8), size=secrets) * random.dirichlet(np.full(secrets, 2.0))[:, None]
    return Joint.from_counts(np.maximum(np.round(20_000 * shares), 1).astype(np.int64))


@pytest.mark.parametrize("promise", [LIP(0.7), LDP(1.0)])
def test_two_halves_are_better_conditioned_than_one_and_keep_the_promise(promise: Promise) -> None:
    many = joint(2, 160)
    informed, best = optimal(many, promise, gap=1e-3), optimal(many, promise, Statistics())
    assert best.sealed is not None
    assert not exact_worst(best.sealed.law, promise, many).exceeds(Fraction(exp_below(promise.epsilon)))
    assert best.utility >= 0.98 * informed.utility
    assert best.value == Statistics().value(many, best.protocol) < 0.5 * Statistics().value(many, informed.protocol)
    assert best.value < Statistics().value(many, randomised_response(many, promise))
    assert best.bound == 0.0


def test_it_lies_between_the_most_informative_and_the_best_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    few = joint(3, 12)
    best = optimal(few, LIP(0.7), Statistics())
    monkeypatch.setattr(statistics, "CONDITIONED_WELL", 5)
    other = optimal(few, LIP(0.7), Statistics())
    assert best.value <= other.value <= Statistics().value(few, optimal(few, LIP(0.7)).protocol)


def test_where_nobody_says_what_for_statistics_are_served_if_they_can_be_had() -> None:
    chosen, few = Choice("optimal", ""), joint(3, 12)
    assert by_default(chosen, few, LIP(1.0), Options())[1].use == Statistics()
    for other in (Options(as_values=True), Options(average=0.1)):
        assert by_default(chosen, few, LIP(1.0), other) == (chosen, other)
    assert by_default(Choice("chain", ""), few, LIP(1.0), Options())[1].use == Information()
    for promise, options, why in (
        (LIP(1e-9), Options(), "so small an ε"),
        (LIP(1.0), Options(sees_secret=True), "at most 64 pairs"),
    ):
        told, asked = by_default(chosen, joint(8, 12), promise, options)
        assert asked.use == Information()
        assert why in told.reason
    many = joint(2, 160)
    assert "not sought" in by_default(chosen, many, LIP(1.0), Options(), named=True)[0].reason
    assert by_default(chosen, many, LIP(1.0), Options())[0].method == "forced-response"
    assert by_default(chosen, many, LIP(1.0), Options(sees_secret=True))[0].method == "optimal"
