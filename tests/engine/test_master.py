"""The master problem: every solution with a rest is a split, and one that has none raises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.engine.clock import FOREVER
from privacyfunnel.engine.masters.restricted_master import PenaltySlack, ResidualSlack, RestrictedMaster, refit_weights
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.errors import SolverError
from privacyfunnel.model.promises import SRLIP, Promise
from tests.engine.problems import KINDS, SEEDS, entropies, excess, problem_of, random_joint, vertices_of


@given(seed=SEEDS, kind=st.one_of(KINDS, st.just(SRLIP)), epsilon=st.floats(0.1, 1.5))
@settings(max_examples=20, deadline=None)
def test_every_solution_with_a_rest_is_a_split(seed: int, kind: type[Promise], epsilon: float) -> None:
    problem = problem_of(random_joint(seed, (2, 2, 2) if kind is SRLIP else (3, 5)), kind(epsilon))
    random = np.random.default_rng(seed)
    master = RestrictedMaster(problem.prior, ResidualSlack(problem.prior, problem.cone()))
    vertices = vertices_of(problem)
    vertices = vertices[random.permutation(len(vertices))[:6]]
    master.add(vertices, entropies(vertices))
    for _ in range(8):
        weights, _, rest = master.solve()
        assert weights @ master.atoms + master.slack_used == pytest.approx(problem.prior, abs=1e-8)
        assert excess(problem, master.slack_used[None, :]) <= 1e-7
        assert rest == pytest.approx(master.slack_used.sum())
        master.raise_slack_price()


def test_an_atom_that_is_known_already_is_not_added_again() -> None:
    master = RestrictedMaster(np.array([0.5, 0.5]), PenaltySlack(np.array([0.5, 0.5]), 1.0))
    atoms = np.array([[1.0, 0.0], [0.2, 0.8], [1.0, 1e-14]])
    assert master.add(atoms, np.zeros(3)).tolist() == [0, 1]
    assert master.add(atoms, np.zeros(3)).tolist() == []
    assert len(master.atoms) == len(master.costs) == 2


def test_many_atoms_are_learned_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = np.full(3, 1 / 3)
    atoms = np.random.default_rng(0).dirichlet(np.ones(3), 8).repeat(2, axis=0)  # each twice
    found = []
    for together in (1 << 20, 15, 1):
        monkeypatch.setitem(vars(SETTINGS.slack), "entries_at_once", together)
        master = RestrictedMaster(prior, PenaltySlack(prior, 1.0))
        assert master.add(atoms, np.arange(16.0)).tolist() == list(range(0, 16, 2))
        assert (master.atoms == atoms[::2]).all()
        assert master.costs.tolist() == list(range(0, 16, 2))
        found.append(master.solve()[0].tolist())
    assert found[0] == found[1] == found[2]


@given(seed=SEEDS, atoms=st.integers(2, 12))
@settings(max_examples=30, deadline=None)
def test_weights_are_refined_to_rounding_by_next_to_nothing_however_many_atoms(seed: int, atoms: int) -> None:
    random = np.random.default_rng(seed)
    known, exact = random.dirichlet(np.ones(4), atoms), random.dirichlet(np.full(atoms, 5.0))
    prior = exact @ known
    off = exact * (1 + 1e-8 * random.normal(size=atoms))
    refined = refit_weights(prior, off, known, FOREVER)
    assert refined @ known == pytest.approx(prior, rel=1e-13)
    assert refined == pytest.approx(off, abs=1e-6)


def test_a_master_that_cannot_be_solved_raises() -> None:
    master = RestrictedMaster(np.array([0.5, 0.5]), PenaltySlack(np.array([0.5, 0.5]), 1.0))
    master.add(np.array([[1.0, 0.0]]), np.array([0.0]))
    master.forbid_slack()
    with pytest.raises(SolverError, match="must be solved to optimality"):
        master.solve()
