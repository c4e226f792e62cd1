"""Audit: what a protocol, or a matrix of other software, leaks on a table; in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from privacyfunnel.audits.pram import audit_matrix
from privacyfunnel.audits.protocol_audit import audit as audit_protocol
from privacyfunnel.audits.side_channel_audit import format_side_channel
from privacyfunnel.studio.tasks.progress_messages import ProgressReporter


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
    found = audit_protocol(rules, table, secret=secret, sanitised=sanitised)
    sealed = found.sealed
    about = " & ".join(sealed.domain.secret_columns)
    facts = [
        ("rows", f"{found.rows:,}"),
        ("promise", f"{sealed.promise.name} ε = {sealed.promise.epsilon:g} about {about} holds"),
        ("certified", f"ε = {found.certified:.6g} now, {sealed.epsilon:.6g} stated, {sealed.mechanism.check_method}"),
    ]
    if found.people is not None:
        facts.append(("people", found.people.describe_with_table(found.certified)))
    if found.side_channel is not None:
        facts.append(("who knows more", format_side_channel(found.side_channel)))
    if found.draw is not None:
        how = "row by row" if found.draw.paired else "in the counts of outputs"
        facts.append(("draw", f"consistent with the protocol, {how} (p = {found.draw.p_value:.3f})"))
    if found.claims is not None:
        facts.append(("information", str(found.claims)))
    return AuditView(True, tuple(facts))


def _matrix(rules: Path, table: Path, secret: tuple[str, ...], publish: tuple[str, ...]) -> AuditView:
    found = audit_matrix(rules, table, secret=secret, publish=publish)
    facts = [("rows", f"{found.rows:,}"), ("outputs", f"{len(found.protocol.outputs):,}")]
    for name, leak in found.leaks.items():
        size = "without bound" if math.isinf(leak.epsilon) else f"ε = {leak.epsilon:.4g}"
        facts.append((name.upper(), f"leaks {size}; worst for {found.describe_leak(name)}"))
    share = found.information / found.entropy if found.entropy else 0.0
    facts.append(("information", f"{100 * share:.1f} % is kept"))
    return AuditView(None, tuple(facts))
