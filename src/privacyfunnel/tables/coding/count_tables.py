"""Tables of counts: a row per combination of values, and a column that says how many rows of people it stands for.

Whoever has n(s, x) from elsewhere, a database or a cluster, needs no rows to design a protocol.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ColumnError, ParameterError, TableError
from privacyfunnel.names import validate_columns
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.cell_counts import CellCounter
from privacyfunnel.tables.coding.coders import as_numbers
from privacyfunnel.tables.coding.contingency import Contingency
from privacyfunnel.tables.coding.encoding import build_contingency, column_coders
from privacyfunnel.tables.coding.merges import Merge, rules_by_column
from privacyfunnel.tables.coding.normalisation import normalise_bins
from privacyfunnel.tables.readers.table_files import Table

MOST_ROWS = 2**53  # up to which every whole number is a float


def contingency_from_counts(
    table: Table,
    counts: str,
    *,
    secret: Sequence[str],
    publish: Sequence[str],
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
) -> Contingency:
    """n(s, x) of a table of counts, those of one combination added up."""
    secret = validate_columns(secret, table.columns, "secret")
    publish = validate_columns(publish, table.columns, "published")
    validate_columns([counts], table.columns, "counted")
    twice = [name for name in (*secret, counts) if name in publish or (name == counts and name in secret)]
    if twice:
        raise ColumnError(f"column '{twice[0]}' cannot be two of secret, published and counts. Name it once.")
    by_rows = [binned.column for binned in bins if binned.quantiles is not None]
    if by_rows:
        raise ParameterError(
            f"quantiles of '{by_rows[0]}' are found from rows; this is a table of counts. Give edges, such as "
            f"--bin {by_rows[0]}=0,10,20."
        )
    table = normalise_bins(table, bins)
    coders = column_coders(table, (*secret, *publish), bins)
    tally, total = CellCounter(len(coders)), 0
    for batch in table.batches([*secret, *publish, counts]):
        mine = _parse_counts(batch[counts], table.name)
        tally.add_counts([coder.codes(batch[coder.column]) for coder in coders], mine)
        total += int(mine.sum())
    if not 0 < total < MOST_ROWS:
        raise TableError(f"{table.name} must count between 1 and 2^53 rows; it counts {total:,}. Mend it.")
    return build_contingency(coders, len(secret), tally, merges=rules_by_column(merges, secret, publish))[0]


def _parse_counts(entries: pl.Series, table: str) -> IntArray:
    numbers, _ = as_numbers(entries)
    found = numbers.to_numpy()
    whole = np.isfinite(found) & (found >= 0) & (found < MOST_ROWS) & (found == np.floor(found))
    if not whole.all():
        raise TableError(
            f"the counts of {table} must be whole numbers of at least 0; {int((~whole).sum()):,} of {len(found):,} are "
            "not. Mend them."
        )
    return found.astype(np.int64)
