"""How values show themselves in a notebook: a few facts, a table, bars; no script, no network, the reader's colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

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


def first_rows_html(frame: Any) -> str:
    """The first rows of a frame of any kind."""
    from privacyfunnel.tables.readers.lazy_frames import frame_table

    source = frame_table(frame)
    rows = next(iter(source.batches(source.columns))).head(5)
    return table_html(source.columns, [[str(cell) for cell in row] for row in rows.iter_rows()])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Page:
    """A page of HTML that a notebook shows in a frame."""

    html: str

    def save(self, path: str | Path) -> Path:
        """Write it where only its owner can read it."""
        from privacyfunnel.tables.writers.atomic_files import atomic_file

        path = Path(path)
        with atomic_file(path, force=True, owner_only=True) as beside:
            beside.write_text(self.html, encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return f"Page of {len(self.html):,} characters; .save(path) writes it"

    def _repr_html_(self) -> str:
        quoted = self.html.replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{quoted}" style="width:100%;height:40em;border:1px solid" sandbox></iframe>'
