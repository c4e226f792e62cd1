"""For the analyst: what a sanitised table and its protocol say about the original columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privacyfunnel.estimation import Estimates, estimate, impute_file
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.release.output_layout import detect_layout
from privacyfunnel.studio.pictures import Picture, ShareInterval, intervals_picture
from privacyfunnel.studio.tasks.progress_messages import ProgressReporter
from privacyfunnel.tables.readers.table_files import open_table


@dataclass(frozen=True, slots=True)
class EstimatesView:
    """Estimates, and what could be asked for besides."""

    estimates: Estimates
    pictures: tuple[Picture, ...]  # one per table
    columns: tuple[str, ...]  # that were published
    kept: tuple[str, ...]  # that estimates may be grouped by
    promise: str
    epsilon: float
    secret: str
    csv: str  # all of it as a file


def analyst(
    say: ProgressReporter,
    protocol: Path,
    sanitised: Path,
    columns: Sequence[tuple[str, ...]],
    by: tuple[str, ...],
    level: float,
    target: str,
) -> EstimatesView:
    """Estimate the shares of each column, or of the tables that are named."""
    sealed = SealedProtocol.load(protocol)
    table = open_table(sanitised)
    way = detect_layout(sealed, table.columns, table.name)
    names = tuple(at.name for at in sealed.domain.attributes)
    kept = tuple(column for column in table.columns if column not in way.names)
    found = estimate(sealed, sanitised, by=by, columns=list(columns) or None, level=level, target=target)
    return EstimatesView(
        estimates=found,
        pictures=tuple(_picture(found, number) for number in range(len(found.tables))),
        columns=names,
        kept=kept,
        promise=sealed.promise.name,
        epsilon=sealed.promise.epsilon,
        secret=" & ".join(sealed.domain.secret_columns),
        csv=found.to_frame().write_csv(),
    )


def impute(
    say: ProgressReporter, protocol: Path, sanitised: Path, into: Path, tables: int, by: tuple[str, ...]
) -> tuple[Path, ...]:
    """So many completed tables, as files in a folder."""
    return tuple(impute_file(SealedProtocol.load(protocol), sanitised, into, tables, by=by, force=True))


MOST = 40  # lines of one picture


def _picture(found: Estimates, number: int) -> Picture:
    """Shares and their intervals, the largest first."""
    table = found.tables[number]
    cells = sorted(table.cells, key=lambda cell: -(cell.lower + cell.upper))[:MOST]
    shown = [
        ShareInterval(" & ".join(cell.labels), cell.share, cell.lower, cell.upper, doubtful=not cell.identified)
        for cell in cells
    ]
    return intervals_picture(
        f"shares-{number}",
        f"Estimated shares of {' & '.join(table.columns)} with {100 * found.level:g} % intervals, the {len(cells)} "
        f"largest of {len(table.cells)}; the table below has the numbers.",
        shown,
    )
