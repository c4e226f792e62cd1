"""Text on disk: which encoding, zipped or not, and what to say when it is neither."""

import codecs
import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TextIO, cast

import zstandard

from privacyfunnel.errors import ParameterError, TableError
from privacyfunnel.hints import hint

UTF_8 = "utf-8-sig"  # UTF-8, with or without a byte order mark
HEAD = 1 << 16  # bytes that tell a binary file
PIECE = 1 << 18  # bytes that are looked at together: they fit into the cache of a core
GZIP, ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"  # how such files begin
SKIPPED_FRAME = b"\x2a\x4d\x18"  # how frames of Zstandard without content go on after their first byte
FRAME_HEADER = 18  # bytes of a frame of Zstandard, at most
DELIMITERS = ",;\t|"


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """The bytes of the file, unzipped if they are zipped."""
    with path.open("rb") as raw:
        if not is_compressed(path):
            yield raw
            return
        if _starts_with(path, GZIP):
            with gzip.GzipFile(fileobj=raw) as file:
                yield cast(BinaryIO, file)
            return
        if not _is_whole(raw):
            raise EOFError
        raw.seek(0)
        yield cast(BinaryIO, zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True))


def _is_whole(file: BinaryIO) -> bool:
    """Whether the frames of a Zstandard file are all there; whoever unpacks it is not told (RFC 8878, section 3.1)."""
    while head := file.read(FRAME_HEADER):
        if head[1:4] == SKIPPED_FRAME and head[0] & 0xF0 == 0x50:
            file.seek(8 + int.from_bytes(head[4:8], "little") - len(head), os.SEEK_CUR)
            continue
        frame = zstandard.get_frame_parameters(head)
        file.seek(zstandard.frame_header_size(head) - len(head), os.SEEK_CUR)
        last = False
        while not last:
            if len(block := file.read(3)) < 3:
                return False
            header = int.from_bytes(block, "little")
            last, repeated = bool(header & 1), header >> 1 & 3 == 1
            file.seek(1 if repeated else header >> 3, os.SEEK_CUR)
        file.seek(4 * frame.has_checksum, os.SEEK_CUR)
    return file.tell() <= os.fstat(file.fileno()).st_size


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[TextIO]:
    """The characters of the file, line ends as they are; failures on the way become a :class:`TableError`."""
    with _report_failures(path, encoding), open_bytes(path) as file:
        # newline="\n": a lone carriage return is no end of line, and nothing is translated.
        yield io.TextIOWrapper(file, encoding=encoding, newline="\n")


@contextmanager
def _report_failures(path: Path, encoding: str) -> Iterator[None]:
    try:
        yield
    except UnicodeError as error:
        meant = "UTF-8" if encoding == UTF_8 else encoding
        other = "windows-1252" if encoding == UTF_8 else "utf-8"
        raise TableError(
            f"'{path}' must be {meant} text; some of its bytes are not. "
            f"Name its encoding, for example {hint('encoding', other)}."
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        packing = "gzip" if _starts_with(path, GZIP) else "Zstandard"
        raise TableError(f"'{path}' must be a whole {packing} file; it is damaged. Get a fresh copy.") from error
    except OSError as error:
        raise TableError(f"'{path}' cannot be read: {error.strerror}.") from error


def is_compressed(path: Path) -> bool:
    """Whether the file begins as gzip and Zstandard files do, whatever its name."""
    return _starts_with(path, GZIP) or _starts_with(path, ZSTANDARD)


def _starts_with(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


def has_blank_end(path: Path) -> bool:
    """Whether the file ends with a blank line."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4))
        return file.read().endswith((b"\n\n", b"\n\r\n"))


def detect_encoding(path: Path, encoding: str | None, on_bytes: Callable[[bytes], None] | None = None) -> str:
    """The encoding to use: what was asked for, what a byte order mark says, UTF-8 if all of the text is, or else
    windows-1252, the usual one of older programs in western Europe. Whoever must look at all bytes too has `seen` them.
    """
    if encoding is not None:
        try:
            name = codecs.lookup(encoding).name
            io.TextIOWrapper(io.BytesIO(), encoding=name)  # refuses what is no encoding of text, such as base64
        except LookupError:
            raise ParameterError(
                f"'{encoding}' must be the name of an encoding of text, such as utf-8 or windows-1252."
            ) from None
        return UTF_8 if name == "utf-8" else name
    with _report_failures(path, UTF_8), open_bytes(path) as file:
        head = file.read(HEAD)
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        if b"\0" in head:
            raise TableError(f"'{path}' must be text; it is a binary file. Save the table as CSV, Parquet or Arrow.")
        if not head:
            raise TableError(f"'{path}' is empty; a table must have a header and rows.")
        return _detect_from_bytes(chain([head], iter(lambda: file.read(PIECE), b"")), on_bytes)


def _detect_from_bytes(pieces: Iterable[bytes], on_bytes: Callable[[bytes], None] | None) -> str:
    """UTF-8 if all pieces together are; what has not one character of UTF-8 beyond ASCII is an older text."""
    decoder, all_utf_8, some_utf_8, latin = codecs.getincrementaldecoder("utf-8")(), True, False, False
    for piece in pieces:
        if on_bytes is not None:
            on_bytes(piece)
        if piece.isascii():
            continue
        some_utf_8 = some_utf_8 or _BEYOND_ASCII.search(piece) is not None
        latin = latin or _NOT_WINDOWS.search(piece) is not None
        try:
            if all_utf_8:
                decoder.decode(piece)
        except UnicodeDecodeError:
            all_utf_8 = False
    try:
        decoder.decode(b"", final=all_utf_8)
    except UnicodeDecodeError:
        all_utf_8 = False
    if all_utf_8 or some_utf_8:  # a character that is broken, and others that are not: it is a damaged UTF-8
        return UTF_8
    return "iso-8859-1" if latin else "cp1252"


_BEYOND_ASCII = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_NOT_WINDOWS = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")  # bytes that windows-1252 does not use


def has_byte_order_mark(path: Path) -> bool:
    """Whether the text begins with the mark that tells Excel that it is UTF-8."""
    with open_bytes(path) as file:
        return file.read(3) == codecs.BOM_UTF8


def detect_delimiter(lines: Sequence[str]) -> str:
    r"""The delimiter that cuts the first line into most fields and the following lines into as many.

    >>> detect_delimiter(["name;height\n", "Ann;1,70\n"])
    ';'
    """

    def score(delimiter: str) -> tuple[bool, bool, bool, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        except csv.Error:  # a whole line of very many columns would be one field
            return False, False, False, 0
        same, several = len(set(widths)) == 1, widths[0] > 1
        return same and several, several, same, widths[0]

    return max(DELIMITERS, key=score)
