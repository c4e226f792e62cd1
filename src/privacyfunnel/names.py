"""Names of columns: found, or answered with the nearest name; names that must differ; labels of bins."""

import csv
import difflib
import math
import re
from collections.abc import Collection, Iterable, Sequence

from privacyfunnel.errors import ColumnError

MISSING = "(missing)"  # the label of an empty entry
OTHER = "other"  # the label of merged values


def suggest_name(name: str, known: Sequence[str]) -> str:
    """A question that offers the nearest known name, or nothing if none is near.

    >>> suggest_name("incme", ["age", "income"])
    " Did you mean 'income'?"
    >>> suggest_name("zzz", ["age", "income"])
    ''
    """
    lowered = {other.casefold(): other for other in reversed(known)}
    close = difflib.get_close_matches(name.casefold(), list(lowered), n=1)
    return f" Did you mean '{lowered[close[0]]}'?" if close else ""


def split_names(text: str) -> list[str]:
    """Names with commas between, and blanks after these; one with a comma or a first blank is in quotes, as in CSV.

    >>> split_names('age, sex,"last, first"'), split_names('a"b,c'), split_names('" x"')
    (['age', 'sex', 'last, first'], ['a"b', 'c'], [' x'])
    """
    try:
        return next(csv.reader([text], strict=True, skipinitialspace=True), [])
    except csv.Error:  # a quote that belongs to the name
        return text.split(",")


def validate_columns(columns: Sequence[str], known: Sequence[str], role: str) -> tuple[str, ...]:
    """`asked` as a tuple, if every name is a known column and none is repeated.

    >>> validate_columns(["incme"], ["age", "income"], "published")
    Traceback (most recent call last):
    ...
    privacyfunnel.errors.ColumnError: no column 'incme' among 2. Did you mean 'income'?
    """
    for name in columns:
        if name not in known:
            are = "" if any(each[:1].isdigit() for each in known) else f" They are {format_names(list(known))}."
            suggestion = (
                suggest_name(name, known) or are
            )  # names that begin with digits are a row of a table without names
            raise ColumnError(f"no column '{name}' among {len(known)}.{suggestion}")
    repeated = sorted({name for name in columns if list(columns).count(name) > 1})
    if repeated:
        raise ColumnError(f"a {role} column must be named once; '{repeated[0]}' was named twice. Name it once.")
    return tuple(columns)


def validate_roles(
    secret: Sequence[str], publish: Sequence[str], known: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Both as tuples, if they are known columns of which none is in both.

    >>> validate_roles(["income"], ["age", "income"], ["age", "income"])
    Traceback (most recent call last):
    ...
    privacyfunnel.errors.ColumnError: column 'income' cannot be secret and published. Take it out of one of the two.
    """
    roles = validate_columns(secret, known, "secret"), validate_columns(publish, known, "published")
    for column in secret:
        if column in publish:
            raise ColumnError(f"column '{column}' cannot be secret and published. Take it out of one of the two.")
    return roles


def format_names(names: Sequence[str], most: int = 20) -> str:
    """Names with commas between, and how many more there are where they are too many to be read.

    >>> format_names(["a", "b"]), format_names(["a", "b", "c"], most=1)
    ('a, b', 'a and 2 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def join_labels(combos: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """A label per combination of labels, no two alike.

    >>> join_labels([("Bachelors", "Husband"), ("a", "b & c"), ("a & b", "c")])
    ('Bachelors & Husband', 'a & b & c', 'a & b & c 2')
    """
    labels: dict[str, None] = {}
    for combo in combos:
        labels[unique_label(" & ".join(combo), labels)] = None
    return tuple(labels)


def unique_label(label: str, taken: Collection[str]) -> str:
    """`label`, or `label 2`, `label 3`, … if it is taken.

    >>> unique_label("(missing)", {"(missing)"})
    '(missing) 2'
    """
    candidate, number = label, 1
    while candidate in taken:
        number += 1
        candidate = f"{label} {number}"
    return candidate


_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_BIN = re.compile(rf"(under |< |>= |\[)?{_NUMBER}(?:(–| to under | to |, ){_NUMBER})?(\+|\))?")


def shortest_text(number: float) -> str:
    """The shortest text that is this number."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def format_interval(low: float, high: float) -> str:
    """The label of the numbers from `low` up to, and without, `high`: `45–64` where both are whole.

    >>> [format_interval(*ends) for ends in ((45.0, 65.0), (45.0, 46.0), (-9.0, 0.0), (0.5, 2.0))]
    ['45–64', '45', '-9 to -1', '0.5 to under 2']
    >>> format_interval(-math.inf, 18.0), format_interval(65.0, math.inf), format_interval(-math.inf, math.inf)
    ('under 18', '65+', 'all')
    """
    if math.isinf(low):
        return "all" if math.isinf(high) else f"under {shortest_text(high)}"
    if math.isinf(high):
        return f"{shortest_text(low)}+"
    first, last = shortest_text(low), shortest_text(high - 1)
    if "." in first + last or "e" in first + last:
        return f"{first} to under {shortest_text(high)}"
    return first if first == last else f"{first}{' to ' if low < 0 else '–'}{last}"


def parse_interval(label: str) -> tuple[float, float] | None:
    """The numbers that a bin's label stands for, also as protocol files of before have it; None for other labels.

    >>> [parse_interval(label) for label in ("45–64", "45", "0.5 to under 2", "under 18", "[45, 65)", "b")]
    [(45.0, 65.0), (45.0, 46.0), (0.5, 2.0), (-inf, 18.0), (45.0, 65.0), None]
    """
    found = _BIN.fullmatch(label)
    if found is None:
        return None
    before, low, between, high, after = found.groups()
    if before in ("under ", "< "):
        return -math.inf, float(low)
    if after == "+" or before == ">= ":
        return float(low), math.inf
    return float(low), float(high or low) + (between not in (" to under ", ", "))


def current_label(label: str) -> str:
    """The label as it is written now; files of before say `[45, 65)`, `< 18`, `<= 18` and `>= 65`.

    >>> [current_label(label) for label in ("[45, 65)", "<= 18", ">= 65", "45–64", "45")]
    ['45–64', 'up to 18', '65+', '45–64', '45']
    """
    if label.startswith("<= "):
        return f"up to {label.removeprefix('<= ')}"
    ends = parse_interval(label) if label.startswith(("[", "< ", ">= ")) else None
    return label if ends is None else format_interval(*ends)
