"""Formats: suffixes of file names, number formats, and dialects of text.

A number may have thousands separators: the other mark, a space or an apostrophe. `1.234,56` is read where the decimal
mark is a comma, `1,234.56` where it is a point. `12.5` in a table of decimal commas is refused, since it contradicts
the reading of `1.234`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privacyfunnel.errors import ParameterError

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
