r"""Random words: the randomness of a release, by row number or by row id.

Row :math:`i` of a table draws one uniform 64-bit word per draw number :math:`j`. The word depends on the key, on
:math:`i` and on :math:`j` only: chunks may have any size, come in any order, or be drawn again, and any partition on
any machine draws the same row the same way.

By row id, the words of a record are a keyed function of its id and its input. With a key k for one protocol, a record
with id u and input z has the tag :math:`T = \mathrm{CBC}_{k_1}(|u|, z, u)`, the CBC-MAC with AES-256 of a message that
begins with its own length, and in draw number j the word that is the first half of :math:`\mathrm{AES}_{k_2}(T \oplus
j)`. No message is a prefix of another, so CBC-MAC is a pseudo-random function (Bellare, Kilian and Rogaway 2000):
different pairs of id and input have independent words, and one pair always has the same word. A record whose value
changes gets a fresh word.

Both keys are derived from the owner's by HMAC with the digest of the protocol, so that words of two protocols are
independent: draws that share words could leak more together.
"""

from __future__ import annotations

import hashlib
import hmac
import operator
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from typing import Protocol as Shape

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import IntArray, WordArray
from privacyfunnel.atomic_files import OWNERS_ONLY, atomic_file
from privacyfunnel.errors import ParameterError

WORD_BITS = 64  # half a block of AES
_ORDER = (1 << 64) - 1  # the draw number of the order's key: no mechanism draws in it
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

    def scatter_words(self, rows: IntArray, draws: IntArray) -> WordArray:
        """The words of some of these rows in some draw numbers: draws × rows."""


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

    def scatter_words(self, rows: IntArray, draws: IntArray) -> WordArray:
        """The words of some of these rows in some draw numbers."""
        return self.stream.scatter_words(np.uint64(self.first_row) + rows.astype(np.uint64), draws)


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

    def scatter_words(self, rows: WordArray, draws: IntArray) -> WordArray:
        """The words of any rows in any draw numbers, draws × rows: the same as by `words`, one block of AES each."""
        counters = np.empty((len(draws), len(rows), 2), dtype=">u8")
        counters[:, :, 0], counters[:, :, 1] = draws[:, None], rows >> np.uint64(1)
        blocks = _encrypt(self._key, counters.view(np.uint8).reshape(-1, BLOCK))
        halves = blocks.view("<u8").reshape(len(draws), len(rows), 2)
        return np.where(rows & np.uint64(1), halves[:, :, 1], halves[:, :, 0]).astype(np.uint64, copy=False)

    def order_key(self) -> bytes:
        """A key of its own for the order of the rows: the first four words of a draw number that no mechanism draws in.

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


BLOCK = 16  # bytes of AES
KEY = 32  # bytes of a key
FIRST_LINE = "privacyfunnel row key 1"
_PURPOSE = b"privacyfunnel words by row id 1"


@dataclass(frozen=True, slots=True, eq=False)
class RowKey:
    """The owner's key for rows that are addressed by their ids: kept in a file of theirs, or fresh for one release."""

    _key: bytes = field(repr=False)
    for_publication: bool = True

    def __post_init__(self) -> None:
        if len(self._key) != KEY:
            raise ParameterError(f"the key must have {KEY} bytes; it has {len(self._key)}.")

    @classmethod
    def generate(cls) -> RowKey:
        """A key from the operating system."""
        return cls(os.urandom(KEY))

    @classmethod
    def load(cls, path: str | Path) -> RowKey:
        """The key in a file that nobody but its owner may be able to read."""
        try:
            with Path(path).open("rb") as file:
                mode, held = os.fstat(file.fileno()).st_mode, file.read(1 << 10)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ParameterError(
                f"the key file '{path}' must be readable; it is not: {reason}. Make one with the command keygen."
            ) from None
        if stat.S_IMODE(mode) & ~OWNERS_ONLY:
            raise ParameterError(
                f"the key file '{path}' must be readable by its owner alone; its mode is {stat.S_IMODE(mode):o}. Run "
                f"chmod 600 {path}, or make another with the command keygen if somebody may have read it."
            )
        first, _, digits = held.decode("ascii", "replace").strip().partition("\n")
        try:
            key = bytes.fromhex(digits.strip())
        except ValueError:
            key = b""
        if first.strip() != FIRST_LINE or len(key) != KEY:
            raise ParameterError(f"'{path}' must hold a key for rows; it does not. Make one with the command keygen.")
        return cls(key)

    def save(self, path: str | Path) -> None:
        """Write the key to a file of its owner's; nothing is overwritten."""
        with atomic_file(path, owner_only=True) as beside:
            beside.write_text(f"{FIRST_LINE}\n{self._key.hex()}\n", encoding="ascii")

    def mark(self, salt: bytes, digest: bytes, row_id: str) -> str:
        """What tells apart how rows are drawn: by which key, protocol and column of ids; it gives no key away."""
        return hmac.digest(self._key, b"mark " + salt + digest + row_id.encode(), "sha256").hex()

    def derive_words(self, digest: bytes, row_id: str) -> IdentityWords:
        """The words under a protocol with that digest, for ids of the column of that name."""
        use = _PURPOSE + digest + row_id.encode()
        first, second = (hmac.digest(self._key, part + use, "sha256") for part in (b"tag ", b"word "))
        return IdentityWords(first, second)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a RowKey is never pickled or copied: it must not leave the process.")


@dataclass(frozen=True, slots=True, eq=False)
class IdentityWords:
    """Words by id and input under one protocol."""

    _tag_key: bytes = field(repr=False)
    _word_key: bytes = field(repr=False)

    def rows(self, octets: NDArray[np.uint8], lengths: IntArray, inputs: IntArray) -> IdentityRows:
        """The words of rows with these ids of so many bytes, filled up with zeros to whole blocks, and these inputs.

        An input is a number, or a record of codes, n × columns: then its codes are as many blocks for every row.
        """
        if octets.shape[1] % BLOCK or len(octets) != len(inputs):
            raise ParameterError("ids must come in whole blocks, one for each row; they do not.")
        head = np.zeros((len(inputs), 2), dtype="<u8")
        head[:, 0] = lengths
        if inputs.ndim == 1:
            head[:, 1] = inputs
        tag = _encrypt(self._tag_key, head.view(np.uint8))
        if inputs.ndim == 2:
            codes = np.zeros((len(inputs), -(-inputs.shape[1] // 4) * 4), dtype="<i4")
            codes[:, : inputs.shape[1]] = inputs
            for start in range(0, codes.shape[1], 4):
                tag = _encrypt(self._tag_key, tag ^ np.ascontiguousarray(codes[:, start : start + 4]).view(np.uint8))
        for start in range(0, octets.shape[1], BLOCK):
            # An id that has ended keeps its tag, so that no other id changes it.
            mine = np.flatnonzero(lengths > start)
            block = tag[mine] ^ octets[mine, start : start + BLOCK]
            tag[mine] = _encrypt(self._tag_key, block)
        return IdentityRows(self._word_key, tag)


@dataclass(frozen=True, slots=True, eq=False)
class IdentityRows:
    """Rows by their tags."""

    _word_key: bytes = field(repr=False)
    tags: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.tags)

    def word(self, draw: int = 0) -> WordArray:
        """Each row's word in that draw number."""
        number = np.frombuffer(draw.to_bytes(8, "little") + bytes(8), dtype=np.uint8)
        return _encrypt(self._word_key, self.tags ^ number).view("<u8")[:, 0].astype(np.uint64)

    def part(self, start: int, stop: int) -> IdentityRows:
        """The words of some of these rows."""
        return IdentityRows(self._word_key, self.tags[start:stop])

    def scatter_words(self, rows: IntArray, draws: IntArray) -> WordArray:
        """The words of some of these rows in some draw numbers."""
        numbers = np.zeros((len(draws), 1, 2), dtype="<u8")
        numbers[:, 0, 0] = draws
        blocks = (self.tags[rows] ^ numbers.view(np.uint8)).reshape(-1, BLOCK)
        return _encrypt(self._word_key, blocks).view("<u8")[:, 0].astype(np.uint64).reshape(len(draws), len(rows))


def generate_order_key() -> bytes:
    """A key for the order of one release: never that of another, though both draw the same people alike."""
    return secrets.token_bytes(KEY)


def _encrypt(key: bytes, blocks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Every row of 16 bytes by itself: AES is a permutation of blocks, and no two rows ever hold the same one."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    plain = np.ascontiguousarray(blocks)
    out = np.empty(len(plain) * BLOCK + BLOCK, dtype=np.uint8)
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # a block cipher, not a mode for messages
    written = encryptor.update_into(plain.reshape(-1).data, out.data)
    return out[:written].reshape(-1, BLOCK)
