"""How well a published model describes the table it was made from: for its owner alone, since it looks at the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.model.published.measurement import CodedTable
from privacyfunnel.model.published.tree_model import UNIT, TreeModel

MOST_COLUMNS = 64  # of which all pairs are compared; beyond, those in evenly spread places


@dataclass(frozen=True, slots=True)
class ModelQuality:
    """Errors of a model on the rows of its table.

    Log-losses are means of −ln p(s | x) in nats: the model's own lies between that of a good model without noise and
    `base`, that of p(s) alone. At `base` the model knows nothing of the secret; above, its noise misleads.
    """

    log_loss: float
    base: float
    one_way: float  # mean error of a share p̃(x_j), over labels and then columns
    two_way: float  # mean over pairs of columns of the total variation between p̃(x_i, x_j) and the table's shares

    @property
    def is_too_poor(self) -> bool:
        """Whether shares alone would do better than the model, so that it takes more ε_c or more rows."""
        return self.log_loss >= self.base


def measure_quality(model: TreeModel, table: CodedTable) -> ModelQuality:
    """The quality of a model on rows that are coded by its labels."""
    rows = np.arange(table.rows)
    own = model.ratios(table.codes)[rows, table.secrets]
    counts = np.bincount(table.secrets, minlength=len(model.shares))
    with np.errstate(divide="ignore"):
        losses = -np.log(own * (model.shares / UNIT)[table.secrets])
    shares = counts[counts > 0] / table.rows
    one_way, two_way = _share_errors(model, table)
    return ModelQuality(
        log_loss=float(losses.mean()),
        base=float(-(shares * np.log(shares)).sum()),
        one_way=one_way,
        two_way=two_way,
    )


def _share_errors(model: TreeModel, table: CodedTable) -> tuple[float, float]:
    m = len(model.attributes)
    columns = np.unique(np.linspace(0, m - 1, min(m, MOST_COLUMNS)).astype(int)).tolist()
    one, two = [], []
    for i in columns:
        for j, pair in _pair_shares(model, i, set(columns)):
            seen = table.count([i, j] if i != j else [i], by_secret=False) / table.rows
            if i == j:
                one.append(float(np.abs(seen - np.diag(pair)).mean()))
            elif i < j:
                two.append(float(np.abs(seen - pair).sum() / 2))
    return float(np.mean(one)), float(np.mean(two)) if two else 0.0


def _pair_shares(model: TreeModel, start: int, wanted: set[int]) -> Iterator[tuple[int, FloatArray]]:
    """p̃(x_start, x_j) of every column j, from neighbour to neighbour in the tree; the first is the diagonal."""
    shares = model.shares / UNIT
    tables = [table / UNIT for table in model.tables]
    single: dict[int, FloatArray] = {}  # p̃(x_j | s)
    for j in model.order:
        parent = model.parents[j]
        context = np.ones((len(shares), 1)) if parent is None else single[parent]
        single[j] = np.einsum("su,sux->sx", context, tables[j])
    neighbours: dict[int, list[tuple[int, FloatArray]]] = {j: [] for j in model.order}  # with p̃(x_neighbour | s, x)
    for j, parent in enumerate(model.parents):
        if parent is not None:
            both = single[parent][:, :, None] * tables[j]
            below = single[j][:, None, :]
            upwards = np.divide(both, below, out=np.zeros_like(both), where=below > 0).transpose(0, 2, 1)
            neighbours[parent].append((j, tables[j]))
            neighbours[j].append((parent, upwards))
    first = single[start][:, :, None] * np.eye(single[start].shape[1])
    reached, waiting = {start}, [(start, first)]
    for j, given in waiting:  # grows while it is walked
        if j in wanted:
            yield j, np.tensordot(shares, given, axes=1)
        for other, step in neighbours[j]:
            if other not in reached:
                reached.add(other)
                waiting.append((other, given @ step))
    for j in sorted(wanted - reached):
        yield j, np.einsum("s,su,sx->ux", shares, single[start], single[j])
