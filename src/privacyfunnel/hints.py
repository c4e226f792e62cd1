"""Hints: fields of a request named inside a sentence, worded later for whoever reads it.

A package that refuses something says which field would mend it, and does not know whether its reader types options,
writes Python or fills in a form. So the sentence carries the field as data, and each front end words it:

>>> sentence = f"2 values have fewer than 10 rows; {hint('merge_rare', 10)} publishes them as 'other'."
>>> word_for_python(sentence)
"2 values have fewer than 10 rows; merge_rare=10 publishes them as 'other'."
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping

# Delimiters from the private use area of Unicode: no keyboard has them, and no label of a table should.
_OPEN, _VALUE, _CLOSE = "\ue000", "\ue001", "\ue002"
_HINT = re.compile(f"{_OPEN}([a-z_]+)(?:{_VALUE}([^{_CLOSE}]*))?{_CLOSE}")

# Fields whose option on the command line is not the field's name with hyphens.
OPTIONS: Mapping[str, str] = {"use": "for", "bins": "bin"}
_BY_COLUMN = frozenset({"bins"})  # given as COLUMN=HOW on the command line, as a mapping in Python


def hint(field: str, value: object = None) -> str:
    """The field, with an example of what to give it; a command or a switch has none."""
    shown = "" if value is None else f"{_VALUE}{value}"
    return f"{_OPEN}{field}{shown}{_CLOSE}"


def option_name(field: str) -> str:
    """The long option of a field."""
    return "--" + OPTIONS.get(field, field.strip("_").replace("_", "-"))


def word_for_command_line(sentence: str) -> str:
    """The sentence with options in place of fields."""

    def option(field: str, value: str | None) -> str:
        name = option_name(field)
        return name if value is None else f"{name} {value if '…' in value else shlex.quote(value)}"

    return word_hints(sentence, option)


def word_for_python(sentence: str) -> str:
    """The sentence with arguments in place of fields.

    >>> word_for_python(f"Use {hint('bins', 'age=0,18,65')}, {hint('population', '95%')} or {hint('epsilon', 0.5)}.")
    'Use bins={"age": "0,18,65"}, population="95%" or epsilon=0.5.'
    """

    def argument(field: str, value: str | None) -> str:
        if value is None:
            return field
        if field in _BY_COLUMN and "=" in value:
            column, how = value.split("=", maxsplit=1)
            return f'{field}={{"{column}": "{how}"}}'
        return f"{field}={value}" if _is_number(value) else f'{field}="{value}"'

    return word_hints(sentence, argument)


def word_hints(sentence: str, wording: Callable[[str, str | None], str]) -> str:
    """The sentence with each field, and the value it is to be given, worded."""
    return _HINT.sub(lambda found: wording(found[1], found[2]), sentence)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
