"""A draft of a domain file, from a scan: the labels and bins of the columns that might be published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from privacyfunnel.audits.scan import Scan
from privacyfunnel.tables.bins import Bins
from privacyfunnel.tables.dialect import AS_FOUND, Dialect
from privacyfunnel.tables.domain_file import observed_domain
from privacyfunnel.tables.sources import Source, source_of
from privacyfunnel.tables.whole import whole_file


def write_domain(
    source: str | Path | Source,
    target: Path,
    found: Scan,
    bins: Sequence[Bins] = (),
    *,
    dialect: Dialect = AS_FOUND,
    force: bool = False,
) -> None:
    """Write the labels and bins of what was scanned; columns of ids and names, whose labels are people, stay out."""
    table = source_of(source).open(dialect)
    told = {look.column for look in found.looks if not look.note and not look.tells_rows_apart}
    told |= {look.column for look in found.looks if look.in_bins is not None}
    columns = [column for column in table.columns if column in told or column in found.secret]
    listed = observed_domain(table, columns, bins)
    with whole_file(target, force=force) as beside:
        beside.write_text(listed.to_text(), encoding="utf-8")
