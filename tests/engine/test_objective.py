"""What an atom costs: chords below it, tangents above it, sums over the inputs that belong together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.arrays import entropy_terms, sparse
from privacyfunnel.engine.objective import Objective, chords, costs, image, reduced_costs, tangents
from privacyfunnel.engine.settings import SETTINGS
from tests.engine.problems import SEEDS

ONE = Objective.from_groups(np.zeros(1, dtype=np.int64))


@given(low=st.floats(0, 1), width=st.floats(0, 1), at=st.floats(0, 1))
def test_a_chord_lies_below_the_entropy(low: float, width: float, at: float) -> None:
    high = min(1.0, low + width)
    slope, intercept = chords(ONE, np.array([low]), np.array([high]))
    t = np.array([low + at * (high - low)])
    assert slope * t + intercept <= entropy_terms(t) + 1e-12


@given(seed=SEEDS, inputs=st.integers(1, 7), values=st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_a_tangent_lies_above_the_cost_of_every_atom_and_meets_it_at_its_own(
    seed: int, inputs: int, values: int
) -> None:
    random = np.random.default_rng(seed)
    objective = Objective.from_groups(random.integers(values, size=inputs))
    one, other = random.dirichlet(np.ones(inputs), size=2)
    (slopes,) = tangents(objective, one[None], 1e-12)
    assert slopes @ one == pytest.approx(costs(objective, one[None])[0], abs=1e-12)
    assert slopes @ other >= costs(objective, other[None])[0] - 1e-12


@given(seed=SEEDS, inputs=st.integers(1, 7), values=st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_the_cost_is_the_entropy_of_what_belongs_together(seed: int, inputs: int, values: int) -> None:
    random = np.random.default_rng(seed)
    group = 3 * random.integers(values, size=inputs) + 5  # numbers with holes
    objective = Objective.from_groups(group)
    atoms = random.dirichlet(np.ones(inputs), size=3) * (random.random((3, inputs)) < 0.6)
    sums = np.array([[atom[group == g].sum() for g in np.unique(group)] for atom in atoms])
    np.testing.assert_allclose(image(objective, atoms), sums, atol=1e-15)
    np.testing.assert_allclose(costs(objective, atoms), entropy_terms(sums).sum(axis=1), atol=1e-14)
    np.testing.assert_allclose(costs(objective, sparse.csr_array(atoms)), entropy_terms(sums).sum(axis=1), atol=1e-14)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(vars(SETTINGS.lp), "sums", 2 * inputs)  # the last atom by itself
        np.testing.assert_allclose(costs(objective, atoms), entropy_terms(sums).sum(axis=1), atol=1e-14)
    prices = random.normal(size=inputs)
    expected = entropy_terms(sums).sum(axis=1) - atoms @ prices
    np.testing.assert_allclose(reduced_costs(objective, atoms, prices), expected, atol=1e-13)


def test_only_inputs_that_are_all_values_of_their_own_are_plain() -> None:
    assert Objective.from_groups(np.array([4, 7, 9])).is_identity
    assert not Objective.from_groups(np.array([4, 7, 4])).is_identity
    assert Objective.from_groups(np.array([4, 7, 4])).restrict(np.array([0, 1])).is_identity
