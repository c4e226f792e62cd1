"""Where sanitised rows go when their protocol stands elsewhere: one file, or a folder of parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np

from privacyfunnel.atomic_files import StagedFiles, atomic_files, atomic_folder, check_folder
from privacyfunnel.errors import OutputError
from privacyfunnel.release.release_files import OutputFile
from privacyfunnel.release.row_sampler import RowSampler
from privacyfunnel.tables.readers.table_files import PartsTable, check_output, check_suffix, table_suffix
from privacyfunnel.tables.readers.table_interface import Table

NOTICE = "notice.txt"


def resolve_destination(table: Table, into: Path, *, force: bool) -> FileDestination | FolderDestination:
    """A file for a table, a folder for one in parts; refused early where it could not appear."""
    if isinstance(table, PartsTable):
        _refuse_own_input(table, into)
        check_folder(into, force=force)
        unlike = [name for name in table.names if table_suffix(Path(name)) is None]
        if unlike:
            raise OutputError(
                f"parts are written in the formats they are read in; '{unlike[0]}' is of one that is only read. Apply "
                "to that file by itself."
            )
        return FolderDestination(into, table, force)
    if into.is_dir():
        raise OutputError(f"'{into}' must be a file to write to; it is a directory. Name a file inside it.")
    suffix = check_output(into, force=force) if into.parent.exists() else check_suffix(into)
    return FileDestination(into, suffix, force)


def _refuse_own_input(table: PartsTable, into: Path) -> None:
    """Refuse an output folder that holds the input: replacing it would remove the originals."""
    output = into.resolve()
    inside = [part for part in table.paths if part.resolve().is_relative_to(output)]
    if inside:
        raise OutputError(
            f"the output folder '{into}' must not contain the input; '{inside[0]}' is in it. Name another folder."
        )


@dataclass(frozen=True, slots=True)
class FileDestination:
    """A table that appears by itself."""

    table: Path
    suffix: str
    force: bool = False

    @property
    def folder(self) -> Path:
        """The folder it is in."""
        return self.table.parent

    @property
    def notice(self) -> str:
        """The name of the file beside it that says what does not hold of it, where there is such a thing."""
        return f"{self.table.name}.{NOTICE}"

    def output_files(self, outgoing: RowSampler) -> Sequence[OutputFile]:
        """It alone."""
        return [OutputFile(self.table.name, self.suffix)]

    def stage(self) -> AbstractContextManager[StagedFiles]:
        """One file that appears; a notice about the one that it replaces goes."""
        old = [self.notice] if (self.folder / self.notice).exists() else []
        return atomic_files(self.folder, force=self.force, also_replace=old)


@dataclass(frozen=True, slots=True)
class FolderDestination:
    """As many parts as there are, in a folder that appears whole.

    In a random order they have numbers for names, and equal sizes: how the table was cut may tell, by name or size, how
    many people have a secret. In the order of the table they are its own parts, with their names and rows.
    """

    table: Path
    source: PartsTable
    force: bool = False

    @property
    def folder(self) -> Path:
        """The folder that the new one is in."""
        return self.table.parent

    @property
    def suffix(self) -> str:
        return check_suffix(Path(self.source.names[0]))

    @property
    def notice(self) -> str:
        """The name of the file that says what does not hold of the parts, where there is such a thing."""
        return NOTICE

    def output_files(self, outgoing: RowSampler) -> Sequence[OutputFile]:
        """A file per part."""
        if not outgoing.spec.keep_order:
            parts = len(self.source.names)
            bounds = [outgoing.rows * i // parts for i in range(parts + 1)]
            digits = len(str(parts))
            return [
                OutputFile(f"part-{i:0{digits}}{self.suffix}", self.suffix, bounds[i] - bounds[i - 1])
                for i in range(1, parts + 1)
            ]
        sizes = self.source.sizes
        if outgoing.rows < sum(sizes):
            stays = np.concatenate(
                [outgoing.bound_table.inputs(chunk) >= 0 for chunk in outgoing.bound_table.encoding.chunks()]
            )
            ends = list(accumulate(sizes))
            sizes = [int(stays[end - size : end].sum()) for size, end in zip(sizes, ends, strict=True)]
        named = zip(self.source.names, sizes, strict=True)
        return [OutputFile(name, check_suffix(Path(name)), size) for name, size in named]

    def stage(self) -> AbstractContextManager[StagedFiles]:
        """A folder that appears."""
        return atomic_folder(self.table, force=self.force)
