"""A draft of a domain file, from a scan: the labels and bins of the columns that might be published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from privacyfunnel.atomic_files import atomic_file
from privacyfunnel.audits.scans.scan import Scan
from privacyfunnel.tables.coding.bins import Bins
from privacyfunnel.tables.coding.domain_file import draft_domain
from privacyfunnel.tables.readers.formats import AUTO_DETECT, Dialect
from privacyfunnel.tables.readers.table_files import TableSource, resolve_source


def write_domain(
    source: str | Path | TableSource,
    target: Path,
    found: Scan,
    bins: Sequence[Bins] = (),
    *,
    dialect: Dialect = AUTO_DETECT,
    force: bool = False,
) -> None:
    """Write the labels and bins of what was scanned; columns of ids and names, whose labels are people, stay out."""
    table = resolve_source(source).open(dialect)
    told = {look.column for look in found.looks if not look.note and not look.tells_rows_apart}
    told |= {look.column for look in found.looks if look.in_bins is not None}
    columns = [column for column in table.columns if column in told or column in found.secret]
    listed = draft_domain(table, columns, bins)
    with atomic_file(target, force=force) as beside:
        beside.write_text(listed.to_text(), encoding="utf-8")
