r"""The cheapest point of a box that is cut by the simplex,

.. math:: \min\ \kappa\cdot z \quad\text{subject to}\quad l \le z \le h,\ \textstyle\sum_i z_i = 1,

for many κ at once: start from l and spend what is left on the cheapest coordinates first.
"""

import numpy as np

from privacyfunnel.arrays import FloatArray

UNIT = float(np.finfo(np.float64).eps)


def cheapest_in_box(costs: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For every row κ of `costs` (k, n) a lower bound on the minimum, and the z that attains it.

    The bound lies below the exact minimum by a margin that covers rounding: sums of n products, weights that add up to
    1, and a budget that is off by n roundings.

    >>> cheapest_in_box(np.array([[3.0, 1.0, 2.0]]), np.full(3, 0.2), np.full(3, 0.5))[1].round(3)
    array([[0.2, 0.5, 0.3]])
    """
    n = costs.shape[1]
    order = np.argsort(costs, axis=1)
    room = (high - low)[order]
    spent = np.cumsum(room, axis=1) - room
    z = np.empty_like(costs)
    np.put_along_axis(z, order, np.clip((1.0 - low.sum()) - spent, 0.0, room), 1)
    z += low
    margin = (4 * n + 32) * UNIT * np.abs(costs).max(axis=1)
    return np.einsum("ij,ij->i", costs, z) - margin, z
