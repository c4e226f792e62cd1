r"""LIP for protocols that see S: a box of S-posteriors, and one value per secret.

An atom v over pairs (s, x) is allowed when :math:`z_s = \sum_x v_{s,x}` lies in a box and nothing else is asked:

.. math:: e^{-\varepsilon} p_s \le z_s \le e^{\varepsilon} p_s \quad\text{for every } s.

A corner is a corner z of that box within the simplex together with one value :math:`x_s` per secret, so a linear cost κ
has its minimum at :math:`\min_z \sum_s z_s \min_x \kappa_{s,x}`, in closed form.
"""

from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.oracle import UNIT, Cheapest, cheapest_in_box
from privacyfunnel.engine.problem import Problem

CELLS_AT_ONCE = 1 << 20  # of secrets × values × costs: what is worked on together stays in the cache


@dataclass(frozen=True, slots=True, eq=False)
class SecretBox:
    """The polytope of atoms with low <= z <= high, where z_s sums v over the inputs of secret s."""

    cells: IntArray  # (c, a), the input (s, x), or d where that pair never occurs
    low: FloatArray  # (c,)
    high: FloatArray  # (c,)

    @property
    def batch(self) -> int:
        """How many costs are minimised together."""
        return max(16, CELLS_AT_ONCE // self.cells.size)

    def minimise(self, costs: FloatArray) -> Cheapest:
        """The cheapest corner for every row of costs."""
        k, d = costs.shape
        never = np.full((k, 1), np.inf)
        by_cell = np.concatenate([costs, never], axis=1)[:, self.cells]
        value = by_cell.argmin(axis=2)
        cheapest = np.take_along_axis(by_cell, value[:, :, None], 2)[:, :, 0]
        lower, z = cheapest_in_box(cheapest, self.low, self.high)
        atoms = np.zeros((k, d))
        np.put_along_axis(atoms, self.cells[np.arange(self.low.size), value], z, 1)
        return Cheapest(lower, atoms)


def is_secret_box(problem: Problem) -> bool:
    """Whether inputs are pairs of secret and value, and each secret is compared with everybody and nothing else."""
    rows, objective = problem.rows, problem.objective
    if problem.secret is None or not rows.against_everybody:
        return False
    if len(np.unique(problem.secret * objective.values + objective.value)) < problem.size:
        return False
    asked = rows.secrets[rows.pairs[:, 0]]
    return bool((asked.sum(axis=1) == 1).all()) and bool(asked.any(axis=0).all())


def secret_box(problem: Problem) -> SecretBox:
    """The box of a problem that is one; its ends are rounded outwards."""
    if problem.secret is None:
        raise ValueError("a box of secrets needs to know which secret each input has")
    c = problem.rows.share.shape[1]
    share = np.bincount(problem.secret, problem.prior, minlength=c)
    cells = np.full((c, problem.objective.values), problem.size, dtype=np.int64)
    cells[problem.secret, problem.objective.value] = np.arange(problem.size)
    low = share / problem.loud * (1 - 8 * UNIT)
    return SecretBox(cells, low, np.minimum(share * problem.loud * (1 + 8 * UNIT), 1.0))
