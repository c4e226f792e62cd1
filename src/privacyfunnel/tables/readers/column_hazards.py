"""Hazards of a table: columns that should not be published as they are, and rows that are not one person each.

Judged by what the columns hold, since names are in any language; a name only adds to it where numbers repeat or may be
weights. The sentences name columns and counts of values, and quote no entry.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import polars as pl

from privacyfunnel.hints import hint
from privacyfunnel.tables.coding.bins import example_edges
from privacyfunnel.tables.readers.column_selection import drop_name
from privacyfunnel.tables.readers.formats import Table
from privacyfunnel.tables.readers.persons import PersonTable

MOST_ROWS = 1 << 18  # that are looked at: the first ones
FEW_ROWS = 50  # fewer show nothing about a column
UNIQUE_SHARE = 0.5  # different values per row: above it, fewer than two rows share a value on average
MOST_LABELS = 2_000  # different values that are compared by their spelling
LONG_TEXT, MANY_WORDS = 25, 4  # letters and words of an entry, on average: above both it is prose
PROSE_SHARE = 0.02  # different values per row of prose: fewer are the answers of a questionnaire
DAYS = 60  # different days: a column with more is not a short list of dates, such as those of four elections
FINE_DECIMALS = 4  # of a degree: about ten metres
SECRET_KNOWN = 0.99  # share of rows whose secret is the commonest one of their value: above it the column tells it
COMMON_SECRET = 0.95  # a secret that almost everybody has is known without the column
MOST_ROWS_EACH = 50  # of one person, on average: what has more rows is a group of people, a school say
CONSTANT_SHARE = 0.98  # of the rows of one person show the same in a column that belongs to the person
MOST_MADE_UP = 8  # columns that are tried as the person's number
_DATE_FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y%m%d")

IDENTIFIER, PROSE, DAY, PLACE, TELLS_SECRET = "identifier", "free text", "date by the day", "coordinates", "secret"
SPELLING, PERSONS, COPIES, MISSING_SECRET, WEIGHTS = "spelling", "persons", "copies", "missing secret", "weights"
_PERSON = re.compile(
    r"(?:.*[_. ])?(?:id|pid|person|patient|subject|respondent|individual|pupil|client)(?:[_. ]?id)?", re.IGNORECASE
)
_WEIGHT = re.compile(r"w[ei]+gh?t|wgt|wt$|gewicht|poids|ponder|peso", re.IGNORECASE)
SKEWED = 4  # a weight of some rows in those of the middle one: above it they are not kilograms


Rows = dict[str, pl.Series]  # the columns by name, each series without its own: polars reads some names as patterns


@runtime_checkable
class LazyRows(Protocol):
    """A table whose engine holds the rows: only the first ones are fetched."""

    def head(self, rows: int) -> Table: ...


@dataclass(frozen=True, slots=True)
class Hazard:
    """One thing to decide before a table is published."""

    kind: str
    column: str | None  # None where it is about whole rows
    sentence: str
    blocks: bool  # whether publishing it needs the owner's word


def find_hazards(table: Table, *, secret: Sequence[str], publish: Sequence[str], used: Sequence[str]) -> list[Hazard]:
    """What the first rows of a table give cause to ask about: published columns first, then the rows.

    `used` are columns that need not be judged as numbers of persons or as weights: the owner has decided about them.
    """
    # Where each person is one row already, other columns may differ between their rows.
    columns = (*secret, *publish) if isinstance(table, PersonTable) else table.columns
    rows = _first_rows(table, columns)
    if min(map(len, rows.values()), default=0) < FEW_ROWS:
        return []
    found = [hazard for column in publish for hazard in _column_hazards(rows, column, secret)]
    found += [
        hazard for column in dict.fromkeys([*publish, *secret]) for hazard in _spellings(column, _texts(rows[column]))
    ]
    used = [*secret, *publish, *used]
    return [
        *found,
        *_missing_secrets(rows, secret),
        *_repeated_persons(rows, used),
        *_weights(rows, used),
        *_copies(rows),
    ]


def _first_rows(table: Table, columns: Sequence[str]) -> Rows:
    if isinstance(table, LazyRows):
        table = table.head(MOST_ROWS)
    parts: list[pl.DataFrame] = []
    rows = 0
    for batch in table.batches(columns):
        parts.append(batch.head(MOST_ROWS - rows))
        rows += parts[-1].height
        if rows >= MOST_ROWS:
            break
    return {column.name: drop_name(_flat(column)) for column in pl.concat(parts)} if parts else {}


def _flat(entries: pl.Series) -> pl.Series:
    """The entries, but for lists and the like, which have no text: no role takes them."""
    nested = entries.dtype.is_nested() or entries.dtype == pl.Object
    return pl.Series(entries.name, [None] * len(entries), dtype=pl.String) if nested else entries


def _texts(entries: pl.Series) -> pl.Series:
    """The entries as text, without gaps."""
    text = entries.cast(pl.String, strict=False).drop_nulls()
    return text.filter(text.str.strip_chars() != "")


def _column_hazards(rows: Rows, column: str, secret: Sequence[str]) -> Iterator[Hazard]:
    """What is wrong with publishing a column; the first reason is enough."""
    text = _texts(rows[column])
    if len(text) < FEW_ROWS or text.n_unique() < 2:
        return
    for judge in _JUDGES:
        hazard = judge(column, text)
        if hazard is not None:
            yield hazard
            break
    else:
        yield from _known_secret(rows, column, secret)


def _judge_day(column: str, text: pl.Series) -> Hazard | None:
    dates = text.str.slice(0, 10).str.strip_chars()
    for form in _DATE_FORMATS:
        if dates.n_unique() > DAYS and dates.str.to_date(form, strict=False, exact=True).null_count() == 0:
            return Hazard(
                DAY,
                column,
                f"'{column}' holds dates by the day, {dates.n_unique():,} different ones: a birthday or a day of "
                f"treatment can point to a person. Publish {hint('bins', f'{column}=year')} instead.",
                blocks=True,
            )
    return None


def _judge_prose(column: str, text: pl.Series) -> Hazard | None:
    if _share(text) <= PROSE_SHARE:
        return None
    letters, words = text.str.len_chars().mean(), text.str.count_matches(r"\S+").mean()
    if not isinstance(letters, float) or not isinstance(words, float) or letters <= LONG_TEXT or words <= MANY_WORDS:
        return None
    return Hazard(
        PROSE,
        column,
        f"'{column}' is free text: {words:.0f} words an entry on average. It may hold names, numbers and diagnoses. "
        "Leave it out, or publish a coded column instead.",
        blocks=True,
    )


def _judge_place(column: str, text: pl.Series) -> Hazard | None:
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() or not numbers.is_between(-180, 180).all() or _share(text) <= PROSE_SHARE:
        return None
    fine = text.str.contains(rf"\.\d{{{FINE_DECIMALS},}}$").mean()
    if not isinstance(fine, float) or fine < UNIQUE_SHARE or not _is_narrow(numbers):
        return None
    edges = example_edges(*(float(end) for end in numbers.sort()[[0, -1]]))
    return Hazard(
        PLACE,
        column,
        f"'{column}' may be a coordinate: numbers between −180 and 180 with {FINE_DECIMALS} decimals or more. "
        f"Publish a district, or {hint('bins', f'{column}={edges}')}.",
        blocks=True,
    )


def _is_narrow(numbers: pl.Series) -> bool:
    """Whether numbers lie close together far from zero, as the coordinates of one town or country do."""
    low, high = numbers.quantile(0.05), numbers.quantile(0.95)
    return low is not None and high is not None and high - low < max(abs(low), abs(high)) / 2


def _judge_identifier(column: str, text: pl.Series) -> Hazard | None:
    # Amounts of so many values are published in bins only; whole numbers that never repeat count rows or persons.
    numbers = text.cast(pl.Float64, strict=False)
    amounts = not numbers.null_count() and (_share(text) < 1 or bool((numbers % 1 != 0).any()))
    if _share(text) <= UNIQUE_SHARE or amounts:
        return None
    return Hazard(
        IDENTIFIER,
        column,
        f"'{column}' tells rows apart: {text.n_unique():,} different values in {len(text):,} rows. An identifier "
        f"points to a person. Leave it out, or make it coarser with {hint('bins')}.",
        blocks=True,
    )


_JUDGES: tuple[Callable[[str, pl.Series], Hazard | None], ...] = (
    _judge_day,
    _judge_prose,
    _judge_place,
    _judge_identifier,
)


def _share(text: pl.Series) -> float:
    """Different values per row."""
    return text.n_unique() / len(text)


def _commonest_share(entries: pl.Series) -> float:
    """The share of the commonest value."""
    return max(entries.alias("entries").value_counts(name="rows")["rows"].to_list(), default=0) / max(len(entries), 1)


def _known_secret(rows: Rows, column: str, secret: Sequence[str]) -> Iterator[Hazard]:
    """Whether the column tells the secret of almost every row; asked where values have two rows or more on average."""
    if not secret or column in secret or _share(_texts(rows[column])) > UNIQUE_SHARE:
        return
    hidden = pl.DataFrame({str(place): rows[name] for place, name in enumerate(secret)}).to_struct("s")
    pairs = pl.DataFrame({"s": hidden, "x": rows[column].cast(pl.String, strict=False)}).drop_nulls("x")
    cells = pairs.group_by("x", "s").agg(pl.len().alias("rows"))
    right = sum(cells.group_by("x").agg(pl.col("rows").max())["rows"].to_list()) / max(pairs.height, 1)
    if right >= SECRET_KNOWN and _commonest_share(pairs["s"]) <= COMMON_SECRET:
        yield Hazard(
            TELLS_SECRET,
            column,
            f"'{column}' tells the secret {' & '.join(secret)} of {100 * SECRET_KNOWN:.0f} % of the rows or more: "
            "almost nothing of it can be published. Leave it out, or make it secret as well.",
            blocks=False,
        )


def _spellings(column: str, text: pl.Series) -> Iterator[Hazard]:
    """Labels that differ by case, blanks or accents only."""
    labels = text.unique()
    if len(labels) > MOST_LABELS:
        return
    several = len(labels) - len({_plain(label) for label in labels.to_list()})
    if several:
        yield Hazard(
            SPELLING,
            column,
            f"'{column}' has labels that differ only by case, blanks or accents ({several:,}): each is "
            "counted and protected by itself. Correct the table, or map them to one with "
            f"{hint('bins', f'{column}=map:groups.csv')}.",
            blocks=False,
        )


def _plain(label: str) -> str:
    """A label without case, blanks at its ends or doubled, and accents.

    >>> _plain(" MÄNNLICH ") == _plain("mannlich")
    True
    """
    letters = unicodedata.normalize("NFKD", " ".join(label.split()).casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _missing_secrets(rows: Rows, secret: Sequence[str]) -> Iterator[Hazard]:
    for column in secret:
        entries = rows[column].cast(pl.String, strict=False)
        missing = int((entries.is_null() | (entries.str.strip_chars() == "").fill_null(False)).sum())
        if missing:
            yield Hazard(
                MISSING_SECRET,
                column,
                f"Some rows have no '{column}': a missing secret is protected as a value of its own. Remove these "
                "rows first if a missing entry says nothing about a person.",
                blocks=False,
            )


def _repeated_persons(rows: Rows, used: Sequence[str]) -> Iterator[Hazard]:
    """Columns whose values repeat while others stay the same with them: several rows of one person."""
    others = [name for name in rows if rows[name].n_unique() > 1]
    candidates = [name for name in others if name not in used and 1 < _rows_each(rows[name]) <= MOST_ROWS_EACH]
    candidates.sort(key=lambda name: _rows_each(rows[name]))
    for column in candidates[:MOST_MADE_UP]:
        constant = [name for name in others if name != column and _belongs(rows, name, column)]
        if 2 * len(constant) >= len(others) - 1 or _PERSON.fullmatch(column):
            yield Hazard(
                PERSONS,
                column,
                f"'{column}' repeats, as if persons had several rows each: these together can leak more than ε. "
                f"{hint('person', column)} publishes one row of each.",
                blocks=False,
            )
            break


def _rows_each(entries: pl.Series) -> float:
    held = entries.drop_nulls()
    return len(held) / max(held.n_unique(), 1)


def _belongs(rows: Rows, name: str, person: str) -> bool:
    """Whether a column is the same in almost all repeats of a person, and not simply in almost all rows."""
    repeats = pl.DataFrame({"p": rows[person], "x": rows[name].cast(pl.String, strict=False)})
    repeats = repeats.drop_nulls("p").filter(pl.len().over("p") > 1)
    if repeats.height < FEW_ROWS:
        return False
    same = repeats.select((pl.col("x").n_unique().over("p") == 1).mean()).item()
    return bool(_commonest_share(repeats["x"]) < COMMON_SECRET and same >= CONSTANT_SHARE)


def _weights(rows: Rows, used: Sequence[str]) -> Iterator[Hazard]:
    for column in [name for name in rows if name not in used and _WEIGHT.search(name)]:
        numbers = _texts(rows[column]).cast(pl.Float64, strict=False)
        middle, largest = numbers.quantile(0.5), numbers.quantile(0.99)
        if numbers.null_count() or middle is None or largest is None or not 0 < SKEWED * middle < largest:
            continue
        yield Hazard(
            WEIGHTS,
            column,
            f"'{column}' may be a survey weight: promise and estimates count every row once.",
            blocks=False,
        )


def _copies(rows: Rows) -> Iterator[Hazard]:
    """Whether every row occurs twice, four times, …: a file that was appended to itself."""
    plain = pl.DataFrame({str(place): entries for place, entries in enumerate(rows.values())})
    counts = plain.group_by(plain.columns).agg(pl.len().alias("rows"))["rows"]
    if len(counts) >= FEW_ROWS and (counts % 2 == 0).all():
        yield Hazard(
            COPIES,
            None,
            "Every row occurs twice or more often, as if a file was appended to itself. Remove the copies: two draws "
            "of one person together leak more than ε.",
            blocks=False,
        )
