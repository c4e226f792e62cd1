"""How values show themselves in a notebook: a few facts, a table, bars; no script, no network, the reader's colours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from html import escape

MOST_ROWS = 30  # that a notebook shows
_CELL = "padding:.15em .7em;text-align:left;"


def facts_html(title: str, pairs: Iterable[tuple[str, str]]) -> str:
    """A title and a name with what there is to say about it on each line.

    >>> facts_html("Joint", [("rows", "1 < 2")]).count("&lt;")
    1
    """
    lines = "".join(
        f'<tr><th style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{escape(said)}</td></tr>'
        for name, said in pairs
    )
    return f"<div><strong>{escape(title)}</strong><table>{lines}</table></div>"


class ShowsFacts(ABC):
    """Shows itself in a few lines, in a notebook as a table."""

    __slots__ = ()

    @abstractmethod
    def _facts(self) -> list[tuple[str, str]]:
        """Names and what is said of each."""

    def __repr__(self) -> str:
        return "\n".join([type(self).__name__, *(f"  {name:<13}{said}" for name, said in self._facts())])

    def _repr_html_(self) -> str:
        return facts_html(type(self).__name__, self._facts())


def table_html(header: Sequence[str], rows: Sequence[Sequence[str]], bars: Sequence[float] = ()) -> str:
    """A table; `bars` are shares that stand beside the rows as bars."""
    more = len(rows) - MOST_ROWS
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in header)
    body = ""
    for i, row in enumerate(rows[:MOST_ROWS]):
        cells = "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row)
        bar = f'<td style="min-width:12em">{_bar(bars[i])}</td>' if bars else ""
        body += f"<tr>{cells}{bar}</tr>"
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    return f"<table><tr>{head}{'<th></th>' if bars else ''}</tr>{body}</table>{rest}"


def _bar(share: float) -> str:
    width = f"{100 * min(1.0, max(0.0, share)):.1f}%"
    return f'<div style="background:currentColor;opacity:.55;height:.8em;width:{width}"></div>'
