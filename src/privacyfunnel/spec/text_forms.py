"""A spec as text: a release.toml, the words of a command, and a call in Python."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from privacyfunnel.errors import ParameterError, TableError
from privacyfunnel.spec.fields import SpecField, describe_fields
from privacyfunnel.tables.databases.drivers import is_server_address

Spec = Any  # a ReleaseSpec, whose module imports this one

TOML_WIDTH = 100
MOST_BYTES = 1 << 20  # of a release.toml
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_NAMED_FILE = re.compile(r"(map|distance|statistics|ldp|events):(.+\.(?:csv|tsv|txt))((?::\d+)?)", re.DOTALL)


def _fields(spec: Spec) -> tuple[SpecField, ...]:
    return tuple(describe_fields(type(spec)))


def plain_values(spec: Spec) -> dict[str, Any]:
    """The values that are not the default, by field, as texts, numbers, lists and mappings alone."""
    values = {each.name: getattr(spec, each.name) for each in _fields(spec)}
    if not isinstance(spec.promise, str):
        from privacyfunnel.model.promises import fixes_epsilon

        text = _promise_name(spec.promise)
        values |= {"promise": text, "epsilon": None if fixes_epsilon(text) else spec.promise.epsilon}
    if spec.use is not None and not isinstance(spec.use, str):
        values["use"] = _use_text(spec)
    plain = {each.name: _plain(each, values[each.name]) for each in _fields(spec) if values[each.name] != each.default}
    return plain | ({"secret": _plain_secret(spec)} if spec.secret else {})


def _plain_secret(spec: Spec) -> Any:
    """One name, a list within a list for several as one, names or their ε for each by itself."""
    sizes = spec.secret.sizes
    if sizes is None:
        return list(spec.secret) if len(spec.secret) == 1 else [list(spec.secret)]
    if not any(sizes.values()):
        return list(spec.secret)
    promise = spec.promise_value.table_promise
    return {column: dict(promise.sizes).get(column, promise.epsilon) for column in sizes}


def _promise_name(promise: Any) -> str:
    from privacyfunnel.model.promises import find_promise, fixes_epsilon

    text = str(promise.text)
    if not text or find_promise(text, None if fixes_epsilon(text) else promise.epsilon) != promise:
        raise ParameterError(f"{promise.name} has no text that a file could hold. Give the promise as a text.")
    return text


def _use_text(spec: Spec) -> str:
    from privacyfunnel.model.uses.use_parser import parse_use

    assert spec.use_value is not None
    if parse_use(spec.use_value.full_name) != spec.use_value:
        raise ParameterError(f"{spec.use_value} has no text that a file could hold. Give the use as a text.")
    return str(spec.use_value.full_name)


def _plain(each: SpecField, value: Any) -> Any:
    if each.name == "bins":
        return {column: _plain_bins(how) for column, how in value.items()}
    if each.option.kind.path:
        if not isinstance(value, str | Path):
            raise ParameterError(f"{each.key} must be a path to be written to a file; it is a value in memory.")
        return str(value)
    if isinstance(value, Mapping):
        return {name: list(item) if isinstance(item, tuple) else item for name, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _plain_bins(how: Any) -> Any:
    if isinstance(how, str | int):
        return how
    if isinstance(how, Mapping):
        return {str(value): str(group) for value, group in how.items()}
    if isinstance(how, Iterable):
        return list(how)
    from privacyfunnel.tables.coding.bin_syntax import column_bins, format_bins

    return format_bins(column_bins("column", how))


# release.toml


def read_toml(path: Path, fields: Iterable[SpecField]) -> dict[str, Any]:
    """The values in a release.toml, its paths made relative to the current folder."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise TableError(f"A spec must be at most {MOST_BYTES:,} bytes; '{path}' has more. Name a release.toml.")
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TableError(f"Cannot read spec '{path}': {(os.strerror(error.errno or 0)).lower()}.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TableError(f"'{path}' is no TOML: {error}.") from None
    return _move_paths(content, fields, lambda text: _join(path.parent, text))


def format_toml(spec: Spec, folder: Path) -> str:
    """The spec as a release.toml in that folder, each value after its help; paths are relative to the folder."""
    values = _move_paths(plain_values(spec), _fields(spec), lambda text: _relative(text, folder))
    lines = ["# The request of a release: privacyfunnel sanitise release.toml", ""]
    for each in sorted(
        (each for each in _fields(spec) if each.name in values), key=lambda at: _is_table(values[at.name])
    ):
        value = values[each.name]
        lines += [f"# {line}" for line in wrap(each.help, TOML_WIDTH - 2)]
        if _is_table(value):
            lines += [f"[{each.key}]", *(f"{_key(name)} = {format_value(item)}" for name, item in value.items()), ""]
        else:
            lines += [f"{each.key} = {format_value(value)}", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _move_paths(values: Mapping[str, Any], fields: Iterable[SpecField], move: Callable[[str], str]) -> dict[str, Any]:
    """The values with their paths moved, also those inside of texts, such as map:groups.csv."""
    by_key = {each.key: each for each in fields}
    found = dict(values)
    for name, value in values.items():
        each = by_key.get(name.rstrip("_"))
        if each is None:
            continue
        if each.option.kind.path and isinstance(value, str) and not is_server_address(value):
            found[name] = move(value)
        elif each.name in ("use", "promise") and isinstance(value, str):
            found[name] = _move_named(value, move)
        elif each.name == "bins" and isinstance(value, Mapping):
            found[name] = {at: _move_named(how, move) if isinstance(how, str) else how for at, how in value.items()}
    return found


def _move_named(text: str, move: Callable[[str], str]) -> str:
    named = _NAMED_FILE.fullmatch(text)
    return text if named is None else f"{named[1]}:{move(named[2])}{named[3]}"


def _join(folder: Path, text: str) -> str:
    return str(folder / text)


def _relative(text: str, folder: Path) -> str:
    return text if Path(text).is_absolute() else os.path.relpath(text, folder)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else format_value(name)


def format_value(value: Any) -> str:
    """A value in TOML.

    >>> format_value({"a b": [1, 2.5], "c": 'say "x"'}), format_value(True)
    ('{ "a b" = [1, 2.5], c = "say \\\\"x\\\\"" }', 'true')
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(str(name))} = {format_value(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(format_value, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


# A command


def command_words(spec: Spec, command: str = "sanitise") -> list[str]:
    """The words after `privacyfunnel` that ask for the same."""
    values = plain_values(spec)
    words = [command, *([str(values.pop("table"))] if "table" in values else [])]
    for each in _fields(spec):
        if each.name in values and command in each.option.commands:
            value = values[each.name]
            if each.is_flag:
                words.append(each.flag if value else each.negated_flag)
            else:
                words += [f"{each.flag}={text}" for text in _texts(each, value)]
    return words


def _texts(each: SpecField, value: Any) -> list[str]:
    """The texts that the option of a field takes, one for each time it is given."""
    if each.name == "bins":
        return [f"{column}={_bins_text(how)}" for column, how in value.items()]
    if each.name == "merge_secrets":
        return [f"{join_names(labels)}={into}" for into, labels in value.items()]
    if each.name == "ordered":
        return [f"{column}={join_names(labels)}" if labels else column for column, labels in value.items()]
    if each.name == "merge_rare" and isinstance(value, Mapping):
        return [str(rows) if column == "*" else f"{column}={rows}" for column, rows in value.items()]
    if each.name == "secret":
        sizes = value.items() if isinstance(value, Mapping) else ()
        names = [join_names([item] if isinstance(item, str) else item) for item in value]
        return [f"{join_names([column])}={size!r}" for column, size in sizes] or names
    return [join_names([str(item) for item in value]) if isinstance(value, list) else str(value)]


def _bins_text(how: Any) -> str:
    if isinstance(how, Mapping):
        raise ParameterError("Groups of values have no text on a command line. Save the spec and run its file.")
    if isinstance(how, list):
        return ",".join(f"{edge:g}" if float(f"{edge:g}") == edge else repr(edge) for edge in how)
    return f"quantiles:{how}" if isinstance(how, int) else str(how)


def join_names(names: Sequence[str]) -> str:
    """Names with commas between, one that has a comma in quotes, as `parse_names` reads them."""
    if not any("," in name or '"' in name or name.startswith(" ") for name in names):
        return ",".join(names)
    text, blank = io.StringIO(), any(name.startswith(" ") for name in names)
    csv.writer(text, lineterminator="", quoting=csv.QUOTE_ALL if blank else csv.QUOTE_MINIMAL).writerow(names)
    return text.getvalue()


# Python


def python_lines(spec: Spec) -> list[str]:
    """The lines of Python that make the same spec."""
    values = plain_values(spec)
    return ["spec = ReleaseSpec(", *(f"    {name}={value!r}," for name, value in values.items()), ")"]
