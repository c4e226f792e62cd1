"""Columns in one row: what several would say about the secret if they were published together, as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from privacyfunnel.arrays import sparse
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.sparse import SparseProtocol
from privacyfunnel.tables.bins import Bins
from privacyfunnel.tables.files import Table
from privacyfunnel.tables.looking import Counted, look_together
from privacyfunnel.tables.merging import Merge

MOST_KNOWN = 8  # columns of which someone may know any subset: 256 subsets


@dataclass(frozen=True, slots=True)
class Joined:
    """What several columns would say about the secret if they were published together, as they are."""

    columns: tuple[str, ...]
    combinations: int
    epsilon: float | None  # under the promise that was asked about; None where it was not measured
    keeps: bool  # the promise
    alone: float  # the share of rows whose combination no other row has
    decided: float  # the share of rows whose combination occurs with one secret only


def joined_columns(
    table: Table,
    *,
    secret: Sequence[str],
    columns: Sequence[str],
    promise: Promise,
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
) -> Joined:
    """Count these columns together, and judge them by the promise."""
    group = tuple(columns)
    counted = look_together(table, secret=secret, groups=[group], bins=bins, merges=merges)[group]
    return judged_together(group, counted, promise)


def judged_together(columns: tuple[str, ...], counted: Counted, promise: Promise) -> Joined:
    """The columns as they were counted, judged by the promise."""
    joint = joint_of(counted)
    epsilon = None
    if joint is not None and (len(columns) <= MOST_KNOWN or not promise.guards_known_attributes):
        epsilon = leak_of(joint, promise)
    keeps = epsilon is not None and epsilon <= promise.epsilon
    alone, decided = counted.alone / counted.rows, counted.decided / counted.rows
    return Joined(columns, counted.values, epsilon, keeps, alone, decided)


def joint_of(counted: Counted | None) -> Joint | None:
    """p(s, x) of what was counted; None where that was too large."""
    if counted is None or counted.contingency is None:
        return None
    return Joint.from_contingency(counted.contingency)


def leak_of(joint: Joint, promise: Promise) -> float:
    """What publishing x itself leaks under the promise."""
    as_it_is = SparseProtocol(sparse.csr_array(sparse.eye_array(joint.a)))
    worst = 0.0
    for block in promise.comparisons(joint, False):
        worst = max(worst, as_it_is.look(block)[0].epsilon)
        if math.isinf(worst):
            break
    return worst
