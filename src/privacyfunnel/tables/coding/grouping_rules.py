"""Groupings: coarser values in place of a column's own, by a rule that anybody can follow again.

Dates become years, quarters, months, weeks or weekdays; codes become their first characters; numbers are cut off at the
top and at the bottom; a file maps values to groups. A grouping is a map g of values: what is promised of g(x) under LIP
and LDP is promised of x too (Theorem 37). The rule stands in the protocol file, and names nobody.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from privacyfunnel.errors import ParameterError
from privacyfunnel.names import shortest_text
from privacyfunnel.tables.coding.bins import GroupedEntries, Grouping
from privacyfunnel.tables.coding.coders import as_text, parse_plain_number, sort_labels
from privacyfunnel.tables.readers.column_selection import drop_name
from privacyfunnel.tables.readers.formats import NumberFormat

MOST_GROUPED = 1 << 16  # values that a map may list
_SHAPES = {"ymd": ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d"), "dmy": ("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y")}
_SHAPES["mdy"] = ("%m/%d/%Y", "%m-%d-%Y", "%m.%d.%Y")
_SAFE = (*_SHAPES["ymd"], "%d.%m.%Y")  # what nobody reads the other way round
_HOUR = r"[ T]\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?$"
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, slots=True)
class ByDate:
    """The year (2024), quarter (2024-Q2), month (2024-05), ISO week (2024-W18) or weekday (Wed) of a date.

    `dates` says in which order day, month and year stand: `ymd`, `dmy` or `mdy`; left out, only texts that cannot be
    read in two ways are dates: 2024-05-01, 2024/05/01, 20240501, 01.05.2024.
    """

    part: str
    dates: str | None = None

    def __post_init__(self) -> None:
        if self.part not in PARTS:
            raise ParameterError(f"dates are grouped by {', '.join(PARTS)}; not by '{self.part}'.")
        if self.dates not in {None, *_SHAPES}:
            raise ParameterError(f"dates are written {', '.join(_SHAPES)}; not '{self.dates}'.")

    @property
    def rule_text(self) -> str:
        return self.part if self.dates is None else f"{self.part}:{self.dates}"

    @property
    def requirement(self) -> str:
        if self.dates is not None:
            return f"hold dates, written {self.dates}, to be grouped by {self.part}"
        return f"hold dates such as 2024-05-01 or 01.05.2024 to be grouped by {self.part}"

    @property
    def hint(self) -> str:
        return f"{self.part}:dmy or {self.part}:mdy says in which order day and month stand"

    def labels(self, entries: pl.Series, numbers: NumberFormat) -> GroupedEntries:
        if isinstance(entries.dtype, pl.Date | pl.Datetime):
            return self._date_part(drop_name(entries).cast(pl.Date)).alias(entries.name), None
        text, _ = numbers.normalise(as_text(entries).alias(entries.name))
        text = drop_name(text)
        days = text.str.replace(_HOUR, "")
        dates = pl.Series([None] * len(text), dtype=pl.Date)
        for shape in _SHAPES[self.dates] if self.dates else _SAFE:
            dates = dates.zip_with(dates.is_not_null(), days.str.to_date(shape, strict=False))
        found = self._date_part(dates)
        found = found.zip_with(found.is_not_null() | ~text.str.contains(PARTS[self.part][1]).fill_null(False), text)
        return _split_unmatched(found, text, entries.name)

    def _date_part(self, dates: pl.Series) -> pl.Series:
        if self.part == "quarter":
            return dates.dt.year().cast(pl.String) + "-Q" + dates.dt.quarter().cast(pl.String)
        if self.part == "decade":
            return (dates.dt.year() // 10 * 10).cast(pl.String) + "s"
        if self.part == "weekday":
            return (dates.dt.weekday() - 1).replace_strict(range(7), list(WEEKDAYS), return_dtype=pl.String)
        return dates.dt.strftime(PARTS[self.part][0])

    def sort_labels(self, labels: Iterable[str]) -> list[str]:
        if self.part == "weekday":
            return sorted(labels, key=lambda label: WEEKDAYS.index(label) if label in WEEKDAYS else len(WEEKDAYS))
        return sorted(labels)

    def to_json(self) -> dict[str, Any]:
        return {"by": self.part, **({} if self.dates is None else {"dates": self.dates})}


PARTS = {  # how a part of a date is written, and what it looks like
    "decade": ("", r"^\d{3}0s$"),
    "year": ("%Y", r"^\d{4}$"),
    "quarter": ("", r"^\d{4}-Q[1-4]$"),
    "month": ("%Y-%m", r"^\d{4}-\d\d$"),
    "week": ("%G-W%V", r"^\d{4}-W\d\d$"),
    "weekday": ("", rf"^(?:{'|'.join(WEEKDAYS)})$"),
}


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first characters of a text: of a ZIP or ICD code, say."""

    length: int

    def __post_init__(self) -> None:
        if not 1 <= self.length <= 1000:
            raise ParameterError(f"a prefix must have 1 to 1000 characters; {self.length} were asked for.")

    @property
    def rule_text(self) -> str:
        return f"prefix:{self.length}"

    @property
    def requirement(self) -> str:
        return "hold text to be grouped by its beginning"

    def labels(self, entries: pl.Series, numbers: NumberFormat) -> GroupedEntries:
        return as_text(entries).str.head(self.length).alias(entries.name), None

    def sort_labels(self, labels: Iterable[str]) -> list[str]:
        return sort_labels(labels)

    def to_json(self) -> dict[str, Any]:
        return {"prefix": self.length}


@dataclass(frozen=True, slots=True)
class Ends:
    """Numbers as they are, but those up to `bottom` and from `top` on, which have a label in common each."""

    bottom: float | None = None
    top: float | None = None

    def __post_init__(self) -> None:
        for name in ("bottom", "top"):
            end = getattr(self, name)
            object.__setattr__(self, name, None if end is None else float(end))
        ends = [end for end in (self.bottom, self.top) if end is not None]
        if not ends or not all(map(math.isfinite, ends)) or ends != sorted(set(ends)):
            raise ParameterError("top and bottom codes must be finite numbers, the bottom one lower; they are not.")

    @property
    def rule_text(self) -> str:
        pairs = (("bottom", self.bottom), ("top", self.top))
        return ",".join(f"{name}:{shortest_text(end)}" for name, end in pairs if end is not None)

    @property
    def requirement(self) -> str:
        return "hold numbers to be cut off at the ends"

    def labels(self, entries: pl.Series, numbers: NumberFormat) -> GroupedEntries:
        plain, _ = numbers.normalise(entries)
        text = drop_name(as_text(plain))
        own = text.is_in([label for _, label in self._end_labels])
        values = text.cast(pl.Float64, strict=False).fill_nan(None)
        found = text.zip_with(values.is_not_null() | own.fill_null(False), pl.Series([None], dtype=pl.String))
        whole = values.is_finite() & (values == values.round()) & (values.abs() < 1e15)
        found = values.cast(pl.Int64, strict=False).cast(pl.String).zip_with(whole.fill_null(False), found)
        for end, label in self._end_labels:
            beyond = values <= end if end == self.bottom else values >= end
            found = found.set(beyond.fill_null(False), label)
        return _split_unmatched(found, text, entries.name)

    @property
    def _end_labels(self) -> list[tuple[float, str]]:
        low = [] if self.bottom is None else [(self.bottom, f"up to {shortest_text(self.bottom)}")]
        return [*low, *([] if self.top is None else [(self.top, f"{shortest_text(self.top)}+")])]

    def sort_labels(self, labels: Iterable[str]) -> list[str]:
        ends = {label: math.inf if label.endswith("+") else -math.inf for _, label in self._end_labels}
        return sorted(labels, key=lambda label: ends.get(label, parse_plain_number(label) or 0.0))

    def to_json(self) -> dict[str, Any]:
        return {name: end for name, end in (("bottom", self.bottom), ("top", self.top)) if end is not None}


@dataclass(frozen=True, slots=True)
class ValueMap:
    """The group that a file gives to each value; where it has a line for `*`, that is the group of all others."""

    groups: Mapping[str, str]
    source: str = field(default="", compare=False)

    @property
    def rule_text(self) -> str:
        return f"map:{self.source}"

    @property
    def requirement(self) -> str:
        return "hold values that its map lists"

    def labels(self, entries: pl.Series, numbers: NumberFormat) -> GroupedEntries:
        text = drop_name(as_text(entries))
        text = text.set((text == "").fill_null(False), None)
        known = {group: group for group in self.groups.values()} | dict(self.groups)
        found = text.replace_strict(known, default=self.groups.get("*"), return_dtype=pl.String)
        return _split_unmatched(found.set(text.is_null(), None), text, entries.name)

    def sort_labels(self, labels: Iterable[str]) -> list[str]:
        return sort_labels(labels)

    def to_json(self) -> dict[str, Any]:
        return {"map": [list(pair) for pair in self.groups.items()]}


def parse_grouping(content: Mapping[str, Any]) -> Grouping:
    """The rule that a file states, as `to_json` writes it.

    >>> parse_grouping({"by": "month"}), parse_grouping({"prefix": 3}), parse_grouping({"top": 85})
    (ByDate(part='month', dates=None), Prefix(length=3), Ends(bottom=None, top=85.0))
    """
    keys = set(content)
    if "by" in keys and keys <= {"by", "dates"}:
        return ByDate(content["by"], content.get("dates"))
    if keys == {"prefix"}:
        return Prefix(content["prefix"])
    if keys == {"map"}:
        return ValueMap(dict(content["map"]))
    if keys <= {"bottom", "top"}:
        return Ends(content.get("bottom"), content.get("top"))
    raise ParameterError("a column is grouped by one rule; several are stated, or none that is known.")


def _split_unmatched(found: pl.Series, text: pl.Series, name: str) -> GroupedEntries:
    strange = found.is_null() & text.is_not_null() & (text != "").fill_null(False)
    if not strange.any():
        return found.alias(name), None
    return found.zip_with(~strange, text).alias(name), strange
