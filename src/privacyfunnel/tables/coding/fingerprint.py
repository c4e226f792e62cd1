r"""Whether a table that is read twice was the same both times.

A column with entries :math:`e_0, e_1, …` has the digest :math:`\sum_i g(i)\, h(e_i) \bmod 2^{64}` for two hashes g and
h with secret seeds: it does not depend on how the rows come in batches, but on every entry and its row. If g and h are
random functions, let :math:`d_i` be the differences of the hashes of two columns that differ, and :math:`2^v` the
largest power of two that divides them all. The digests agree with a chance of :math:`2^{v-64}` over g, and v is at
least k with a chance of at most :math:`2^{-k}` over h: a change is overlooked with a chance below :math:`2^{-57}`.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.tables.readers.column_selection import drop_name

Entries = pl.Series | NDArray[np.unsignedinteger[Any]]


class Fingerprint:
    """The digests of some columns, of all rows that were added so far."""

    def __init__(self, columns: Sequence[str], seed: int | None = None) -> None:
        self._seed = secrets.randbits(63) if seed is None else seed
        self._digests = dict.fromkeys(columns, 0)

    def empty_copy(self, columns: Sequence[str]) -> Self:
        """An empty one of some of the columns, to be compared with this one."""
        return type(self)(columns, self._seed)

    def add(self, columns: Mapping[str, Entries], start: int) -> None:
        """Add rows `start`, `start + 1`, … of some columns."""
        if not columns:
            return
        rows = len(next(iter(columns.values())))
        weights = pl.int_range(start, start + rows, dtype=pl.UInt64, eager=True).hash(self._seed + 1).to_numpy()
        for name, entries in columns.items():
            wide = drop_name(entries) if isinstance(entries, pl.Series) else pl.Series(values=entries.astype(np.uint32))
            digest = int(np.dot(wide.hash(self._seed).to_numpy(), weights))
            self._digests[name] = (self._digests[name] + digest) % 2**64

    def confirms(self, first: Self) -> bool:
        """Whether its columns have the digests that they had the `first` time."""
        return self._digests.items() <= first._digests.items()

    def __contains__(self, column: str) -> bool:
        return column in self._digests
