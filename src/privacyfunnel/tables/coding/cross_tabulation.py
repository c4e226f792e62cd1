"""A first look at columns of a table: each counted with the secret as it would be published, alone or together."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from privacyfunnel.arrays import freeze
from privacyfunnel.errors import ColumnError, MergedAwayError
from privacyfunnel.names import validate_columns
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.cell_counts import CellCounter
from privacyfunnel.tables.coding.code_cache import Codes
from privacyfunnel.tables.coding.coders import MOST_LABELS, MOST_NUMBERS, Coder, as_numbers, as_text, parse_plain_number
from privacyfunnel.tables.coding.contingency import Contingency, count_variable
from privacyfunnel.tables.coding.encoding import column_coders
from privacyfunnel.tables.coding.merges import Merge, rules_by_column
from privacyfunnel.tables.coding.normalisation import normalise_bins
from privacyfunnel.tables.readers.table_files import Table

TABULATION_QUANTILES = 8  # bins of a number that is only looked at
MOST_TABULATION_CELLS = 1 << 22  # of one table of counts: 32 MB, and a few times that while it is measured


@dataclass(frozen=True, slots=True, eq=False)
class CrossTabulation:
    """Columns counted with the secret."""

    rows: int
    values: int  # different values, or combinations of several columns' values
    decided: int  # rows whose value occurs with one secret only: it gives the secret away
    alone: int  # rows whose value no other row has
    contingency: Contingency | None  # n(s, x); None where it is too large to be measured


@dataclass(frozen=True, slots=True, eq=False)
class ColumnTabulations:
    """A column as it stands (or in the bins that were asked for) and, if it is many numbers, in eight quantiles too."""

    rows: int  # that were read; all of them, unless the values became too many
    values: int  # different ones among these rows
    exact: CrossTabulation | None  # None where the values became too many, or are of no kind that can be counted
    binned: CrossTabulation | None
    is_single_value: bool = False  # whether one value would be left of it after merging


def tabulate_columns(
    table: Table,
    *,
    secret: Sequence[str],
    columns: Sequence[str],
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
) -> dict[str, ColumnTabulations]:
    """Each column x on its own.

    A number for which no bins are given is counted by its exact values, and once more in eight quantiles. The table is
    read three times: to see which columns are numbers, for their quantiles, and to count.
    """
    secret = validate_columns(secret, table.columns, "secret")
    columns = validate_columns(columns, table.columns, "published")
    given = {binned.column for binned in bins}
    numeric = numeric_columns(table, [column for column in columns if column not in given])
    rough_bins = [Bins(column, quantiles=TABULATION_QUANTILES) for column in numeric]
    table = normalise_bins(table, rough_bins)
    table, coders = _coders(table, secret, columns, [*bins, *map(Bins, numeric)])
    cut = {coder.column: coder for coder in column_coders(table, numeric, rough_bins)}
    exact, rough = ({column: CellCounter(len(secret) + 1) for column in some} for some in (columns, numeric))
    rows = dict.fromkeys(columns, 0)
    for batch in table.batches(list(coders)):
        secrets, sizes = _secret_codes(coders, secret, batch)
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
    rules = rules_by_column(merges, secret, columns)
    found = {}
    for column in columns:
        as_it_is = in_bins = None
        one_left = False
        try:
            as_it_is = _cross_tabulate(keepers, [coders[column]], exact[column], rules) if column in exact else None
            in_bins = _cross_tabulate(keepers, [cut[column]], rough[column], rules) if column in rough else None
        except MergedAwayError:  # a look at the other columns is no less of use
            one_left = True
        values = coders[column].size - 1 if as_it_is is None else as_it_is.values
        found[column] = ColumnTabulations(rows[column], values, as_it_is, in_bins, one_left)
    return found


def tabulate_groups(
    table: Table,
    *,
    secret: Sequence[str],
    groups: Iterable[tuple[str, ...]],
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
) -> dict[tuple[str, ...], CrossTabulation]:
    """Each group of columns as one value, numbers without bins by their exact values; from one reading."""
    tallies = {group: CellCounter(len(secret) + len(group)) for group in groups}
    columns = list(dict.fromkeys(column for group in tallies for column in group))
    given = {binned.column for binned in bins}
    kept = [binned for binned in bins if binned.column in {*secret, *columns}]
    table, coders = _coders(
        table, secret, columns, [*kept, *(Bins(column) for column in columns if column not in given)]
    )
    for batch in table.batches(list(coders)):
        secrets, sizes = _secret_codes(coders, secret, batch)
        codes = {column: coders[column].codes(batch[column]) for column in columns}
        for group, tally in tallies.items():
            shown = [codes[column] for column in group]
            tally.add([*secrets, *shown], [*sizes, *(coders[column].size for column in group)], batch.height)
    keepers = [coders[column] for column in secret]
    mine = [rule for rule in merges if rule.column is None or rule.column in columns]
    rules = rules_by_column(mine, secret, columns)
    return {
        group: _cross_tabulate(keepers, [coders[at] for at in group], tally, rules) for group, tally in tallies.items()
    }


def numeric_columns(table: Table, columns: Sequence[str]) -> list[str]:
    """Those columns that hold nothing but numbers and gaps, and more different ones than could be categories."""
    seen: dict[str, set[str]] = {column: set() for column in columns}
    for batch in table.batches(columns) if columns else ():
        for column in list(seen):
            entries, _ = table.numbers.normalise(batch[column])
            if not _is_number_like(entries) or as_numbers(entries)[1]:
                del seen[column]
            elif len(seen[column]) <= MOST_NUMBERS:
                labels = as_text(entries).drop_nulls().unique().to_list()
                seen[column].update(label for label in labels if label)
    return [
        column
        for column, labels in seen.items()
        if len(labels) > MOST_NUMBERS and all(parse_plain_number(label) is not None for label in labels)
    ]


def has_too_many_values(looked: ColumnTabulations) -> bool:
    """Whether the column has more values than are counted."""
    return looked.values >= MOST_LABELS or (looked.exact is not None and looked.exact.contingency is None)


def _coders(
    table: Table, secret: Sequence[str], columns: Sequence[str], bins: Sequence[Bins]
) -> tuple[Table, dict[str, Coder]]:
    """The table prepared, and a coder per column; a secret of many numbers without bins is cut into quantiles, for it
    is not published."""
    given = {binned.column for binned in bins}
    numeric = numeric_columns(table, [column for column in secret if column not in given])
    bins = [*bins, *(Bins(column, quantiles=TABULATION_QUANTILES) for column in numeric)]
    table = normalise_bins(table, bins)
    return table, {coder.column: coder for coder in column_coders(table, (*secret, *columns), bins)}


def _secret_codes(
    coders: Mapping[str, Coder], secret: Sequence[str], batch: pl.DataFrame
) -> tuple[list[Codes], list[int]]:
    codes = [coders[column].codes(batch[column]) for column in secret]
    return codes, [coders[column].size for column in secret]


def _cross_tabulate(
    keepers: Sequence[Coder], coders: Sequence[Coder], tally: CellCounter, rules: Mapping[str, Merge]
) -> CrossTabulation:
    cells, counts = tally.cells()
    hidden, _, s, _ = count_variable(keepers, cells[:, : len(keepers)], counts, None, rules)
    shown, _, x, _ = count_variable(coders, cells[:, len(keepers) :], counts, None, rules)
    c, k = len(hidden.combos), len(shown.combos)
    of_x = np.bincount(x, weights=counts, minlength=k)
    secrets_of_x = np.bincount(np.unique(s * k + x) % k, minlength=k)
    contingency = None
    if math.prod((c, k)) <= MOST_TABULATION_CELLS:
        weights = np.zeros((c, k), dtype=np.int64)
        np.add.at(weights, (s, x), counts)
        contingency = Contingency(freeze(weights), hidden, shown)
    return CrossTabulation(
        rows=int(counts.sum()),
        values=k,
        decided=int(of_x[secrets_of_x == 1].sum()),
        alone=int((of_x == 1).sum()),
        contingency=contingency,
    )


def _is_number_like(entries: pl.Series) -> bool:
    return entries.dtype in {pl.String, pl.Null} or entries.dtype.is_numeric()
