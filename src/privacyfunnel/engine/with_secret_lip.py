r"""LIP for protocols that see S: a box of S-posteriors, and one value per secret.

An atom v over pairs (s, x) is allowed when :math:`z_s = \sum_x v_{s,x}` lies in a box and nothing else is asked:

.. math:: e^{-\varepsilon} p_s \le z_s \le e^{\varepsilon} p_s \quad\text{for every } s.

A corner is a corner z of that box within the simplex together with one value :math:`x_s` per secret, so a linear cost κ
has its minimum at :math:`\min_z \sum_s z_s \min_x \kappa_{s,x}`, in closed form.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.problem import Splitting
from privacyfunnel.engine.with_secret_box import UNIT, cheapest_in_box
from privacyfunnel.engine.with_secret_branching import Cheapest

CELLS_AT_ONCE = 1 << 20
SAME = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class SecretLip:
    """The polytope of atoms with low <= z <= high, where z_s sums v over the inputs of secret s."""

    group: IntArray  # (d,), the value of every input
    cells: IntArray  # (c, a), the input (s, x), or d where that pair never occurs
    low: FloatArray  # (c,)
    high: FloatArray  # (c,)

    @property
    def batch(self) -> int:
        return max(16, CELLS_AT_ONCE // self.cells.size)

    def minimise(self, costs: FloatArray) -> Cheapest:
        k, d = costs.shape
        never = np.full((k, 1), np.inf)
        by_cell = np.concatenate([costs, never], axis=1)[:, self.cells]
        value = by_cell.argmin(axis=2)
        cheapest = np.take_along_axis(by_cell, value[:, :, None], 2)[:, :, 0]
        lower, z = cheapest_in_box(cheapest, self.low, self.high)
        atoms = np.zeros((k, d))
        np.put_along_axis(atoms, self.cells[np.arange(self.low.size), value], z, 1)
        return Cheapest(lower, atoms)


def sees_secret_lip(problem: Splitting) -> SecretLip | None:
    """The structure above, if the rows of the problem are exactly that; None if they ask for anything else.

    Every row must compare a set of inputs (N constant on it, zero elsewhere) with everything (D constant). The sets
    must split the inputs, and no set may hold two inputs of one value. Rows come in any order and may repeat; rows
    with N = D say nothing. Constants may differ by rounding: the box then takes the widest.
    """
    d = problem.prior.size
    loud = float(np.exp(problem.epsilon))
    boxes: dict[tuple[int, ...], tuple[float, float]] = {}
    for inputs, numerator, denominator in _rows(problem):
        whole = denominator.size == d and _constant(denominator)
        if not whole or not _constant(numerator):
            return None
        least, most = denominator.min() / numerator.max(), denominator.max() / numerator.min()
        low, high = least / loud * (1 - 4 * UNIT), most * loud * (1 + 4 * UNIT)
        before = boxes.get(inputs, (0.0, 1.0))
        boxes[inputs] = max(before[0], low), min(before[1], high)
    covered = [z for inputs in boxes for z in inputs]
    if sorted(covered) != list(range(d)):
        return None
    values, group = np.unique(problem.group, return_inverse=True)
    cells = np.full((len(boxes), values.size), d, dtype=np.int64)
    for s, inputs in enumerate(boxes):
        if np.unique(group[list(inputs)]).size < len(inputs):
            return None
        cells[s, group[list(inputs)]] = inputs
    bounds = np.array(list(boxes.values()))
    return SecretLip(group.astype(np.int64).reshape(-1), cells, bounds[:, 0], bounds[:, 1])


def _rows(problem: Splitting) -> list[tuple[tuple[int, ...], FloatArray, FloatArray]]:
    """The rows that say something: where N is positive, N there, and D where D is positive."""
    N, D = csr_array(problem.numerators), csr_array(problem.denominators)
    N.eliminate_zeros()
    D.eliminate_zeros()
    N.sort_indices()
    D.sort_indices()
    rows = []
    for i in range(N.shape[0]):
        n, e = slice(N.indptr[i], N.indptr[i + 1]), slice(D.indptr[i], D.indptr[i + 1])
        if np.array_equal(N.indices[n], D.indices[e]) and np.array_equal(N.data[n], D.data[e]):
            continue
        rows.append((tuple(map(int, N.indices[n])), N.data[n], D.data[e]))
    return rows


def _constant(entries: FloatArray) -> bool:
    return bool(entries.size) and bool(entries.max() - entries.min() <= SAME * entries.max())
