"""A run that is out of time: searches hand back what they met, proofs what they proved, and no master is waited for."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.optimal.optimum import optimal
from privacyfunnel.designs.optimal.problem_conversion import StopReason, build_problem
from privacyfunnel.engine.clock import FOREVER, Clock, TimeUpError
from privacyfunnel.engine.masters.restricted_master import PenalisedMaster, PenaltySlack, RestrictedMaster
from privacyfunnel.engine.oracles.constraint_oracle import ConstraintOracle
from privacyfunnel.engine.oracles.oracle import Oracle
from privacyfunnel.engine.oracles.polytope import build_polytope
from privacyfunnel.engine.plan import choose_generation
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.search.subspace import SubspaceSearch
from privacyfunnel.engine.search.tangent import Search, TangentSearch
from privacyfunnel.engine.search.vertices import VertexSearch
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.engine.splits import split
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from tests.engine.problems import SEEDS

RUNG = Clock(time.monotonic() - 2.0, time.monotonic() - 1.0)  # time was up before anything began


def counts(c: int, a: int) -> Joint:
    return Joint.from_counts(np.random.default_rng(1).integers(1, 30, (c, a)))


@pytest.fixture(scope="module")
def problem() -> Problem:
    return build_problem(counts(4, 12), LIP(0.3), False)[0]


def test_a_search_that_is_late_hands_back_nothing_and_does_not_fail(problem: Problem) -> None:
    searches: list[Search] = [
        VertexSearch(build_polytope(problem), problem.objective),
        TangentSearch(ConstraintOracle(problem), problem, 3),
        SubspaceSearch(problem, 8, 8),
    ]
    prices = np.zeros(problem.size)
    for search in searches:
        for atoms in (search.start(RUNG), search.descend(prices, RUNG), search.cover(prices, problem.prior, RUNG)):
            assert not len(atoms)
        assert len(search.descend(prices, FOREVER))


@pytest.mark.parametrize("kind", [ConstraintOracle, build_polytope])
def test_an_oracle_that_is_late_still_bounds_every_atom(kind: Callable[[Problem], Oracle], problem: Problem) -> None:
    costs = np.random.default_rng(0).normal(size=(6, problem.size))
    late, whole = kind(problem).minimise(costs, RUNG.deadline), kind(problem).minimise(costs)
    assert late.atoms.shape == costs.shape
    assert (late.lower <= whole.lower + 1e-9).all()
    assert (late.lower < whole.lower - 1e-3).any()  # it was late indeed


def test_a_master_that_is_late_says_so(problem: Problem) -> None:
    master = RestrictedMaster(problem.prior, PenaltySlack(problem.prior, 10.0))
    rng = np.random.default_rng(0)
    atoms = rng.dirichlet(np.ones(problem.size), 20_000)
    master.add(atoms, problem.costs(atoms))
    with pytest.raises(TimeUpError):
        master.solve(RUNG)
    assert master.solve()[2] < 1e-9  # and goes on where there is time


@pytest.mark.parametrize("sees_secret", [False, True])
@pytest.mark.parametrize("rounds", [0, 3])
def test_what_is_handed_out_late_is_a_split_and_no_worse_than_what_was_known(rounds: int, sees_secret: bool) -> None:
    """A solve in the end took as long as it took: 27 s of a limit of 5."""
    problem = build_problem(counts(3, 5), LIP(0.3), sees_secret)[0]
    known = split(problem, gap=0.1)
    generation = choose_generation(problem)
    supply = generation.master
    assert isinstance(supply, PenalisedMaster)
    supply.begin(known.atoms, 1e-6, FOREVER)
    for _ in range(rounds):
        prices, _ = supply.solve(FOREVER)
        atoms = problem.clean(supply.search(prices, FOREVER))
        supply.add(atoms, problem.costs(atoms))
    met = supply.value if rounds else known.value
    late, whole = generation.best(RUNG), generation.best()
    assert late.weights @ late.atoms == pytest.approx(problem.prior, abs=1e-12)
    assert problem.is_feasible(late.atoms).all()
    assert late.value == pytest.approx(float(late.weights @ problem.costs(late.atoms)), abs=1e-12)
    assert late.value <= met + 1e-6
    assert whole.value <= late.value + 1e-9  # nothing was forgotten


@given(seed=SEEDS, rarest=st.floats(-8, -1))
@settings(max_examples=20, deadline=None)
def test_rough_weights_that_are_not_refined_in_time_are_closed_to_a_split(seed: int, rarest: float) -> None:
    random = np.random.default_rng(seed)
    p_sx = random.dirichlet(np.full(3, 0.5), 12).T * 10 ** random.uniform(rarest, 0, 12)
    problem = build_problem(Joint.from_probabilities(p_sx / p_sx.sum()), LIP(0.3), False)[0]
    generation = choose_generation(problem)
    generation.run(1e-3, proofs=False)
    solve = RestrictedMaster.solve

    def rough(master: RestrictedMaster, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
        weights, prices, owed = solve(master)
        return weights * random.uniform(1 - 1e-7, 1 + 1e-7, len(weights)), prices, owed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RestrictedMaster, "solve", rough)
        late = generation.best(RUNG)
    assert late.value <= generation.value + 1e-5
    assert late.weights @ late.atoms / problem.prior == pytest.approx(np.ones(problem.size), abs=1e-12)
    assert problem.is_feasible(late.atoms).all()


def test_very_many_secrets_are_solved_by_programmes_and_proved() -> None:
    """Bases of as many rows as secrets were inverted: minutes for a limit of seconds."""
    joint = counts(SETTINGS.plan.very_many_secrets + 10, 4)
    generation = choose_generation(build_problem(joint, LIP(0.5), False)[0])
    assert generation.strategy == "very many secrets, linear programmes"
    best = optimal(joint, LIP(0.5), gap=1e-3)
    assert best.stopped is StopReason.GAP
    assert best.bound - best.utility <= 1e-3


def test_what_ended_the_search_is_said() -> None:
    joint = counts(6, 30)
    assert optimal(joint, LIP(0.2), gap=1.0).stopped is StopReason.GAP
    assert optimal(joint, LIP(0.2), gap=1e-9, time_limit=0.05).stopped is StopReason.TIME


def test_a_box_next_to_a_corner_is_seen_to_be_empty() -> None:
    """A row that missed its bound by rounding ended its programme, and the proof stayed 0.0028 above the optimum."""
    best = optimal(Joint.from_counts([[0, 7, 0], [7, 0, 7], [0, 7, 7]]), LIP(0.05))
    assert best.bound - best.utility <= 1e-6


def test_rows_that_take_turns_do_not_keep_a_proof_open() -> None:
    """Two rows left and entered in turn, since reduced costs of rounding had the wrong sign: 0.11 stayed open."""
    table = Joint.from_counts([[2, 2, 2, 0], [2, 0, 2, 2], [0, 0, 1, 0], [0, 1, 0, 1]])
    best = optimal(table, LIP(1.197490067277739))
    assert best.bound - best.utility <= 1e-6
