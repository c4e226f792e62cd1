"""How bins and groupings are asked for: as words on a command line, or as values in Python."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from privacyfunnel.errors import ParameterError, TableError
from privacyfunnel.names import shortest_text
from privacyfunnel.tables.coding.bins import Bins, Grouping
from privacyfunnel.tables.coding.grouping_rules import MOST_GROUPED, PARTS, ByDate, Ends, Prefix, ValueMap
from privacyfunnel.tables.readers.formats import detect_delimiter, detect_encoding, open_text


def parse_bin(text: str) -> Bins:
    """The bins meant by `COLUMN=` and edges, `quantiles:N`, `width:W`, `top:N`, `month`, `prefix:N`, … or `values`.

    >>> parse_bin("age=0,18,30,50,65").edges
    (0.0, 18.0, 30.0, 50.0, 65.0)
    >>> parse_bin("income=quantiles:8").quantiles
    8
    >>> parse_bin("visit=month").how, parse_bin("icd=prefix:3").how
    (ByDate(part='month', dates=None), Prefix(length=3))
    >>> parse_bin("price=width:1000,top:5000").width, parse_bin("age=top:85").how
    (1000.0, Ends(bottom=None, top=85.0))
    >>> parse_bin("age")
    Traceback (most recent call last):
    ...
    privacyfunnel.errors.ParameterError: bins look like age=0,18,65, age=quantiles:8, age=width:10, age=top:85, \
age=month, age=prefix:3, age=map:FILE or age=values; 'age' does not.
    """
    column, equals, how = text.rpartition("=")
    if not equals or not column:
        raise _shape_error(column or "age", text)
    return column_bins(column, how.strip(), text)


def column_bins(column: str, how: Any, text: str | None = None) -> Bins:
    """The bins of a column as asked for in Python: edges, a number of quantiles, words as above, a map or a grouping.

    >>> column_bins("age", [0, 18, 65]).edges, column_bins("age", 8).quantiles, column_bins("day", "weekday").how
    ((0.0, 18.0, 65.0), 8, ByDate(part='weekday', dates=None))
    """
    if isinstance(how, Bins):
        return how
    if isinstance(how, bool) or how is None:
        raise _shape_error(column, text or f"{column}={how}")
    if isinstance(how, int):
        return Bins(column, quantiles=how)
    if isinstance(how, str):
        return _parse_bin_text(column, how, text or f"{column}={how}")
    if isinstance(how, Mapping):
        return Bins(column, how=ValueMap({str(value): str(group) for value, group in how.items()}))
    if isinstance(how, Iterable):
        return Bins(column, edges=tuple(how))
    return Bins(column, how=how)


def parse_bins(rules: Iterable[Bins | str] | Mapping[str, Any]) -> tuple[Bins, ...]:
    """Bins as they are asked for in Python: `{"age": [0, 18, 65], "visit": "month"}`, or a list of `Bins`.

    >>> [at.column for at in parse_bins({"age": [0, 18, 65], "visit": "month"})]
    ['age', 'visit']
    """
    if isinstance(rules, Mapping):
        return tuple(column_bins(column, how) for column, how in rules.items())
    return tuple(parse_bin(at) if isinstance(at, str) else at for at in rules)


def format_bins(bins: Bins) -> str:
    """The bins as they are asked for on the command line, after `COLUMN=`."""
    if bins.how is not None:
        return bins.how.rule_text
    if bins.quantiles is not None:
        return f"quantiles:{bins.quantiles}"
    if bins.width is not None:
        ends = (("bottom", bins.bottom), ("top", bins.top))
        more = [f"{name}:{shortest_text(end)}" for name, end in ends if end is not None]
        return ",".join([f"width:{shortest_text(bins.width)}", *more])
    return ",".join(map(shortest_text, bins.edges)) or "values"


def read_map(path: str | Path, level: int | None = None) -> ValueMap:
    """A hierarchy as ARX has them, `value;group;coarser group;…` without a header: groups of a level, 1 by default."""
    path = Path(path)
    if not path.is_file():
        raise TableError(f"there is no map '{path}'. Name a file of lines such as value;group.")
    level = 1 if level is None else level
    with open_text(path, detect_encoding(path, None)) as text:
        lines = list(text)
    rows = [row for row in csv.reader(lines, delimiter=detect_delimiter(list(islice(lines, 20)))) if row]
    if any(len(row) <= level for row in rows) or level < 1 or not rows:
        raise TableError(
            f"every line of the map '{path}' must have a value and {level} groups after it; some have not."
        )
    groups = {row[0]: row[level] for row in rows}
    if len(groups) > MOST_GROUPED or not all(value and group for value, group in groups.items()):
        raise TableError(f"the map '{path}' must list up to {MOST_GROUPED} values, none empty, each with its group.")
    if any(groups[row[0]] != row[level] for row in rows):
        raise TableError(f"the map '{path}' must give one group to each value; it gives two to some. Correct it.")
    return ValueMap(groups, f"{path}:{level}" if level > 1 else str(path))


def _parse_bin_text(column: str, how: str, text: str) -> Bins:
    kind, _, rest = how.partition(":")
    try:
        if how == "values":
            return Bins(column)
        if kind in _KINDS:
            return _KINDS[kind](column, rest)
        if kind in PARTS:
            return Bins(column, how=ByDate(kind, rest or None))
        if kind in {"width", "top", "bottom"}:
            return _parse_ends(column, dict(part.split(":") for part in how.split(",")))
        return Bins(column, edges=tuple(float(edge) for edge in how.split(",")))
    except ValueError:
        raise _shape_error(column, text) from None


_KINDS: Mapping[str, Callable[[str, str], Bins]] = {
    "quantiles": lambda column, number: Bins(column, quantiles=int(number)),
    "prefix": lambda column, number: Bins(column, how=Prefix(int(number))),
    "map": lambda column, file: Bins(column, how=_parse_map(file)),
}


def _parse_map(rest: str) -> Grouping:
    path, colon, level = rest.rpartition(":")
    return read_map(path, int(level)) if colon and level.isdigit() else read_map(rest)


def _parse_ends(column: str, words: Mapping[str, str]) -> Bins:
    if not set(words) <= {"width", "bottom", "top"}:
        raise ValueError
    numbers = {name: float(number) for name, number in words.items()}
    bottom, top = numbers.get("bottom"), numbers.get("top")
    if "width" in numbers:
        return Bins(column, width=numbers["width"], bottom=bottom, top=top)
    return Bins(column, how=Ends(bottom, top))


def _shape_error(column: str, text: str) -> ParameterError:
    shapes = ["0,18,65", "quantiles:8", "width:10", "top:85", "month", "prefix:3", "map:FILE"]
    listed = ", ".join(f"{column}={shape}" for shape in shapes)
    return ParameterError(f"bins look like {listed} or {column}=values; '{text}' does not.")
