"""The order of a table's rows before anything is published: what it says about the secret, and which ids follow it."""

from __future__ import annotations

from collections.abc import Sequence

from privacyfunnel.model.row_order import Neighbours, OrderTells
from privacyfunnel.release.kept import KeptLook
from privacyfunnel.tables.bins import Bins
from privacyfunnel.tables.encoding import encode
from privacyfunnel.tables.files import Table


def order_of(
    table: Table, secret: Sequence[str], bins: Sequence[Bins], apart: Sequence[str]
) -> tuple[OrderTells, tuple[str, ...]]:
    """What the order says about the secret; and those of the columns `apart` that are sorted as the table is."""
    mine = [binned for binned in bins if binned.column in secret]
    encoding = encode(table, secret=secret, publish=(), bins=mine)
    values = len(encoding.contingency.secret.combos)
    neighbours, kept = Neighbours(values), KeptLook(apart, values, encoding.rows)
    for chunk in encoding.chunks(apart):
        neighbours.add(chunk.secret)
        kept.add(chunk.kept, chunk.secret)
    return neighbours.found(), tuple(found.column for found in kept.found() if found.sorted)
