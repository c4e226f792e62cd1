r"""The words of rows: where the randomness of a release comes from.

Row :math:`i` of a table draws one uniform 64-bit word per draw number :math:`j`. That word depends on the key, on
:math:`i` and on :math:`j`, and on nothing else: chunks may have any size, come in any order, be drawn in another
process or drawn again, and any partition on any machine draws the same row the same way.
"""

from __future__ import annotations

import hashlib
import operator
import os
from dataclasses import dataclass, field
from typing import NoReturn
from typing import Protocol as Shape

import numpy as np

from privacyfunnel.arrays import WordArray
from privacyfunnel.errors import ParameterError

WORD_BITS = 64  # half a block of AES
_ORDER = (1 << 64) - 1  # the draw number of the order's key: no law draws in it
_BLOCKS = 1 << 16  # words that are encrypted in one call: few calls, and zeros that stay in the cache
_ZEROS = memoryview(bytes(8 * (_BLOCKS + 2)))


class RandomWords(Shape):
    """The words of some rows, whatever their addresses are made of."""

    def __len__(self) -> int:
        """How many rows there are."""

    def word(self, draw: int = 0) -> WordArray:
        """Each row's word in that draw number."""

    def part(self, start: int, stop: int) -> RandomWords:
        """The words of the rows from number `start` among these up to number `stop`."""


class WordStream(Shape):
    """Whatever gives the rows of a table their words by their number."""

    def rows(self, first_row: int, n: int) -> RandomWords: ...


@dataclass(frozen=True, slots=True, eq=False)
class StreamRows:
    """Rows `first_row` … `first_row + n − 1` of a key stream."""

    stream: KeyStream
    first_row: int
    n: int

    def __len__(self) -> int:
        return self.n

    def word(self, draw: int = 0) -> WordArray:
        """Each row's word in that draw number."""
        return self.stream.words(self.first_row, self.n, draw=draw)

    def part(self, start: int, stop: int) -> StreamRows:
        """The words of some of these rows."""
        return StreamRows(self.stream, self.first_row + start, min(stop, self.n) - start)


@dataclass(frozen=True, slots=True, eq=False)
class KeyStream:
    """AES-256 in counter mode, read as 64-bit words with an address each.

    Row i of draw j is half of the block that AES makes of one 128-bit counter:

        counter = j · 2^64 + i // 2,    first half (little-endian) for even i, second half for odd i.

    Rows stay below 2^64, so the lower part never carries into the upper one and draws never overlap. The stream has no
    position: a forked child that asks for the same rows gets the same words and repeats its parent's draw, it never
    spends one word on two different rows.
    """

    _key: bytes = field(repr=False)
    for_publication: bool = False

    def __post_init__(self) -> None:
        if len(self._key) != 32:
            raise ParameterError(f"the key must have 32 bytes; it has {len(self._key)}.")

    @classmethod
    def generate(cls) -> KeyStream:
        """A key from the operating system, for one release. It is never stored."""
        return cls(os.urandom(32), for_publication=True)

    @classmethod
    def from_seed(cls, seed: int) -> KeyStream:
        """The same stream for the same seed: for tests, since whoever guesses the seed undoes the draw.

        >>> KeyStream.from_seed(1)
        KeyStream(for_publication=False)
        """
        return cls(hashlib.sha256(b"privacyfunnel seed %d" % operator.index(seed)).digest())

    def words(self, first_row: int, n: int, *, draw: int = 0) -> WordArray:
        """The words of rows `first_row` … `first_row + n − 1` in draw number `draw`."""
        if min(first_row, n, draw) < 0 or first_row + n > 1 << 64 or draw >= _ORDER:
            raise ParameterError(
                "rows must lie between 0 and 2^64 − 1 and draw numbers between 0 and 2^64 − 2; asked were "
                f"{n} rows from {first_row} in draw {draw}."
            )
        return self._words(first_row, n, draw)

    def order_key(self) -> bytes:
        """A key of its own for the order of the rows: the first four words of a draw number that no law draws in.

        Who has it can undo the order of a release, and learns nothing of the words that its rows were drawn with.
        """
        return self._words(0, 4, _ORDER).astype("<u8").tobytes()

    def _words(self, first_row: int, n: int, draw: int) -> WordArray:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        skipped = first_row % 2
        blocks = np.empty((skipped + n + 1) // 2 * 16, dtype=np.uint8)
        counter = (draw << 64) | (first_row // 2)
        encryptor = Cipher(algorithms.AES(self._key), modes.CTR(counter.to_bytes(16, "big"))).encryptor()
        for start in range(0, len(blocks), len(_ZEROS)):
            piece = blocks[start : start + len(_ZEROS)].data
            encryptor.update_into(_ZEROS[: len(piece)], piece)
        return blocks.view("<u8")[skipped : skipped + n].astype(np.uint64, copy=False)

    def rows(self, first_row: int, n: int) -> StreamRows:
        """The words of those rows, by draw number."""
        return StreamRows(self, first_row, n)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a KeyStream is never pickled or copied: its key must not leave the process.")
