"""The proof: it finds the least vertex, claims no more than it showed, and a wrong bound would be seen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine import Proof
from privacyfunnel.engine.bounds.dual_bounds import Prover
from privacyfunnel.engine.clock import clock_for, now
from privacyfunnel.engine.objective import reduced_costs
from privacyfunnel.engine.oracles.polytope import build_polytope
from privacyfunnel.engine.proofs.branch_and_bound import Boxes, BranchAndBound, Branching, pack_boxes
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import SRLIP, Promise
from privacyfunnel.tables.readers.adult import adult_counts
from tests.engine.problems import (
    KINDS,
    SEEDS,
    SMALL,
    by_vertices,
    cheapest,
    every_way,
    least_reduced,
    lip,
    made,
    problem_of,
    random_joint,
    with_loans,
)


@given(seed=SEEDS, kind=KINDS, c=st.integers(2, 4), a=st.integers(2, 4), epsilon=st.floats(0.05, 2))
@settings(max_examples=50, deadline=None)
def test_search_and_proof_find_and_prove_the_best_vertex(
    seed: int, kind: type[Promise], c: int, a: int, epsilon: float
) -> None:
    problem = made(kind, seed, c, a, epsilon)
    prices = np.random.default_rng(seed).normal(size=a)
    least = least_reduced(problem, prices)
    for search, prover in every_way(problem):
        proof = prover.prove(prices, -least + 1e-6, np.inf)
        assert proof.bound <= least + 1e-9
        assert proof.bound >= least - 1.1e-6
        search.start()
        found = np.concatenate([search.descend(prices) for _ in range(3)])
        assert reduced_costs(problem.objective, found, prices).min() >= least - 1e-8


@given(seed=SEEDS, shape=SMALL, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=12, deadline=None)
def test_a_proof_claims_no_more_than_it_was_asked(seed: int, shape: tuple[int, ...], epsilon: float) -> None:
    """Boxes are trimmed by the goal and left at the goal, so beyond it nothing was shown."""
    problem = problem_of(random_joint(seed, shape), SRLIP(epsilon))
    prices = np.random.default_rng(seed).normal(size=problem.size)
    least = least_reduced(problem, prices)
    for _, prover in every_way(problem):
        for slack in (1e-3, 0.05, 0.5):
            proof = prover.prove(prices, -least + slack, np.inf)
            assert least - slack - 1e-9 <= proof.bound <= least - slack + 1e-9


def test_when_time_is_up_the_proof_says_what_it_has() -> None:
    problem = problem_of(random_joint(0, (2, 3, 3, 4)), SRLIP(0.5))
    ways = every_way(problem)
    assert len(ways) == 2  # by boxes, and by classes
    for _, prover in ways:
        assert prover.prove(np.zeros(problem.size), 1e-3, -np.inf).bound == -np.inf


class Creeping:
    """A relaxation whose bound rises with every cut, and never arrives."""

    batch = chunk = 1
    polish_every, finds_vertices, gather_factor = 0, False, 0.0

    def roots(self, prices: FloatArray, deadline: float) -> Boxes:
        return pack_boxes([0], -2.0)

    def cut(self, boxes: Boxes, prices: FloatArray, goal: float, deadline: float) -> Branching:
        return Branching(pack_boxes([0], boxes.bound[0] + 1e-9), goal, np.empty((0, prices.size)))


def test_without_a_time_limit_counted_work_ends_a_proof_whose_bound_creeps(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = lip(1, 2, 3, 0.5)
    monkeypatch.setitem(vars(SETTINGS.proofs), "longest", 1e-3)
    with clock_for(None):
        proof = BranchAndBound(Creeping(), problem.objective, lambda atoms, prices: atoms).prove(
            np.zeros(3), 0.1, np.inf
        )
    assert -2.0 < proof.bound < -1.9


def test_a_proof_over_hundreds_of_rows_ends_with_its_time() -> None:
    """A programme per input over 290 rows takes a minute and more; what is not known by then is taken to be 1."""
    joint = Joint.from_counts(adult_counts("income", "education", "relationship", "race")[0])
    problem = problem_of(joint, SRLIP(1.0))
    prover = by_vertices(problem)[1]
    with clock_for(None):  # nominal seconds, of counted work
        begun = now()
        bound = prover.prove(-np.log(problem.prior), 0.1, begun + 0.5).bound
        assert now() < begun + 5  # the step in which it ends
    assert bound <= -0.1
    assert (build_polytope(problem).reach(-np.inf) == 1.0).all()


class Overconfident:
    """Claims a bound that is too high by a hundredth of a nat."""

    def __init__(self, honest: Prover) -> None:
        self._honest = honest

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Proof:
        proof = self._honest.prove(prices, target, deadline)
        return Proof(proof.bound + 0.01, proof.atoms)


def test_a_bound_that_is_too_high_is_caught_by_enumeration() -> None:
    problem = lip(1, 3, 4, 0.3)
    truth = cheapest(problem)
    search, prover = by_vertices(problem)
    honest, liar = with_loans(problem, search, prover), with_loans(problem, search, Overconfident(prover))
    honest.run(1e-6)
    liar.run(1e-6)
    assert honest.bound <= truth + 1e-9
    assert liar.bound > truth + 1e-9
