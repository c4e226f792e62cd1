"""Coders: every entry of a column becomes the code of a label.

A missing entry (an empty field, a null, a NaN) is a value of its own. Numbers may be binned. During the first reading
the labels are unknown, so a coder numbers them as they come: provisional codes, 0 for a missing entry. After the last
row it gives the sorted labels and the final code of each provisional one.

A column has few labels and many rows, so codes are cached. The first entry with a 64-bit hash h, whose seed is secret,
is coded in full; later ones with that hash get its code. If h is a random function, two of m different entries share a
hash with a chance below :math:`m^2 / 2^{65}`, below :math:`2^{-40}` for the number of labels that are cached. They
would be read as one value: the table would be less exact, and the promise would not separate two such secrets
(docs/limits.md).
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray, WordArray
from privacyfunnel.errors import ColumnError
from privacyfunnel.hints import hint
from privacyfunnel.names import MISSING, unique_label
from privacyfunnel.tables.coding.bins import bin_labels, example_edges
from privacyfunnel.tables.readers.column_selection import drop_name
from privacyfunnel.tables.readers.formats import PLAIN_NUMBERS, NumberFormat

if TYPE_CHECKING:
    from privacyfunnel.tables.coding.bins import Grouping


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


MOST_NUMBERS = 50  # different numbers that pass for labels
MOST_LABELS = 1 << 16  # different labels that a column may have
UNKNOWN = -1  # the code of what has none
NULL = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Coding:
    """The values a column can take, and how an entry finds its value."""

    column: str
    labels: tuple[str, ...]
    missing: int | None = None  # the code of a missing entry, if there is one
    edges: tuple[float, ...] = ()  # of binned numbers; the labels are then some of bin_labels(edges)
    how: Grouping | None = None  # by which rule entries became these labels, where they are coarser
    rest: int | None = None  # the code of every entry that has none of its own, if those are read as one value
    merges_values: bool = False  # whether a label stands for several values, which were named


class Coder(Protocol):
    """Numbers the entries of one column."""

    column: str
    size: int  # every provisional code so far is below this

    def codes(self, entries: pl.Series) -> Codes:
        """The provisional code of each entry."""

    def coding(self, used: Iterable[int]) -> tuple[Coding, IntArray]:
        """The domain, given the provisional codes that occur, and the final code of every provisional one."""


class LabelCoder:
    """Entries that are labels: provisional codes in order of appearance, the domain in order of the labels."""

    def __init__(
        self,
        column: str,
        *,
        keep_numbers: bool = False,
        how: Grouping | None = None,
        numbers: NumberFormat = PLAIN_NUMBERS,
    ) -> None:
        self.column = column
        self.size = 1
        self._keep_numbers = keep_numbers
        self._how = how
        self._numbers = numbers
        categories = pl.Categories.random()
        self._kind = pl.Categorical(categories)
        self._categories = categories
        # polars forgets categories that no series refers to; this one makes it remember.
        self._anchor = pl.Series([], dtype=self._kind)
        self._recall = CodeCache(self._encode)

    def codes(self, entries: pl.Series) -> Codes:
        return self._recall.codes(entries)

    def _encode(self, entries: pl.Series) -> Codes:
        codes = codes_above_null(as_text(entries).cast(self._kind).to_physical())
        self.size = max(self.size, int(codes.max(initial=0)) + 1)
        if self.size > MOST_LABELS:
            self._refuse_numbers(self._labels())
            raise ColumnError(
                f"column '{self.column}' must have at most {MOST_LABELS:,} distinct values to be used; it has more. "
                f"Use a prefix ({hint('bins', f'{self.column}=prefix:3')}) or a map (map:FILE), or leave it out."
            )
        return codes

    def coding(self, used: Iterable[int]) -> tuple[Coding, IntArray]:
        texts = ["", *self._labels()]
        # A quoted empty field says no more than an empty one.
        empty = [code for code in used if not texts[code]]
        place = {texts[code]: code for code in used if texts[code]}
        self._refuse_numbers(place)
        labels = sort_labels(place) if self._how is None else self._how.sort_labels(place)
        final = np.full(self.size, UNKNOWN, dtype=np.int64)
        final[[place[label] for label in labels]] = np.arange(len(labels))
        if not empty:
            return Coding(self.column, tuple(labels), how=self._how), final
        final[empty] = len(labels)
        gone = unique_label(MISSING, labels)
        return Coding(self.column, (*labels, gone), missing=len(labels), how=self._how), final

    def _labels(self) -> list[str]:
        return self._categories.to_series().to_list()

    def _refuse_numbers(self, labels: Collection[str]) -> None:
        if self._keep_numbers or len(labels) <= MOST_NUMBERS:
            return
        plain, _ = self._numbers.normalise(pl.Series(list(labels), dtype=pl.String))
        texts = plain.drop_nulls().to_list()  # a text that means a missing number is no label of a category
        numbers = [number for number in map(parse_plain_number, texts) if number is not None]
        if len(numbers) < len(texts) or len(numbers) <= MOST_NUMBERS:
            return
        column, finite = self.column, [number for number in numbers if math.isfinite(number)]
        found = f"column '{column}' holds {len(labels):,} different numbers or more, too many for categories."
        if not finite:  # whole numbers of hundreds of digits
            raise ColumnError(
                f"{found} They are too large for bins: leave it out, or keep each with "
                f"{hint('bins', f'{column}=values')}."
            )
        raise ColumnError(
            f"{found} Bin them with {hint('bins', f'{column}={example_edges(min(finite), max(finite))}')} or keep "
            f"each with {hint('bins', f'{column}=values')}."
        )


class BinCoder:
    """Entries that are numbers: the provisional code is the number of the bin, from 1 on."""

    def __init__(self, column: str, edges: tuple[float, ...]) -> None:
        self.column = column
        self.size = len(edges) + 2
        self._edges = edges
        self._recall = CodeCache(lambda entries: bin_numbers(as_numbers(entries)[0], edges))

    def codes(self, entries: pl.Series) -> Codes:
        return self._recall.codes(entries)

    def coding(self, used: Iterable[int]) -> tuple[Coding, IntArray]:
        names = bin_labels(self._edges)
        bins = sorted(code for code in used if code)
        labels = tuple(names[code - 1] for code in bins)
        final = np.full(self.size, UNKNOWN, dtype=np.int64)
        final[bins] = np.arange(len(bins))
        if 0 not in used:
            return Coding(self.column, labels, edges=self._edges), final
        final[0] = len(bins)
        return Coding(self.column, (*labels, MISSING), missing=len(bins), edges=self._edges), final


def as_text(entries: pl.Series) -> pl.Series:
    """One text for each value: `3`, `0.1`, `true`, `2024-05-01`. NaN is missing, −0.0 is 0.0."""
    kind, column = entries.dtype, entries.name
    entries = drop_name(entries)
    if kind == pl.String:
        return entries
    if kind.is_float():
        entries = entries.fill_nan(None).set(entries == 0, 0.0)
    elif not (kind.is_integer() or kind.is_decimal() or isinstance(kind, _OTHER_KINDS)):
        raise ColumnError(
            f"column '{column}' must hold text, numbers, dates or truth values; it holds {kind}. Leave it out."
        )
    return entries.cast(pl.String)


def codes_above_null(physical: pl.Series) -> Codes:
    """1 + the number of each category, and 0 for null."""
    codes: Codes = (physical.fill_null(NULL) if physical.null_count() else physical).to_numpy()
    return codes + np.uint32(1)  # null wraps around


def as_numbers(entries: pl.Series) -> tuple[pl.Series, int]:
    """The entries as floats, missing ones null, and how many are neither a number nor missing."""
    kind = entries.dtype
    if kind.is_numeric() or kind == pl.Null:
        return drop_name(entries).cast(pl.Float64).fill_nan(None), 0
    text = as_text(entries).str.strip_chars()
    numbers = text.cast(pl.Float64, strict=False)
    strangers = numbers.null_count() - text.null_count() - int((text == "").sum())
    return numbers.fill_nan(None), strangers


def bin_numbers(numbers: pl.Series, edges: tuple[float, ...]) -> Codes:
    """1 + how many edges are at or below each number; 0 for a missing one."""
    values = numbers.to_numpy()
    codes = np.searchsorted(np.array(edges), values, side="right").astype(np.uint32) + np.uint32(1)
    codes[np.isnan(values)] = 0
    return codes


def parse_plain_number(label: str) -> float | None:
    """The number a label is, if it reads as one; `01` and `1_000` are codes, not numbers."""
    number = label.strip()  # of more than float strips: of the separators U+001C to U+001F as well
    return float(number) if _NUMBER.fullmatch(number) else None


def sort_labels(labels: Iterable[str]) -> list[str]:
    """By size if every label is a number, else by character.

    >>> sort_labels(["10", "9"]), sort_labels(["10", "9", "many"])
    (['9', '10'], ['10', '9', 'many'])
    """
    pairs = [(parse_plain_number(label), label) for label in labels]
    if any(number is None for number, _ in pairs):
        return sorted(label for _, label in pairs)
    return [label for _, label in sorted(pairs)]


_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_OTHER_KINDS = (pl.Categorical, pl.Enum, pl.Boolean, pl.Date, pl.Datetime, pl.Time, pl.Null)
