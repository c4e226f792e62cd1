"""Files of other programs, read whole: a sheet of Excel, tables of Stata, SPSS and SAS, JSON by lines.

Codes with labels come as their labels: `1` that stands for `female` is read as `female`, as the program would show it.
Whole numbers are whole: programs keep them as floats where there are gaps.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from html import escape
from pathlib import Path
from typing import IO, Any

import polars as pl

from privacyfunnel.errors import ParameterError, PrivacyFunnelError, TableError
from privacyfunnel.hints import hint
from privacyfunnel.tables.coding.coders import as_text
from privacyfunnel.tables.readers.column_selection import (
    HEADER_ROWS,
    find_header_row,
    require_columns,
    select_columns,
    select_expression,
)
from privacyfunnel.tables.readers.formats import DEFAULT_TEXT_FORMAT, PLAIN_NUMBERS, Dialect, NumberFormat, TextFormat

BATCH_ROWS = 1 << 17
MOST_SHEET_CELLS = 1 << 27  # up to the last row and column of a sheet: 4 GB once it is read
MOST_WORKBOOK_BYTES = 1 << 32  # unpacked
SHEET_PIECE = 1 << 20  # bytes that are looked at together
LONGEST_TAG = 1 << 20
_ROW = re.compile(rb"<(?:\w+:)?row[\s/>]")
_CELL = re.compile(rb"<(?:\w+:)?c[\s/>]")
_SHEET, _LINK = re.compile(r"<(?:\w+:)?sheet\s[^>]*>"), re.compile(r"<(?:\w+:)?Relationship\s[^>]*>")
_MERGED = re.compile(r"<(?:\w+:)?mergeCell\s+ref=[\"']([A-Z]+)(\d+):[A-Z]+(\d+)")
_ADDRESS = re.compile(rb"\br=[\"']([A-Z]{0,3})(\d{0,7})[\"']")
ForeignRows = tuple[pl.DataFrame, tuple[str, ...]]  # the rows, and what was found by itself, in words


@dataclass(frozen=True, slots=True, eq=False)
class ForeignTable:
    """A table that another program wrote, in memory."""

    path: Path
    rows: pl.DataFrame
    numbers: NumberFormat
    text_format: TextFormat

    @property
    def name(self) -> str:
        return f"'{self.path}'"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.rows.columns)

    @classmethod
    def open(cls, path: Path, suffix: str, dialect: Dialect) -> ForeignTable:
        """Read the file by its format."""
        try:
            rows, found = READERS[suffix](path, dialect)
        except PrivacyFunnelError:
            raise
        except Exception as error:  # every library has errors of its own; their text may quote the data
            raise TableError(
                f"'{path}' must be a whole {suffix} file; it is damaged or something else. Get a fresh copy."
            ) from error
        rows = rows.select(_restore_integers(column) for column in rows.get_columns())
        # A mark before UTF-8, for whoever opens the result with the program that wrote the table.
        return cls(path, rows, dialect.numbers, TextFormat(byte_order_mark=suffix == ".xlsx", detection_notes=found))

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        if not self.rows.height:
            raise TableError(f"{self.name} must have rows; it has none.")
        yield from require_columns(select_columns(self.rows, columns), columns, self.name).iter_slices(BATCH_ROWS)


def _check_workbook(path: Path) -> None:
    """Refuse a workbook that would fill memory: its reader makes a cell for each place up to the last row and column.

    The end of a sheet follows from its cells: from their addresses, or from their number where they have none.
    """
    with zipfile.ZipFile(path) as book:
        sheets = [entry for entry in book.infolist() if entry.filename.startswith("xl/")]
        size = sum(entry.file_size for entry in sheets)
        if size > MOST_WORKBOOK_BYTES:
            raise _workbook_error(path, f"its parts have {size:,} bytes")
        for entry in sheets:
            if entry.filename.startswith("xl/worksheets/") and entry.filename.endswith(".xml"):
                with book.open(entry) as file:
                    rows, columns = _sheet_extent(file)
                if rows * columns > MOST_SHEET_CELLS:
                    raise _workbook_error(path, f"a sheet has {rows:,} × {columns:,}")


def _sheet_extent(file: IO[bytes]) -> tuple[int, int]:
    """The last row and column of a sheet's XML, or more."""
    rows = listed = columns = cells = 0
    rest = b""
    while piece := file.read(SHEET_PIECE):
        text = rest + piece
        cut = text.rfind(b"<") if b"<" in text else len(text)
        text, rest = text[:cut], text[cut:][-LONGEST_TAG:]
        first, *others = _ROW.split(text)
        listed += len(others)
        for number, row in enumerate((first, *others)):
            cells = (cells if number == 0 else 0) + len(_CELL.findall(row))
            columns = max(columns, cells)
        for letters, digits in set(_ADDRESS.findall(text)):
            rows, columns = max(rows, int(digits or 0)), max(columns, _column_number(letters))
    return max(rows, listed), columns


def _column_number(letters: bytes) -> int:
    """The number of a column.

    >>> _column_number(b"A"), _column_number(b"XFD")
    (1, 16384)
    """
    return reduce(lambda number, letter: number * 26 + letter - ord("A") + 1, letters, 0)


def _workbook_error(path: Path, found: str) -> TableError:
    return TableError(
        f"a sheet of '{path}' must have at most {MOST_SHEET_CELLS:,} cells up to its last row and column; {found}. "
        "Remove far cells that are empty, or save the sheet as CSV."
    )


def _read_excel(path: Path, dialect: Dialect) -> ForeignRows:
    import fastexcel

    _check_workbook(path)
    book = fastexcel.read_excel(path)
    sheet = _sheet_of_table(book) if dialect.sheet is None else dialect.sheet
    if sheet not in book.sheet_names:
        raise ParameterError(
            f"'{path}' has no sheet '{sheet}'; it has {', '.join(book.sheet_names[:10])}. Name one with "
            f"{hint('sheet')}."
        )
    notes: tuple[str, ...] = (f"the sheet {sheet}",) if dialect.sheet is None and len(book.sheet_names) > 1 else ()
    top = [["" if cell is None else str(cell) for cell in row] for row in _first_rows(book, sheet)]
    titles = find_header_row(top, dialect.header_row)
    notes += (f"names in row {titles + 1}",) if titles and dialect.header_row is None else ()
    _refuse_merged_rows(path, sheet, titles)
    options = {"header_row": titles} if titles else {}
    return (
        pl.read_excel(path, sheet_name=sheet, engine="calamine", infer_schema_length=None, read_options=options),
        notes,
    )


def _refuse_merged_rows(path: Path, sheet: str, titles: int) -> None:
    """Refuse cells that were merged over several rows of a table: only the first of these would have their value."""
    with zipfile.ZipFile(path) as book:
        listed = book.read("xl/workbook.xml").decode("utf-8", "replace")
        entry = next((tag for tag in _SHEET.findall(listed) if f'name="{escape(sheet)}"' in tag), "")
        number = re.search(r'r:id="([^"]+)"', entry)
        links = book.read("xl/_rels/workbook.xml.rels").decode("utf-8", "replace")
        tag = next((tag for tag in _LINK.findall(links) if number and f'Id="{number[1]}"' in tag), "")
        target = re.search(r'Target="/?(?:xl/)?([^"]+)"', tag)
        name = "" if target is None else f"xl/{target[1]}"
        text = book.read(name).decode("utf-8", "replace") if name in book.namelist() else ""
    for letters, first, last in _MERGED.findall(text):
        if int(first) < int(last) and int(last) > titles + 1:
            raise TableError(
                f"the sheet '{sheet}' has merged cells in column {letters}, rows {first} to {last}: only the first of "
                "these rows would have their value. Unmerge them and fill the value down."
            )


def _sheet_of_table(book: Any) -> str:
    """The first sheet that holds a table and no mere title; the first where none does."""
    names: list[str] = book.sheet_names
    tops = ((name, _first_rows(book, name)) for name in names)
    return next((name for name, top in tops if len(top) > 1 and len(top[0]) > 1), names[0])


def _first_rows(book: Any, sheet: str) -> list[tuple[Any, ...]]:
    """The rows in which names may stand, as they are; blank ones above them count."""
    cells = book.load_sheet(sheet, header_row=None, skip_rows=0, n_rows=HEADER_ROWS, dtypes="string").to_polars()
    found: list[tuple[Any, ...]] = cells.rows()
    return found


def _labelled_reader(reader: str) -> Callable[[Path, Dialect], ForeignRows]:
    """What reads a format with `pyreadstat`, codes as the labels that the file has for them."""

    def read(path: Path, dialect: Dialect) -> ForeignRows:
        import pyreadstat

        rows, about = getattr(pyreadstat, reader)(path, output_format="polars", encoding=dialect.encoding)
        labels: Mapping[str, Mapping[Any, str]] = about.variable_value_labels
        named = {column: known for column, known in labels.items() if column in rows.columns and known}
        notes = (f"labels of {', '.join(list(named)[:5])}",) if named else ()
        return rows.with_columns(_apply_labels(rows[column], known) for column, known in named.items()), notes

    return read


def _apply_labels(codes: pl.Series, labels: Mapping[Any, str]) -> pl.Series:
    """Labels in place of codes; a code without one stays as it is."""
    texts = as_text(_restore_integers(codes))
    known = dict(zip(as_text(_restore_integers(pl.Series(list(labels)))).to_list(), labels.values(), strict=True))
    return texts.replace(known).alias(codes.name)


def _read_json(path: Path, dialect: Dialect) -> ForeignRows:
    return pl.read_ndjson(path, infer_schema_length=None), ()


def _restore_integers(column: pl.Series) -> pl.Series:
    """Floats that are whole numbers, or missing, as whole numbers."""
    if not column.dtype.is_float():
        return column
    values = column.fill_nan(None)
    whole = values.is_finite() & (values == values.round()) & (values.abs() < 2**53)
    return values.cast(pl.Int64) if whole.fill_null(True).all() else column


# What each end of a name needs to be installed, and who reads it.
READERS: Mapping[str, Callable[[Path, Dialect], ForeignRows]] = {
    ".xlsx": _read_excel,
    ".dta": _labelled_reader("read_dta"),
    ".sav": _labelled_reader("read_sav"),
    ".zsav": _labelled_reader("read_sav"),
    ".sas7bdat": _labelled_reader("read_sas7bdat"),
    ".jsonl": _read_json,
    ".ndjson": _read_json,
}


SLICE_ROWS = {"Parquet": 1 << 20, "Arrow": 1 << 23}  # record batches may be long, and a slice reads whole ones


@dataclass(frozen=True, slots=True)
class ColumnarTable:
    """A Parquet or Arrow IPC file whose footer has been read."""

    path: Path
    kind: str
    columns: tuple[str, ...]
    numbers: NumberFormat = PLAIN_NUMBERS  # how its columns of text write them
    text_format: TextFormat = DEFAULT_TEXT_FORMAT

    @property
    def name(self) -> str:
        return f"'{self.path}'"

    @classmethod
    def open(cls, path: Path, kind: str, numbers: NumberFormat = PLAIN_NUMBERS) -> ColumnarTable:
        table = cls(path, kind, (), numbers)
        try:
            return cls(path, kind, tuple(table._scan().collect_schema().names()), numbers)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise table._damage_error() from error

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        rows = 0
        try:
            for batch in self._parts(columns):
                rows += batch.height
                yield require_columns(batch, columns, self.name)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._damage_error() from error
        if rows == 0:
            raise TableError(f"{self.name} must have rows; it has none.")

    def _parts(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        # As one stream, polars would read a Parquet file ahead without bound, and keep all of an Arrow file mapped.
        step = SLICE_ROWS[self.kind]
        for start in range(0, self._scan().select(pl.len()).collect().item(), step):
            yield from (
                self._scan()
                .select(select_expression(columns))
                .slice(start, step)
                .collect_batches(chunk_size=BATCH_ROWS)
            )

    def _scan(self) -> pl.LazyFrame:
        if self.kind == "Parquet":
            return pl.scan_parquet(self.path, glob=False)
        return pl.scan_ipc(self.path, glob=False)

    def _damage_error(self) -> TableError:
        return TableError(
            f"{self.name} must be a whole {self.kind} file; it is damaged or something else. Get a fresh copy."
        )
