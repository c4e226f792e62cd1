"""A release in a notebook: it shows itself, is saved as the command line would, and draws its own report."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from privacyfunnel.errors import ParameterError
from privacyfunnel.library.saying import in_python
from privacyfunnel.notebook_html import facts_html, table_html
from privacyfunnel.release import release as room
from privacyfunnel.release.save_release import save_release


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Page:
    """A page of HTML that shows itself in a notebook."""

    html: str

    def save(self, path: str | Path) -> Path:
        """Write it where only its owner can read it."""
        from privacyfunnel.atomic_files import atomic_file

        path = Path(path)
        with atomic_file(path, force=True, owner_only=True) as beside:
            beside.write_text(self.html, encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return f"Page of {len(self.html):,} characters; .save(path) writes it"

    def _repr_html_(self) -> str:
        quoted = self.html.replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{quoted}" style="width:100%;height:40em;border:1px solid" sandbox></iframe>'


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Release(room.Release):
    """A sanitised table, the protocol it was drawn with, and what there is to say about both.

    `table` is the frame to publish and `sealed` its protocol; `save(folder)` writes both, `report()` draws the owner's
    page, `estimate(release)` is what an analyst would get back.
    """

    @classmethod
    def of(cls, found: room.Release) -> Release:
        """The same release, at a library user's hands."""
        return cls(**{field.name: getattr(found, field.name) for field in fields(found)})

    def save(self, folder: str | Path, suffix: str = ".csv", *, force: bool = False) -> Path:
        """Write `sanitised.csv` (or as `suffix` says: .csv, .tsv, .parquet, .arrow), `protocol.json` and, where the
        table shows codes, `codebook.csv` into a folder: all of them, or none. With `force` over what is there.

        A release of a frame is in no ledger: a second one of the same rows is not noticed.
        """
        return save_release(self, Path(folder), suffix, force=force)

    def report(self) -> Page:
        """The owner's page: what was promised, what an attacker could learn, what an analyst gets. For them alone."""
        from privacyfunnel.report.release_page import Occasion, owner_page

        if self.joint is None:
            raise ParameterError("a report needs the counts of the table; this release has none. Sanitise it again.")
        occasion = Occasion(datetime.now().astimezone(), "a frame in memory", f"Python {sys.version.split()[0]}")
        return Page(owner_page(self, occasion))

    @property
    def _facts(self) -> list[tuple[str, str]]:
        sealed, promise = self.sealed, self.sealed.promise
        secret = " & ".join(sealed.domain.secret_columns)
        least, most = promise.belief_bounds(0.3, promise.epsilon)
        return [
            ("rows", f"{self.rows:,}"),
            ("published", " & ".join(at.name for at in sealed.domain.attributes)),
            ("promise", f"{promise.name} about {secret}, ε = {promise.epsilon:g}, certified {sealed.epsilon:.6g}"),
            ("means", f"a belief of 30 % about {secret} may become {100 * least:.0f} to {100 * most:.0f} %"),
            ("method", self.method),
            ("unchanged", f"{100 * self.unchanged:.1f} % of rows"),
            ("kept", f"{100 * self.share_kept:.1f} % of the information"),
            ("not promised", " ".join(map(in_python, self.not_promised))),
        ]

    def __repr__(self) -> str:
        return "Release\n" + "\n".join(f"  {name:<13}{said}" for name, said in self._facts[:-1])

    def _repr_html_(self) -> str:
        return facts_html("Release", self._facts) + _first_rows(self.table)


def _first_rows(table: Any) -> str:
    if isinstance(table, str | Path):
        return ""
    from privacyfunnel.tables.readers.lazy_frames import frame_table

    source = frame_table(table)
    rows = next(iter(source.batches(source.columns))).head(5)
    return table_html(source.columns, [[str(cell) for cell in row] for row in rows.iter_rows()])
