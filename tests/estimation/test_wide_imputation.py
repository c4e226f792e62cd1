"""Completed tables of real or synthetic records: intervals that hold, also where the model does not."""

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.designs.wide.real_or_synthetic_design import design_real_or_synthetic
from privacyfunnel.estimation import combine
from privacyfunnel.estimation.decoy_weights import WeightedRelease
from privacyfunnel.estimation.wide_imputation import complete_tables
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.promises import LIP
from tests.model.test_tree_model import random_model

SIZES = 3, 4, 2, 3
ROWS, DRAWS, TABLES = 4000, 30, 5


def count(codes: NDArray[Any], columns: tuple[int, ...]) -> NDArray[Any]:
    shape = tuple(SIZES[j] for j in columns)
    cells = np.ravel_multi_index(tuple(codes[:, j] for j in columns), shape)
    return np.bincount(cells, minlength=int(np.prod(shape)))


def test_intervals_of_completed_tables_hold_for_tables_of_up_to_three_columns() -> None:
    model = random_model(np.random.default_rng(3), 3, list(SIZES), skew=4.0)
    mechanism = design_real_or_synthetic(model, LIP(1.0), classes=12).mechanism
    rng = np.random.default_rng(4)
    codes = np.stack([rng.integers(0, size, ROWS) for size in SIZES], axis=1)
    alike = rng.random(ROWS) < 0.4  # of which the model knows nothing
    codes[alike, 3] = codes[alike, 0]
    held: dict[int, list[bool]] = {1: [], 2: [], 3: []}
    for draw in range(DRAWS):
        published = mechanism.draw(codes, KeyStream.from_seed(50 + draw).rows(0, ROWS))
        release = WeightedRelease.weigh(mechanism, published, KeyStream.from_seed(9), 100)
        completed = list(complete_tables(release, TABLES, draw))
        assert all(each.shape == codes.shape for each in completed)
        for columns in (each for number in held for each in combinations(range(len(SIZES)), number)):
            found = np.stack([count(each, columns) for each in completed])
            for cell, truth in enumerate(count(codes, columns).tolist()):
                interval = combine(found[:, cell])
                held[len(columns)].append(interval.lower <= truth <= interval.upper)
    for number, inside in held.items():
        assert 0.9 < np.mean(inside) < 0.99, number
