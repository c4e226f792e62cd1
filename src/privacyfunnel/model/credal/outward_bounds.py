r"""Clopper–Pearson bounds of shares in floats, rounded outwards: for statements, and never for a certificate.

Floats give the bounds to some 12 digits. Every bound is moved outwards by 2⁻³⁰ of itself, and to a multiple of 2⁻⁴⁰
beyond, so that it lies outside the exact one as long as nine digits are right. Nothing proves that they are;
`binomial.py` does, at a millisecond or two for every bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privacyfunnel.arrays import IntArray
from privacyfunnel.model.credal.clopper_pearson import SCALE
from privacyfunnel.model.credal.float_bounds import lower_bounds

OUTWARD_MARGIN = 2.0**-30  # of a bound


@dataclass(frozen=True, slots=True)
class OutwardBounds:
    """Bounds from the rows themselves, in floats."""

    def box(self, counts: IntArray, level: Fraction) -> tuple[IntArray, IntArray]:
        """Lower and upper bounds on the share of each cell of an event; each bound fails with chance `level`."""
        total = int(counts.sum())
        low, others = np.split(_outward_lower_bounds(np.concatenate([counts, total - counts]), total, level), 2)
        return low, SCALE - others

    def least_share(self, some: int, others: int, level: Fraction) -> int:
        """A lower bound on the share of an event with `some` rows among it and one of `others`."""
        return int(_outward_lower_bounds(np.array([some]), some + others, level)[0])


def _outward_lower_bounds(k: IntArray, n: int, level: Fraction) -> IntArray:
    seen = np.maximum(k, 1).astype(np.float64)
    share = lower_bounds(seen, np.full(seen.shape, max(n, 1.0)), float(level))
    outside = np.floor(share * (1 - OUTWARD_MARGIN) * SCALE) - 1
    return np.where(k > 0, np.clip(outside, 0, SCALE - 1), 0).astype(np.int64)
