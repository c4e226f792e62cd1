"""Which notion of leakage bounds which: each line of the table in docs/theory.md, and its counterexamples."""

import math

import numpy as np
import pytest

from privacyfunnel.arrays import FloatArray
from privacyfunnel.model.information import information

EXACT = 1e-12  # of a few logarithms


def measures(shares: FloatArray, given: FloatArray) -> dict[str, float]:
    """All notions by their definitions, at the prior `shares` and the chances of outputs `given` each secret."""
    p = shares[:, None] * given
    p_y = p.sum(axis=0)
    with np.errstate(divide="ignore"):
        moves = np.log(given / p_y)
        pairs = np.log(given.max(axis=0)) - np.log(given.min(axis=0))
    apart = max(float(np.abs(one - other).sum()) / 2 for one in given for other in given)
    return {
        "LDP": float(pairs.max()),
        "LIP": float(np.abs(moves).max()),
        "PML": float(moves.max()),
        "maximal": math.log(float(given.max(axis=0).sum())),
        "information": information(p),
        "guess": math.log(float(p.max(axis=0).sum()) / float(shares.max())),
        "security": 1 - apart,
    }


def test_every_bound_of_the_table_holds() -> None:
    rng = np.random.default_rng(5)
    for _ in range(400):
        c, m = rng.integers(2, 6, 2)
        found = measures(rng.dirichlet(np.ones(c)), rng.dirichlet(rng.uniform(0.2, 5) * np.ones(m), c))
        assert found["LIP"] <= found["LDP"] + EXACT
        assert found["LDP"] <= 2 * found["LIP"] + EXACT
        assert found["PML"] <= found["LIP"] + EXACT
        assert found["maximal"] <= found["PML"] + EXACT
        assert found["information"] <= found["maximal"] + EXACT
        assert found["guess"] <= found["maximal"] + EXACT
        assert 1 - found["security"] <= math.tanh(found["LDP"] / 2) + EXACT
        assert 1 - found["security"] <= math.expm1(found["maximal"]) + EXACT


def test_no_other_bound_holds() -> None:
    even = np.array([0.5, 0.5])
    told = measures(even, np.eye(2))
    assert told["PML"] == pytest.approx(math.log(2))  # bounded, while a secret is ruled out
    assert told["LIP"] == told["LDP"] == math.inf
    rare = measures(np.array([0.5, 0.5]), np.array([[0.6, 0.4], [0.4, 0.6]]))
    assert rare["LDP"] > rare["LIP"] + 0.1  # LIP bounds LDP by twice its size only
    n, share = 1000, 1e-4  # one record in ten thousand names one of a thousand secrets
    named = np.column_stack([np.full(n, 1 - share), share * np.eye(n)])
    found = measures(np.full(n, 1 / n), named)
    assert found["PML"] == pytest.approx(math.log(n))
    assert found["maximal"] < 0.1
    assert found["security"] == pytest.approx(1 - share)
    assert found["information"] < 0.001
    n, share = 10_000, 0.1
    often = math.log(1 - share + n * share), share * math.log(n)  # maximal leakage, I(S;Y) of the same with one in ten
    assert often[0] > 6.9
    assert often[1] < 0.93
    few = measures(np.array([0.9, 0.1]), np.array([[0.9, 0.1], [0.5, 0.5]]))
    assert few["guess"] == pytest.approx(0.0)  # the best guess is as before, and beliefs move
    assert few["PML"] > 0.5
