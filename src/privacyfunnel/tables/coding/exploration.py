"""Exploration of a table: profiles of its columns, and cross tabulations with the secret."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from privacyfunnel.arrays import IntArray, freeze
from privacyfunnel.errors import ColumnError, MergedAwayError
from privacyfunnel.names import validate_columns
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.coders import (
    MOST_LABELS,
    MOST_NUMBERS,
    Coder,
    Codes,
    as_numbers,
    as_text,
    parse_plain_number,
)
from privacyfunnel.tables.coding.contingency import CellCounter, Contingency, count_variable
from privacyfunnel.tables.coding.encoding import column_coders
from privacyfunnel.tables.coding.merges import Merge, rules_by_column
from privacyfunnel.tables.coding.normalisation import normalise_bins
from privacyfunnel.tables.readers.formats import Table

MOST_COUNTED = 20_000  # different values of a column that are told apart; more are said to be more
SHOWN = 4  # of the commonest values
BARS = 48  # of the picture of a column of numbers
FEW = 2  # rows: a value of fewer is that of one person, and is not shown as an example
NUMBERS, DATES, TEXT = "numbers", "dates", "text"
_DATED = r"^\s*(?:\d{4}-\d{2}-\d{2}|\d{1,2}\.\d{1,2}\.\d{4})"  # as dates are written in files
_CODE = r"^\s*(?:\d{5,}|0\d+)\s*$"  # digits that name something, such as a postcode: of one length, or with 0 in front


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many rows hold a number in each of equally wide bars from `low` to `high`."""

    low: float
    high: float
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """One column. The owner's own: it has values and counts."""

    column: str
    kind: str
    missing: int
    distinct: int  # different values; at least so many where they are `more`
    more: bool
    common: tuple[tuple[str, int], ...]  # the commonest values and their rows; none that one row has
    rare: int = 0  # values that fewer than ten rows hold, where all were counted
    bars: Histogram | None = None  # of numbers


RARE = 10  # rows


def profile_columns(table: Table) -> tuple[int, tuple[ColumnProfile, ...]]:
    """The number of rows, and every column at a glance; read twice where there are numbers."""
    columns = list(table.columns)
    counts: dict[str, pl.DataFrame | None] = {}
    missing, strangers = dict.fromkeys(columns, 0), dict.fromkeys(columns, 0)
    ends: dict[str, tuple[float, float]] = {}
    dated, coded = dict.fromkeys(columns, True), dict.fromkeys(columns, True)
    widths: dict[str, set[int]] = {column: set() for column in columns}
    rows = 0
    for batch in table.batches(columns):
        rows += batch.height
        for column in columns:
            text = as_text(batch[column])
            gaps = int((text.is_null() | (text.fill_null("").str.strip_chars() == "")).sum())
            missing[column] += gaps
            if not strangers[column]:
                plain, strange = table.numbers.normalise(batch[column])
                strangers[column] += 0 if strange is None else int(strange.sum())
                numbers, _ = as_numbers(plain)
                finite = numbers.filter(numbers.is_finite().fill_null(False)).to_numpy()
                if finite.size:
                    low, high = ends.get(column, (np.inf, -np.inf))
                    ends[column] = float(finite.min(initial=low)), float(finite.max(initial=high))
            if dated[column]:
                dated[column] = int(text.str.contains(_DATED).fill_null(False).sum()) == batch.height - gaps
            if coded[column]:
                widths[column] |= {*text.drop_nulls().str.strip_chars().str.len_chars().unique().to_list()} - {0}
                alike = int(text.str.contains(_CODE).fill_null(False).sum()) == batch.height - gaps
                coded[column] = alike and len(widths[column]) == 1
            counts[column] = _count_values(counts.get(column), text, begun=column in counts)
    found = []
    for column in columns:
        kind = TEXT
        if not strangers[column] and column in ends and not coded[column]:
            kind = NUMBERS
        elif dated[column] and missing[column] < rows:
            kind = DATES
        found.append(_make_profile(column, kind, missing[column], counts[column]))
    return rows, _add_histograms(table, found, ends)


def _count_values(so_far: pl.DataFrame | None, text: pl.Series, *, begun: bool) -> pl.DataFrame | None:
    """Values and their rows; None once they are too many."""
    if begun and so_far is None:
        return None
    mine = pl.DataFrame({"value": text}).drop_nulls().group_by("value").agg(pl.len().cast(pl.Int64).alias("rows"))
    if so_far is not None:
        mine = pl.concat([so_far, mine]).group_by("value").agg(pl.col("rows").sum())
    return mine if mine.height <= MOST_COUNTED else None


def _make_profile(column: str, kind: str, missing: int, counts: pl.DataFrame | None) -> ColumnProfile:
    if counts is None:
        return ColumnProfile(column, kind, missing, MOST_COUNTED, True, ())
    counts = counts.filter(pl.col("value").str.strip_chars() != "")
    top = counts.filter(pl.col("rows") >= FEW).sort(["rows", "value"], descending=[True, False]).head(SHOWN)
    rare = int((counts["rows"] < RARE).sum())
    return ColumnProfile(column, kind, missing, counts.height, False, tuple(top.iter_rows()), rare)


def _add_histograms(
    table: Table, found: list[ColumnProfile], ends: dict[str, tuple[float, float]]
) -> tuple[ColumnProfile, ...]:
    numeric = [at.column for at in found if at.kind == NUMBERS]
    if not numeric:
        return tuple(found)
    held: dict[str, IntArray] = {column: np.zeros(BARS, dtype=np.int64) for column in numeric}
    for batch in table.batches(numeric):
        for column in numeric:
            numbers = as_numbers(table.numbers.normalise(batch[column])[0])[0].drop_nulls().to_numpy()
            held[column] += np.histogram(numbers[np.isfinite(numbers)], bins=BARS, range=ends[column])[0]
    return tuple(
        replace(at, bars=Histogram(*ends[at.column], tuple(held[at.column].tolist()))) if at.column in held else at
        for at in found
    )


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
