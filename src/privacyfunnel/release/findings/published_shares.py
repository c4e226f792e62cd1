"""What is said where the shares of the published columns are published as well."""

from __future__ import annotations

from privacyfunnel.mechanisms.sealing import SealedProtocol


def share_statements(sealed: SealedProtocol) -> list[str]:
    """What exact shares give away, in a sentence; none where there are none."""
    if sealed.shares is None:
        return []
    columns, secret = " & ".join(at.name for at in sealed.domain.attributes), " & ".join(sealed.domain.secret_columns)
    few = min(int(counts[counts > 0].min()) for counts in sealed.shares.counts)
    return [
        f"The exact shares of {columns} are published in protocol.json, down to {few:,} row{'s' if few > 1 else ''}: "
        f"whoever knows {columns} of everybody else learns that of the last person, and what it says about {secret}, "
        "however small ε is."
    ]
