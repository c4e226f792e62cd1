"""What documents say of release.toml: the table of fields in docs/request.md, and docs/release.schema.json.

python -m scripts.make_spec_docs table     the table of fields, in Markdown
python -m scripts.make_spec_docs schema    the JSON Schema, by which editors complete and check a release.toml
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from typing import Any

from privacyfunnel.spec.fields import SpecField
from privacyfunnel.spec.release_spec import FIELDS
from privacyfunnel.spec.text_forms import format_value


def options_table() -> str:
    """All fields by group in Markdown: the field, its option, an example in release.toml, and its help."""
    lines = []
    for group, fields in groupby(FIELDS, key=lambda each: each.group):
        lines += [f"### {group}", "", "| field | option | example | meaning |", "|---|---|---|---|"]
        lines += [_row(each) for each in fields]
        lines.append("")
    return "\n".join(lines)


def _row(each: SpecField) -> str:
    option = ", ".join(f"`{name}`" for name in filter(None, (each.option.short, each.flag)))
    example = f"{each.key} = {format_value(True if each.is_flag else each.option.example)}"
    return f"| `{each.key}` | {option} | `{_cell(example)}` | {_cell(each.help)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def json_schema() -> dict[str, Any]:
    """The schema: a property per field, with its help, default, limits and example."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "privacyfunnel release.toml",
        "description": "The request of a release. Paths are relative to the folder of the file.",
        "type": "object",
        "additionalProperties": False,
        "properties": {each.key: _property(each) for each in FIELDS},
    }


def schema_text() -> str:
    """The schema as it stands in docs/release.schema.json."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _property(each: SpecField) -> dict[str, Any]:
    found = {"description": each.help, **each.option.kind.schema}
    if each.choices and "enum" not in found:
        found["examples"] = list(each.choices)
    elif each.option.example is not None:
        found["examples"] = [each.option.example]
    if isinstance(each.default, bool | str | float):
        found["default"] = each.default
    return found


if __name__ == "__main__":
    sys.stdout.write({"table": options_table, "schema": schema_text}[sys.argv[1]]())
