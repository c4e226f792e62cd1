"""Tables of very many values, of Zipf's sizes."""

import numpy as np

from privacyfunnel.model.joint import Joint

ROWS = 2_000_000  # drawn for each table
CONCENTRATION = 30.0  # of p(s|x) around p(s): what it is worth in observations


def zipf(secrets: int, values: int, seed: int) -> Joint:
    """A table of rows drawn from p(x) ∝ 1/rank, p(s) ~ Dirichlet(2), p(s|x) ~ Dirichlet(30 p(s)), values that occur."""
    random = np.random.default_rng(seed)
    p_x = 1.0 / np.arange(1, values + 1)
    p_s = random.dirichlet(np.full(secrets, 2.0))
    p_s_given_x = random.dirichlet(CONCENTRATION * p_s, values)
    p = (p_x / p_x.sum())[:, None] * p_s_given_x
    counts = random.multinomial(ROWS, (p / p.sum()).ravel()).reshape(values, secrets).T
    return Joint.from_counts(counts[:, counts.sum(axis=0) > 0])
