"""Column groups: the leakage of several columns published together, as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from privacyfunnel.arrays import sparse
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.sparse_protocol import SparseProtocol
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.exploration import CrossTabulation, tabulate_groups
from privacyfunnel.tables.coding.merges import Merge
from privacyfunnel.tables.readers.formats import Table

MOST_KNOWN = 8  # columns of which someone may know any subset: 256 subsets


@dataclass(frozen=True, slots=True)
class ColumnGroup:
    """The leakage of several columns about the secret, published together as they are."""

    columns: tuple[str, ...]
    combinations: int
    epsilon: float | None  # under the promise that was asked about; None where it was not measured
    keeps: bool  # the promise
    alone: float  # the share of rows whose combination no other row has
    decided: float  # the share of rows whose combination occurs with one secret only


def measure_column_group(
    table: Table,
    *,
    secret: Sequence[str],
    columns: Sequence[str],
    promise: Promise,
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
) -> ColumnGroup:
    """Count these columns together, and judge them by the promise."""
    group = tuple(columns)
    counted = tabulate_groups(table, secret=secret, groups=[group], bins=bins, merges=merges)[group]
    return judge_column_group(group, counted, promise)


def judge_column_group(columns: tuple[str, ...], counted: CrossTabulation, promise: Promise) -> ColumnGroup:
    """The columns as they were counted, judged by the promise."""
    joint = build_joint(counted)
    epsilon = None
    if joint is not None and (len(columns) <= MOST_KNOWN or not promise.guards_known_attributes):
        epsilon = publication_leakage(joint, promise)
    keeps = epsilon is not None and epsilon <= promise.epsilon
    alone, decided = counted.alone / counted.rows, counted.decided / counted.rows
    return ColumnGroup(columns, counted.values, epsilon, keeps, alone, decided)


def build_joint(counted: CrossTabulation | None) -> Joint | None:
    """p(s, x) of what was counted; None where that was too large."""
    if counted is None or counted.contingency is None:
        return None
    return Joint.from_contingency(counted.contingency)


def publication_leakage(joint: Joint, promise: Promise) -> float:
    """What publishing x itself leaks under the promise."""
    as_it_is = SparseProtocol(sparse.csr_array(sparse.eye_array(joint.a)))
    worst = 0.0
    for block in promise.comparisons(joint, False):
        worst = max(worst, as_it_is.measure(block)[0].epsilon)
        if math.isinf(worst):
            break
    return worst
