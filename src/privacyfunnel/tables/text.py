"""Text on disk: which encoding, zipped or not, and what to say when it is neither."""

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from privacyfunnel.errors import ParameterError, TableError

UTF_8 = "utf-8-sig"  # UTF-8, with or without a byte order mark
HEAD = 1 << 16  # bytes that tell the encoding
DELIMITERS = ",;\t|"


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of the file, unzipped if they are zipped."""
    with path.open("rb") as raw:
        if not zipped(path):
            yield raw
            return
        with gzip.GzipFile(fileobj=raw) as file:
            yield cast(BinaryIO, file)


@contextmanager
def decoded(path: Path, encoding: str) -> Iterator[TextIO]:
    """The characters of the file, line ends as they are; failures on the way become a :class:`TableError`."""
    try:
        with opened(path) as file:
            # newline="\n": a lone carriage return is no end of line, and nothing is translated.
            yield io.TextIOWrapper(file, encoding=encoding, newline="\n")
    except UnicodeError as error:
        meant = "UTF-8" if encoding == UTF_8 else encoding
        other = "windows-1252" if encoding == UTF_8 else "utf-8"
        raise TableError(
            f"'{path}' must be {meant} text; some of its bytes are not. "
            f"Say how it is encoded, for example --encoding {other}."
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"'{path}' must be a whole gzip file; it is damaged. Get a fresh copy.") from error
    except OSError as error:
        raise TableError(f"'{path}' cannot be read: {error.strerror}.") from error


def zipped(path: Path) -> bool:
    """Whether the file begins as gzip files do, whatever its name."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def ends_blank(path: Path) -> bool:
    """Whether the file ends with a blank line."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4))
        return file.read().endswith((b"\n\n", b"\n\r\n"))


def found_encoding(path: Path, asked: str | None) -> str:
    """The name of the encoding to use: what was asked for, what the byte order mark says, or UTF-8."""
    if asked is not None:
        try:
            name = codecs.lookup(asked).name
            io.TextIOWrapper(io.BytesIO(), encoding=name)  # refuses what is no encoding of text, such as base64
        except LookupError:
            raise ParameterError(
                f"'{asked}' must be the name of an encoding of text, such as utf-8 or windows-1252."
            ) from None
        return UTF_8 if name == "utf-8" else name
    try:
        with opened(path) as file:
            head = file.read(HEAD)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"'{path}' must be a whole gzip file; it is damaged. Get a fresh copy.") from error
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in head:
        raise TableError(f"'{path}' must be text; it is a binary file. Save the table as CSV, Parquet or Arrow.")
    if not head:
        raise TableError(f"'{path}' is empty; a table must have a header and rows.")
    return UTF_8


def found_delimiter(lines: Sequence[str]) -> str:
    r"""The delimiter that cuts the first line into most fields and the following lines into as many.

    >>> found_delimiter(["name;height\n", "Ann;1,70\n"])
    ';'
    """

    def fields(delimiter: str) -> tuple[bool, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        except csv.Error:  # a whole line of very many columns would be one field
            return False, 0
        return len(set(widths)) == 1 and widths[0] > 1, widths[0]

    return max(DELIMITERS, key=fields)
