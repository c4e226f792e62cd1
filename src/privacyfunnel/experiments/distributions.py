"""The distributions of the experiments: random ones, each from a seed of its own, and those of Adult."""

from __future__ import annotations

import math

import numpy as np

from privacyfunnel.model.joint import Joint
from privacyfunnel.tables.readers.adult import adult_counts

COLUMN = {"marital": "marital-status"}  # where the paper's word is not the column's name


def uniform_joint(c: int, sizes: tuple[int, ...], seed: int) -> Joint:
    """Each p(s, x) uniform on [0, 1], then normalised (paper, section VII-A).

    >>> uniform_joint(2, (3, 3, 4), seed=1).a
    36
    """
    p = np.random.default_rng([seed, c, *sizes]).random((c, *sizes))
    return Joint.from_probabilities(p / p.sum())


def jeffreys_joint(c: int, a: int, seed: int) -> Joint:
    """p(s, x) from the symmetric Dirichlet distribution with parameter 1/2 (paper, section VII-D).

    >>> round(float(jeffreys_joint(5, 7, seed=1).p_sx.sum()), 12)
    1.0
    """
    p = np.random.default_rng([seed, c, a]).dirichlet(np.full(c * a, 0.5))
    return Joint.from_probabilities((p / math.fsum(p)).reshape(c, a))


def adult_joint(secret: str, publish: str) -> Joint:
    """Two columns of all 48,842 records of Adult, `?` a category of its own.

    >>> adult_joint("marital", "race").p_sx.shape
    (7, 5)
    """
    names = (COLUMN.get(secret, secret), COLUMN.get(publish, publish))
    counts, (secrets, values) = adult_counts(*names)
    return Joint.from_counts(counts, secrets, values, names=[names[1]], secret_name=names[0])
