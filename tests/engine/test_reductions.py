"""Fewer inputs: alike ones are merged and told apart again at no cost, parts of them make splits of the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine import Problem, split
from privacyfunnel.engine.reductions import MergeEqual, PartsProblem
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.information import entropy
from privacyfunnel.model.promises import SRLIP, Promise
from tests.engine.problems import KINDS, SEEDS, about, entropies, excess, lip, problem_of, random_joint

FOUR = np.array([[1.6, 0.9, 0.4, 1.2], [0.7, 1.5, 0.8, 1.0], [0.7, 0.6, 1.8, 0.8]])  # P(s|z)/P(s)
PRIOR = np.array([0.1, 0.2, 0.3, 0.4])


def alike(shares: FloatArray) -> Problem:
    """Four inputs, each divided into as many as there are columns of shares."""
    return about(np.repeat(FOUR, shares.shape[1], axis=1), (PRIOR[:, None] * shares).ravel(), 0.2)


@given(seed=SEEDS, kind=st.one_of(KINDS, st.just(SRLIP)), parts=st.integers(1, 4), epsilon=st.floats(0.05, 2))
@settings(max_examples=25, deadline=None)
def test_a_split_over_parts_is_a_split_over_inputs(seed: int, kind: type[Promise], parts: int, epsilon: float) -> None:
    """A part may lie half in a class of attributes: what the constraints then see is seen right."""
    problem = problem_of(random_joint(seed, (2, 2, 4) if kind is SRLIP else (3, 8)), kind(epsilon))
    part_of = np.unique(np.random.default_rng(seed).integers(parts, size=problem.size), return_inverse=True)[1]
    small = PartsProblem.from_parts(problem, part_of)
    found = split(small.problem, gap=1e-4)
    atoms = found.atoms[:, part_of] * small.share
    assert found.weights @ atoms == pytest.approx(problem.prior, abs=1e-9)
    assert excess(problem, atoms) <= 1e-9
    within = entropy(problem.prior) - entropy(small.problem.prior)
    assert found.weights @ entropies(atoms) == pytest.approx(found.value + within, abs=1e-8)
    np.testing.assert_allclose(small.aggregate(atoms), found.atoms, atol=1e-12)


@given(seed=SEEDS, parts=st.integers(2, 3))
@settings(max_examples=15, deadline=None)
def test_values_alike_are_merged_and_split_again_at_no_cost(seed: int, parts: int) -> None:
    small = about(FOUR, PRIOR, 0.2)
    large = alike(np.random.default_rng(seed).dirichlet(np.ones(parts), size=4))
    assert MergeEqual().apply(small).problem is small
    assert MergeEqual().apply(large).problem.size == 4
    one, other = split(small), split(large)
    assert other.value == pytest.approx(one.value, abs=2e-6)
    assert other.weights @ other.atoms == pytest.approx(large.prior, abs=1e-12)
    assert other.weights @ entropies(other.atoms) == pytest.approx(other.value, abs=1e-9)


def test_very_many_values_alike_are_told_apart_at_no_cost() -> None:
    large = alike(np.full((4, 200), 1 / 200))
    told = split(large)
    assert told.value == pytest.approx(split(about(FOUR, PRIOR, 0.2)).value, abs=2e-6)
    assert told.weights @ told.atoms == pytest.approx(large.prior, abs=1e-12)


@given(seed=SEEDS, several=st.integers(1, 40))
@settings(max_examples=20, deadline=None)
def test_atoms_that_tell_values_apart_are_hardly_more_than_the_values(seed: int, several: int) -> None:
    """Each atom over parts names those values of a part that no other one does, but for those at the ends."""
    random = np.random.default_rng(seed)
    large = alike(random.dirichlet(np.ones(several), size=4))
    small = MergeEqual().apply(large)
    found = split(small.problem)
    told = small.invert(found)
    entries = int(np.count_nonzero(found.atoms))
    assert len(told.weights) <= large.size + 2 * entries
    assert told.value == pytest.approx(found.value, abs=1e-9)
    assert told.weights @ told.atoms == pytest.approx(large.prior, abs=1e-12)
    assert large.is_feasible(told.atoms).all()
    assert np.count_nonzero(told.atoms, axis=1).max() <= np.count_nonzero(found.atoms, axis=1).max()


def test_values_that_only_look_alike_to_some_rows_are_not_merged() -> None:
    columns = np.concatenate([FOUR, FOUR[:, :1] + [[1e-9], [-1e-9], [0.0]]], axis=1)
    problem = about(columns, np.append(PRIOR[:3], [0.2, 0.2]), 0.2)
    assert MergeEqual().apply(problem).problem is problem


def test_where_nothing_is_compared_everything_is_told() -> None:
    problem = lip(0, 3, 5, 0.5)
    free = problem.replace_constraints(problem.constraints.select_pairs(np.zeros(0, dtype=np.int64)))
    assert MergeEqual().apply(free).problem.size == 1
    found = split(free)
    assert found.value == pytest.approx(0.0, abs=1e-12)
    assert found.weights @ found.atoms == pytest.approx(free.prior, abs=1e-12)


@pytest.mark.parametrize("asked", [True, False])
def test_an_expanded_split_leaves_its_lightest_atoms_whole_when_it_would_grow_too_large(
    monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    """By itself for lack of memory, or because whoever asks wants few."""
    monkeypatch.setitem(vars(SETTINGS.reductions), "refined_entries", 0)
    large = alike(np.random.default_rng(0).dirichlet(np.ones(9), size=4))
    cut_short = split(large, time_limit=1e-9, most_atoms=20 if asked else None)
    assert cut_short.weights @ cut_short.atoms == pytest.approx(large.prior, abs=1e-12)
    assert len(cut_short.weights) <= (20 if asked else 2 * 36) + 4 + 1
    assert cut_short.value >= split(large).value - 1e-9
