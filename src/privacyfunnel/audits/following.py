r"""Whether a draw follows the secret beyond what its law lets it.

A law sees the input z alone: what a row becomes is drawn from q(· | z) whatever its secret is. Two tests look for rows
of a secret s that show an output more often than that, on arrays of secrets, inputs and drawn rows side by side.

Pooled: let D(s, y) be how many more rows of secret s show y than :math:`\sum_z n(s,z) q(y|z)`. It is a sum of
independent variables, each within 1 of 0, of variance :math:`V = \sum_z n(s,z) q(y|z)(1 - q(y|z))`. Bernstein's
inequality holds for any number of rows, however rare the output:

.. math:: P(|D| \ge t) \le 2 \exp\frac{-t^2}{2 (V + t/3)}.

Pair by pair: a chi-square test of (s, z) → y, for what cancels in the sum over z. Cells too small for it are joined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.laws.tally import Tally

MOST_COUNTS = 1 << 23  # of all secrets together; where there would be more, rare secrets are counted as one

ChiSquare = Callable[[IntArray, FloatArray], tuple[float, int]]


@dataclass(frozen=True, slots=True)
class Following:
    """How far outputs follow the secret: the chances of as much in a true draw, each already times its tests."""

    pooled: float  # at most this, by Bernstein and Bonferroni
    pairs: float  # of the chi-square
    secrets: int  # that were told apart; all others together were one more

    @property
    def p_value(self) -> float:
        """The chance that a true draw shows as much in either test."""
        return min(1.0, 2 * min(self.pooled, self.pairs))


class BySecret:
    """Counts of what inputs became, for each secret apart."""

    def __init__(self, tally: Tally, rows: IntArray) -> None:
        """`tally` is an empty one of the law; `rows` says how many rows each secret has."""
        apart = min(len(rows), max(2, MOST_COUNTS // max(1, tally.size)))
        group = np.full(len(rows), apart - 1, dtype=np.int64)
        group[np.argsort(-rows, kind="stable")[: apart - 1]] = np.arange(apart - 1)
        self._group, self._tallies = group, [tally.empty() for _ in range(apart)]

    def add(self, secrets: IntArray, inputs: IntArray, drawn: NDArray[Any]) -> None:
        """Count some rows."""
        mine = self._group[secrets]
        for number in np.unique(mine):
            those = mine == number
            self._tallies[number].add(inputs[those], drawn[those])

    def judged(self, chi_square: ChiSquare) -> Following:
        """What both tests say."""
        from scipy.special import chdtrc

        log_p, tests = pooled_log_p(table for tally in self._tallies for table in tally.pooled)
        found = [chi_square(counts, chances) for tally in self._tallies for counts, chances in tally.rows]
        statistic, degrees = sum(size for size, _ in found), sum(free for _, free in found)
        return Following(
            pooled=math.exp(min(0.0, log_p + math.log(max(1, tests)))),
            pairs=float(chdtrc(degrees, statistic)) if degrees else 1.0,
            secrets=len(self._tallies),
        )


def pooled_log_p(tables: Iterable[tuple[FloatArray, FloatArray]]) -> tuple[float, int]:
    """The logarithm of the smallest of Bernstein's bounds, and how many there are.

    >>> log_p, tests = pooled_log_p([(np.array([100.0, 0.0]), np.array([100.0, 0.0]))])
    >>> round(log_p, 1), tests
    (-36.8, 1)
    """
    smallest, tests = 0.0, 0
    for apart, variance in tables:
        random = variance > 0  # what is certain cannot deviate by more than rounding, or it is impossible
        t, v = np.abs(apart[random]), variance[random]
        tests += int(random.sum())
        if len(t):
            smallest = min(smallest, float((math.log(2) - t**2 / (2 * (v + t / 3))).min()))
    return smallest, tests
