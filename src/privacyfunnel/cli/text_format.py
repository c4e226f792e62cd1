"""How answers are written for people."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from privacyfunnel.formatting import format_count, format_epsilon, format_nats

__all__ = [
    "explain_cut_points",
    "explain_stop",
    "format_count",
    "format_epsilon",
    "format_facts",
    "format_nats",
    "format_table",
    "make_printable",
]

UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories of Unicode: control, format, surrogate, line, paragraph
JOINERS = "\u200c\u200d"


def make_printable(text: str, *, one_line: bool = False, as_json: bool = False) -> str:
    r"""The text without what a terminal obeys or a reader cannot see: control characters, and marks that turn lines.

    A label must not begin a line of its own: where there is to be `one_line`, a line feed is shown.

    >>> print(make_printable("\x1b[2Jsafe\u202e\n1"),
    ...       make_printable("a\nb", one_line=True), make_printable("\x7f", as_json=True))
    \x1b[2Jsafe\u202e
    1 a\nb \u007f
    """
    if text.isprintable() and not as_json:
        return text
    return "".join(
        (_escape_as_json if as_json else _escape_as_text)(char)
        if _is_unseen(char) and (one_line or char != "\n")
        else char
        for char in text
    )


def _is_unseen(char: str) -> bool:
    """Whether it is a control character or a mark of format; the two joiners belong to the spelling of some scripts."""
    return not char.isprintable() and unicodedata.category(char) in UNSEEN and char not in JOINERS


def _escape_as_text(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def _escape_as_json(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> str:
    """Columns that line up, to the left (<) or to the right (>).

    >>> print(format_table(["method", "nats"], [["optimal", "1.5"]], "<>"))
    method   nats
    optimal   1.5
    """
    header, *rows = [[make_printable(cell, one_line=True) for cell in line] for line in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = (
        [f"{cell:{how}{width}}" for cell, how, width in zip(line, align, widths, strict=True)]
        for line in [header, *rows]
    )
    return "\n".join("  ".join(line).rstrip() for line in lines)


def format_facts(pairs: Sequence[tuple[str, str]]) -> str:
    """A name and what there is to say about it on each line.

    >>> print(format_facts([("rows", "12"), ("secret", "income")]))
    rows     12
    secret   income
    """
    width = max(len(name) for name, _ in pairs) + 3
    return "\n".join(f"{name.ljust(width)}{make_printable(text, one_line=True)}" for name, text in pairs)


def explain_stop(reason: str | None) -> str:
    """What ended a search that did not reach its gap, and whether more time may help."""
    if reason == "nothing left to try":
        return "no strategy was left to try; more time would not help"
    return "stopped by the time limit; a longer --time-limit may find more"


def explain_cut_points(points: Iterable[tuple[str, str | None]]) -> list[str]:
    """Which points of a curve, by their names, were cut short, and by what; a sentence for each reason.

    >>> explain_cut_points([("ε = 0.5", "gap"), ("ε = 1", "time"), ("ε = 2", "time"), ("ε = 4", None)])
    ['Cut short at ε = 1, ε = 2: stopped by the time limit; a longer --time-limit may find more.']
    """
    reasons: dict[str, list[str]] = {}
    for name, reason in points:
        if reason not in (None, "gap"):
            reasons.setdefault(explain_stop(reason), []).append(name)
    return [f"Cut short at {', '.join(names)}: {why}." for why, names in reasons.items()]
