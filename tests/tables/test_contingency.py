"""Cells counted and found again, however many combinations of codes there can be."""

import numpy as np
import pytest

from privacyfunnel.tables.coding.contingency import CellCounter, CellIndex


@pytest.mark.parametrize("sizes", [(4, 5), (300, 200, 100), (1 << 20, 1 << 22, 1 << 23)])  # dense, as a number, as rows
def test_cells_are_counted_found_and_recoded(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    rows = np.stack([rng.integers(max(size - 4, 1), size, 500) for size in sizes], axis=1).astype(np.uint32)
    counter = CellCounter(len(sizes))
    for part in np.array_split(rows, 3):
        counter.add(list(part.T), sizes, len(part))
    distinct, place, count = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    cells, counts = counter.cells()
    assert (cells.tolist(), counts.tolist()) == (distinct.tolist(), count.tolist())
    positions = np.where(np.arange(len(cells)) % 7 == 0, -1, np.arange(len(cells)))
    index = CellIndex(cells, positions, sizes)
    assert index.positions(list(rows.T), len(rows)).tolist() == positions[place.reshape(-1)].tolist()
    absent = [np.zeros(1, dtype=np.int64), *(np.full(1, -1) for _ in sizes[1:])]
    if sizes != (4, 5):
        assert index.positions(absent, 1).tolist() == [-1]
    recoded = index.column_codes(cells + 10)
    known = positions >= 0
    for j, becomes in enumerate(recoded):
        assert (becomes[cells[known, j]] == cells[known, j] + 10).all()
        assert {*np.flatnonzero(becomes >= 0).tolist()} == {*cells[known, j].tolist()}
