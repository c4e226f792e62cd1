"""The table of fields in docs/request.md."""

from __future__ import annotations

from itertools import groupby

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
