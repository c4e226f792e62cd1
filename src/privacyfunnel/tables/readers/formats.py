"""Formats: suffixes of file names, number formats, and dialects of text.

A number may have thousands separators: the other mark, a space or an apostrophe. `1.234,56` is read where the decimal
mark is a comma, `1,234.56` where it is a point. `12.5` in a table of decimal commas is refused, since it contradicts
the reading of `1.234`.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, TextIO, cast, runtime_checkable

import zstandard

from privacyfunnel.errors import ParameterError, TableError
from privacyfunnel.hints import hint

if TYPE_CHECKING:
    import polars as pl


DELIMITED: dict[str, str | None] = {
    ".csv": None,
    ".csv.gz": None,
    ".csv.zst": None,
    ".tsv": "\t",
    ".tsv.gz": "\t",
    ".tsv.zst": "\t",
}  # with the delimiter that is meant
PARQUET = (".parquet",)
ARROW = (".arrow", ".feather", ".ipc")
SUFFIXES = (*DELIMITED, *PARQUET, *ARROW)
FOREIGN = (".xlsx", ".dta", ".sav", ".zsav", ".sas7bdat", ".jsonl", ".ndjson")  # read, and written as CSV
STEM = "sanitised"  # the name of a table, before the suffix of its format
TABLES = tuple(f"{STEM}{suffix}" for suffix in SUFFIXES)

# What to do about files whose names end otherwise.
FORMAT_HINTS = {
    ".xls": "Open it and save it as .xlsx or CSV.",
    ".ods": "Open it and save it as .xlsx or CSV.",
    ".txt": "If it is text with a delimiter, give its name the end .csv.",
    ".dat": "If it is text with a delimiter, give its name the end .csv.",
    ".tab": "If it is text with tabs, give its name the end .tsv.",
    ".json": "Write one object on each line, and give its name the end .jsonl.",
    ".rds": "In R, write it with write.csv(…, row.names = FALSE) or arrow::write_parquet(…).",
    ".rdata": "In R, write it with write.csv(…, row.names = FALSE) or arrow::write_parquet(…).",
    ".rda": "In R, write it with write.csv(…, row.names = FALSE) or arrow::write_parquet(…).",
    ".por": "In SPSS, save it as .sav.",
    ".xpt": "In SAS, save it as .sas7bdat, or export it as CSV.",
    ".zip": "Unpack it first.",
    ".csv.zip": "Unpack it first.",
    ".pkl": "In Python, write it with to_parquet(…).",
}


MISSING_TEXTS = ("NA", "N/A", "#N/A", "NaN", "null", "None", "nil", ".", "-", "--", "?")  # in any case; and nothing
MARKS = (".", ",")
_APART = {".": "[, \u00a0\u202f'’]", ",": "[. \u00a0\u202f'’]"}  # what keeps thousands apart, for each decimal mark


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """The decimal mark of a table, and the texts that mean a missing number besides `MISSING_TEXTS`."""

    decimal: str = "."
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.decimal not in MARKS:
            raise ParameterError(f"a decimal mark must be '.' or ','; it is {self.decimal!r}. Name one of the two.")

    def normalise(self, entries: pl.Series) -> tuple[pl.Series, pl.Series | None]:
        """The entries with numbers as programs write them and gaps as nulls, and which are neither; None if none is.

        >>> import polars as pl
        >>> numbers, strange = NumberFormat(",").normalise(pl.Series(["1.234,5", "7", "n/a", "3.14"]))
        >>> numbers.to_list(), strange.to_list()
        (['1234.5', '7', None, '3.14'], [False, False, False, True])
        """
        import polars as pl

        if entries.dtype != pl.String:
            return entries, None
        text = entries.alias("").str.strip_chars()
        gone = text.str.to_lowercase().is_in(self._missing_texts)
        text = text.set(gone.fill_null(False), None)
        frame = text.alias("text").to_frame()
        cell, grouped = pl.col("text"), self._thousands_pattern
        whole = cell.str.replace_all(_APART[self.decimal], "")
        bare = pl.when(cell.str.contains(grouped)).then(whole).otherwise(cell)
        if self.decimal == ",":
            bare = pl.when(cell.str.contains(r"\.") & ~cell.str.contains(grouped)).then(pl.lit("!")).otherwise(bare)
            bare = bare.str.replace(",", ".", literal=True)
        found = frame.select(text=bare)["text"]
        strange = found.cast(pl.Float64, strict=False).is_null() & text.is_not_null()
        if not strange.any():
            return found.alias(entries.name), None
        return found.zip_with(~strange, text).alias(entries.name), strange

    @property
    def _missing_texts(self) -> list[str]:
        return ["", *(text.strip().lower() for text in (*MISSING_TEXTS, *self.missing))]

    @property
    def _thousands_pattern(self) -> str:
        """Numbers with their thousands apart."""
        return rf"^[+-]?\d{{1,3}}(?:{_APART[self.decimal]}\d{{3}})+(?:{re.escape(self.decimal)}\d*)?$"


PLAIN_NUMBERS = NumberFormat()


def detect_decimal(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    """The decimal mark that fields of the first rows speak for: a comma only where it does not separate fields.

    Where fields are separated by semicolons, as programs do whose decimal mark is a comma, points that might stand
    between thousands do not speak against it.

    >>> detect_decimal([["3,5", "1.250"]], ";"), detect_decimal([["3.5", "a"]], ";"), detect_decimal([["1,250"]], ",")
    (',', '.', '.')
    """
    if delimiter == ",":
        return "."
    fields = [field.strip() for row in rows for field in row]
    point = any(re.fullmatch(r"[+-]?\d*\.\d+", field) and not _THOUSANDS.fullmatch(field) for field in fields)
    comma = any(re.fullmatch(r"[+-]?[\d.]*,\d+", field) for field in fields)
    grouped = any(_THOUSANDS.fullmatch(field) for field in fields)
    return "," if not point and (comma or (grouped and delimiter == ";")) else "."


_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the owner says of a file; None stands for what is found by itself.

    `delimiter` separates fields, `encoding` names how characters became bytes, `decimal` is the decimal mark, `missing`
    are texts that mean a missing number besides the usual ones, and `sheet` is the sheet of a workbook. `person` is the
    column that tells persons apart, each of whom is read as one row: as all of theirs are, or as `person_row` says,
    their "first" or "last". `header_row` is the row with the names of the columns, counted from 1.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = ()
    sheet: str | None = None
    person: str | None = None
    person_row: str | None = None
    header_row: int | None = None

    @property
    def numbers(self) -> NumberFormat:
        """How numbers are written where the file itself does not tell."""
        return NumberFormat(self.decimal or ".", self.missing)


AUTO_DETECT = Dialect()


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a table is written as text: as the one that it was made from, so that the same programs open it."""

    delimiter: str = ","
    encoding: str = "utf-8"
    byte_order_mark: bool = (
        False  # whether a byte order mark goes before UTF-8, without which Excel takes it for something else
    )
    decimal: str = "."
    detection_notes: tuple[str, ...] = ()  # what of this was found by itself, where it is not as usual, in words


DEFAULT_TEXT_FORMAT = TextFormat()


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
        wanted = "UTF-8" if encoding == UTF_8 else encoding
        other = "windows-1252" if encoding == UTF_8 else "utf-8"
        raise TableError(
            f"'{path}' must be {wanted} text; some of its bytes are not. "
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


@runtime_checkable
class Table(Protocol):
    """Rows under named columns."""

    @property
    def name(self) -> str:
        """How messages speak of the table."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names in the header."""

    @property
    def numbers(self) -> NumberFormat:
        """How its text writes numbers."""

    @property
    def text_format(self) -> TextFormat:
        """How a table of text made from it is to be written."""

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """The rows in order, `columns` only, some hundred thousand at a time; every call starts at the first row."""


@dataclass(frozen=True, slots=True, eq=False)
class TableWrapper:
    """A table that is another one, read in some way of its own; what it does not say itself is as it is there."""

    table: Table

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def columns(self) -> tuple[str, ...]:
        return self.table.columns

    @property
    def numbers(self) -> NumberFormat:
        return self.table.numbers

    @property
    def text_format(self) -> TextFormat:
        return self.table.text_format


POLARS = "polars"


def frame_kind(given: object) -> str:
    """Of which library a frame is, where answers come back as one of it: pandas or pyarrow; else polars."""
    library = type(given).__module__.partition(".")[0]
    return library if library in ("pandas", "pyarrow") else POLARS
