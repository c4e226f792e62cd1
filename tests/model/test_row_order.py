"""What neighbouring rows say about a secret: nearly all where the table is sorted, nothing in a random order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacyfunnel.model.row_order_leak import NeighbourGuesses, OrderLeak
from privacyfunnel.tables.readers.adult import adult_counts


def told(secrets: np.ndarray, values: int, cut: int = 1 << 14) -> OrderLeak:
    neighbours = NeighbourGuesses(values)
    for start in range(0, len(secrets), cut):
        neighbours.add(secrets[start : start + cut])
    return neighbours.best_guess()


@pytest.fixture
def occupations() -> np.ndarray:
    counts, _ = adult_counts("occupation")
    return np.repeat(np.arange(len(counts)), counts)


def test_a_table_sorted_by_its_secret_gives_nearly_every_row_away(occupations: np.ndarray) -> None:
    found = told(occupations, 15)
    assert found.is_leak
    assert found.guessed > 0.99
    assert found.base == np.bincount(occupations).max() / len(occupations) < 0.13


@given(seed=st.integers(0, 2**32 - 1), values=st.integers(2, 40))
def test_a_random_order_gives_no_more_than_the_base_rate(seed: int, values: int) -> None:
    rng = np.random.default_rng(seed)
    secrets = rng.choice(values, 3000, p=rng.dirichlet(np.ones(values)))
    found = told(secrets, values)
    assert found.guessed == found.base == np.bincount(secrets).max() / 3000
    assert "no better than the base rate" in str(found)


@pytest.mark.parametrize("pattern", [[0, 1], [0, 0, 1, 2], [0, 1, 2, 2, 1]])
def test_secrets_that_come_round_again_are_found(pattern: list[int]) -> None:
    assert told(np.array(pattern * 1000), 3).guessed > 0.99


def test_blocks_that_lean_to_one_secret_are_found(occupations: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    leaning = np.where(rng.random(len(occupations)) < 0.3, occupations, rng.permutation(occupations))
    found = told(leaning, 15)
    assert found.guessed > 0.3 > 2 * found.base
    assert "block" in found.how


def test_of_a_large_table_some_chunks_are_looked_at() -> None:
    neighbours = NeighbourGuesses(3, rows=3 << 20)
    for _ in range(30):
        neighbours.add(np.repeat([0, 1, 2], 100))
    found = neighbours.best_guess()
    assert found.rows == 3000
    assert found.guessed > 0.9


@given(secrets=st.lists(st.integers(0, 2), min_size=1, max_size=60), cut=st.integers(1, 60))
def test_rows_before_are_remembered_from_chunk_to_chunk(secrets: list[int], cut: int) -> None:
    neighbours = NeighbourGuesses(3)
    for start in range(0, len(secrets), cut):
        neighbours.add(np.array(secrets[start : start + cut]))
    for lag, same in neighbours._same.items():
        assert same == sum(secrets[i] == secrets[i - lag] for i in range(lag, len(secrets)))
