r"""Whether a table that is read twice was the same both times.

A column with entries :math:`e_0, e_1, …` has the digest :math:`\sum_i (2i+1)\, h(e_i) \bmod 2^{64}` for a hash h with a
secret seed: it does not depend on how the rows come in batches, but on every entry and on its row. Two columns that
differ have the same digest with a chance below :math:`2^{-63} d`, where d is how far a row was moved at most, and
:math:`2^{-64}` where an entry was changed.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

Entries = pl.Series | NDArray[np.unsignedinteger[Any]]


class Fingerprint:
    """The digests of some columns, of all rows that were added so far."""

    def __init__(self, columns: Sequence[str], seed: int | None = None) -> None:
        self._seed = secrets.randbits(63) if seed is None else seed
        self._digests = dict.fromkeys(columns, 0)

    def again(self, columns: Sequence[str]) -> Self:
        """An empty one of some of the columns, to be compared with this one."""
        return type(self)(columns, self._seed)

    def add(self, columns: Mapping[str, Entries], start: int) -> None:
        """Add rows `start`, `start + 1`, … of some columns."""
        for name, entries in columns.items():
            wide = entries if isinstance(entries, pl.Series) else pl.Series(values=entries.astype(np.uint32))
            weights = 2 * np.arange(start, start + len(wide), dtype=np.uint64) + 1
            digest = int(np.dot(wide.hash(self._seed).to_numpy(), weights))
            self._digests[name] = (self._digests[name] + digest) % 2**64

    def confirms(self, first: Self) -> bool:
        """Whether its columns have the digests that they had the `first` time."""
        return self._digests.items() <= first._digests.items()

    def __contains__(self, column: str) -> bool:
        return column in self._digests
