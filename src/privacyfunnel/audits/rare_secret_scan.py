"""What merging rare secrets would change: a column that would leak without bound may leak little then."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from privacyfunnel.arrays import IntArray
from privacyfunnel.model.joint import Joint
from privacyfunnel.release.findings.rare_values import RareSecrets, rare_secrets


@dataclass(frozen=True, slots=True)
class RareSecretLeaks:
    """Secrets that few rows hold, and what each column would leak, published as it is: now, and were they merged."""

    secrets: RareSecrets
    leaks: Mapping[str, tuple[float, float]]  # by column


def rare_leaks(
    secrets: Sequence[str], rows: IntArray, joints: Mapping[str, Joint], leak: Callable[[Joint], float]
) -> RareSecretLeaks | None:
    """What merging rare secrets would change; None where no secret is rare, or it would bound no column's leak."""
    merged = rare_secrets(secrets, rows)
    if merged is None:
        return None
    leaks = {column: (leak(joint), leak(merged.merge(joint))) for column, joint in joints.items()}
    if not any(math.isinf(before) and math.isfinite(after) for before, after in leaks.values()):
        return None
    return RareSecretLeaks(merged, leaks)
