r"""Entries that come again: each is coded once, and then recalled by a hash.

A column has few labels and many rows. The first entry with a 64-bit hash h, whose seed is secret, is coded in full;
later ones with that hash get its code from the bucket that the first bits of h pick. If h is a random function, two of
m different entries share a hash with a chance below :math:`m^2 / 2^{65}`, which is below :math:`2^{-40}` for the labels
that are remembered here. They would be read as one value then: the table would be told less exactly, and of two
secrets nothing would be promised that tells them apart (docs/limits.md).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray, WordArray
from privacyfunnel.tables.readers.column_selection import drop_name

Codes = NDArray[np.unsignedinteger[Any]]

MOST_ENTRIES = 1 << 12  # different ones that are remembered; a column with more is coded as it comes
FEWEST_BITS, MOST_BITS = 10, 18  # that pick a bucket
_KINDS = (pl.String, pl.Boolean, pl.Date, pl.Datetime, pl.Time)  # and numbers: what is hashed by its value


class CodeCache:
    """The codes of entries, by a coder that sees every different entry once, as far as they are few."""

    def __init__(self, coder: Callable[[pl.Series], Codes]) -> None:
        self._coder, self._seed = coder, secrets.randbits(63)
        self._kind: pl.DataType | None = None
        self._known: dict[int, int] = {}
        self._fill_buckets(FEWEST_BITS)

    def codes(self, entries: pl.Series) -> Codes:
        """The code of every entry."""
        kind = entries.dtype
        if len(self._known) > MOST_ENTRIES or not (kind.is_integer() or kind.is_float() or isinstance(kind, _KINDS)):
            return self._coder(entries)
        if kind != self._kind:  # the same hash may mean something else
            self._kind, self._known = kind, {}
            self._fill_buckets(FEWEST_BITS)
        plain = drop_name(entries)
        hashes: WordArray = plain.hash(self._seed).to_numpy()
        bucket = self._bucket(hashes)
        codes = np.take(self._codes, bucket)
        new = np.flatnonzero(np.take(self._hashes, bucket) != hashes)
        if len(new):
            different, first, place = np.unique(hashes[new], return_index=True, return_inverse=True)
            found = self._coder(plain.gather(new[first]).alias(entries.name))
            codes[new] = found[place]
            self._remember(different, found)
        return codes

    def _remember(self, hashes: WordArray, codes: Codes) -> None:
        self._known.update(zip(hashes.tolist(), codes.tolist(), strict=True))
        bits = self._bits
        while bits < MOST_BITS and len(np.unique(_leading_bits(self._known_hashes, bits))) < len(self._known):
            bits += 1
        self._fill_buckets(bits)

    @property
    def _known_hashes(self) -> WordArray:
        return np.array(list(self._known), dtype=np.uint64)

    def _fill_buckets(self, bits: int) -> None:
        """Deal what is known into the buckets. Where two share one, the later is recalled and the other coded anew."""
        self._bits = bits
        self._hashes = np.zeros(1 << bits, dtype=np.uint64)
        self._hashes[0] = ~np.uint64(0)  # an empty bucket holds a hash that does not belong there
        self._codes = np.zeros(1 << bits, dtype=np.uint32)
        bucket = self._bucket(self._known_hashes)
        self._hashes[bucket], self._codes[bucket] = self._known_hashes, list(self._known.values())

    def _bucket(self, hashes: WordArray) -> IntArray:
        return _leading_bits(hashes, self._bits)


def _leading_bits(hashes: WordArray, bits: int) -> IntArray:
    return (hashes >> np.uint64(64 - bits)).view(np.int64)
