"""Shares of the original values from real and synthetic records: by weights of rows and decoys (docs/estimation.md).

Weights serve every other program too: `weigh` gives the rows and the decoys with theirs, and weighted sums over both
are unbiased estimates of sums over the original rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import ParameterError, SizeError, TableError
from privacyfunnel.estimation.decoy_weights import WeightedRelease
from privacyfunnel.estimation.intervals import Spread, interval
from privacyfunnel.estimation.output_reader import Group, find_layout, group_labels, load_sealed
from privacyfunnel.estimation.results import Cell, ShareTable
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.names import unique_label

METHOD = "weights"
DECOYS = 1 << 19  # that are drawn where combinations are too many to list
DECOYS_SEED = 7  # public, and never that of a draw
FILE_DECOYS = 1 << 16  # that `weigh` gives
MOST_CELLS = 1 << 14
TRIAL_SEED, TRIAL_ROWS = 8, 1 << 16  # of a draw by which the owner is told what to expect
UNCOUNTED = 1e-3  # a share of records that are never published themselves, and not worth a word


def is_weighted(sealed: SealedProtocol) -> bool:
    """Whether records are real or synthetic, so that shares are estimated by weights."""
    return isinstance(sealed.mechanism, RealOrSynthetic)


def estimate_wide(
    sealed: SealedProtocol,
    frame: Any,
    requested: Sequence[tuple[str, ...]],
    by: Sequence[str],
    level: float,
    *,
    fixed: bool,
) -> list[ShareTable]:
    """The tables that are asked for, in every group."""
    tables = []
    for group, codes in read_codes(sealed, frame, by).items():
        release = weigh_codes(sealed, codes, DECOYS)
        named = tuple(zip(by, group, strict=True))
        tables += [_table(sealed, release, named, columns, level, fixed=fixed) for columns in requested]
    return tables


def weigh(protocol: SealedProtocol | str | Path, frame: Any) -> pl.DataFrame:
    """The published rows with their weights, and after them public decoys with negative ones, in a column `weight`.

    Weighted sums, means, cross tables and regressions over all of these lines estimate those of the original rows.
    """
    sealed = load_sealed(protocol)
    if not is_weighted(sealed):
        raise ParameterError(
            "Weights are for real or synthetic records; this protocol publishes others. Use estimate, or completed "
            "tables."
        )
    release = weigh_codes(sealed, read_codes(sealed, frame, ())[()], FILE_DECOYS)
    columns = label_records(sealed, np.concatenate([release.rows.codes, release.decoys.codes]))
    weights = np.concatenate([release.row_weights, release.decoy_weights])
    return pl.DataFrame({**columns, unique_label("weight", list(columns)): weights})


def label_records(sealed: SealedProtocol, codes: NDArray[Any]) -> dict[str, pl.Series]:
    """The columns of records with these codes, as text."""
    return {
        at.name: pl.Series(at.labels, dtype=pl.String).gather(codes[:, j].astype(np.uint32))
        for j, at in enumerate(sealed.domain.attributes)
    }


def expect_cells(
    sealed: SealedProtocol, joint: Joint, rows: int, requested: Sequence[tuple[str, ...]]
) -> list[tuple[tuple[Cell, ...], FloatArray]]:
    """The cells of tables as estimated from a trial draw, with standard errors for so many rows; and their true shares.

    For the owner, who knows the counts.
    """
    rng = np.random.default_rng(TRIAL_SEED)
    picked = joint.combos[rng.choice(joint.a, min(rows, TRIAL_ROWS), p=joint.p_x)]
    drawn = sealed.mechanism.draw(picked, KeyStream.from_seed(TRIAL_SEED).rows(0, len(picked)))
    release, found = weigh_codes(sealed, drawn, FILE_DECOYS), []
    for columns in requested:
        shape, (of_values,), labels = _cell_numbers(sealed, columns, [joint.combos])
        _, (of_rows, of_decoys), _ = _cell_numbers(sealed, columns, [release.rows.codes, release.decoys.codes])
        truth = np.bincount(of_values, joint.p_x, math.prod(shape)).astype(np.float64)
        _, variance = release.estimate_counts(of_rows, of_decoys, math.prod(shape))
        error = np.sqrt(variance / len(picked) / rows)
        found.append((_cells(labels, truth, error, truth, truth), truth))
    return found


def _cell_numbers(
    sealed: SealedProtocol, columns: Sequence[str], records: Sequence[NDArray[Any]]
) -> tuple[tuple[int, ...], list[IntArray], list[tuple[str, ...]]]:
    """The shape of a table, the cell of each of some records in it, and the labels of its cells."""
    names, orders = [at.name for at in sealed.domain.attributes], sealed.domain.label_orders
    places = [names.index(name) for name in columns]
    labels = [orders[names[j]] for j in places]
    shape = tuple(map(len, labels))
    if math.prod(shape) > MOST_CELLS:
        raise SizeError(
            f"A table has at most {MOST_CELLS:,} cells; {' & '.join(columns)} have {math.prod(shape):,}. Ask for fewer "
            "columns."
        )
    ranks = [
        np.array([shown.index(label) for label in sealed.domain.attributes[j].labels])
        for j, shown in zip(places, labels, strict=True)
    ]
    numbers = [
        np.ravel_multi_index(tuple(rank[codes[:, j]] for j, rank in zip(places, ranks, strict=True)), shape)
        for codes in records
    ]
    return shape, numbers, list(product(*labels))


def read_codes(sealed: SealedProtocol, frame: Any, by: Sequence[str]) -> dict[Group, IntArray]:
    """The published codes of the rows of each group."""
    from privacyfunnel.tables.readers.table_files import open_source

    table = open_source(frame)
    way = find_layout(sealed, table, by)
    found: dict[Group, list[IntArray]] = {}
    for rows in table.batches([*way.names, *by]):
        codes = way.recover_codes(rows)
        strange = int((codes < 0).any(axis=1).sum())
        if strange:
            raise TableError(
                f"{' & '.join(way.names[:3])} must hold only what the protocol publishes; {strange:,} rows show "
                "something else. Name the sanitised table that belongs to this protocol."
            )
        groups = np.array(group_labels(rows, by)) if by else np.zeros((len(codes), 0), dtype=str)
        distinct, member = np.unique(groups, axis=0, return_inverse=True) if by else (groups[:1], None)
        for i, group in enumerate(distinct.tolist()):
            mine = codes if member is None else codes[member.reshape(-1) == i]
            found.setdefault(tuple(group), []).append(mine)
    if not found:
        raise TableError(f"{table.name} must have rows; it has none.")
    return {group: np.concatenate(found[group]) for group in sorted(found)}


def weigh_codes(sealed: SealedProtocol, codes: IntArray, decoys: int) -> WeightedRelease:
    """Published codes and decoys, with their weights."""
    assert isinstance(sealed.mechanism, RealOrSynthetic)
    return WeightedRelease.weigh(sealed.mechanism, codes, KeyStream.from_seed(DECOYS_SEED), decoys)


def _table(
    sealed: SealedProtocol,
    release: WeightedRelease,
    group: tuple[tuple[str, str], ...],
    columns: tuple[str, ...],
    level: float,
    *,
    fixed: bool,
) -> ShareTable:
    records = [release.rows.codes, release.decoys.codes]
    shape, (of_rows, of_decoys), labels = _cell_numbers(sealed, columns, records)
    n = len(release.rows.codes)
    count, variance = release.estimate_counts(of_rows, of_decoys, math.prod(shape))
    # Where next to nothing is replaced, a row that was may not show in the variance: that of one row is added.
    share, spread = count / n, (variance + 1.0) / n**2
    if not fixed:
        spread = spread + np.clip(share * (1.0 - share), 0.0, None) / n
    lower, upper = interval(share, Spread(spread, np.zeros_like(spread)), level)
    cells = _cells(labels, np.clip(share, lower, upper), np.sqrt(spread), lower, upper)
    return ShareTable(columns, group, n, cells, (), _notes(release), METHOD)


def _cells(
    labels: Sequence[tuple[str, ...]], share: FloatArray, error: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[Cell, ...]:
    numbers = zip(labels, share.tolist(), error.tolist(), lower.tolist(), upper.tolist(), strict=True)
    return tuple(Cell(*each) for each in numbers)


def _notes(release: WeightedRelease) -> tuple[str, ...]:
    left = release.uncounted_share
    if left < UNCOUNTED:
        return ()
    return (
        f"Records that are never published as they are, {100 * left:.1f} % of those of the model, are not counted: "
        "shares of what they have are too small by as much.",
    )
