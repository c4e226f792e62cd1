r"""Scan: what every column would say about the secret if it were published as it is.

Publishing X itself leaks, in the worst case,

.. math:: \varepsilon_{LIP} = \max_{s,x} \left|\ln \frac{p(x|s)}{p(x)}\right|, \qquad
   \varepsilon_{LDP} = \max_{s,s',x} \ln \frac{p(x|s)}{p(x|s')},

and on average :math:`I(S;X)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privacyfunnel.errors import ColumnError, InputError, SizeError
from privacyfunnel.information import entropy, information
from privacyfunnel.joint import Joint
from privacyfunnel.promises import LDP, Promise, log_ratio
from privacyfunnel.tables.bins import Bins
from privacyfunnel.tables.encoding import Encoding, encode
from privacyfunnel.tables.files import Table, open_table
from privacyfunnel.tables.names import checked_columns

QUANTILES = 8  # numbers are cut into so many bins for the look


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

    def safe(self, promise: Promise) -> bool:
        """Whether the column keeps the promise as it is. For one column that is published alone, SRLIP is LIP."""
        return (self.ldp if isinstance(promise, LDP) else self.lip) <= promise.epsilon


@dataclass(frozen=True, slots=True)
class Scan:
    """A look at every column but the secret ones, the most telling first."""

    rows: int
    secret: tuple[str, ...]
    secrets: int
    secret_entropy: float
    looks: tuple[Look, ...]


def scan(
    path: str | Path,
    *,
    secret: Sequence[str],
    bins: Sequence[Bins] = (),
    delimiter: str | None = None,
    encoding: str | None = None,
    watch: Callable[[str, int], None] | None = None,
) -> Scan:
    """Look at every other column of the table, one at a time."""
    table = open_table(path, delimiter=delimiter, encoding=encoding)
    secret = checked_columns(secret, table.columns, "secret")
    checked_columns([b.column for b in bins], table.columns, "binned")
    others = [column for column in table.columns if column not in secret]
    if not others:
        raise ColumnError(f"a scan needs columns besides the secret; {table.name} has none. Name fewer secret columns.")
    for_secret = [b for b in bins if b.column in secret]
    alone = encode(table, secret=secret, publish=[], bins=for_secret)
    weights = alone.contingency.weights.sum(axis=1)
    if len(weights) < 2:
        raise ColumnError(
            f"what is secret must have at least two values; {' & '.join(secret)} has one in all {alone.rows} rows. "
            "There is nothing to hide: name another column."
        )
    looks = []
    for column in others:
        if watch:
            watch(f"looking at {column},", alone.rows)
        looks.append(_look(table, secret, column, [b for b in bins if b.column in (*secret, column)]))
    looks.sort(key=lambda look: (-look.lip, -(look.information or 0), look.column))
    return Scan(alone.rows, tuple(secret), len(weights), entropy(weights / weights.sum()), tuple(looks))


def _look(table: Table, secret: Sequence[str], column: str, bins: Sequence[Bins]) -> Look:
    def encoded(*more: Bins) -> Encoding:
        return encode(table, secret=secret, publish=[column], bins=[*bins, *more])

    binned = any(b.column == column for b in bins)
    try:
        try:
            encoding = encoded()
        except (ColumnError, SizeError):  # too many values, perhaps because they are numbers
            if binned:
                raise
            encoding, binned = encoded(Bins(column, quantiles=QUANTILES)), True
    except InputError:
        return Look(column, 0, math.inf, math.inf, None, "", "", note="too many values, or no plain column")
    return measured(Joint.from_contingency(encoding.contingency), column, binned)


def measured(joint: Joint, column: str, binned: bool = False) -> Look:
    """What publishing x itself says about s.

    >>> look = measured(Joint.from_counts([[3, 1], [1, 3]]), "X")
    >>> round(look.lip, 4), round(look.ldp, 4)
    (0.6931, 1.0986)
    """
    p_x_given_s = joint.p_x_given_s
    against_all = log_ratio(p_x_given_s, np.broadcast_to(joint.p_x, p_x_given_s.shape))
    s, x = np.unravel_index(int(against_all.argmax()), against_all.shape)
    # Of several infinite ones, tell of the pair that most rows are in.
    if math.isinf(against_all[s, x]):
        s, x = np.unravel_index(
            int(np.where(np.isinf(against_all), joint.p_s[:, None] * joint.p_x, -1).argmax()), (joint.c, joint.a)
        )
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
