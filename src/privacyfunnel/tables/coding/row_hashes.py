r"""Keyed hashes of rows: whether a table changed between two readings, and whether row ids are unique.

A column with entries :math:`e_0, e_1, …` has the digest :math:`\sum_i g(i)\, h(e_i) \bmod 2^{64}` for two hashes g and
h with secret seeds. It does not depend on the batches, but on every entry and its row. If g and h are random functions,
let :math:`d_i` be the differences of the hashes of two columns that differ, and :math:`2^v` the largest power of two
that divides them all. The digests agree with a chance of :math:`2^{v-64}` over g, and v is at least k with a chance of
at most :math:`2^{-k}` over h: a change is overlooked with a chance below :math:`2^{-57}`.

Row ids are compared by one canonical text, in which blanks around it, leading zeros and a `.0` do not count, so that an
id means the same person whichever program wrote it. A 64-bit hash of each is kept; only where two hashes agree are the
ids read again.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray
from privacyfunnel.errors import ColumnError
from privacyfunnel.names import validate_columns
from privacyfunnel.tables.coding.coders import as_text
from privacyfunnel.tables.readers.column_selection import drop_name
from privacyfunnel.tables.readers.formats import Table

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


BLOCK = 16  # bytes that ids are filled up to a multiple of
MOST_BYTES = 256  # of an id
NUMERAL = r"^(-?)0*(\d+?)(?:\.0*)?$"  # a whole number, which has as many texts as there are programs that write it


class RowIds:
    """The column that tells rows apart, looked at while its table is read."""

    def __init__(self, column: str) -> None:
        self.column = column
        self._seed = secrets.randbits(63)
        self._hashes: list[NDArray[np.uint64]] = []
        self._rows = self._missing = self._long = self._inexact = 0

    def empty_copy(self) -> "RowIds":
        """The same column, of which nothing was looked at yet."""
        return RowIds(self.column)

    def add(self, entries: pl.Series) -> None:
        """Look at more rows."""
        text = id_texts(entries)
        missing = text.is_null() | (text == "")
        self._inexact += count_inexact_ids(entries)
        self._rows += len(text)
        self._missing += int(missing.sum())
        self._long += int((text.str.len_bytes() > MOST_BYTES).sum())
        self._hashes.append(text.hash(self._seed).to_numpy())

    def check(self, table: Table) -> None:
        """Refuse ids that are missing, or not all different, and say how many."""
        if self._missing:
            raise ColumnError(
                f"a row id must be there in every row; '{self.column}' is missing in {self._missing:,} of "
                f"{self._rows:,} rows. Fill it in, or name another column."
            )
        if self._long:
            raise ColumnError(
                f"a row id has at most {MOST_BYTES} bytes; {self._long:,} of '{self.column}' have more. Name another "
                "column."
            )
        if self._inexact:
            raise inexact_ids_error(self.column, self._inexact, self._rows)
        hashes = np.sort(np.concatenate(self._hashes)) if self._hashes else np.zeros(0, dtype=np.uint64)
        alike = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
        if not len(alike):
            return
        doubtful = []
        for batch in table.batches([self.column]):
            text = id_texts(batch[self.column])
            doubtful.append(text.filter(text.hash(self._seed).is_in(pl.Series(alike))))
        suspects = pl.concat(doubtful)
        again = int((~suspects.is_first_distinct()).sum())
        if again:
            raise repeated_ids_error(self.column, again, self._rows)


def repeated_ids_error(column: str, again: int, rows: int) -> ColumnError:
    """Why ids that are not all different are refused."""
    return ColumnError(
        f"a row id must tell every row from all others; {again:,} of {rows:,} rows have an id of '{column}' that "
        "another row has (blanks around an id, leading zeros and a final .0 do not count). Name a column in which "
        "every value is different."
    )


def inexact_ids_error(column: str, inexact: int, rows: int) -> ColumnError:
    """Why numbers are refused that a float cannot hold exactly, or that are not whole."""
    return ColumnError(
        f"row ids that are floating-point numbers must be whole and small enough to be exact; {inexact:,} of {rows:,} "
        f"in '{column}' are not. Write them as integers or as text."
    )


def id_texts(entries: pl.Series) -> pl.Series:
    """One canonical text of each id: `7`, `7.0`, `007` and ` 7 ` are the same, as text, integers or floats.

    Text is in Unicode normal form C. Letters keep their case, and other texts of numbers (`7e0`) stay as they are.
    """
    if entries.dtype.is_float():
        whole = drop_name(entries).cast(pl.Int64, strict=False).cast(pl.String)
        return whole.zip_with(_is_exact(entries), as_text(entries))
    text = as_text(entries)
    if entries.dtype.is_integer():
        return text
    text = text.str.strip_chars()
    if (text.str.len_bytes() != text.str.len_chars()).any():
        text = text.str.normalize("NFC")
    odd = text.str.starts_with("0") | text.str.starts_with("-0") | text.str.contains(".", literal=True)
    return text.str.replace(NUMERAL, "$1$2") if odd.any() else text


def count_inexact_ids(entries: pl.Series) -> int:
    """How many floating-point numbers are fractions, or so large that neighbouring integers look alike."""
    return int((~_is_exact(entries)).sum()) if entries.dtype.is_float() else 0


def _is_exact(numbers: pl.Series) -> pl.Series:
    """Whether each float is a whole number that no other integer is rounded to; what is missing counts as one."""
    most = 2**24 if numbers.dtype == pl.Float32 else 2**53
    known = drop_name(numbers).fill_nan(None).fill_null(0)
    return (known == known.floor()) & (known.abs() < most)


def id_blocks(entries: pl.Series) -> tuple[NDArray[np.uint8], IntArray]:
    """The texts of ids as bytes, a row each, filled up with zeros to whole blocks; and how many bytes each has."""
    text = id_texts(entries)
    lengths: IntArray = text.str.len_bytes().to_numpy().astype(np.int64)
    width = -(-int(lengths.max(initial=0)) // BLOCK) * BLOCK
    octets = np.zeros((len(text), width), dtype=np.uint8)
    held = np.arange(width) < lengths[:, None]
    octets[held] = np.frombuffer((text.str.join("").item() or "").encode(), dtype=np.uint8)
    return octets, lengths


def make_row_ids(column: str | None, columns: Sequence[str]) -> RowIds | None:
    """What looks at the column of row ids, where one is named."""
    if column is None:
        return None
    validate_columns([column], columns, "row id")
    return RowIds(column)
