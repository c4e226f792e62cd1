"""Impossible combinations: two values of different columns that nobody has together, as a small table.

    relationship,sex,marital-status
    Wife,Male,
    Husband,Female,
    Husband,,Never-married

Every line names two values, in the columns they belong to; other entries are blank.
"""

from __future__ import annotations

import csv
from pathlib import Path

from privacyfunnel.errors import TableError

Value = tuple[str, str]  # a column and one of its labels


def read_zeros(path: Path) -> tuple[tuple[Value, Value], ...]:
    """The pairs of values that a file calls impossible."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"'{path}' must be a CSV file in UTF-8 of impossible combinations; {error}.") from None
    found = []
    for number, line in enumerate(lines[1:], 2):
        named = [(name, entry) for name, entry in zip(lines[0], line, strict=False) if entry.strip()]
        if not any(map(str.strip, line)):
            continue
        if len(named) != 2:
            raise TableError(
                f"'{path}' must name two values in each line, in the columns they belong to; line {number} names "
                f"{len(named)}. Say by two values what nobody has together."
            )
        found.append((named[0], named[1]))
    if not found:
        raise TableError(f"'{path}' must name impossible combinations below the names of columns; it names none.")
    return tuple(found)
