"""Kinds of fields: how a value is read from the command line, checked, and described to an editor.

A check returns the value in its stored form, or raises one sentence: "merge_rare must be at least 2; got 1."
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

from privacyfunnel import plugins
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.names import split_names, suggest_name

ALL_COLUMNS = "*"  # the key of merge_rare that stands for every published column
AUTO, NONE, ANY_ODDS = "auto", "none", "any"
LEAST_PERCENT = 50  # a bare number from here on is a percentage; a smaller one may be a slip of the decimal point
MOST_DIGITS = 12  # of a whole number
REMOVED_METHODS = {  # of earlier versions, and what replaces them
    "chain": "real-or-synthetic under a published model, or optimal with fewer columns",
    "forced-response": "real-or-synthetic under a published model, or optimal with fewer columns",
    "product": "optimal, which keeps more",
    "unary-encoding": "optimal, which estimates more closely",
}

Check = Callable[[str, Any], Any]  # field and value to the stored value
Parse = Callable[[str, Sequence[str]], Any]  # field and texts of the command line to a value
Schema = Mapping[str, Any]


def field_error(field: str, must: str, got: object) -> ParameterError:
    """The error for a value outside the limits of its field."""
    shown = f"'{got}'" if isinstance(got, str) else got
    comma = "number" in must and re.fullmatch(r"[0-9]+,[0-9]+", str(got).strip())
    mend = f" Write {hint(field, comma[0].replace(',', '.'))}." if comma else ""
    return ParameterError(f"{hint(field)} must be {must}; got {shown}.{mend}")


def _only(field: str, texts: Sequence[str]) -> str:
    """The text of an option that is given once; of several, the last counts."""
    return texts[-1]


@dataclass(frozen=True, slots=True)
class Kind:
    """How values of a field are checked, read from text and described."""

    check: Check
    schema: Schema
    parse: Parse = _only
    repeats: bool = False  # whether the option may be given several times
    path: bool = False  # whether the value is a path, relative to the file that holds the spec


def check_number(field: str, value: Any, must: str, holds: Callable[[float], bool]) -> float:
    """The value as a float that holds to its limit."""
    try:
        number = math.nan if "_" in str(value) else float(value)  # 1_0 is ten to Python, and a slip to everybody else
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number) or not holds(number):
        raise field_error(field, must, value)
    return number


def number(least: float | None = None, above: float | None = None) -> Kind:
    """A finite number, at least or above a limit."""
    limit = f"at least {least:g}" if above is None else f"above {above:g}"
    must = f"a finite number {limit}"

    def check(field: str, value: Any) -> float:
        return check_number(field, value, must, lambda x: x > above if above is not None else x >= (least or 0.0))

    bound = {"minimum": least} if above is None else {"exclusiveMinimum": above}
    return Kind(check, {"type": "number", **bound})


def _check_whole(field: str, value: Any, least: int) -> int:
    text = str(value).strip()
    digits = text.removeprefix("-")
    whole = digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS
    if isinstance(value, bool | float) or not whole:
        raise field_error(field, "a whole number", value)
    if int(text) < least:
        raise field_error(field, f"at least {least}", int(text))
    return int(text)


def whole_number(least: int = 0) -> Kind:
    """A whole number of at least so much."""
    return Kind(lambda field, value: _check_whole(field, value, least), {"type": "integer", "minimum": least})


def choice(*names: str) -> Kind:
    """One of these names."""

    def check(field: str, value: Any) -> str:
        if value not in names:
            raise field_error(field, f"one of {', '.join(names)}", value)
        return str(value)

    return Kind(check, {"enum": list(names)})


def method_name(*names: str) -> Kind:
    """One of these methods, or one that another package adds."""

    def check(field: str, value: Any) -> str:
        if value not in names and plugins.load_plugin(plugins.METHODS, str(value)) is None:
            known = (*names, *plugins.plugin_names(plugins.METHODS))
            near = suggest_name(str(value), known)
            if value in REMOVED_METHODS:
                near = f" It was removed: use {REMOVED_METHODS[value]}."
            raise ParameterError(f"A method is one of {', '.join(known)}; there is none called '{value}'.{near}")
        return str(value)

    return Kind(check, {"type": "string", "examples": list(names)})


def _check_text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise field_error(field, "a text", value)
    return value


def _check_date(field: str, value: Any) -> str:
    """A day as 2027-12-31."""
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise field_error(field, "a date such as 2027-12-31", value) from None


def _check_flag(field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise field_error(field, "true or false", value)
    return value


def _check_path(field: str, value: Any) -> Path:
    if not isinstance(value, str | Path):
        raise field_error(field, "a path", value)
    return Path(value)


def _check_names(field: str, value: Any) -> tuple[str, ...]:
    """One name or several, as they are given in Python."""
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else (None,)
    if not all(isinstance(name, str) for name in names):
        raise field_error(field, "a name or a list of names", value)
    return names


class SecretColumns(tuple[str, ...]):
    """Secret columns: together one secret, or each by itself with an ε of its own, or None, by column.

    >>> SecretColumns.check("secret", ["a", "b"]).sizes, SecretColumns.check("secret", [["a", "b"]]).sizes
    ({'a': None, 'b': None}, None)
    >>> SecretColumns.parse("secret", ["health=0.5", "income"]).sizes, SecretColumns.parse("secret", ["a,b"]).sizes
    ({'health': 0.5, 'income': None}, None)
    """

    sizes: dict[str, float | None] | None = None

    @classmethod
    def check(cls, field: str, value: Any) -> SecretColumns:
        """One name; several, or a mapping to their ε, for each by itself; a list within a list for one secret."""
        if isinstance(value, SecretColumns):
            return value
        named = value.items() if isinstance(value, Mapping) else ()
        items = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else [None]
        together = len(items) == 1 and not isinstance(items[0], str) and isinstance(items[0], Iterable)
        found = cls(_check_names(field, items[0] if together else items))
        if len(set(found)) < len(found):
            twice = next(name for name in found if found.count(name) > 1)
            raise ColumnError(f"a secret column must be named once; '{twice}' was named twice. Name it once.")
        if len(found) > 1 and not together:
            found.sizes = dict.fromkeys(found)
        for name, size in named:
            if size is not None and len(found) == 1:
                raise ParameterError(
                    f"One secret has the ε of the promise; '{name}' has {size}. Say {hint('epsilon')}."
                )
            if size is not None and found.sizes is not None:
                must = f"the ε of '{name}' as a finite number above 0"
                found.sizes[name] = check_number(field, size, must, lambda x: x > 0)
        return found

    @classmethod
    def parse(cls, field: str, texts: Sequence[str]) -> SecretColumns:
        """A text is a secret: a column, several with commas between, or one of several with its ε, health=0.5."""
        if len(texts) == 1:
            return cls.check(field, [parse_names(texts)])
        sizes: dict[str, Any] = {}
        for text in texts:
            own = re.search(r"=([-+.\deE]+)$", text)
            names, size = parse_names([text if own is None else text[: own.start()]]), own and own[1]
            if len(names) != 1:
                raise ParameterError(
                    f"Secrets that are given one by one are single columns, each promised by itself; '{text}' is "
                    f"{len(names)}. Give all with commas between for one secret of all."
                )
            if names[0] in sizes:
                cls.check(field, [names[0]] * 2)
            sizes[names[0]] = size
        return cls.check(field, sizes)


def _parse_names(field: str, texts: Sequence[str]) -> tuple[str, ...]:
    return parse_names(texts)


def parse_names(texts: Sequence[str] | None) -> tuple[str, ...]:
    """Column names given one by one or with commas between; one that has a comma stands in double quotes, as in CSV.

    >>> parse_names(["age,sex", "income"])
    ('age', 'sex', 'income')
    >>> parse_names(['"last, first",sex', 'a"b'])
    ('last, first', 'sex', 'a"b')
    """
    return tuple(part for text in texts or [] for part in split_names(text) if part)


def parse_confidence(text: str) -> float:
    """A confidence, written 0.95, 95 or 95%.

    >>> parse_confidence("0.95"), parse_confidence("95"), parse_confidence("97.5 %")
    (0.95, 0.95, 0.975)
    """
    bare = text.strip().removesuffix("%").strip()
    try:
        share = Fraction(bare)
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if text.strip().endswith("%") or share >= LEAST_PERCENT:
        share /= 100
    if not 0 < share < 1:
        raise field_error("population", "between 0 and 1, or 0% and 100%, like 0.95 or 95%", text)
    return float(share)


def _check_population(field: str, value: Any) -> float | str | None:
    """A confidence, `auto` (95 % where it can be kept), or nothing."""
    bare = str(value).strip().lower()
    if value is None or bare == NONE:
        return None
    return AUTO if bare == AUTO else parse_confidence(str(value))


def _check_robust(field: str, value: Any) -> str | None:
    """A factor of at least 1 by which odds may differ, or `any`."""
    bare = str(value).strip().lower()
    if value is None or bare == NONE:
        return None
    if bare != ANY_ODDS:
        check_number(field, value, "a number of at least 1, or any", lambda x: x >= 1)
    return bare


def _check_bins(field: str, value: Any) -> dict[str, Any]:
    """Coarser values by column: a mapping, or a list of texts COLUMN=HOW and of `Bins`."""
    if isinstance(value, Mapping):
        return dict(value)
    from privacyfunnel.tables.coding.bin_syntax import parse_bin

    found: dict[str, Any] = {}
    for item in value:
        bins = parse_bin(item) if isinstance(item, str) else item
        if bins.column in found:
            raise ParameterError(f"{hint(field)} must name each column once; '{bins.column}' is named twice.")
        found[bins.column] = item.rpartition("=")[2].strip() if isinstance(item, str) else item
    return found


def _check_merge_rare(field: str, value: Any) -> dict[str, int] | int | None:
    if value is None or not isinstance(value, Mapping):
        return None if value is None else _check_whole(field, value, 2)
    return {str(column): _check_whole(field, fewest, 2) for column, fewest in value.items()}


def _parse_merge_rare(field: str, texts: Sequence[str]) -> Any:
    """10 for all published columns, zip=10 for one."""
    found: dict[str, Any] = {}
    for text in texts:
        column, equals, fewest = text.rpartition("=")
        if equals and not column:
            raise field_error(field, "a number of rows such as 10, or zip=10 for one column", text)
        found[column or ALL_COLUMNS] = fewest.strip()
    return found[ALL_COLUMNS] if set(found) == {ALL_COLUMNS} else found


def _check_labels(field: str, value: Any) -> dict[str, tuple[str, ...]]:
    """Lists of labels by name."""
    if not isinstance(value, Mapping):
        raise field_error(field, "a mapping from a name to its values", type(value).__name__)
    return {str(name): (labels,) if isinstance(labels, str) else tuple(labels) for name, labels in value.items()}


def _parse_merge_secrets(field: str, texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    from privacyfunnel.tables.coding.merges import parse_merge_secrets

    return dict(parse_merge_secrets(texts).groups)


def _parse_ordered(field: str, texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    from privacyfunnel.model.uses.ordinal_scale import parse_order

    return dict(map(parse_order, texts))


def _check_design_epsilon(field: str, value: Any) -> float | str:
    from privacyfunnel.model.published.noisy_counts import check_design_epsilon

    check_design_epsilon(value)
    return float(value) if isinstance(value, int | float) else str(value)


def _keep(field: str, value: Any) -> Any:
    """A value that its own package checks."""
    return value


_STRINGS = {"type": "array", "items": {"type": "string"}}
_NAMES = {"anyOf": [{"type": "string"}, _STRINGS]}
_LABELS = {"type": "object", "additionalProperties": _STRINGS}
_COUNT = {"type": "integer", "minimum": 2}

TEXT = Kind(_check_text, {"type": "string"})
DATE = Kind(_check_date, {"type": "string", "format": "date"})
ANY_TEXT = Kind(_keep, {"type": "string"})
FLAG = Kind(_check_flag, {"type": "boolean"})
PATH = Kind(_check_path, {"type": "string"}, path=True)
ANY_PATH = Kind(_keep, {"type": "string"}, path=True)
NAMES = Kind(_check_names, _NAMES, _parse_names, repeats=True)
SECRETS = Kind(
    SecretColumns.check,
    {
        "anyOf": [
            *_NAMES["anyOf"],
            {"type": "array", "items": _STRINGS, "maxItems": 1},
            {"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}},
        ]
    },
    SecretColumns.parse,
    repeats=True,
)
POPULATION = Kind(_check_population, {"anyOf": [{"type": "string"}, {"type": "number"}]})
ROBUST = Kind(_check_robust, {"anyOf": [{"enum": [ANY_ODDS, NONE]}, {"type": "number", "minimum": 1}]})
BINS = Kind(
    _check_bins,
    {
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                {"type": "string"},
                {"type": "integer", "minimum": 2},
                {"type": "array", "items": {"type": "number"}},
                {"type": "object", "additionalProperties": {"type": "string"}},
            ]
        },
    },
    lambda field, texts: list(texts),
    repeats=True,
)
MERGE_RARE = Kind(
    _check_merge_rare,
    {"anyOf": [_COUNT, {"type": "object", "additionalProperties": _COUNT}]},
    _parse_merge_rare,
    repeats=True,
)
MERGE_SECRETS = Kind(_check_labels, _LABELS, _parse_merge_secrets, repeats=True)
ORDERED = Kind(_check_labels, _LABELS, _parse_ordered, repeats=True)
DESIGN_EPSILON = Kind(_check_design_epsilon, {"anyOf": [{"type": "number"}, {"type": "string"}]})
