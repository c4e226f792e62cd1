"""Tasks for whoever receives a release: estimates, imputed tables, and the audit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privacyfunnel.audits.pram import audit_matrix
from privacyfunnel.audits.protocol_audit import audit as audit_protocol
from privacyfunnel.audits.public_audit import audit_public
from privacyfunnel.estimation import Estimates, estimate, impute_file
from privacyfunnel.formatting import format_epsilon, format_factor, format_percent
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.release.findings.attacker_leaks import format_side_channel
from privacyfunnel.release.output_layout import detect_layout
from privacyfunnel.studio.pictures import Picture, ShareInterval, intervals_picture
from privacyfunnel.studio.task_pool import ProgressReporter
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
        epsilon=sealed.total_epsilon,
        secret=sealed.secret_text,
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


@dataclass(frozen=True, slots=True)
class AuditView:
    """What was found, a name and a sentence each."""

    holds: bool | None  # None where nothing was promised
    facts: tuple[tuple[str, str], ...]


def audit(
    say: ProgressReporter,
    rules: Path,
    table: Path,
    sanitised: Path | None,
    secret: tuple[str, ...],
    publish: tuple[str, ...],
    matrix: bool,
) -> AuditView:
    """Audit a protocol file, or measure a PRAM matrix."""
    if matrix:
        return _matrix(rules, table, secret, publish)
    sealed = SealedProtocol.load(rules)
    if not sealed.mechanism.lists_inputs:
        return _public(rules, secret, sanitised)
    found = audit_protocol(rules, table, secret=secret, sanitised=sanitised)
    about = sealed.secret_text
    facts = [
        ("rows", f"{found.rows:,}"),
        ("promise", f"{sealed.promise.name} ε = {format_epsilon(sealed.total_epsilon)} about {about} holds"),
        (
            "certified",
            f"ε = {format_epsilon(found.certified)} now, "
            f"{format_epsilon(sealed.epsilon)} stated, {sealed.mechanism.describe_check()}",
        ),
    ]
    if found.people is not None:
        facts.append(("people", found.people_text))
    if found.side_channel is not None:
        facts.append(("who knows more", format_side_channel(found.side_channel)))
    if found.draw is not None:
        how = "row by row" if found.draw.paired else "in the counts of outputs"
        facts.append(("draw", f"consistent with the protocol, {how} (p = {found.draw.p_value:.3f})"))
    if found.claims is not None:
        facts.append(("information", str(found.claims)))
    return AuditView(True, tuple(facts))


def _public(rules: Path, secret: tuple[str, ...], sanitised: Path | None) -> AuditView:
    """Real or synthetic records, which are checked from public files alone."""
    found = audit_public(rules, secret=secret, sanitised=sanitised)
    sealed = found.sealed
    size = f"ε = {format_epsilon(sealed.total_epsilon)} (×{format_factor(sealed.total_epsilon)})"
    facts = [
        ("promise", f"{sealed.promise.name} {size} about {sealed.secret_text} holds"),
        ("certified", sealed.mechanism.describe_check()),
        ("not checked", "how the model was made; the original table is not needed"),
    ]
    return AuditView(True, (*([("rows", f"{found.rows:,}")] if found.rows else []), *facts))


def _matrix(rules: Path, table: Path, secret: tuple[str, ...], publish: tuple[str, ...]) -> AuditView:
    found = audit_matrix(rules, table, secret=secret, publish=publish)
    facts = [("rows", f"{found.rows:,}"), ("outputs", f"{len(found.protocol.outputs):,}")]
    for name, leak in found.leaks.items():
        size = "without bound" if math.isinf(leak.epsilon) else f"ε = {format_epsilon(leak.epsilon)}"
        facts.append((name.upper(), f"leaks {size}; worst for {found.describe_leak(name)}"))
    share = found.information / found.entropy if found.entropy else 0.0
    facts.append(("information", f"{format_percent(share)} is kept"))
    return AuditView(None, tuple(facts))
