"""A release of a frame written to a folder, as one of a file is: whole, or not at all."""

from __future__ import annotations

from pathlib import Path

from privacyfunnel.errors import OutputError, ParameterError
from privacyfunnel.release.release import Release
from privacyfunnel.release.release_files import ReleaseFiles
from privacyfunnel.tables.readers.formats import SUFFIXES
from privacyfunnel.tables.readers.table_interface import Table


def save_release(release: Release, into: Path, suffix: str, *, force: bool) -> Path:
    """Write table, protocol and codebook into the folder; the folder."""
    from privacyfunnel.atomic_files import check_target, ensure_folder
    from privacyfunnel.tables.writers.table_writer import write_batches

    if isinstance(release.table, str | Path):
        raise OutputError(f"this release is in files already: {release.table}. Copy them.")
    if suffix not in SUFFIXES:
        raise ParameterError(f"a table is written as one of {', '.join(SUFFIXES)}; not as '{suffix}'. Name one.")
    files = ReleaseFiles(into, suffix, force=force)
    for path in (files.table, files.protocol, files.codebook):
        if into.exists():
            check_target(path, force=force)
    people = release.sealed.promise.population
    owners = people is None or people.rule.design_epsilon is None  # made from the counts themselves
    with ensure_folder(into), files.stage() as parts:
        table = _frame_table(release.table)
        write_batches(parts.begin(files.table.name), suffix, table.batches(table.columns))
        parts.begin(files.protocol.name, owner_only=owners).write_text(release.sealed.to_text(), encoding="utf-8")
        if release.codebook is not None:
            book, beside = _frame_table(release.codebook), parts.begin(files.codebook.name, owner_only=owners)
            write_batches(beside, beside.suffix, book.batches(book.columns))
    return into


def _frame_table(frame: object) -> Table:
    from privacyfunnel.tables.readers.lazy_frames import frame_table

    return frame_table(frame)
