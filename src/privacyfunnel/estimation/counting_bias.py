r"""What whoever counts the published values, instead of estimating from them, would be off by.

Values stand in a table in which some are another's: of shares p a protocol shows :math:`f = Q^\top p`. Where the margin
is kept f is p, and counting is all that is needed; elsewhere counts are off by :math:`f - p`, however many rows there
are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privacyfunnel.formatting import format_points
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint

WORTH_SAYING = 5e-4  # of a share: what rounds to a tenth of a point


@dataclass(frozen=True, slots=True)
class CountingBias:
    """The share that counting is furthest off from."""

    column: str
    label: str
    by: float  # 0.01 is one point

    def __str__(self) -> str:
        """In points.

        >>> print(CountingBias("town", "Ulm", -0.021))
        off by up to 2.1 points (town = Ulm seems rarer)
        """
        than = "rarer" if self.by < 0 else "commoner"
        return f"off by up to {format_points(abs(self.by))} points ({self.column} = {self.label} seems {than})"


def largest_counting_bias(sealed: SealedProtocol, joint: Joint) -> CountingBias | None:
    """How far counts of values that are published as such are off; None where they are not, or codes stand there."""
    if sealed.outcomes:
        return None
    found = []
    for part, (values, p, f) in zip(sealed.law.parts, sealed.law.output_shares(joint), strict=True):
        for i, j in enumerate(part.attributes):
            column = joint.attributes[j]
            place = {label: v for v, label in enumerate(column.labels)}
            if not {name[i] for name in part.names} <= place.keys():
                return None
            shown = np.bincount([place[name[i]] for name in part.names], f, minlength=len(place))
            off = shown - np.bincount(values[:, i], p, minlength=len(place))
            worst = int(np.abs(off).argmax())
            found.append(CountingBias(column.name, column.labels[worst], float(off[worst])))
    most = max(found, key=lambda each: abs(each.by), default=None)
    return most if most is not None and abs(most.by) >= WORTH_SAYING else None
