"""Text on pages. Whatever a page shows may hold labels of a table, so all of it is made harmless on its way out.

Escaped, as everywhere; and besides: no character that turns or breaks a line, and no word so long that nothing else has
room. What must stay as it is, since it comes back with a form or is to be copied, says so.
"""

from __future__ import annotations

import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from privacyfunnel.formatting import (
    format_count,
    format_epsilon,
    format_error,
    format_number,
    format_percent,
    format_places,
    format_points,
)
from privacyfunnel.hints import hint, word_for_command_line, word_hints
from privacyfunnel.report.svg import shorten

LONGEST = 120  # letters of a word
# What the forms call the fields of a request; those that no form has are named as on the command line.
_PROMISE = "(How much to promise)"
FORM_NAMES = {
    "again": "“Release these rows again”",
    "anyway": "“Publish although it would be useless”",
    "bins": "“Bins” or “Shorten or map values” (Roles)",
    "decimal": "“Decimal mark” (Table)",
    "delimiter": "“Fields are separated by” (Table)",
    "encoding": "“Encoding” (Table)",
    "epsilon": f"another factor {_PROMISE}",
    "factor": f"another factor {_PROMISE}",
    "force": "“Replace the release in this folder”",
    "header_row": "“Names of columns are in row” (Table)",
    "keep": "“Kept in clear” (Roles)",
    "merge_rare": "“Merge values of fewer than” (Roles)",
    "population": f"“The rows, and the population” {_PROMISE}",
    "public_labels": "“Everybody knows which values there are” (Roles)",
    "publish": "“Published” (Roles)",
    "secret": "“Secret” (Roles)",
    "time_limit": "“Search longer” (What it costs)",
    "use": "“Use of the published table” (What it costs)",
}
FORM_CHOICES = {
    ("promise", "srlip"): f"“Yes: a neighbour, a colleague” {_PROMISE}",
    ("prior", "model"): f"“Whoever believes a model that is published” {_PROMISE}",
    ("prior", "table"): f"“The rows of this table” {_PROMISE}",
}
_LONG = re.compile(rf"\S{{{LONGEST + 1},}}")
_UNSEEN = "\N{REPLACEMENT CHARACTER}"


def word_for_form(sentence: str) -> str:
    """The sentence with fields as the forms call them.

    >>> word_for_form(f"Use {hint('epsilon', 2)}.")
    'Use another factor (How much to promise): 2.'
    >>> word_for_form(f"{hint('known', 'sex')} covers them.").endswith("sex (command line) covers them.")
    True
    """

    def label(field: str, value: str | None) -> str:
        if (field, value) in FORM_CHOICES:
            return FORM_CHOICES[field, str(value)]
        if field not in FORM_NAMES:
            return f"{word_for_command_line(hint(field, value))} (command line)"
        return FORM_NAMES[field] if value is None else f"{FORM_NAMES[field]}: {value}"

    return word_hints(sentence, label)


def make_harmless(value: Any) -> Any:
    r"""A text as a page shows it.

    >>> make_harmless("abc\u202egnp.exe"), len(make_harmless("x" * 10_000)), make_harmless("a\nb")
    ('abc�gnp.exe', 120, 'a\nb')
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _LONG.sub(lambda word: shorten(word.group(), LONGEST), _replace_unseen(word_for_form(value)))


def safe_picture(svg: str) -> Markup:
    """A picture of ours, whose texts are escaped; what they hold may still turn lines."""
    return Markup(_replace_unseen(svg))


def _replace_unseen(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\n" else _UNSEEN for c in text)


def shorten_label(value: object, longest: int = LONGEST) -> str:
    """A label, not too long to stand in a line."""
    return shorten(str(value), longest)


def escape_exactly(value: object) -> Markup:
    """Escaped and nothing else."""
    return escape(str(value))


def environment(**known: Any) -> Environment:
    """Templates that show what is harmless."""
    found = Environment(
        loader=PackageLoader("privacyfunnel.studio", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=make_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"brief": shorten_label, "exact": escape_exactly, "drawn": safe_picture}
    found.filters |= {
        "percent": format_percent,
        "points": format_points,
        "number": format_number,
        "error": format_error,
    }
    found.filters |= {"epsilon": format_epsilon, "count": format_count, "places": format_places}
    found.globals |= known
    return found
