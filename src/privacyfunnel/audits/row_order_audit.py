"""The order of rows: what that of a table says about its secret, and how that of a sanitised table is undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import LedgerError
from privacyfunnel.model.row_order_leak import NeighbourGuesses, OrderLeak
from privacyfunnel.release.findings.kept_columns import KeptColumnAnalysis
from privacyfunnel.release.ledger.ledger_file import Ledger, ledger_path
from privacyfunnel.release.shuffle import RowOrder
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.encoding import encode
from privacyfunnel.tables.readers.table_files import TableSource
from privacyfunnel.tables.readers.table_interface import Table


def row_order_leakage(
    table: Table, secret: Sequence[str], bins: Sequence[Bins], apart: Sequence[str]
) -> tuple[OrderLeak, tuple[str, ...]]:
    """What the order says about the secret; and those of the columns `apart` that are sorted as the table is."""
    mine = [binned for binned in bins if binned.column in secret]
    encoding = encode(table, secret=secret, publish=(), bins=mine, keep=apart)
    values = len(encoding.contingency.secret.combos)
    neighbours, kept = NeighbourGuesses(values, encoding.rows), KeptColumnAnalysis(apart, values, encoding.rows)
    for chunk in encoding.chunks(apart):
        neighbours.add(chunk.secret)
        kept.add(chunk.kept, chunk.secret)
    return neighbours.best_guess(), tuple(found.column for found in kept.kept_columns() if found.sorted)


RowNumbers = Callable[[Iterable[IntArray]], Iterator[IntArray]]  # codes of a table's rows, in the order of publication


def find_row_order(
    protocol: Path,
    table: str | Path | TableSource,
    sanitised: Path,
    rows: int,
    ledger: str | Path | None,
    keep_order: bool,
) -> RowNumbers | None:
    """How the rows of a table are put into the order of the sanitised one; None where nobody says."""
    if keep_order:
        return iter
    if ledger is not None and not Path(ledger).exists():
        raise LedgerError(f"the ledger that is named must be there; there is no '{ledger}'. Name another.")
    entry = Ledger(Path(ledger) if ledger is not None else ledger_path(table)).find_release(protocol, sanitised)
    if entry is None or entry.rows != rows:
        return None
    if entry.order is None:
        return iter
    order = RowOrder.from_key(entry.order)

    def reorder(codes: Iterable[IntArray]) -> Iterator[IntArray]:
        yield np.concatenate(list(codes))[order.permutation(rows)]

    return reorder
