"""Many rows: walks by programmes find allowed atoms, side channels bound from the right side, boxes keep LDP."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import FloatArray
from privacyfunnel.designs.optimum import optimal
from privacyfunnel.engine import Splitting
from privacyfunnel.engine.boxes import BoxWalks
from privacyfunnel.engine.classes import side_channels
from privacyfunnel.engine.columns import Generation
from privacyfunnel.engine.many_inputs import ManyInputs, generation_for
from privacyfunnel.engine.merging import merged
from privacyfunnel.engine.polytope import compared_with_each_other, inequalities, polytope_of
from privacyfunnel.engine.pricing import VertexPricer, WalkPricer, pricer_for
from privacyfunnel.engine.programmes import TOGETHER, ProgrammeWalks
from privacyfunnel.engine.vertices import entropy_terms
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import SRLIP
from privacyfunnel.tables.adult import adult_counts
from tests.engine.test_engine import SEEDS, ldp
from tests.engine.test_lines import SMALL, rows_of, splitting
from tests.engine.test_many_inputs import excess


def by_programmes(problem: Splitting) -> ManyInputs:
    """The generation that many rows would get, whatever their number."""
    rows = inequalities(problem)
    return ManyInputs(problem, WalkPricer(ProgrammeWalks(rows, problem.prior), -rows))


def cheapest_by_vertices(problem: Splitting) -> float:
    generation = Generation(problem, VertexPricer(problem))
    generation.run(1e-6, 60.0, None)
    assert generation.value - generation.bound <= 1e-6
    return generation.value


def adult_problem(secret: str, *publish: str) -> Splitting:
    joint = Joint.from_counts(adult_counts(secret, *publish)[0])
    n, d = SRLIP(1.0).rows(joint)
    return Splitting(joint.p_x, np.arange(joint.a), n, d, 1.0)


@given(seed=SEEDS, shape=SMALL, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=20, deadline=None)
def test_no_side_channel_alone_costs_more_than_all_together(seed: int, shape: tuple[int, ...], epsilon: float) -> None:
    problem = splitting(seed, shape, SRLIP(epsilon))
    least = cheapest_by_vertices(problem)
    ways = list(side_channels(problem))
    assert [len(parts) for parts in ways] == sorted(len(parts) for parts in ways)
    assert len(ways[0]) == 1  # nobody knows anything: LIP
    assert ways[0][0].mass == pytest.approx(1.0)
    for parts in ways:
        assert sum(part.mass for part in parts) <= 1 + 1e-12
        cost = sum(part.mass * cheapest_by_vertices(merged(part.problem).problem) for part in parts)
        assert cost <= least + 2e-6


def test_the_classes_of_a_side_channel_are_the_values_of_what_is_known() -> None:
    """Two attributes of 2 and 3 values: nothing known, the first known, the second known."""
    problem = splitting(5, (2, 2, 3), SRLIP(0.3))
    assert sorted(len(parts) for parts in side_channels(problem)) == [1, 2, 3]
    for parts in side_channels(problem):
        assert sum(part.problem.prior.size for part in parts) == 6
        for part in parts:
            rows = np.asarray(part.problem.denominators)
            assert np.abs(rows - 1).max() <= 1e-12  # within a class each secret is compared with everybody


@given(seed=SEEDS, shape=SMALL, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=15, deadline=None)
def test_walks_by_programmes_meet_allowed_atoms_and_end_near_the_optimum(
    seed: int, shape: tuple[int, ...], epsilon: float
) -> None:
    problem = splitting(seed, shape, SRLIP(epsilon))
    assume(len(inequalities(problem)) > 0)
    generation = by_programmes(problem)
    generation.run(1e-4, 20.0, None)
    least = cheapest_by_vertices(problem)
    assert generation.bound <= least + 1e-6
    best = generation.best()
    assert best.weights @ best.atoms == pytest.approx(problem.prior, abs=1e-9)
    assert (rows_of(problem) @ best.atoms.T).max() <= 1e-9 * np.abs(rows_of(problem)).max()
    assert least - 1e-6 <= best.value <= least + 2e-2


def test_walks_among_some_inputs_meet_allowed_atoms_of_these() -> None:
    problem = adult_problem("occupation", "education", "relationship", "sex")
    rows = inequalities(problem)
    assert problem.prior.size > TOGETHER
    walks = ProgrammeWalks(rows, problem.prior)
    prices = -np.log(problem.prior)
    atoms = np.concatenate([walks.cover(prices, problem.prior) for _ in range(3)])
    assert len(atoms) > 3
    assert atoms.sum(axis=1) == pytest.approx(np.ones(len(atoms)))
    clean = generation_for(problem).cleaned(atoms)
    assert len(clean) >= 0.9 * len(atoms)
    assert excess_over(problem, clean) <= 1e-9
    assert (np.count_nonzero(atoms, axis=1) <= TOGETHER).all()


def excess_over(problem: Splitting, atoms: FloatArray) -> float:
    N, D = problem.numerators @ atoms.T, problem.denominators @ atoms.T
    loud = np.exp(problem.epsilon)
    return float(max((N - loud * D).max(), (D - loud * N).max()))


def test_an_occupation_and_three_columns_are_not_given_up() -> None:
    """Hundreds of rows: inverting bases of that size found 0.50 nats where 1.60 can be kept."""
    joint = Joint.from_counts(adult_counts("occupation", "relationship", "race", "sex")[0])
    found = optimal(joint, SRLIP(1.0), time_limit=25.0)
    assert found.utility >= 1.3
    assert found.bound <= 2.3  # H(X) is 2.39


def test_when_time_is_short_the_best_split_so_far_is_handed_out() -> None:
    problem = adult_problem("income", "education", "relationship", "race")
    for limit in (0.5, 2.0, 6.0):
        generation = generation_for(problem)
        assert isinstance(generation, ManyInputs)
        generation.run(1e-6, limit, None)
        best = generation.best()
        assert best.value <= generation.value + 1e-7
        assert best.weights @ best.atoms == pytest.approx(problem.prior, abs=1e-9)


def test_what_no_proof_can_mend_ends_by_itself() -> None:
    """Without a time limit the search stops once it finds nothing any more, gap or no gap."""
    problem = splitting(2, (3, 2, 3), SRLIP(0.7))
    generation = by_programmes(problem)
    generation.run(1e-9, None, None)
    assert generation.proved_all
    assert 1e-9 < generation.value - generation.bound < 0.5


def test_rows_of_which_none_can_be_spared_are_searched_as_they_are() -> None:
    """A hundred secrets compared in a ring: neither LIP nor LDP, and every row is about all inputs."""
    random = np.random.default_rng(4)
    secrets = random.dirichlet(np.ones(40), size=100)
    prior = secrets.mean(axis=0)
    L = secrets / prior
    one, other = np.arange(100), (np.arange(100) + 1) % 100
    problem = Splitting(prior, np.arange(40), L[one], L[other], 0.3)
    generation = generation_for(problem)
    assert isinstance(generation, ManyInputs)
    generation.run(0.05, 6.0, None)
    best = generation.best()
    assert excess(problem, best.atoms) <= 1e-9
    assert best.value < 0.999 * float(entropy_terms(prior).sum())
    assert best.bound <= best.value


@given(seed=SEEDS, c=st.integers(3, 5), epsilon=st.floats(0.05, 2))
@settings(max_examples=15, deadline=None)
def test_atoms_of_every_box_keep_the_ratio_of_any_two_secrets(seed: int, c: int, epsilon: float) -> None:
    problem = ldp(seed, c, 12, epsilon)
    functionals = compared_with_each_other(problem)
    assert functionals is not None
    walks = BoxWalks(problem, functionals, polytope_of(problem))
    prices = np.random.default_rng(seed).normal(size=12)
    found = [walks.cover(prices, problem.prior) for _ in range(5)]
    assert all(len(atoms) for atoms in found)
    assert excess(problem, np.concatenate([*found, walks.towards_each()])) <= 1e-7
    seen = {round(float(np.log((functionals @ atoms.T).min())), 6) for atoms in found}
    assert len(seen) > 1  # boxes differ in how far down they go


def test_many_inputs_under_ldp_are_searched_in_boxes() -> None:
    problem = ldp(1, 4, 200, 0.8)
    pricer = pricer_for(problem)
    assert isinstance(pricer, VertexPricer)
    assert isinstance(pricer.walks, BoxWalks)
    generation = generation_for(problem)
    generation.run(0.05, 10.0, None)
    best = generation.best()
    assert excess(problem, best.atoms) <= 1e-9
    nothing = float(entropy_terms(problem.prior).sum())
    assert best.value < 0.7 * nothing
    assert best.value >= best.bound - 1e-9
