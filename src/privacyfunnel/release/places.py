"""Where sanitised rows go when their protocol stands elsewhere: one file, or a folder of parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np

from privacyfunnel.errors import OutputError
from privacyfunnel.release.files import Output
from privacyfunnel.release.outgoing import Outgoing
from privacyfunnel.release.publishing import Place
from privacyfunnel.tables.files import Table, checked_output, checked_suffix, table_suffix
from privacyfunnel.tables.parts import PartsTable
from privacyfunnel.tables.whole import Parts, whole_files
from privacyfunnel.tables.whole_folder import checked_folder, whole_folder


def place_of(table: Table, into: Path, *, force: bool) -> Place:
    """A file for a table, a folder for one in parts; refused early where it could not appear."""
    if isinstance(table, PartsTable):
        checked_folder(into, force=force)
        unlike = [name for name in table.names if table_suffix(Path(name)) is None]
        if unlike:
            raise OutputError(
                f"parts are written in the formats they are read in; '{unlike[0]}' is of one that is only read. Apply "
                "to that file by itself."
            )
        return FolderOfParts(into, table, force)
    if into.is_dir():
        raise OutputError(f"'{into}' must be a file to write to; it is a directory. Name a file inside it.")
    suffix = checked_output(into, force=force) if into.parent.exists() else checked_suffix(into)
    return OneFile(into, suffix, force)


@dataclass(frozen=True, slots=True)
class OneFile:
    """A table that appears by itself."""

    table: Path
    suffix: str
    force: bool = False

    @property
    def into(self) -> Path:
        """The folder it is in."""
        return self.table.parent

    def files(self, outgoing: Outgoing) -> Sequence[Output]:
        """It alone."""
        return [Output(self.table.name, self.suffix)]

    def together(self) -> AbstractContextManager[Parts]:
        """One file that appears."""
        return whole_files(self.into, force=self.force)


@dataclass(frozen=True, slots=True)
class FolderOfParts:
    """Parts of the same names and numbers of rows, in a folder that appears whole.

    In a random order rows go to any part: which part a row was in is part of where it stood.
    """

    table: Path
    source: PartsTable
    force: bool = False

    @property
    def into(self) -> Path:
        """The folder that the new one is in."""
        return self.table.parent

    @property
    def suffix(self) -> str:
        return checked_suffix(Path(self.source.names[0]))

    def files(self, outgoing: Outgoing) -> Sequence[Output]:
        """A file per part, with as many rows as are published of it."""
        sizes = self.source.sizes
        if outgoing.rows < sum(sizes):
            stays = np.concatenate([outgoing.met.inputs(chunk) >= 0 for chunk in outgoing.met.encoding.chunks()])
            ends = list(accumulate(sizes))
            sizes = [int(stays[end - size : end].sum()) for size, end in zip(sizes, ends, strict=True)]
        named = zip(self.source.names, sizes, strict=True)
        return [Output(name, checked_suffix(Path(name)), size) for name, size in named]

    def together(self) -> AbstractContextManager[Parts]:
        """A folder that appears."""
        return whole_folder(self.table, force=self.force)
