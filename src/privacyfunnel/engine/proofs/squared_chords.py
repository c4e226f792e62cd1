r"""Boxes of entries for a cost with a square, bounded by chords: for hundreds of inputs and few secrets.

Write :math:`D = B B^\top`, and let d be any numbers with :math:`\tfrac12 (d_j + d_k) \ge D_{jk}` off the diagonal. Then
:math:`E_{jk} = \tfrac12 (d_j + d_k) - D_{jk}`, 0 on the diagonal, has no entry below 0, and since :math:`\sum v = 1`

.. math:: v^\top D v = \sum_j (D_{jj} - d_j) v_j^2 + d\cdot v - v^\top E v .

On a box :math:`l \le v \le u` squares lie below their chords, :math:`v_j^2 \le (l_j + u_j) v_j - l_j u_j`, and
:math:`v^\top E v \ge 2 (E l)\cdot v - l^\top E l`, as :math:`v - l \ge 0`; where :math:`D_{jj} < d_j`, a tangent takes
the place of the chord. So the square is at most something linear.

Where a protocol can be good, M is nearly the diagonal of the prior and D nearly the unit matrix: then E is small, and
an atom that costs little has one large entry. The first boxes ask which.
"""

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.objective import MomentObjective
from privacyfunnel.engine.oracles.polytope import Polytope
from privacyfunnel.engine.proofs.chords import BoxedChords
from privacyfunnel.engine.settings import SETTINGS


class SquaredChords(BoxedChords):
    """BoxedChords with a square in the cost."""

    gather_factor = SETTINGS.proofs.squared_gather

    def __init__(self, polytope: Polytope, objective: MomentObjective, reach: FloatArray | None = None) -> None:
        super().__init__(polytope, objective)
        self._reach = reach
        D = objective.gram_matrix
        self._even = off_diagonal_bound(D)
        self._less = 0.5 * (self._even[:, None] + self._even) - D
        np.fill_diagonal(self._less, 0.0)
        own = np.diag(D) - self._even
        self._own, self._short = np.maximum(own, 0.0), np.maximum(-own, 0.0)

    def _underestimator(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See BoxedChords."""
        slope, constant = super()._underestimator(low, high)
        at_low, middle = low @ self._less, 0.5 * (low + high)
        slope = slope - self._own * (low + high) + self._short * 2 * middle - self._even + 2 * at_low
        constant = constant + (low * high) @ self._own - middle**2 @ self._short
        return slope, constant - (at_low * low).sum(axis=1)

    def _errors(self, v: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """See BoxedChords."""
        beyond = v - low
        square = self._own * beyond * (high - v) + self._short * (v - 0.5 * (low + high)) ** 2
        square = square + beyond * (beyond @ self._less)
        return super()._errors(v, low, high) + square


def off_diagonal_bound(D: FloatArray) -> FloatArray:
    """Small d with (d_j + d_k) / 2 >= D_jk for all j ≠ k.

    The largest entry beside the diagonal will do; and if d will, so does its mean with max_k (2 D_jk − d_k), which is
    no larger.
    """
    off = D.copy()
    np.fill_diagonal(off, -np.inf)
    d = off.max(axis=1)
    for _ in range(SETTINGS.proofs.halvings):
        d = 0.5 * (d + (2 * off - d).max(axis=1))
    return np.asarray(d + max(0.0, float((off - 0.5 * (d[:, None] + d)).max())))
