"""Text on pages. Whatever a page shows may hold labels of a table, so all of it is made harmless on its way out.

Escaped, as everywhere; and besides: no character that turns or breaks a line, and no word so long that nothing else has
room. What must stay as it is, since it comes back with a form or is to be copied, says so.
"""

from __future__ import annotations

import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from privacyfunnel.report.svg import short

LONGEST = 120  # letters of a word
_LONG = re.compile(rf"\S{{{LONGEST + 1},}}")
_UNSEEN = "\N{REPLACEMENT CHARACTER}"


def harmless(value: Any) -> Any:
    r"""A text as a page shows it.

    >>> harmless("abc\u202egnp.exe"), len(harmless("x" * 10_000)), harmless("a\nb")
    ('abc�gnp.exe', 120, 'a\nb')
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _LONG.sub(lambda word: short(word.group(), LONGEST), _seen(value))


def drawn(svg: str) -> Markup:
    """A picture of ours, whose texts are escaped; what they hold may still turn lines."""
    return Markup(_seen(svg))


def _seen(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\n" else _UNSEEN for c in text)


def brief(value: object, longest: int = LONGEST) -> str:
    """A label, not too long to stand in a line."""
    return short(str(value), longest)


def exact(value: object) -> Markup:
    """Escaped and nothing else."""
    return escape(str(value))


def environment(**known: Any) -> Environment:
    """Templates that show what is harmless."""
    found = Environment(
        loader=PackageLoader("privacyfunnel.studio", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"brief": brief, "exact": exact, "drawn": drawn}
    found.globals |= known
    return found
