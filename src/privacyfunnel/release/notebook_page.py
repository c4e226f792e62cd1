"""How a release shows itself in a notebook: its first rows, and its report as a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privacyfunnel.atomic_files import atomic_file
from privacyfunnel.notebook_html import table_html


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
        path = Path(path)
        with atomic_file(path, force=True, owner_only=True) as beside:
            beside.write_text(self.html, encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return f"Page of {len(self.html):,} characters; .save(path) writes it"

    def _repr_html_(self) -> str:
        quoted = self.html.replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{quoted}" style="width:100%;height:40em;border:1px solid" sandbox></iframe>'
