r"""Scan: the leakage of every column about the secret if it were published as it is, alone and with others.

Publishing X itself leaks, in the worst case,

.. math:: \varepsilon_{LIP} = \max_{s,x} \left|\ln \frac{p(x|s)}{p(x)}\right|, \qquad
   \varepsilon_{LDP} = \max_{s,s',x} \ln \frac{p(x|s)}{p(x|s')},

and on average :math:`I(S;X)`. A value x with :math:`p(s|x) = 1` for some s decides the secret of its rows. Columns of
which each says nothing can say everything together (S = A xor B), so those that keep a promise alone are judged in
pairs and all at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.atomic_files import atomic_file
from privacyfunnel.audits.column_groups import ColumnGroup, build_joint, judge_column_group, publication_leakage
from privacyfunnel.audits.matched_table import row_order_leakage
from privacyfunnel.audits.rare_secret_scan import RareSecretLeaks, rare_leaks
from privacyfunnel.errors import ColumnError
from privacyfunnel.formatting import MOST_ROWS, ShowsFacts, format_epsilon
from privacyfunnel.model.comparisons import log_ratio
from privacyfunnel.model.information import entropy, information
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.row_order_leak import OrderLeak
from privacyfunnel.names import validate_columns
from privacyfunnel.tables.coding.bin_syntax import parse_bins
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.contingency import Contingency
from privacyfunnel.tables.coding.domain_file import draft_domain
from privacyfunnel.tables.coding.exploration import (
    TABULATION_QUANTILES,
    ColumnTabulations,
    has_too_many_values,
    tabulate_columns,
    tabulate_groups,
)
from privacyfunnel.tables.coding.merges import Merge
from privacyfunnel.tables.readers.formats import AUTO_DETECT, Dialect, Table
from privacyfunnel.tables.readers.table_files import TableSource, open_source, resolve_source

APART = 0.5  # different values per row: above it, fewer than two rows share a value on average
MOST_TOGETHER = 16  # columns judged together: 120 pairs
MOST_COMBINATIONS = 1 << 22  # that may have to be counted at once: some 100 MB


@dataclass(frozen=True, slots=True)
class BinnedColumn:
    """The leakage of a column of numbers in bins that the scan chose."""

    quantiles: int
    values: int
    lip: float
    ldp: float
    information: float
    decided: float


@dataclass(frozen=True, slots=True)
class ColumnScan:
    """The leakage of one column about the secret, published alone as it is."""

    column: str
    values: int
    lip: float
    ldp: float
    information: float | None  # I(S;X) in nats; None where it was not measured
    value: str  # the value that says most …
    secret: str  # … and the secret it says it about; neither is told of a column that tells rows apart
    binned: bool = False  # in bins that were asked for
    note: str = ""  # why the column was not measured, if it was not
    distinct: float = 0.0  # different values per row
    alone: float | None = None  # the share of rows whose value no other row has; None where it was not measured
    decided: float | None = None  # the share of rows whose value occurs with one secret only
    tells_rows_apart: bool = False  # an id, or nearly one: fewer than two rows share a value on average
    in_bins: BinnedColumn | None = None  # of many numbers for which no bins were asked for


@dataclass(frozen=True, slots=True)
class JointScan:
    """The columns that keep a promise alone, judged together."""

    columns: tuple[str, ...]  # that keep it alone and were looked at together
    pairs: tuple[ColumnGroup, ...]  # the worst first
    whole: ColumnGroup | None  # all of `columns` at once
    not_looked_at: tuple[str, ...]  # a sentence each


@dataclass(frozen=True, slots=True, repr=False)
class Scan(ShowsFacts):
    """The leakage of every column but the secret ones, the largest first."""

    rows: int
    secret: tuple[str, ...]
    secrets: int
    secret_entropy: float
    looks: tuple[ColumnScan, ...]
    joints: Mapping[str, Joint] = field(repr=False)  # of the columns that could be counted, as they are
    joints_in_bins: Mapping[str, Joint] = field(default_factory=dict, repr=False)
    together: JointScan | None = None  # where a promise was asked about
    order: OrderLeak | None = None  # what the order of the rows says about the secret
    ids_in_order: tuple[str, ...] = ()  # columns that tell rows apart and are sorted as the table is
    rare: RareSecretLeaks | None = None  # where rare secrets make columns leak without bound
    secret_in_bins: tuple[str, ...] = ()  # secret columns of many numbers, which were cut into quantiles for the look

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("rows", f"{self.rows:,}"), ("secret", f"{' & '.join(self.secret)}, {self.secrets} values")]
        return facts + [
            (look.column, look.note or f"LIP ε = {format_epsilon(look.lip)}, {look.values:,} values")
            for look in self.looks[:MOST_ROWS]
        ]

    def safe(self, look: ColumnScan, promise: Promise) -> bool:
        """Whether the column keeps the promise as it is, against someone who sees it alone."""
        return _keeps(self.joints.get(look.column), promise)

    def safe_in_bins(self, look: ColumnScan, promise: Promise) -> bool:
        """Whether the column keeps the promise in the bins of the look, against someone who sees it alone."""
        return _keeps(self.joints_in_bins.get(look.column), promise)


def scan(
    source: Any,
    *,
    secret: str | Sequence[str],
    bins: Sequence[Bins | str] | Mapping[str, Any] = (),
    dialect: Dialect = AUTO_DETECT,
    promise: Promise | None = None,
    merges: Sequence[Merge] = (),
) -> Scan:
    """Look at every other column of a table, one at a time; then at those that keep `promise` alone, together.

    The table is a file, by its path, a `Query`, or a frame in memory. `bins` are as for `sanitise`, and so is `dialect`
    for how a file of text is written; `merges` are rules by which values are read as one.
    """
    table, bins = open_source(source, dialect), parse_bins(bins)
    secret = validate_columns((secret,) if isinstance(secret, str) else secret, table.columns, "secret")
    others = [column for column in table.columns if column not in secret]
    if not others:
        raise ColumnError(f"a scan needs columns besides the secret; {table.name} has none. Name fewer secret columns.")
    looked = tabulate_columns(table, secret=secret, columns=others, bins=bins, merges=merges)
    looks, joints, in_bins = [], {}, {}
    for column, seen in looked.items():
        exact, rough = build_joint(seen.exact), build_joint(seen.binned)
        if exact is not None:
            joints[column] = exact
        if rough is not None:
            in_bins[column] = rough
        looks.append(_scan_column(column, seen, exact, rough, any(at.column == column and _cuts(at) for at in bins)))
    looks.sort(key=lambda look: (-look.lip, -(look.information or 0), look.column))
    given = {binned.column for binned in bins}
    counts = _count_secrets(table, secret, bins, merges, looked)
    cut = tuple(coding.column for coding in counts.secret.codings if coding.edges and coding.column not in given)
    rows: IntArray = np.asarray(counts.weights.sum(axis=1))
    if len(rows) < 2:
        raise ColumnError(
            f"what is secret must have at least two values; {' & '.join(secret)} has one in all {rows.sum():,} rows. "
            "There is nothing to hide: name another column."
        )
    n = int(rows.sum())
    found = Scan(n, tuple(secret), len(rows), entropy(rows / n), tuple(looks), joints, in_bins, secret_in_bins=cut)
    apart = [look.column for look in looks if look.tells_rows_apart]
    tells, in_order = row_order_leakage(
        table, secret, [*bins, *(Bins(column, quantiles=TABULATION_QUANTILES) for column in cut)], apart
    )
    found = replace(found, order=tells, ids_in_order=in_order)
    if promise is None:
        return found
    mine = {look.column: joints[look.column] for look in looks if look.column in joints and not look.tells_rows_apart}
    rare = None
    if len(secret) == 1 and not counts.secret.codings[0].edges:
        rare = rare_leaks(counts.secret_labels, rows, mine, lambda joint: publication_leakage(joint, promise))
    return replace(found, together=_scan_groups(table, found, promise, bins, merges), rare=rare)


def _count_secrets(
    table: Table,
    secret: Sequence[str],
    bins: Sequence[Bins],
    merges: Sequence[Merge],
    looked: Mapping[str, ColumnTabulations],
) -> Contingency:
    """Counts whose rows are the secrets: of any column, or of none where none could be counted."""
    for counts in looked.values():
        for counted in (counts.exact, counts.binned):
            if counted is not None and counted.contingency is not None:
                return counted.contingency
    nothing = tabulate_groups(table, secret=secret, groups=[()], bins=bins, merges=merges)[()].contingency
    if nothing is None:
        raise ColumnError(f"{' & '.join(secret)} must have fewer values to be a secret. Group its values first.")
    return nothing


def _cuts(bins: Bins) -> bool:
    return bins.cuts or bins.how is not None


def _scan_column(
    column: str, looked: ColumnTabulations, exact: Joint | None, rough: Joint | None, binned: bool
) -> ColumnScan:
    distinct = looked.values / looked.rows
    apart = distinct > APART
    counted = looked.exact
    if exact is None:
        note = "cannot be counted: its entries are no text, numbers, dates or truth values"
        if looked.is_single_value:
            note = "one value is left when its rare ones are merged"
        elif has_too_many_values(looked):
            note = "too many values to count"
        found = ColumnScan(column, looked.values, math.inf, math.inf, None, "", "", note=note)
    else:
        found = measure_column(exact, column, binned)
    if apart:
        found = replace(found, value="", secret="")
    if counted is not None:
        found = replace(found, alone=counted.alone / counted.rows, decided=counted.decided / counted.rows)
    if rough is not None and looked.binned is not None:
        cut = measure_column(rough, column, binned=True)
        share = looked.binned.decided / looked.binned.rows
        found = replace(
            found,
            in_bins=BinnedColumn(TABULATION_QUANTILES, cut.values, cut.lip, cut.ldp, cut.information or 0.0, share),
        )
    return replace(found, distinct=distinct, tells_rows_apart=apart)


def _scan_groups(
    table: Table, found: Scan, promise: Promise, bins: Sequence[Bins], merges: Sequence[Merge]
) -> JointScan:
    # The least telling are the likeliest to be published: they come first where there are too many.
    alone = [look for look in reversed(found.looks) if found.safe(look, promise)]
    chosen = {look.column for look in alone[:MOST_TOGETHER]}
    columns = tuple(column for column in table.columns if column in chosen)
    not_looked_at = []
    if len(alone) > MOST_TOGETHER:
        rest = ", ".join(look.column for look in alone[MOST_TOGETHER:])
        not_looked_at.append(f"More than {MOST_TOGETHER} columns are not judged together; left out: {rest}.")
    sizes = {look.column: look.values for look in alone}
    groups = []
    for group in dict.fromkeys([*combinations(columns, 2), *([columns] if len(columns) > 1 else [])]):
        most = min(found.rows, found.secrets * math.prod(sizes[column] for column in group))
        if most <= MOST_COMBINATIONS:
            groups.append(group)
        else:
            not_looked_at.append(f"Too many combinations to count: {' & '.join(group)}.")
    judged = {}
    if groups:
        counted = tabulate_groups(table, secret=found.secret, groups=groups, bins=bins, merges=merges)
        judged = {group: judge_column_group(group, counts, promise) for group, counts in counted.items()}
    not_looked_at += [
        f"Too many combinations to measure ε: {' & '.join(group)}; how many rows they decide was counted."
        for group, joined in judged.items()
        if joined.epsilon is None
    ]
    whole = judged.get(columns)
    if len(columns) > 3 and not (whole and whole.keeps):  # had all kept it, so would any of them: they say less
        not_looked_at.append(f"Sets of 3 or more columns other than all {len(columns)}.")
    pairs = sorted(
        (joined for joined in judged.values() if len(joined.columns) == 2),
        key=lambda joined: (-(math.inf if joined.epsilon is None else joined.epsilon), -joined.decided),
    )
    return JointScan(columns, tuple(pairs), whole, tuple(not_looked_at))


def _keeps(joint: Joint | None, promise: Promise) -> bool:
    return joint is not None and publication_leakage(joint, promise) <= promise.epsilon


def measure_column(joint: Joint, column: str, binned: bool = False) -> ColumnScan:
    """What publishing x itself says about s.

    >>> look = measure_column(Joint.from_counts([[3, 1], [1, 3]]), "X")
    >>> round(look.lip, 4), round(look.ldp, 4)
    (0.6931, 1.0986)
    """
    p_x_given_s = joint.p_x_given_s
    against_all = log_ratio(p_x_given_s, np.broadcast_to(joint.p_x, p_x_given_s.shape))
    # Of several that leak most, tell of the pair whose absence or presence says it of most rows.
    worst = np.where(against_all == against_all.max(), joint.p_s[:, None] * joint.p_x, -1)
    s, x = np.unravel_index(int(worst.argmax()), worst.shape)
    against_each = log_ratio(p_x_given_s.max(axis=0), p_x_given_s.min(axis=0))
    return ColumnScan(
        column=column,
        values=joint.a,
        lip=float(against_all.max()),
        ldp=float(against_each.max()),
        information=information(joint.p_sx),
        value=joint.values[int(x)][0],
        secret=joint.secrets[int(s)],
        binned=binned,
    )


def write_domain(
    source: str | Path | TableSource,
    target: Path,
    found: Scan,
    bins: Sequence[Bins] = (),
    *,
    dialect: Dialect = AUTO_DETECT,
    force: bool = False,
) -> tuple[str, ...]:
    """Write the labels and bins of what was scanned; the columns that stay out, as their labels would quote persons."""
    table = resolve_source(source).open(dialect)
    described = {look.column for look in found.looks if not look.note and not look.tells_rows_apart}
    described |= {look.column for look in found.looks if look.in_bins is not None}
    columns = [column for column in table.columns if column in described or column in found.secret]
    listed = draft_domain(table, columns, bins)
    with atomic_file(target, force=force, owner_only=True) as beside:
        beside.write_text(listed.to_text(), encoding="utf-8")
    return tuple(column for column in table.columns if column not in listed.codings)
