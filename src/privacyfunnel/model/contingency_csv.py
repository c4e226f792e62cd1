"""Contingency tables as files: first column the secret's labels, header the values."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from privacyfunnel.errors import DistributionError, ParameterError, TableError
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.protocols.channel_protocol import Labels

DELIMITERS = ",;\t"
DECIMAL_COMMA = re.compile(r"-?\d*,\d+(?:[eE][+-]?\d+)?", re.ASCII)


def read_counts(path: str | Path) -> Joint:
    """The joint of a CSV file that counts: a line per secret, a column per value.

    Whole numbers are counts; decimals are probabilities and must sum to 1.
    """
    header, body = read_cells(path)
    cells = [line[1:] for line in body]
    secrets, values = [line[0] for line in body], header[1:]
    try:
        if all(cell.strip().isdecimal() for line in cells for cell in line):
            return Joint.from_counts([[int(cell) for cell in line] for line in cells], secrets, values)
        numbers = [[float(cell) for cell in line] for line in cells]
    except ValueError:
        raise DistributionError(
            f"Counts must be whole numbers of at least 0; '{path}' holds something else. "
            "The first column is for the secret's labels, the header for the values."
        ) from None
    if all(number.is_integer() for line in numbers for number in line):
        return Joint.from_counts(numbers, secrets, values)
    return Joint.from_probabilities(numbers, secrets, values)


def read_table(path: str, lines_are: str, cells_are: str) -> tuple[Labels, Labels, tuple[tuple[float, ...], ...]]:
    """The labels of the lines of such a file, those of its columns, and its cells as numbers."""
    header, body = read_cells(path, lines_are)
    try:
        cells = tuple(tuple(float(cell) for cell in line[1:]) for line in body)
    except ValueError:
        raise ParameterError(f"{cells_are} must be numbers; some in '{path}' are not. Correct them.") from None
    return tuple(line[0] for line in body), tuple(header[1:]), cells


def read_cells(path: str | Path, lines_are: str = "secret") -> tuple[list[str], list[list[str]]]:
    """The header of a CSV file with labels on two sides, and its lines, each of which begins with its label."""
    with open_csv(path) as file:
        lines = _split_lines(file.read())
    if len(lines) < 2 or len(lines[0]) < 2:
        raise TableError(
            f"'{path}' must hold a header of values and a line per {lines_are}; it has {len(lines)} lines of "
            f"{len(lines[0]) if lines else 0} fields. Put the {lines_are}'s labels in the first column."
        )
    header, body = lines[0], lines[1:]
    ragged = sum(len(line) != len(header) for line in body)
    if ragged:
        raise TableError(
            f"Every line of '{path}' must have {len(header)} fields like its header; {ragged} have not. Correct them."
        )
    return header, body


@contextmanager
def open_csv(path: str | Path) -> Iterator[TextIO]:
    """A CSV file in UTF-8 while it is read; what is none is refused in one sentence."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            yield file
    except FileNotFoundError:
        raise TableError(f"no file '{path}'. Name a CSV file that exists.") from None
    except (UnicodeDecodeError, csv.Error):
        raise TableError(f"'{path}' must be a CSV file in UTF-8; it is not. Save it as one.") from None
    except OSError as error:
        raise TableError(f"'{path}' could not be read: {(error.strerror or str(error)).lower()}.") from None


def _split_lines(text: str) -> list[list[str]]:
    """The fields of each line that has any: with the first delimiter by which all lines have as many, two or more.

    Where that is no comma, one may be a decimal mark.

    >>> _split_lines("s;a;b\\nx;0,5;1\\n")
    [['s', 'a', 'b'], ['x', '0.5', '1']]
    """
    found: list[list[str]] = []
    for delimiter in DELIMITERS:
        read = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
        lines = [line for line in read if line]
        if lines and len(lines[0]) > 1 and len({len(line) for line in lines}) == 1:
            return lines if delimiter == "," else [lines[0], *map(_replace_decimal_commas, lines[1:])]
        found = found or lines
    return found


def _replace_decimal_commas(line: list[str]) -> list[str]:
    """The line with decimal points in cells that are numbers with a comma; its label stays as it is."""
    cells = [cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell.strip()) else cell for cell in line[1:]]
    return [line[0], *cells]
