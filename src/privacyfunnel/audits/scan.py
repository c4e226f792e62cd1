r"""Scan: what every column would say about the secret if it were published as it is.

Publishing X itself leaks, in the worst case,

.. math:: \varepsilon_{LIP} = \max_{s,x} \left|\ln \frac{p(x|s)}{p(x)}\right|, \qquad
   \varepsilon_{LDP} = \max_{s,s',x} \ln \frac{p(x|s)}{p(x|s')},

and on average :math:`I(S;X)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from privacyfunnel.arrays import IntArray, sparse
from privacyfunnel.errors import ColumnError
from privacyfunnel.model.comparisons import log_ratio
from privacyfunnel.model.information import entropy, information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.sparse import SparseProtocol
from privacyfunnel.tables.bins import Bins
from privacyfunnel.tables.encoding import Contingency
from privacyfunnel.tables.files import open_table
from privacyfunnel.tables.looking import look
from privacyfunnel.tables.names import checked_columns


@dataclass(frozen=True, slots=True)
class Look:
    """What one column would say about the secret."""

    column: str
    values: int
    lip: float
    ldp: float
    information: float | None  # I(S;X) in nats; None where it was not measured
    value: str  # the value that says most …
    secret: str  # … and the secret it says it about
    binned: bool = False
    note: str = ""  # why the column was not measured, if it was not


@dataclass(frozen=True, slots=True)
class Scan:
    """A look at every column but the secret ones, the most telling first."""

    rows: int
    secret: tuple[str, ...]
    secrets: int
    secret_entropy: float
    looks: tuple[Look, ...]
    joints: Mapping[str, Joint] = field(repr=False)  # of the columns that could be counted

    def safe(self, look: Look, promise: Promise) -> bool:
        """Whether the column keeps the promise as it is, if it is published alone."""
        joint = self.joints.get(look.column)
        if joint is None:
            return False
        as_it_is = SparseProtocol(sparse.csr_array(sparse.eye_array(joint.a)))
        return all(as_it_is.look(block)[0].epsilon <= promise.epsilon for block in promise.comparisons(joint, False))


def scan(
    path: str | Path,
    *,
    secret: Sequence[str],
    bins: Sequence[Bins] = (),
    delimiter: str | None = None,
    encoding: str | None = None,
) -> Scan:
    """Look at every other column of the table, one at a time."""
    table = open_table(path, delimiter=delimiter, encoding=encoding)
    secret = checked_columns(secret, table.columns, "secret")
    others = [column for column in table.columns if column not in secret]
    if not others:
        raise ColumnError(f"a scan needs columns besides the secret; {table.name} has none. Name fewer secret columns.")
    counted = look(table, secret=secret, columns=others, bins=bins)
    looks, joints = [], {}
    for column, counts in counted.items():
        if isinstance(counts, ColumnError):
            looks.append(Look(column, 0, math.inf, math.inf, None, "", "", note="too many values to count"))
            continue
        joints[column] = Joint.from_contingency(counts)
        looks.append(measured(joints[column], column, binned=bool(counts.published.codings[0].edges)))
    looks.sort(key=lambda look: (-look.lip, -(look.information or 0), look.column))
    rows = _secrets(counted)
    if len(rows) < 2:
        raise ColumnError(
            f"what is secret must have at least two values; {' & '.join(secret)} has one in all {rows.sum():,} rows. "
            "There is nothing to hide: name another column."
        )
    return Scan(int(rows.sum()), tuple(secret), len(rows), entropy(rows / rows.sum()), tuple(looks), joints)


def _secrets(counted: Mapping[str, Contingency | ColumnError]) -> IntArray:
    """How often each secret occurs; raises where no column could be counted."""
    for counts in counted.values():
        if not isinstance(counts, ColumnError):
            return np.asarray(counts.weights.sum(axis=1))
    raise next(counts for counts in counted.values() if isinstance(counts, ColumnError))


def measured(joint: Joint, column: str, binned: bool = False) -> Look:
    """What publishing x itself says about s.

    >>> look = measured(Joint.from_counts([[3, 1], [1, 3]]), "X")
    >>> round(look.lip, 4), round(look.ldp, 4)
    (0.6931, 1.0986)
    """
    p_x_given_s = joint.p_x_given_s
    against_all = log_ratio(p_x_given_s, np.broadcast_to(joint.p_x, p_x_given_s.shape))
    # Of several that leak most, tell of the pair whose absence or presence says it of most rows.
    worst = np.where(against_all == against_all.max(), joint.p_s[:, None] * joint.p_x, -1)
    s, x = np.unravel_index(int(worst.argmax()), worst.shape)
    against_each = log_ratio(p_x_given_s.max(axis=0), p_x_given_s.min(axis=0))
    return Look(
        column=column,
        values=joint.a,
        lip=float(against_all.max()),
        ldp=float(against_each.max()),
        information=information(joint.p_sx),
        value=joint.values[int(x)][0],
        secret=joint.secrets[int(s)],
        binned=binned,
    )
