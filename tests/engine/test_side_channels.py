"""What side channels leave open, each and together, is never more than what a split costs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine import Problem, split
from privacyfunnel.engine.bounds.side_channels import DivisionPair, SideChannels
from privacyfunnel.engine.objective import Objective, costs
from privacyfunnel.engine.problem import InputPart
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import SRLIP
from tests.engine.problems import SEEDS, SMALL, by_programmes, lip, problem_of, random_joint

SHAPES = SMALL | st.just((2, 2, 2, 2))  # c, and values of two or three attributes


def channels_of(problem: Problem) -> SideChannels:
    found = SideChannels.from_problem(problem)
    assert found is not None
    return found


def cost_of(problem: Problem) -> float:
    found = split(problem, gap=1e-6)
    assert found.value - found.bound <= 1e-6
    return found.bound


def parts_of(channels: SideChannels, known: int, *, deeper: bool) -> list[InputPart]:
    """The problems about the inputs themselves within the classes of what is known."""
    return channels.parts(DivisionPair(known, len(channels.divisions) - 1, deeper, channels.problem.size))


def left_open(channels: SideChannels, atoms: FloatArray, weights: FloatArray) -> FloatArray:
    """h of every division."""
    return np.array([weights @ costs(Objective.from_groups(division), atoms) for division in channels.divisions])


@given(seed=SEEDS, shape=SHAPES, epsilon=st.floats(0.1, 1.5))
@settings(max_examples=8, deadline=None)
def test_no_split_leaves_less_open_than_each_side_channel_costs(
    seed: int, shape: tuple[int, ...], epsilon: float
) -> None:
    problem = problem_of(random_joint(seed, shape), SRLIP(epsilon))
    channels, best = channels_of(problem), split(problem, gap=1e-6)
    h = left_open(channels, np.asarray(best.atoms), best.weights)
    least = np.zeros((len(h), len(h)))
    for asked in channels.division_pairs():
        parts = channels.parts(asked)
        assert sum(part.mass for part in parts) <= 1 + 1e-12
        cost = sum(part.mass * cost_of(part.problem) for part in parts)
        assert cost <= h[asked.finer] - h[asked.known] + 1e-9
        least[asked.known, asked.finer] = max(least[asked.known, asked.finer], cost)
    bound, _ = channels.combine_bounds(least)
    assert least[:, -1].max() - 1e-9 <= bound <= best.value + 1e-9


@given(seed=SEEDS, shape=SHAPES)
@settings(max_examples=25, deadline=None)
def test_entropies_of_any_atoms_are_allowed_by_the_programme(seed: int, shape: tuple[int, ...]) -> None:
    """So whatever differences of entropies are known to be at least, the finest has what the programme says."""
    problem = problem_of(random_joint(seed, shape), SRLIP(0.5))
    channels, random = channels_of(problem), np.random.default_rng(seed)
    atoms = random.dirichlet(np.full(problem.size, 0.3), 3)
    weights = random.dirichlet(np.ones(3))
    channels = SideChannels(Problem.from_values(weights @ atoms, problem.constraints, 0.5), channels.divisions)
    h = left_open(channels, atoms, weights)
    assert (channels._entropy_constraints @ h >= -1e-12).all()
    for share in (1.0, 0.7):
        bound, _ = channels.combine_bounds(
            share * np.maximum(h - h[:, None], 0.0) * random.integers(0, 2, (len(h), len(h)))
        )
        assert bound <= h[-1] + 1e-9


def test_what_each_attribute_leaves_open_beside_all_others_adds_up() -> None:
    """Han's inequality: H(A, B, C) >= H(A|BC) + H(B|AC) + H(C|AB)."""
    channels = channels_of(problem_of(random_joint(1, (2, 2, 2, 2)), SRLIP(0.5)))
    last = len(channels.divisions) - 1
    pairs = [i for i, division in enumerate(channels.divisions) if division.max() == 3]
    assert len(pairs) == 3
    least = np.zeros((last + 1, last + 1))
    least[pairs, last] = [0.1, 0.02, 0.3]
    bound, counts = channels.combine_bounds(least)
    assert bound == pytest.approx(0.42)
    np.testing.assert_allclose(counts[pairs, last], 1.0)


def test_which_class_and_which_input_of_it_add_up() -> None:
    """The chain rule: H(A, B) = H(A) + H(B|A)."""
    channels = channels_of(problem_of(random_joint(1, (2, 2, 3)), SRLIP(0.5)))
    least = np.zeros((4, 4))
    least[0, 1], least[1, 3], least[0, 3] = 0.2, 0.3, 0.4
    assert channels.combine_bounds(least)[0] == pytest.approx(0.5)


def test_divisions_are_what_somebody_may_know_of_an_input() -> None:
    """Two attributes of 2 and 3 values: nothing known, the first known, the second known, both known."""
    channels = channels_of(problem_of(random_joint(5, (2, 2, 3)), SRLIP(0.3)))
    assert [int(division.max()) + 1 for division in channels.divisions] == [1, 2, 3, 6]
    for known, classes in enumerate((1, 2, 3)):
        parts = parts_of(channels, known, deeper=False)
        assert len(parts) == classes
        for part in parts:
            assert (
                part.problem.constraints.compares_with_everybody
            )  # within a class each secret is compared with everybody
            assert np.abs(part.problem.constraints.dense[1] - 1).max() <= 1e-12
            np.testing.assert_allclose(part.problem.prior * part.mass, channels.problem.prior[part.inputs])


def test_deeper_rows_are_those_of_the_promise_within_the_class() -> None:
    """Of (2, 2, 2) values, whoever knows the first faces the promise for the records that have it."""
    joint = random_joint(3, (2, 2, 2, 2))
    channels = channels_of(problem_of(joint, SRLIP(0.3)))
    one = [i for i, division in enumerate(channels.divisions) if division.max() == 1]
    assert len(one) == 3
    for part in (part for known in one for part in parts_of(channels, known, deeper=True)):
        own = Joint.from_probabilities(joint.p_sx[:, part.inputs].reshape(2, 2, 2) / joint.p_sx[:, part.inputs].sum())
        expected = problem_of(own, SRLIP(0.3))
        assert len(part.problem.constraints) == len(expected.constraints)
        np.testing.assert_allclose(part.problem.prior, expected.prior)
        np.testing.assert_allclose(part.problem.inequalities, expected.inequalities, atol=1e-12)


def test_a_class_that_two_side_channels_share_is_one() -> None:
    """Whoever has the first label of A has the first of B, so that knowing both tells no more than knowing A."""
    counts = np.random.default_rng(2).integers(1, 9, (2, 2, 2, 3))
    counts[:, 0, 1] = 0
    channels = channels_of(problem_of(Joint.from_counts(counts), SRLIP(0.5)))
    known = next(i for i, division in enumerate(channels.divisions) if np.bincount(division).tolist() == [3, 6])
    part = parts_of(channels, known, deeper=False)[0]
    assert part.problem.size == 3
    assert part.problem.constraints.is_one_dimensional


def test_without_side_channels_there_is_nothing_to_divide() -> None:
    assert SideChannels.from_problem(lip(0, 3, 6, 0.5)) is None


def test_many_rows_are_proved_by_side_channels_together() -> None:
    """Three attributes: together they prove more than each, and no more than is true."""
    problem = problem_of(random_joint(4, (2, 2, 2, 3)), SRLIP(0.4))
    reference, generation = split(problem, gap=1e-4), by_programmes(problem)
    generation.run(1e-4, 2.0)
    channels = channels_of(problem)
    alone = [
        sum(part.mass * cost_of(part.problem) for part in parts_of(channels, known, deeper=False))
        for known in range(len(channels.divisions) - 1)
    ]
    assert max(alone) < generation.bound <= reference.value + 1e-9
