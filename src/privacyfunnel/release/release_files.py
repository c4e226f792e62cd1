"""A release as files: the table, its protocol and the pages about both, which appear and go together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from privacyfunnel.atomic_files import StagedFiles, atomic_files, check_target
from privacyfunnel.errors import OutputError, ParameterError
from privacyfunnel.tables.readers.formats import STEM, SUFFIXES, TABLES

if TYPE_CHECKING:
    from privacyfunnel.mechanisms.sealing import SealedProtocol
    from privacyfunnel.release.row_sampler import RowSampler

PROTOCOL = "protocol.json"
CODEBOOKS = ("codebook.csv", "codebook.tsv")
SIGNATURE = f"{PROTOCOL}.sig"
OWNER_REPORT, PUBLIC_REPORT = "report.html", "public-report.html"  # what the pages are called
CROISSANT = "croissant.json"  # and a description for catalogues of data sets


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A page about a release."""

    name: str
    text: str
    owners: bool = False  # whether only the owner may read it


class OutputFile(NamedTuple):
    """A file that rows are written to."""

    name: str
    suffix: str
    rows: int | None = None  # how many; None for all that are left


@dataclass(frozen=True, slots=True)
class ReleaseFiles:
    """Where a release goes, and whether it takes the place of one that is there."""

    folder: Path
    suffix: str
    force: bool = False

    @property
    def table(self) -> Path:
        return self.folder / f"{STEM}{self.suffix}"

    @property
    def protocol(self) -> Path:
        return self.folder / PROTOCOL

    @property
    def codebook(self) -> Path:
        """In the table's dialect where the table is text."""
        return self.folder / CODEBOOKS[self.suffix.startswith(".tsv")]

    def output_files(self, outgoing: RowSampler) -> Sequence[OutputFile]:
        """One table."""
        return [OutputFile(self.table.name, self.suffix)]

    def refuse_early(self, source: Path | None) -> None:
        """Before hours are spent, refuse a folder in which the release could not appear."""
        if not self.folder.exists():
            return
        for name in TABLES:
            if source is not None and (self.folder / name).exists() and (self.folder / name).samefile(source):
                raise OutputError(
                    f"'{self.folder / name}' is the table itself and must not be overwritten. Name another folder."
                )
        for name in (*self._tables, PROTOCOL, *CODEBOOKS):
            check_target(self.folder / name, force=self.force)

    def stage(self) -> AbstractContextManager[StagedFiles]:
        """Files that appear together.

        A protocol belongs to one table: a table in another format, and with force the old pages, codebook and signature
        too, would describe a release that is no longer there.
        """
        old = (*CODEBOOKS, OWNER_REPORT, PUBLIC_REPORT, CROISSANT, SIGNATURE) if self.force else ()
        return atomic_files(self.folder, force=self.force, also_replace=(*self._tables, *old))

    @property
    def _tables(self) -> list[str]:
        """The table, and tables in other formats where there are any; what is a folder is none."""
        others = [name for name in TABLES if name != self.table.name and os.path.lexists(self.folder / name)]
        return [self.table.name, *(name for name in others if not (self.folder / name).is_dir())]


def save_release(table: Any, sealed: SealedProtocol, codebook: Any, into: Path, suffix: str, *, force: bool) -> Path:
    """Write the frame of a release, its protocol and its codebook into the folder, all or none; the folder."""
    from privacyfunnel.atomic_files import ensure_folder
    from privacyfunnel.tables.readers.lazy_frames import frame_table
    from privacyfunnel.tables.writers.table_writer import write_batches

    if isinstance(table, str | Path):
        raise OutputError(f"this release is in files already: {table}. Copy them.")
    if suffix not in SUFFIXES:
        raise ParameterError(f"suffix must be one of {', '.join(SUFFIXES)}; got '{suffix}'.")
    files = ReleaseFiles(into, suffix, force=force)
    for path in (files.table, files.protocol, files.codebook) if into.exists() else ():
        check_target(path, force=force)
    owners = not sealed.has_noisy_design
    with ensure_folder(into), files.stage() as parts:
        rows = frame_table(table)
        write_batches(parts.begin(files.table.name), suffix, rows.batches(rows.columns))
        parts.begin(files.protocol.name, owner_only=owners).write_text(sealed.to_text(), encoding="utf-8")
        if codebook is not None:
            book, beside = frame_table(codebook), parts.begin(files.codebook.name, owner_only=owners)
            write_batches(beside, beside.suffix, book.batches(book.columns))
    return into
