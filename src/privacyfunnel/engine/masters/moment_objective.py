r"""What an atom costs where a matrix counts that the split adds up to.

Let :math:`M = \sum_y q_y t_y t_y^\top` with :math:`t = T v`, and let :math:`\operatorname{tr}(F F^\top M^{-1})` be
what is to be small. It is convex in the split, and falls by :math:`\lVert B^\top t\rVert^2`, :math:`B = M^{-1} F`, for
a unit of weight on an atom. So at a given B an atom has the concave cost

.. math:: \beta H(t) - \lVert B^\top t \rVert^2

(β > 0 where information is to be kept as well), and searches and proofs go as for any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.objective import Objective


@dataclass(frozen=True, eq=False)
class MomentObjective:
    """β times another objective, less ‖Bᵀv‖²."""

    base: Objective
    weight: float  # β
    square: FloatArray  # B by input

    @cached_property
    def gram_matrix(self) -> FloatArray:
        """See Objective."""
        return np.asarray(self.square @ self.square.T)

    @property
    def image_index(self) -> IntArray:
        """See Objective."""
        return self.base.image_index

    @property
    def image_size(self) -> int:
        """See Objective."""
        return self.base.image_size

    @property
    def is_identity(self) -> bool:
        """See Objective."""
        return self.base.is_identity

    def restrict(self, inputs: IntArray) -> MomentObjective:
        """The same over some of the inputs."""
        return MomentObjective(self.base.restrict(inputs), self.weight, self.square[inputs])

    def terms(self, t: FloatArray) -> FloatArray:
        """β h; nothing is computed where β = 0."""
        return self.weight * self.base.terms(t) if self.weight else np.zeros_like(t)

    def slopes(self, t: FloatArray, least: float) -> FloatArray:
        """See Objective."""
        return self.weight * self.base.slopes(t, least) if self.weight else np.zeros_like(t)
