"""Blocks: their splits are a split of the whole, and larger blocks make it cheaper."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import dense
from privacyfunnel.engine import split
from privacyfunnel.engine.masters.blocks import BlockMaster, balance_blocks
from privacyfunnel.engine.plan import choose_generation
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from tests.engine.problems import excess, ldp, lip, problem_of


@given(seed=st.integers(0, 10**6), epsilon=st.floats(0.05, 2), kind=st.sampled_from([lip, ldp]))
@settings(max_examples=20, deadline=None)
def test_blocks_divide_the_inputs_and_each_prior_is_allowed(seed: int, epsilon: float, kind: type) -> None:
    problem = kind(seed, 3, 40, epsilon)
    blocks = balance_blocks(problem, 8)
    assert sorted(np.concatenate([block.inputs for block in blocks])) == list(range(40))
    together = np.zeros(40)
    for block in blocks:
        assert block.problem.is_feasible(block.problem.prior[None, :]).all()
        together[block.inputs] += block.mass * block.problem.prior
    assert together == pytest.approx(problem.prior)


@pytest.mark.parametrize("kind", [lip, ldp])
@pytest.mark.parametrize("seconds", [1e-6, None])
def test_splits_of_blocks_are_a_split_however_short_the_time(
    kind: type, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(SETTINGS.plan), "most_branched", 30)
    monkeypatch.setitem(vars(SETTINGS.slack), "largest_block", 8)
    problem = kind(3, 3, 40, 0.5)
    run = choose_generation(problem)
    assert isinstance(run.master, BlockMaster)
    run.run(1e-3, seconds)
    found = run.best()
    atoms = dense(found.atoms)
    assert found.weights @ atoms == pytest.approx(problem.prior, rel=1e-9)
    assert excess(problem, atoms) <= 1e-9
    assert found.value == pytest.approx(run.value, abs=1e-9)
    assert found.bound <= found.value


def test_larger_blocks_cost_less_and_the_bound_holds_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = lip(4, 3, 40, 0.5)
    best = split(problem, gap=1e-6)
    monkeypatch.setitem(vars(SETTINGS.plan), "most_branched", 30)
    values = []
    for most in (5, 20):
        monkeypatch.setitem(vars(SETTINGS.slack), "largest_block", most)
        found = split(problem, gap=1e-6)
        assert found.bound <= best.value + 1e-6 <= found.value + 2e-6
        values.append(found.value)
    assert values[1] < values[0]


def test_a_split_that_is_known_is_never_made_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = lip(5, 3, 40, 0.5)
    best = split(problem, gap=1e-6)
    monkeypatch.setitem(vars(SETTINGS.plan), "most_branched", 30)
    monkeypatch.setitem(vars(SETTINGS.slack), "largest_block", 4)
    assert split(problem, gap=1e-6, start=dense(best.atoms)).value <= best.value + 1e-9


def test_blocks_that_lack_a_rare_secret_are_joined_to_few_others() -> None:
    random = np.random.default_rng(7)
    p_x, p_s = 1.0 / np.arange(1, 641), np.array([0.01, 0.29, 0.7])
    given = random.dirichlet(20 * p_s, 640).T + 1e-6  # most values hardly have the first secret
    problem = problem_of(Joint.from_probabilities(given * p_x / (given * p_x).sum()), LIP(0.7))
    blocks = balance_blocks(problem, 16)
    assert max(block.inputs.size for block in blocks) <= 64
    for block in blocks:
        assert block.problem.is_feasible(block.problem.prior[None, :]).all()
