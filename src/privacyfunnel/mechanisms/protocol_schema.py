"""The published schema of protocol.json, and a reader that follows it to the letter.

The file `protocol.schema.json` beside this one is the only place where the form of a protocol file stands: it is what
others validate with, and what is refused here is read off it, keyword by keyword. Of JSON Schema (draft 2020-12) the
keywords of `KEYWORDS` are known; a schema that used another would not be read at all. Two things are stricter than a
validator's: 1.0 is no integer, and a pattern spans the whole text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from itertools import repeat
from typing import Any

from privacyfunnel.errors import ProtocolFileError

Check = Callable[[Any], None]

TYPE_NAMES = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}
TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "object": ("an object", (dict,)),
    "array": ("a list", (list,)),
    "string": ("text", (str,)),
    "boolean": ("true or false", (bool,)),
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "null": ("null", (type(None),)),
}
MOST_QUOTED = 30  # characters of a value that a sentence quotes


class MisfitError(Exception):
    """What must hold somewhere, and what was found there; the place is filled in on the way up."""

    def __init__(self, must: str, found: str) -> None:
        super().__init__(must)
        self.must, self.found, self.place = must, found, ""


def schema_text() -> str:
    """The published schema."""
    return files("privacyfunnel.mechanisms").joinpath("protocol.schema.json").read_text(encoding="utf-8")


def check_form(content: Any) -> None:
    """Refuse content that is not of the published form, with the place where it is not."""
    try:
        _protocol_check()(content)
    except MisfitError as misfit:
        raise ProtocolFileError(
            f"{misfit.place.lstrip('.') or 'the file'} must {misfit.must}; {misfit.found}. "
            "The file was altered or written by another program: make it again."
        ) from None


@cache
def _protocol_check() -> Check:
    schema = json.loads(schema_text())
    named: dict[str, Check] = {}
    for name, part in schema["$defs"].items():
        named[f"#/$defs/{name}"] = _check(part, named)
    return _check(schema, named)


def _check(schema: Mapping[str, Any], named: Mapping[str, Check]) -> Check:
    """One check of all that a schema asks, its type first."""
    if "$ref" in schema:
        name = schema["$ref"]

        def check_reference(value: Any) -> None:
            named[name](value)  # looked up when used: definitions may name each other

        return check_reference
    unknown = set(schema) - set(KEYWORDS) - NOTES
    if unknown:
        raise ValueError(f"the schema uses keywords that are not followed here: {', '.join(sorted(unknown))}")
    makers = dict.fromkeys(make for keyword, make in KEYWORDS.items() if keyword in schema)  # some share one
    checks = [make(schema, named) for make in makers]

    def check(value: Any) -> None:
        for one in checks:
            one(value)

    return checks[0] if len(checks) == 1 else check


def _type(schema: Mapping[str, Any], _: Mapping[str, Check]) -> Check:
    names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    kinds = frozenset(kind for name in names for kind in TYPES[name][1])
    must = f"be {' or '.join(TYPES[name][0] for name in names)}"

    def check(value: Any) -> None:
        if type(value) not in kinds:  # exactly: true is no number
            raise MisfitError(must, _describe_value(value))

    return check


def _const(schema: Mapping[str, Any], _: Mapping[str, Check]) -> Check:
    return _choice([schema["const"]])


def _enum(schema: Mapping[str, Any], _: Mapping[str, Check]) -> Check:
    return _choice(schema["enum"])


def _choice(allowed: list[Any]) -> Check:
    must = f"be {'one of ' if len(allowed) > 1 else ''}{', '.join(map(json.dumps, allowed))}"

    def check(value: Any) -> None:
        if not any(type(value) is type(one) and value == one for one in allowed):
            raise MisfitError(must, _describe_value(value, quoted=True))

    return check


def _numbers(schema: Mapping[str, Any], _: Mapping[str, Check]) -> Check:
    least, most = schema.get("minimum", float("-inf")), schema.get("maximum", float("inf"))
    must = f"be at least {least}" if "maximum" not in schema else f"lie between {least} and {most}"

    def check(value: Any) -> None:
        if type(value) in (int, float) and not least <= value <= most:
            raise MisfitError(must, f"it is {str(value)[:MOST_QUOTED]}")

    return check


def _pattern(schema: Mapping[str, Any], _: Mapping[str, Check]) -> Check:
    fits, longest = re.compile(schema.get("pattern", r"(?s:.*)")).fullmatch, schema.get("maxLength", float("inf"))

    def check(value: Any) -> None:
        if type(value) is str and (len(value) > longest or not fits(value)):
            raise MisfitError("be written as the schema says", _describe_value(value, quoted=True))

    return check


def _length(schema: Mapping[str, Any], _: Mapping[str, Check]) -> Check:
    least, most = schema.get("minItems", 0), schema.get("maxItems", float("inf"))
    must = f"have at least {least} entries" if "maxItems" not in schema else f"have from {least} to {most} entries"

    def check(value: Any) -> None:
        if type(value) is list and not least <= len(value) <= most:
            raise MisfitError(must, f"it has {len(value)}")

    return check


def _items(schema: Mapping[str, Any], named: Mapping[str, Check]) -> Check:
    each = _check(schema["items"], named)
    return _entries(lambda value: zip(repeat(each), value))


def _prefix(schema: Mapping[str, Any], named: Mapping[str, Check]) -> Check:
    firsts = [_check(part, named) for part in schema["prefixItems"]]
    return _entries(lambda value: zip(firsts, value, strict=False))


def _entries(checked: Callable[[list[Any]], Iterable[tuple[Check, Any]]]) -> Check:
    """Checks entries of a list in turn; the one that does not fit is told by its place."""

    def check(value: Any) -> None:
        if type(value) is not list:
            return
        passed = 0
        try:
            for each, item in checked(value):
                each(item)
                passed += 1
        except MisfitError as misfit:
            misfit.place = f"[{passed}]{misfit.place}"
            raise

    return check


def _unique(schema: Mapping[str, Any], _: Mapping[str, Check]) -> Check:
    """Entries are text or numbers, or lists of them; their types are checked before."""

    def check(value: Any) -> None:
        if type(value) is list:
            different = {tuple(item) if type(item) is list else item for item in value}
            if len(different) < len(value):
                raise MisfitError("name each of its entries once", f"{len(value) - len(different)} repeat")

    return check


def _object(schema: Mapping[str, Any], named: Mapping[str, Check]) -> Check:
    parts = {key: _check(part, named) for key, part in schema.get("properties", {}).items()}
    required = schema.get("required", ())
    together = schema.get("dependentRequired", {})
    open_to_others = schema.get("additionalProperties", True)

    def check(value: Any) -> None:
        if type(value) is not dict:
            return
        wanted = [*required, *(other for key, others in together.items() if key in value for other in others)]
        missing = [key for key in wanted if key not in value]
        if missing:
            raise MisfitError(f"state '{missing[0]}'", "it does not")
        for key, item in value.items():
            if key in parts:
                try:
                    parts[key](item)
                except MisfitError as misfit:
                    misfit.place = f".{key}{misfit.place}"
                    raise
            elif not open_to_others:
                raise MisfitError("state nothing that is not in the schema", f"it states '{key[:MOST_QUOTED]}'")

    return check


def _all_of(schema: Mapping[str, Any], named: Mapping[str, Check]) -> Check:
    checks = [_check(part, named) for part in schema["allOf"]]

    def check(value: Any) -> None:
        for one in checks:
            one(value)

    return check


def _if(schema: Mapping[str, Any], named: Mapping[str, Check]) -> Check:
    when, then = _check(schema["if"], named), _check(schema["then"], named)

    def check(value: Any) -> None:
        try:
            when(value)
        except MisfitError:
            return
        then(value)

    return check


def _describe_value(value: Any, *, quoted: bool = False) -> str:
    """What stands there, in a word; the file is public, so it may be quoted, but never at length."""
    if quoted and type(value) is str:
        return f"it is '{value[:MOST_QUOTED]}{'…' if len(value) > MOST_QUOTED else ''}'"
    if quoted and type(value) in (int, float):
        return f"it is {str(value)[:MOST_QUOTED]}"
    return f"it is {TYPE_NAMES.get(type(value), 'something else')}"


# What is checked, in this order: types and lengths before anything that walks through a value.
KEYWORDS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Check]], Check]] = {
    "type": _type,
    "const": _const,
    "enum": _enum,
    "minimum": _numbers,
    "maximum": _numbers,
    "pattern": _pattern,
    "maxLength": _pattern,
    "minItems": _length,
    "maxItems": _length,
    "items": _items,
    "prefixItems": _prefix,
    "uniqueItems": _unique,
    "required": _object,
    "properties": _object,
    "additionalProperties": _object,
    "dependentRequired": _object,
    "allOf": _all_of,
    "if": _if,
    "then": lambda *_: lambda _: None,  # followed by `if`
}
NOTES = {"$schema", "$id", "$defs", "title", "description"}
