"""A first look at columns of a table: each counted with the secret as it would be published, alone or together."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from privacyfunnel.arrays import frozen
from privacyfunnel.errors import ColumnError, MergedAwayError
from privacyfunnel.tables.bins import Bins
from privacyfunnel.tables.columns import MOST_LABELS, MOST_NUMBERS, Coder, as_numbers, as_plain_number, as_text
from privacyfunnel.tables.encoding import column_coders
from privacyfunnel.tables.files import Table
from privacyfunnel.tables.merging import Merge, by_column
from privacyfunnel.tables.names import checked_columns
from privacyfunnel.tables.prepared import prepared
from privacyfunnel.tables.recalling import Codes
from privacyfunnel.tables.tally import Tally
from privacyfunnel.tables.variables import Contingency, counted_variable

LOOK_QUANTILES = 8  # bins of a number that is only looked at
LOOK_CELLS = 1 << 22  # of one table of counts: 32 MB, and a few times that while it is measured


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Columns counted with the secret."""

    rows: int
    values: int  # different values, or combinations of several columns' values
    decided: int  # rows whose value occurs with one secret only: it gives the secret away
    alone: int  # rows whose value no other row has
    contingency: Contingency | None  # n(s, x); None where it is too large to be measured


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """A column as it stands (or in the bins that were asked for) and, if it is many numbers, in eight quantiles too."""

    rows: int  # that were read; all of them, unless the values became too many
    values: int  # different ones among these rows
    as_it_is: Counted | None  # None where the values became too many, or are of no kind that can be counted
    in_bins: Counted | None
    one_left: bool = False  # whether one value would be left of it after merging


def look(
    table: Table,
    *,
    secret: Sequence[str],
    columns: Sequence[str],
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
) -> dict[str, Looked]:
    """Each column x on its own.

    A number for which no bins are given is counted by its exact values, and once more in eight quantiles. The table is
    read three times: to see which columns are numbers, for their quantiles, and to count.
    """
    secret = checked_columns(secret, table.columns, "secret")
    columns = checked_columns(columns, table.columns, "published")
    given = {binned.column for binned in bins}
    numeric = many_numbers(table, [column for column in columns if column not in given])
    rough_bins = [Bins(column, quantiles=LOOK_QUANTILES) for column in numeric]
    table = prepared(table, rough_bins)
    table, coders = _coders(table, secret, columns, [*bins, *map(Bins, numeric)])
    cut = {coder.column: coder for coder in column_coders(table, numeric, rough_bins)}
    exact, rough = ({column: Tally(len(secret) + 1) for column in some} for some in (columns, numeric))
    rows = dict.fromkeys(columns, 0)
    for batch in table.batches(list(coders)):
        secrets, sizes = _codes(coders, secret, batch)
        for column in numeric:
            codes = [*secrets, cut[column].codes(batch[column])]
            rough[column].add(codes, [*sizes, cut[column].size], batch.height)
        for column in list(exact):
            rows[column] += batch.height
            try:
                codes = [*secrets, coders[column].codes(batch[column])]
            except ColumnError:
                del exact[column]
                continue
            exact[column].add(codes, [*sizes, coders[column].size], batch.height)
    keepers = [coders[column] for column in secret]
    rules = by_column(merges, secret, columns)
    found = {}
    for column in columns:
        as_it_is = in_bins = None
        one_left = False
        try:
            as_it_is = _counted(keepers, [coders[column]], exact[column], rules) if column in exact else None
            in_bins = _counted(keepers, [cut[column]], rough[column], rules) if column in rough else None
        except MergedAwayError:  # a look at the other columns is no less of use
            one_left = True
        values = coders[column].size - 1 if as_it_is is None else as_it_is.values
        found[column] = Looked(rows[column], values, as_it_is, in_bins, one_left)
    return found


def look_together(
    table: Table,
    *,
    secret: Sequence[str],
    groups: Iterable[tuple[str, ...]],
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
) -> dict[tuple[str, ...], Counted]:
    """Each group of columns as one value, numbers without bins by their exact values; from one reading."""
    tallies = {group: Tally(len(secret) + len(group)) for group in groups}
    columns = list(dict.fromkeys(column for group in tallies for column in group))
    given = {binned.column for binned in bins}
    kept = [binned for binned in bins if binned.column in {*secret, *columns}]
    table, coders = _coders(
        table, secret, columns, [*kept, *(Bins(column) for column in columns if column not in given)]
    )
    for batch in table.batches(list(coders)):
        secrets, sizes = _codes(coders, secret, batch)
        codes = {column: coders[column].codes(batch[column]) for column in columns}
        for group, tally in tallies.items():
            shown = [codes[column] for column in group]
            tally.add([*secrets, *shown], [*sizes, *(coders[column].size for column in group)], batch.height)
    keepers = [coders[column] for column in secret]
    mine = [rule for rule in merges if rule.column is None or rule.column in columns]
    rules = by_column(mine, secret, columns)
    return {group: _counted(keepers, [coders[at] for at in group], tally, rules) for group, tally in tallies.items()}


def many_numbers(table: Table, columns: Sequence[str]) -> list[str]:
    """Those columns that hold nothing but numbers and gaps, and more different ones than could be categories."""
    seen: dict[str, set[str]] = {column: set() for column in columns}
    for batch in table.batches(columns) if columns else ():
        for column in list(seen):
            entries, _ = table.numbers.plain(batch[column])
            if not _number_like(entries) or as_numbers(entries)[1]:
                del seen[column]
            elif len(seen[column]) <= MOST_NUMBERS:
                labels = as_text(entries).drop_nulls().unique().to_list()
                seen[column].update(label for label in labels if label)
    return [
        column
        for column, labels in seen.items()
        if len(labels) > MOST_NUMBERS and all(as_plain_number(label) is not None for label in labels)
    ]


def too_many(looked: Looked) -> bool:
    """Whether the column has more values than are counted."""
    return looked.values >= MOST_LABELS or (looked.as_it_is is not None and looked.as_it_is.contingency is None)


def _coders(
    table: Table, secret: Sequence[str], columns: Sequence[str], bins: Sequence[Bins]
) -> tuple[Table, dict[str, Coder]]:
    """The table prepared, and a coder per column; a secret of many numbers without bins is cut into quantiles, for it
    is not published."""
    given = {binned.column for binned in bins}
    numeric = many_numbers(table, [column for column in secret if column not in given])
    bins = [*bins, *(Bins(column, quantiles=LOOK_QUANTILES) for column in numeric)]
    table = prepared(table, bins)
    return table, {coder.column: coder for coder in column_coders(table, (*secret, *columns), bins)}


def _codes(coders: Mapping[str, Coder], secret: Sequence[str], batch: pl.DataFrame) -> tuple[list[Codes], list[int]]:
    codes = [coders[column].codes(batch[column]) for column in secret]
    return codes, [coders[column].size for column in secret]


def _counted(keepers: Sequence[Coder], coders: Sequence[Coder], tally: Tally, rules: Mapping[str, Merge]) -> Counted:
    cells, counts = tally.cells()
    hidden, _, s, _ = counted_variable(keepers, cells[:, : len(keepers)], counts, None, rules)
    shown, _, x, _ = counted_variable(coders, cells[:, len(keepers) :], counts, None, rules)
    c, k = len(hidden.combos), len(shown.combos)
    of_x = np.bincount(x, weights=counts, minlength=k)
    secrets_of_x = np.bincount(np.unique(s * k + x) % k, minlength=k)
    contingency = None
    if math.prod((c, k)) <= LOOK_CELLS:
        weights = np.zeros((c, k), dtype=np.int64)
        np.add.at(weights, (s, x), counts)
        contingency = Contingency(frozen(weights), hidden, shown)
    return Counted(
        rows=int(counts.sum()),
        values=k,
        decided=int(of_x[secrets_of_x == 1].sum()),
        alone=int((of_x == 1).sum()),
        contingency=contingency,
    )


def _number_like(entries: pl.Series) -> bool:
    return entries.dtype in {pl.String, pl.Null} or entries.dtype.is_numeric()
