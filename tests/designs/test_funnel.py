"""The classical funnel: proved, equal to what a fine grid finds, and to the figures that are known."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from privacyfunnel.arrays import FloatArray, entropy_terms
from privacyfunnel.designs.optimal import optimum
from privacyfunnel.designs.optimal import privacy_funnel as room
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.designs.optimal.privacy_funnel import (
    PRICES,
    SHARES,
    funnel,
    greedy_merging,
    optimal_on_average,
    secret_information,
)
from privacyfunnel.designs.optimal.problem_conversion import Optimum
from privacyfunnel.engine.clock import Clock
from privacyfunnel.engine.masters.average import AverageDescent, AverageObjective, GibbsBoxes, minimise_greedily
from privacyfunnel.engine.objective import reduced_costs
from privacyfunnel.engine.problem import Problem
from privacyfunnel.errors import ParameterError, SizeError
from privacyfunnel.model.constraints import LinearConstraints
from privacyfunnel.model.information import entropy, information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.tables.readers.adult import adult_counts
from tests.strategies import joints, protocols_for

GAP = 1e-5


def adult(secret: str, publish: str) -> Joint:
    return Joint.from_counts(adult_counts(secret, publish)[0])


@pytest.mark.parametrize(
    ("secret", "publish", "share", "known"),
    [
        ("marital-status", "relationship", 0.1, 0.8223),
        ("marital-status", "relationship", 0.5, 1.1301),
        ("marital-status", "relationship", 0.75, 1.3124),
        ("marital-status", "race", 0.1, 0.2173),
        ("income", "education", 0.05, 1.6621),
        ("income", "education", 0.5, 1.9479),
    ],
)
def test_adult_has_the_values_that_another_implementation_found(
    secret: str, publish: str, share: float, known: float
) -> None:
    joint = adult(secret, publish)
    average = share * information(joint.p_sx)
    best = optimal_on_average(joint, average)
    assert best.utility == pytest.approx(known, abs=6e-5)
    assert best.utility <= best.bound <= best.utility + GAP
    assert best.about_secret <= average
    assert best.utility == best.protocol.mutual_information(joint)


@given(joint=joints(max_c=3, max_a=4, min_c=2, min_a=2), share=st.floats(0.02, 0.98))
@settings(max_examples=12, deadline=None)
def test_the_average_is_kept_and_the_optimum_is_proved(joint: Joint, share: float) -> None:
    average = share * information(joint.p_sx)
    best = optimal_on_average(joint, average, gap=1e-4)
    assert best.about_secret <= average
    assert best.utility <= best.bound <= best.utility + 1.1e-4
    assert best.worst["lip"] == LIP(0).leakage(joint, best.protocol)
    (merged,) = greedy_merging(joint, [average])
    assert best.utility >= merged.information - 1.1e-4


@given(joint=joints(max_c=3, max_a=3, min_c=2, min_a=2), share=st.floats(0.05, 0.95))
@settings(max_examples=6, deadline=None)
def test_it_equals_a_programme_over_a_fine_grid_of_posteriors(joint: Joint, share: float) -> None:
    steps = 400 if joint.a == 2 else 60
    counts = np.stack(np.meshgrid(*[np.arange(steps + 1)] * joint.a), axis=-1).reshape(-1, joint.a)
    atoms = np.concatenate([counts[counts.sum(axis=1) == steps] / steps, joint.p_x[None]])
    average = share * information(joint.p_sx)
    left_open = entropy_terms(atoms @ joint.p_s_given_x.T).sum(axis=1)
    found = linprog(
        entropy_terms(atoms).sum(axis=1),
        A_eq=atoms.T,
        b_eq=joint.p_x,
        A_ub=-left_open[None],
        b_ub=[average - entropy(joint.p_s)],
    )
    assert found.fun is not None
    grid = entropy(joint.p_x) - found.fun
    best = optimal_on_average(joint, average, gap=1e-4)
    assert grid <= best.bound + 1e-6
    assert grid >= best.utility - 0.02


@given(joint=joints(max_c=3, max_a=4, min_c=2, min_a=2), data=st.data())
@settings(max_examples=10, deadline=None)
def test_no_protocol_beats_the_bound_at_what_it_tells_itself(joint: Joint, data: st.DataObject) -> None:
    other = data.draw(protocols_for(joint))
    told = secret_information(joint, other)
    if told > 1e-4:
        bound = optimal_on_average(joint, told, gap=1e-3).bound
        assert other.mutual_information(joint) <= bound + 1e-9


@given(joint=joints(max_c=4, max_a=4, min_c=2, min_a=2), mu=st.floats(1.01, 4), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_a_walk_never_goes_up_and_a_box_never_lies_above_what_it_holds(joint: Joint, mu: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    prices, starts = rng.normal(size=joint.a), rng.dirichlet(np.ones(joint.a), 8)
    problem = Problem.from_values(joint.p_x, LinearConstraints.concatenate([], joint.a), 1.0)
    cost = AverageObjective.from_secrets(joint.p_s_given_x, mu)
    walks = AverageDescent(problem, joint.p_s_given_x)
    before = reduced_costs(cost, starts, prices)
    for _ in range(5):
        starts = walks.descend(starts, prices, mu, 1)
        after = reduced_costs(cost, starts, prices)
        assert (after <= before + 1e-9).all()
        before = after
    boxes = GibbsBoxes(cost, minimise_greedily, joint.a, np.ones(joint.a))
    roots = boxes.roots(prices, math.inf)
    everything = roots
    for _ in range(3):
        everything = boxes.cut(everything, prices, math.inf, math.inf).boxes
    held = rng.dirichlet(np.full(joint.a, 0.5), 200)
    reached = reduced_costs(cost, held, prices)
    low, high, *_ = everything.parts
    for v, value in zip(held, reached, strict=True):
        inside = ((low <= v + 1e-12) & (v <= high + 1e-12)).all(axis=1)
        assert inside.any()
        assert (everything.bound[inside] <= value + 1e-9).all()


@pytest.mark.parametrize(("kind", "known"), [(LIP, 0.8251), (LDP, None)])
def test_an_average_beside_a_promise_keeps_both(kind: type, known: float | None) -> None:
    joint, promise = adult("marital-status", "relationship"), kind(1.0)
    alone = optimal(joint, promise)
    average = secret_information(joint, alone.protocol) / 2
    both = optimal_on_average(joint, average, promise, gap=1e-4)
    assert both.about_secret <= average
    assert promise.leakage(joint, both.protocol) <= 1.0
    assert both.sealed is not None
    assert both.sealed.epsilon <= 1.0
    assert both.bound <= both.utility + 1.1e-4
    assert both.utility <= min(alone.bound, optimal_on_average(joint, average, gap=1e-4).bound)
    assert known is None or both.utility == pytest.approx(known, abs=1e-4)
    assert optimal_on_average(joint, 10 * average, promise).utility == pytest.approx(alone.utility, abs=1e-5)


def test_nothing_on_average_is_independence_and_everything_is_everything() -> None:
    joint = Joint.from_counts([[10, 20, 5, 6], [3, 8, 20, 30]])
    nothing, best = optimal_on_average(joint, 0), optimal(joint, LIP(0))
    assert nothing.about_secret < 1e-15
    assert nothing.utility == pytest.approx(best.utility, abs=1e-5)
    everything = optimal_on_average(joint, 1.0)
    assert everything.utility == everything.bound == pytest.approx(entropy(joint.p_x))
    with pytest.raises(ParameterError, match="an average of 0 is not solved together with SRLIP"):
        optimal_on_average(joint, 0, SRLIP(1))
    with pytest.raises(ParameterError, match="finite number of nats, at least 1e-09; it is nan"):
        optimal_on_average(joint, math.nan)
    with pytest.raises(SizeError, match="at most 150 values; this table has 200"):
        optimal_on_average(Joint.from_counts(np.ones((2, 200), dtype=np.int64)), 0.1)


def test_the_curve_is_increasing_concave_and_above_greedy_merging_and_every_promise() -> None:
    joint = adult("marital-status", "race")
    whole = information(joint.p_sx)
    found = funnel(joint, [share * whole for share in (0.1, 0.3, 0.6, 1.0)], epsilons=(0.5,), gap=1e-4)
    told, kept = [p.average for p in found.points], [p.utility for p in found.points]
    slopes = np.diff(kept) / np.diff(told)
    assert (slopes > 0).all()
    assert (np.diff(slopes) < 2e-4 / np.diff(told).min()).all()
    assert all(greedy <= point.bound for greedy, point in zip(found.greedy, found.points, strict=True))
    for beside in found.beside:
        assert beside.utility <= optimal_on_average(joint, beside.about_secret, gap=1e-4).bound


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), c=st.integers(2, 4), a=st.integers(2, 7), share=st.floats(0.01, 0.9))
def test_greedy_merging_is_what_it_says_and_the_best_begins_there_however_short_the_time(
    seed: int, c: int, a: int, share: float
) -> None:
    p_sx = np.random.default_rng(seed).dirichlet(np.ones(c * a)).reshape(c, a)  # no two merges are alike
    joint = Joint.from_probabilities(p_sx)
    averages = [share * information(joint.p_sx), 0.1 * share * information(joint.p_sx)]
    for average, merged in zip(averages, greedy_merging(joint, averages), strict=True):
        p_sy = np.stack([joint.p_sx[:, merged.output == y].sum(axis=1) for y in np.unique(merged.output)], axis=1)
        assert information(p_sy) <= average + 1e-12
        assert merged.information == pytest.approx(entropy(p_sy.sum(axis=0)), abs=1e-12)
        assert merged.information == pytest.approx(
            max(naively(joint.p_sx, average, price) for price in PRICES), abs=1e-12
        )
        hasty = optimal_on_average(joint, average, time_limit=1e-9, merged=merged)
        assert hasty.about_secret <= average
        assert hasty.utility >= merged.information - 1e-6


def naively(p_sy: FloatArray, average: float, price: float) -> float:
    """What is kept by merging two outputs at a time until no more than the average is told."""
    best = 0.0
    while True:
        told, kept = information(p_sy), entropy(p_sy.sum(axis=0))
        if told <= average or p_sy.shape[1] == 1:
            return max(best, kept if told <= average else 0.0)
        tries = [
            np.column_stack([np.delete(p_sy, pair, axis=1), p_sy[:, pair].sum(axis=1)])
            for pair in map(list, itertools.combinations(range(p_sy.shape[1]), 2))
        ]
        after = [(information(each), entropy(each.sum(axis=0))) for each in tries]
        best = max([best, *(k for t, k in after if t <= average)])
        p_sy = tries[int(np.argmax([told - t - price * (kept - k) for t, k in after]))]


def test_greedy_merging_that_is_late_says_nothing() -> None:
    (merged,) = greedy_merging(SMALL, [0.01], Clock.from_limit(0.0))
    assert merged.information == 0.0
    assert merged.posteriors(SMALL) == pytest.approx(SMALL.p_x[None])


SMALL = Joint.from_counts([[5, 1, 2, 9], [1, 6, 2, 8], [4, 2, 7, 1], [3, 3, 1, 6]])


def test_a_time_limit_is_of_all_points_together(monkeypatch: pytest.MonkeyPatch) -> None:
    now, given = [0.0], []
    monkeypatch.setattr("privacyfunnel.engine.clock.time.monotonic", lambda: now[0])

    def takes_all_it_has(joint: Joint, *about: Any, time_limit: float, **_: Any) -> Any:
        given.append(time_limit)
        now[0] += time_limit
        return best

    best = optimal_on_average(SMALL, 0.01, time_limit=10)
    for name in ("optimal", "optimal_on_average"):
        monkeypatch.setattr(room, name, takes_all_it_has)
    now[0] = 100.0
    funnel(SMALL, time_limit=30)
    assert now[0] == pytest.approx(130.0)
    assert len(given) == len(SHARES) + 8
    assert given == pytest.approx([2.0] * len(given))


def test_the_best_under_a_promise_is_sought_once_and_leaves_time_for_the_average(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = []

    def noted(joint: Joint, promise: Promise, **asked: Any) -> Optimum:
        given.append(asked["time_limit"])
        return optimal(joint, promise, **asked)

    monkeypatch.setattr(room, "optimal", noted)
    found = optimal_on_average(SMALL, 0.001, LIP(1), time_limit=60)
    assert found.about_secret <= 0.001
    assert len(given) == 1
    assert 0 < given[0] < 30


def test_a_promise_too_large_to_be_solved_is_left_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimum, "MOST_NUMBERS", 4 * 4)  # LIP compares four secrets over four values, LDP six pairs
    assert {each.promise for each in funnel(SMALL, [0.01]).beside} == {"lip"}
