"""Inputs that do not count: a bound for a prior that gives them a share is one for the prior without them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacyfunnel.engine.masters.mixture import Mixture, Moment
from privacyfunnel.engine.problem import Problem
from privacyfunnel.model.constraints import LinearConstraints


@given(
    seed=st.integers(0, 10**6),
    values=st.integers(2, 5),
    share=st.sampled_from((1e-5, 1e-3, 0.05, 0.3)),
    spread=st.sampled_from((0.05, 1.0)),
    beta=st.sampled_from((0.0, 0.7)),
)
def test_a_bound_never_lies_above_the_split_that_its_prices_fit(
    seed: int, values: int, share: float, spread: float, beta: float
) -> None:
    random, atoms = np.random.default_rng(seed), values + 1
    q, t = random.dirichlet(np.ones(atoms)), random.dirichlet(np.ones(values), atoms)
    f = random.dirichlet(np.full(atoms, spread)) / q  # how much likelier an output is for what does not count
    p = q @ t
    F = (np.eye(values) - p[:, None]).T * p[:, None]
    M = (t.T * q) @ t
    B = np.linalg.pinv(M) @ F
    value = float(np.einsum("ij,ij->", F, B))
    if np.linalg.cond(M) > 1e8:
        return
    size = 1 - share + share * f
    v = np.concatenate([(1 - share) * t, share * f[:, None]], axis=1) / size[:, None]
    prior = np.append((1 - share) * p, share)
    square = np.append(B, np.zeros((1, values)), axis=0)
    problem = Problem.from_values(prior, LinearConstraints.from_pairs(np.empty((0, atoms)), np.empty((0, atoms))), 1.0)
    # Prices at which all of these atoms, the only ones that are allowed here, cost nothing; or nearly.
    prices = np.linalg.lstsq(v, beta * problem.costs(v) - ((v @ square) ** 2).sum(axis=1))[0]
    reduced = beta * problem.costs(v) - ((v @ square) ** 2).sum(axis=1) - v @ prices
    entropy = -float(q @ np.where(t > 0, t * np.log(np.maximum(t, 1e-300)), 0.0).sum(axis=1))
    moment = Moment(F, np.zeros((values, 0)), entropy if beta else None)
    mixed = Mixture(q, reduced, square, prices, beta, value, value)
    excess = max(0.0, -float(reduced.min())) / value
    assert mixed.bound(problem, moment, prices / value, excess) <= value * (1 + 1e-9)


def test_what_does_not_count_is_the_last_entries_of_the_image() -> None:
    problem = Problem.from_values(
        np.array([0.5, 0.3, 0.2]), LinearConstraints.from_pairs(np.empty((0, 3)), np.empty((0, 3))), 1.0
    )
    moment = Moment(np.eye(2), np.zeros((2, 0)))
    assert moment.uncounted_share(problem) == pytest.approx(0.2)
    assert moment.moment_image(problem, np.eye(3)).tolist() == [[1, 0], [0, 1], [0, 0]]
