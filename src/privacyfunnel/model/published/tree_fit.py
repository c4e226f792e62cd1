"""A published tree model from a table: measured with ε_c-differential privacy, then smoothed.

Only `measurement` looks at the rows. What follows here is computed from noisy tables and public labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.model.joint import Attribute
from privacyfunnel.model.published.measurement import (
    Edge,
    TreeMeasurement,
    combine_shares,
    refuse_circles,
)
from privacyfunnel.model.published.noise import noise_variance
from privacyfunnel.model.published.smoothing import (
    smooth_pair_table,
    smooth_triple_table,
)
from privacyfunnel.model.published.tree_model import TreeModel

Label = tuple[str, str]  # a column and one of its labels
Zeros = Mapping[Edge, BoolArray]  # two columns, the first before the second: which combinations are impossible


def smooth_tree(
    seen: TreeMeasurement,
    secret: Attribute,
    attributes: Sequence[Attribute],
    impossible: Zeros | None = None,
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
        possible = np.ones(noisy.shape[1:], dtype=bool)
        for (i, j), mask in (impossible or {}).items():
            if {i, j} == {parent, child}:
                possible = ~mask if i == parent else ~mask.T
        tables[child] = smooth_triple_table(
            noisy.astype(np.float64), pairs[parent], pairs[child], noise_variance(seen.rate), possible
        )
    if unlisted:
        places = np.array(unlisted) - np.arange(len(unlisted))
        shares = np.insert(shares, places, unlisted_rows)
        tables = [np.insert(table, places, table.sum(axis=0), axis=0) for table in tables]
    return TreeModel.from_weights(secret, attributes, shares, seen.parents, tables)


def check_zeros(
    attributes: Sequence[Attribute], zeros: Sequence[tuple[Label, Label]], known: Sequence[int] = ()
) -> tuple[Edge, ...]:
    """The pairs of columns that have impossible combinations, and neighbours among those that are known.

    Refuses those that no tree can have.
    """
    places = {attribute.name: j for j, attribute in enumerate(attributes)}
    strange = [name for pair in zeros for name, _ in pair if name not in places]
    if strange:
        raise ColumnError(
            f"An impossible combination names column '{strange[0]}', which is not published. Publish it, or leave it "
            "out there."
        )
    together = [*((places[one[0]], places[two[0]]) for one, two in zeros), *pairwise(known)]
    edges = sorted({(min(i, j), max(i, j)) for i, j in together})
    tabulate_zeros(attributes, published_zeros(attributes, zeros))
    refuse_circles(len(attributes), edges)
    return tuple(edges)


def published_zeros(attributes: Sequence[Attribute], zeros: Sequence[tuple[Label, Label]]) -> list[tuple[Label, Label]]:
    """Those of which both labels are published."""
    labels = {attribute.name: attribute.labels for attribute in attributes}
    return [pair for pair in zeros if all(label in labels.get(name, ()) for name, label in pair)]


def tabulate_zeros(attributes: Sequence[Attribute], zeros: Sequence[tuple[Label, Label]]) -> Zeros:
    """Impossible pairs of labels as tables, by pair of columns.

    >>> sex, kin = Attribute("sex", ("f", "m")), Attribute("kin", ("wife", "child"))
    >>> tabulate_zeros([sex, kin], [(("kin", "wife"), ("sex", "m"))])[0, 1].tolist()
    [[False, False], [True, False]]
    """
    places = {attribute.name: j for j, attribute in enumerate(attributes)}
    tables: dict[Edge, BoolArray] = {}
    for pair in zeros:
        found = []
        for name, label in pair:
            if name not in places or label not in attributes[places[name]].labels:
                raise ColumnError(f"An impossible combination names '{name}' = '{label}'; there is no such label.")
            found.append((places[name], attributes[places[name]].labels.index(label)))
        (i, a), (j, b) = sorted(found)
        if i == j:
            raise ColumnError(f"An impossible combination is of two columns; '{attributes[i].name}' is named twice.")
        shape = (len(attributes[i].labels), len(attributes[j].labels))
        tables.setdefault((i, j), np.zeros(shape, dtype=bool))[a, b] = True
    for edge, table in tables.items():
        for axis, column in enumerate(edge):
            stuck = np.flatnonzero(table.all(axis=1 - axis))
            if stuck.size:
                raise ParameterError(
                    f"Impossible combinations leave '{attributes[column].labels[stuck[0]]}' of "
                    f"'{attributes[column].name}' nothing to occur with. Remove the label or a combination."
                )
    return tables


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
