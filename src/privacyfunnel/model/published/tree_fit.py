"""A published tree model from a table: measured with ε_c-differential privacy, then smoothed.

Only `measurement` looks at the rows. What follows here is computed from noisy tables and public labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.published.measurement import TreeMeasurement, combine_shares
from privacyfunnel.model.published.noise import noise_variance
from privacyfunnel.model.published.smoothing import smooth_pair_table, smooth_triple_table
from privacyfunnel.model.published.tree_model import TreeModel


def smooth_tree(
    seen: TreeMeasurement,
    secret: Attribute,
    attributes: Sequence[Attribute],
    unlisted: Sequence[int] = (),
    unlisted_rows: float = 0.0,
) -> TreeModel:
    """The model that follows from noisy tables: p̃(x_j | s, x_π) by shrinkage of least expected error.

    `unlisted` secrets of the model, in order, were not measured: each has `unlisted_rows`, which go with values as all
    others do.
    """
    combined, variances = _combine_tables(seen)
    if seen.totals is None:
        shares = combine_shares(combined, variances, seen.rows)
    else:
        whole = seen.totals.astype(np.float64)[:, None]
        shares = combine_shares([*combined, whole], [*variances, noise_variance(seen.rate)], seen.rows)
    pairs = [smooth_pair_table(noisy, shares, v) for noisy, v in zip(combined, variances, strict=True)]
    tables = [table[:, None, :] for table in pairs]
    for (parent, child), noisy in zip(seen.edges, seen.triples, strict=True):
        tables[child] = smooth_triple_table(
            noisy.astype(np.float64), pairs[parent], pairs[child], noise_variance(seen.rate)
        )
    if unlisted:
        places = np.array(unlisted) - np.arange(len(unlisted))
        shares = np.insert(shares, places, unlisted_rows)
        tables = [np.insert(table, places, table.sum(axis=0), axis=0) for table in tables]
    return TreeModel.from_weights(secret, attributes, shares, seen.parents, tables)


def _combine_tables(seen: TreeMeasurement) -> tuple[list[FloatArray], list[float]]:
    """n(s, x_j) from every table that has it, weighted by precision; and the variance of the result."""
    variance = noise_variance(seen.rate)
    total = [table.astype(np.float64) for table in seen.pairs]
    weights = [1.0] * len(seen.pairs)
    for edge, table in zip(seen.edges, seen.triples, strict=True):
        for axis, column in enumerate(edge, 1):
            others = table.shape[3 - axis]
            total[column] += table.sum(axis=3 - axis) / others
            weights[column] += 1 / others
    return [noisy / w for noisy, w in zip(total, weights, strict=True)], [variance / w for w in weights]
