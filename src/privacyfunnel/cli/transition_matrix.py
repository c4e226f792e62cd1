"""`audit --matrix`: a transition matrix from other software, measured and told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privacyfunnel.cli import text_format
from privacyfunnel.cli.application import answer
from privacyfunnel.formatting import format_percent

if TYPE_CHECKING:
    from privacyfunnel.model.promises import Promise
    from privacyfunnel.spec import ReleaseSpec


def audit_matrix_file(matrix: Path, spec: ReleaseSpec, promise: Promise | None, *, as_json: bool) -> None:
    """Measure the matrix on a table, and print what was found."""
    from privacyfunnel.audits.pram import audit_matrix

    found = audit_matrix(
        matrix,
        spec.table,
        secret=spec.secret,
        publish=spec.publish,
        promise=promise,
        bins=spec.bin_rules,
        dialect=spec.dialect,
    )
    joint = found.joint
    columns = " & ".join(at.name for at in joint.attributes)
    content = {
        "rows": found.rows,
        "secret": joint.secret_name,
        "publish": [at.name for at in joint.attributes],
        "outputs": len(found.protocol.outputs),
        "leakage": {name: leak.epsilon for name, leak in found.leaks.items()},
        "worst": {name: found.describe_leak(name) for name in found.leaks},
        "information_nats": found.information,
        "entropy_nats": found.entropy,
        "share_kept": found.information / found.entropy,
        "promise": None if promise is None else promise.name,
        "epsilon": None if promise is None else promise.epsilon,
        "certified": found.certified,
        "holds": None if promise is None else True,
    }
    kept = (
        f"{text_format.format_nats(found.information)}, "
        f"{format_percent(found.information / (found.entropy or 1))} of H({columns})"
    )
    facts = [
        ("rows", f"{found.rows:,}; {columns} as {len(found.protocol.outputs)} outputs, {joint.secret_name} secret"),
        *(
            (name.upper(), f"ε = {text_format.format_epsilon(leak.epsilon)}, worst for {found.describe_leak(name)}")
            for name, leak in found.leaks.items()
        ),
        ("information", kept),
    ]
    if promise is not None and found.certified is not None:
        facts.append(
            (
                "promise",
                f"{promise.name} ε = {text_format.format_epsilon(promise.epsilon)} holds, certified at "
                f"{found.certified:.6g} "
                "in exact arithmetic",
            )
        )
    answer(as_json, content, text_format.format_facts(facts))
