"""A release as files: the table, its protocol and the pages about both, which appear and go together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from privacyfunnel.errors import OutputError
from privacyfunnel.tables.suffixes import SUFFIXES
from privacyfunnel.tables.whole import Parts, checked_target, whole_files

STEM = "sanitised"  # what a table is called, before what says its format
if TYPE_CHECKING:
    from privacyfunnel.release.outgoing import Outgoing

TABLES = tuple(f"{STEM}{suffix}" for suffix in SUFFIXES)
PROTOCOL = "protocol.json"
CODEBOOKS = ("codebook.csv", "codebook.tsv")
SIGNATURE = f"{PROTOCOL}.sig"
OWNERS, PUBLIC = "report.html", "public-report.html"  # what the pages are called
CROISSANT = "croissant.json"  # and a description for catalogues of data sets


@dataclass(frozen=True, slots=True)
class Page:
    """A page about a release."""

    name: str
    text: str
    owners: bool = False  # whether only the owner may read it


class Output(NamedTuple):
    """A file that rows are written to."""

    name: str
    suffix: str
    rows: int | None = None  # how many; None for all that are left


@dataclass(frozen=True, slots=True)
class ReleaseFiles:
    """Where a release goes, and whether it takes the place of one that is there."""

    into: Path
    suffix: str
    force: bool = False

    @property
    def table(self) -> Path:
        return self.into / f"{STEM}{self.suffix}"

    @property
    def protocol(self) -> Path:
        return self.into / PROTOCOL

    @property
    def codebook(self) -> Path:
        """In the table's dialect where the table is text."""
        return self.into / CODEBOOKS[self.suffix.startswith(".tsv")]

    def files(self, outgoing: Outgoing) -> Sequence[Output]:
        """One table."""
        return [Output(self.table.name, self.suffix)]

    def refuse_early(self, source: Path | None) -> None:
        """Before hours are spent, refuse a folder in which the release could not appear."""
        if not self.into.exists():
            return
        for name in TABLES:
            if source is not None and (self.into / name).exists() and (self.into / name).samefile(source):
                raise OutputError(
                    f"'{self.into / name}' is the table itself and must not be overwritten. Name another folder."
                )
        for name in (*self._tables, PROTOCOL, *CODEBOOKS):
            checked_target(self.into / name, force=self.force)

    def together(self) -> AbstractContextManager[Parts]:
        """Files that appear together.

        A protocol belongs to one table: a table in another format, and with --force the old pages, codebook and
        signature too, would tell of a release that is no longer there.
        """
        old = (*CODEBOOKS, OWNERS, PUBLIC, CROISSANT, SIGNATURE) if self.force else ()
        return whole_files(self.into, force=self.force, instead_of=(*self._tables, *old))

    @property
    def _tables(self) -> list[str]:
        """The table, and tables in other formats where there are any; what is a folder is none."""
        others = [name for name in TABLES if name != self.table.name and os.path.lexists(self.into / name)]
        return [self.table.name, *(name for name in others if not (self.into / name).is_dir())]
