r"""Completed tables from real and synthetic records.

Weights of rows and decoys estimate every cross table without bias, with signs. A completed table has whole rows:

1. Row i counts 1/(a + W), a being the probability that a record like it is published and W how many synthetic records
   like it there are for each record of the model: what the model says of a row that was published.
2. These weights are raked: multiplied until all tables of one and two columns are those that rows and decoys estimate.
3. As many rows as were published are sampled by them, systematically, in a random order.

Repeated m times with other tables in step 2, as uncertain as they are: rows of a completed table are drawn again by the
mechanism, and by how much tables estimated from that draw miss the completed one, so much may these. Rubin's rules then
give the uncertainty that the mechanism adds. What three columns have together beyond all tables of two is drawn towards
the model by W/(a + W).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.random import Generator

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import ParameterError
from privacyfunnel.estimation.decoy_weights import WeightedRelease
from privacyfunnel.estimation.output_reader import find_layout, load_sealed
from privacyfunnel.estimation.wide_estimates import DECOYS, label_records, read_codes, weigh_codes
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.published.tree_model import CodeArray
from privacyfunnel.tables.readers.table_files import open_source

CYCLES = 8  # of raking, over all tables
MOST_TABLES = 300  # of two columns that are raked; of more columns, those of one column alone
LARGEST_FACTOR = 8.0  # by which a step of raking changes a weight


@dataclass(frozen=True, eq=False)
class CrossTables:
    """All tables of two columns, or of one where there are too many: which cell a record is in, and their sizes."""

    sizes: tuple[int, ...]

    @property
    def columns(self) -> list[tuple[int, ...]]:
        m = len(self.sizes)
        return list(combinations(range(m), 2 if m >= 2 and m * (m - 1) <= 2 * MOST_TABLES else 1))

    def cells(self, codes: CodeArray) -> list[IntArray]:
        """The cell of every record in each table."""
        return [
            np.ravel_multi_index(tuple(codes[:, j] for j in each), tuple(self.sizes[j] for j in each))
            for each in self.columns
        ]

    def count(self, cells: list[IntArray], weights: FloatArray | None = None) -> list[FloatArray]:
        """The weighted records in every cell of each table."""
        shapes = (int(np.prod([self.sizes[j] for j in each])) for each in self.columns)
        return [np.bincount(each, weights, size).astype(np.float64) for each, size in zip(cells, shapes, strict=True)]


def complete_wide(
    protocol: SealedProtocol | str | Path, source: Any, m: int, seed: int, by: Sequence[str] = ()
) -> Iterator[pl.DataFrame]:
    """m completed tables of a release; their rows do not stand for those of the release one by one."""
    sealed, table = load_sealed(protocol), open_source(source)
    others = [*by, *(name for name in table.columns if name not in find_layout(sealed, table).names)]
    if others:
        raise ParameterError(
            "Completed tables of real or synthetic records have the published columns alone, whose rows stand for all "
            f"records together; '{others[0]}' is another column. Leave it out."
        )
    release = weigh_codes(sealed, read_codes(sealed, table, ())[()], DECOYS)
    for codes in complete_tables(release, m, seed):
        yield pl.DataFrame(label_records(sealed, codes))


def complete_tables(release: WeightedRelease, m: int, seed: int) -> Iterator[CodeArray]:
    """m completed tables, as codes."""
    sizes = tuple(len(attribute.labels) for attribute in release.mechanism.model.attributes)
    tables, rows, rng = CrossTables(sizes), release.rows, np.random.default_rng([seed, 2])
    own, of_decoys, n = tables.cells(rows.codes), tables.cells(release.decoys.codes), len(rows.codes)
    found = _estimate(tables, release, own, of_decoys)
    start = 1.0 / (rows.keep + release.synthetic_density[rows.classes])
    first = rows.codes[_sample(_rake(tables, own, start, found), n, rng)]
    true = tables.count(tables.cells(first))
    for _ in range(m):
        stream = KeyStream.from_seed(int(rng.integers(1 << 62)))
        again = release.weigh_again(release.mechanism.draw(first, stream.rows(0, n)))
        missed = _estimate(tables, again, tables.cells(again.rows.codes), of_decoys)
        targets = [each + old - new for each, old, new in zip(found, true, missed, strict=True)]
        yield rows.codes[_sample(_rake(tables, own, start, targets), n, rng)]


def _estimate(
    tables: CrossTables, release: WeightedRelease, own: list[IntArray], of_decoys: list[IntArray]
) -> list[FloatArray]:
    rows, decoys = tables.count(own, release.row_weights), tables.count(of_decoys, release.decoy_weights)
    return [one + other for one, other in zip(rows, decoys, strict=True)]


def _rake(tables: CrossTables, cells: list[IntArray], weights: FloatArray, targets: list[FloatArray]) -> FloatArray:
    """The weights, multiplied by factors of cells until tables are as near to the targets as they get."""
    weights = weights * (len(weights) / weights.sum())
    for _ in range(CYCLES):
        for each, target, size in zip(cells, targets, map(len, targets), strict=True):
            seen = np.bincount(each, weights, size)
            factor = np.divide(np.maximum(target, 0.0), seen, out=np.ones(size), where=seen > 0)
            weights = weights * np.minimum(factor, LARGEST_FACTOR)[each]
    return weights


def _sample(weights: FloatArray, n: int, rng: Generator) -> IntArray:
    """n rows, each as often as its weight says but for less than one, in a random order."""
    order = rng.permutation(len(weights))
    ends = np.cumsum(weights[order])
    chosen = np.searchsorted(ends, (np.arange(n) + rng.random()) * (ends[-1] / n), side="right")
    return np.asarray(rng.permutation(order[np.minimum(chosen, len(order) - 1)]))
