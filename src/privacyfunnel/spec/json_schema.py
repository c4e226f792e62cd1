"""The JSON Schema of a release.toml, by which editors complete and check it: docs/release.schema.json."""

from __future__ import annotations

import json
from typing import Any

from privacyfunnel.spec.fields import SpecField
from privacyfunnel.spec.release_spec import FIELDS


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
