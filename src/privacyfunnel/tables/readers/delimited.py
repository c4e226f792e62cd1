"""CSV and TSV: text with a delimiter, double quotes around fields that need them (RFC 4180). Every field is text."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray
from privacyfunnel.errors import ParameterError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.tables.readers.column_selection import (
    find_header_row,
    require_columns,
    select_columns,
    select_expression,
)
from privacyfunnel.tables.readers.formats import (
    HEAD,
    UTF_8,
    Dialect,
    NumberFormat,
    TextFormat,
    detect_decimal,
    detect_delimiter,
    detect_encoding,
    has_blank_end,
    has_byte_order_mark,
    is_compressed,
    open_text,
)

BATCH_ROWS = 1 << 17  # some ten megabytes of a few columns
CHUNK = 1 << 23  # bytes that are read together
BLOCK = 1 << 18  # fits into the cache of a core
LONGEST_RECORD = 1 << 25  # bytes of a record: a longer one has an open quote, and fills memory
SNIFFED_LINES = 20  # lines that tell the delimiter
SNIFFED_NUMBERS = 500  # lines that tell the decimal mark


class DelimitedTable:
    """A delimited text file whose header has been read."""

    def __init__(
        self,
        path: Path,
        columns: tuple[str, ...],
        encoding: str,
        text_format: TextFormat,
        numbers: NumberFormat,
        *,
        plain: bool,
        delimiter_count: int | None = None,
        titles: int = 0,
    ) -> None:
        self.path = path
        self.columns = columns
        self.delimiter = text_format.delimiter
        self.encoding = encoding
        self.text_format = text_format
        self.numbers = numbers
        self.plain = plain  # UTF-8 on disk, ending with a record: polars may read the file itself
        self._titles = titles  # lines above the header
        self._delimiter_count = delimiter_count  # delimiters, if all bytes were looked at already
        self._rectangular = False  # until the first reading has shown it

    @property
    def name(self) -> str:
        return f"'{self.path}'"

    @classmethod
    def open(cls, path: Path, dialect: Dialect) -> "DelimitedTable":
        """Find out from the first lines and the bytes of the file how it is to be read, unless the dialect says it."""
        delimiter = dialect.delimiter
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
            raise ParameterError(
                f"a delimiter must be one ASCII character; {delimiter!r} is not. Give one such as ';'."
            )
        counting = _DelimiterCounter(delimiter or detect_delimiter(_first_lines(path)), f"'{path}'")
        encoding = detect_encoding(path, dialect.encoding, None if is_compressed(path) else counting.add)
        with open_text(path, encoding) as text:
            first = list(islice(iter(lambda: text.readline(CHUNK), ""), SNIFFED_NUMBERS))
        titles = find_header_row(_rows_of_lines(first[:SNIFFED_LINES], delimiter), dialect.header_row)
        first = first[titles:]
        lines = first[:SNIFFED_LINES]
        if not lines or not lines[0].strip():
            raise TableError(f"'{path}' must begin with a header of column names; its first line is blank.")
        try:
            delimiter = delimiter or detect_delimiter(lines)
            header = tuple(next(csv.reader(lines, delimiter=delimiter)))
        except csv.Error as error:
            raise TableError(
                f"'{path}' must have lines that end with a line feed, and fields of at most {csv.field_size_limit():,} "
                "characters; it has not. Save it as CSV with the line ends of Unix or Windows."
            ) from error
        repeated = next((column for column, count in Counter(header).items() if count > 1), None)
        if repeated is not None:
            raise TableError(f"'{path}' must name every column once; '{repeated}' occurs twice. Rename one of them.")
        plain = encoding == UTF_8 and not titles and not is_compressed(path) and not has_blank_end(path)
        counted = counting.count if plain and dialect.encoding is None and counting.delimiter == delimiter else None
        decimal = dialect.decimal or detect_decimal(_fields(first, delimiter), delimiter)
        numbers = NumberFormat(decimal, dialect.missing)
        written = _detect_text_format(path, dialect, delimiter, encoding, decimal)
        if titles and dialect.header_row is None:
            written = replace(written, detection_notes=(*written.detection_notes, f"names in row {titles + 1}"))
        return cls(path, header, encoding, written, numbers, plain=plain, delimiter_count=counted, titles=titles)

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """The rows in order. Raises if there is none, or if a row has too many or too few fields."""
        last = self.columns[-1]
        needed = list(dict.fromkeys([*columns, last]))
        rows = gaps = 0
        try:
            for batch in self._scan_batches(needed) if self.plain else self._parse_batches(needed):
                rows += batch.height
                gaps += batch[last].null_count()
                yield select_columns(require_columns(batch, needed, self.name), columns)
        except pl.exceptions.PolarsError as error:
            self._refuse_ragged()
            raise TableError(
                f"{self.name} cannot be read as CSV with the delimiter {self.delimiter!r}: its quotes do not match up. "
                "Put a field that holds a quote in quotes, and double the quotes inside."
            ) from error
        if rows == 0:
            raise TableError(f"{self.name} must have rows; it has a header only.")
        if not self._rectangular and not (self._every_row_is_full(rows) if gaps else self._delimiters_suffice(rows)):
            self._refuse_ragged()
        self._rectangular = True

    def _scan_batches(self, columns: list[str]) -> Iterator[pl.DataFrame]:
        """polars reads the file itself, on all its threads."""
        self._count_delimiters()
        yield from (
            self._lazy(self.path, header=True).select(select_expression(columns)).collect_batches(chunk_size=BATCH_ROWS)
        )

    def _parse_batches(self, columns: list[str]) -> Iterator[pl.DataFrame]:
        """The text is decoded here, some megabytes of whole records at a time, and parsed by polars."""
        for number, records in enumerate(self._records()):
            yield self._lazy(records, header=number == 0).select(select_expression(columns)).collect()

    def _lazy(self, source: Path | bytes, *, header: bool) -> pl.LazyFrame:
        # The header has been read; polars would not undouble the quotes in it.
        schema, skipped = dict.fromkeys(self.columns, pl.String), 1 if header else 0
        return pl.scan_csv(
            source, has_header=False, skip_rows=skipped, schema=schema, separator=self.delimiter, glob=False
        )

    def _records(self) -> Iterator[bytes]:
        """The file as UTF-8, cut between records, without blank lines at its end (in one column they mean missing)."""
        with self._open_below_titles() as text:
            chunk = self._record_chunk(text)
            while chunk:
                following = self._record_chunk(text)
                last = not following and len(self.columns) > 1
                yield (chunk.rstrip("\r\n") if last else chunk).encode()
                chunk = following

    @contextmanager
    def _open_below_titles(self) -> Iterator[TextIO]:
        """The text from its header on."""
        with open_text(self.path, self.encoding) as text:
            for _ in range(self._titles):
                text.readline()
            yield text

    def _record_chunk(self, text: TextIO) -> str:
        pieces = [text.read(CHUNK)]
        size, quotes = len(pieces[0]), pieces[0].count('"')
        while pieces[-1] and (quotes % 2 or not pieces[-1].endswith("\n")):  # within a line, or a quoted field
            pieces.append(text.read(CHUNK // 8) if quotes % 2 else text.readline(CHUNK))
            size, quotes = size + len(pieces[-1]), quotes + pieces[-1].count('"')
            if size > CHUNK + LONGEST_RECORD:
                raise _long_record_error(self.name)
        if quotes % 2:
            raise pl.exceptions.ComputeError("a quote is not closed")
        return "".join(pieces)

    # polars fills up short rows with nulls and, asked for a few columns, overlooks what is too much in a long row.
    # If the last column has no gap, no row is short, and the number of delimiters tells whether one is long.

    def _delimiters_suffice(self, rows: int) -> bool:
        return self._count_delimiters() == (rows + 1) * (len(self.columns) - 1)

    def _count_delimiters(self) -> int:
        """The number of delimiters outside quotes; refuses a record that is too long for polars."""
        if self._delimiter_count is None:
            counting = _DelimiterCounter(self.delimiter, self.name)
            for block in self._blocks():
                counting.add(block)
            self._delimiter_count = counting.count
        return self._delimiter_count

    def _every_row_is_full(self, rows: int) -> bool:
        """Whether every n-th mark, and no other, ends a record: n fields have n − 1 delimiters and one end."""
        width, before, quotes = len(self.columns), 0, _Quotes()
        for octets, quoted in map(quotes.quoted_mask, self._blocks()):
            ends = octets == ord("\n")
            marks = ends | (octets == ord(self.delimiter))
            kinds = ends[np.flatnonzero(marks if quoted is None else marks & ~quoted)]
            due = kinds[(width - 1 - before) % width :: width]
            if not due.all() or np.count_nonzero(kinds) != len(due):
                return False
            before += len(kinds)
        return 0 <= (rows + 1) * width - before <= 1  # the last record may have no end

    def _blocks(self) -> Iterator[bytes]:
        if not self.plain:
            yield from self._records()
            return
        with self.path.open("rb") as file:
            while block := file.read(BLOCK):
                yield block

    def _refuse_ragged(self) -> None:
        """Look slowly for the first row with a wrong number of fields, and say where it is."""
        width, blank = len(self.columns), 0
        with self._open_below_titles() as text:
            reader = csv.reader(text, delimiter=self.delimiter)
            line = 0
            try:
                for row in reader:
                    if row and blank and width > 1:
                        raise TableError(
                            f"{self.name} must have a row on every line; line {blank} is blank. Remove it."
                        )
                    if row and len(row) != width:
                        raise TableError(
                            f"every row of {self.name} must have {width} fields; line {line + 1} has {len(row)}. "
                            f"Correct it, or name the delimiter with {hint('delimiter')}."
                        )
                    line = reader.line_num
                    blank = blank or (0 if row else line)
            except csv.Error as error:
                raise TableError(
                    f"{self.name} must close every quote; one that opens on line {line + 1} stays open. Close it."
                ) from error


class _Quotes:
    """Which bytes of blocks that follow each other stand in quotes."""

    def __init__(self) -> None:
        self._inside = False

    def quoted_mask(self, block: bytes) -> tuple[NDArray[np.uint8], BoolArray | None]:
        """The bytes of a block, and which of them stand in quotes, if any does."""
        octets = np.frombuffer(block, dtype=np.uint8)
        if not self._inside and b'"' not in block:
            return octets, None
        quoted = ((np.cumsum(octets == ord('"')) + self._inside) & 1).astype(np.bool_)
        self._inside = bool(quoted[-1])
        return octets, quoted


class _DelimiterCounter:
    """The number of delimiters outside quotes in consecutive blocks, none of whose records is too long."""

    def __init__(self, delimiter: str, table: str) -> None:
        self.delimiter, self.count, self._table = delimiter, 0, table
        self._quotes = _Quotes()
        self._open = 0  # bytes of the record that the last block did not end

    def add(self, block: bytes) -> None:
        """Count one more block."""
        octets, quoted = self._quotes.quoted_mask(block)
        marks = octets == ord(self.delimiter)
        self.count += int(np.count_nonzero(marks if quoted is None else marks & ~quoted))
        if quoted is None:
            end = block.rfind(b"\n")
        else:
            ends = np.flatnonzero((octets == ord("\n")) & ~quoted)
            end = int(ends[-1]) if len(ends) else -1
        self._open = len(block) - 1 - end + (self._open if end < 0 else 0)
        if self._open > LONGEST_RECORD:
            raise _long_record_error(self._table)


def _long_record_error(table: str) -> TableError:
    return TableError(
        f"a record of {table} must have at most {LONGEST_RECORD:,} characters; one has more. Usually a quote is not "
        "closed: close it, or shorten the field."
    )


def _first_lines(path: Path) -> list[str]:
    """The first lines as far as their ASCII goes, which delimiters are: enough for a guess."""
    with path.open("rb") as file:
        return file.read(HEAD).decode("latin-1").split("\n")[:SNIFFED_LINES]


def _rows_of_lines(lines: Sequence[str], delimiter: str | None) -> list[list[str]]:
    """Each line by itself, cut by the delimiter that suits most of them."""
    delimiters = [detect_delimiter(lines[i:]) for i in range(len(lines))] if delimiter is None else [delimiter]
    commonest = Counter(delimiters).most_common(1)[0][0] if delimiters else ","
    with suppress(csv.Error):
        return [next(csv.reader([line], delimiter=commonest), []) for line in lines]
    return []


def _fields(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The fields of the first rows, as far as they can be read."""
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a field that is too long; it is said when the file is read
        rows.extend(csv.reader(lines, delimiter=delimiter))
    return rows[1:]


def _detect_text_format(path: Path, dialect: Dialect, delimiter: str, encoding: str, decimal: str) -> TextFormat:
    """How the file is written, and what of it nobody said."""
    utf_8 = encoding == UTF_8
    name = {"cp1252": "windows-1252"}.get(encoding, encoding)
    notes = [] if utf_8 or dialect.encoding is not None else [f"{name} text"]
    notes += [] if decimal == "." or dialect.decimal is not None else ["decimal commas"]
    return TextFormat(
        delimiter, "utf-8" if utf_8 else encoding, utf_8 and has_byte_order_mark(path), decimal, tuple(notes)
    )
