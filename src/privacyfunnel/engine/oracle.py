"""What the engine sees of a polytope: linear functions can be minimised over it, with a bound that holds.

An oracle answers for many linear costs at once with the cheapest atom of each and a lower bound on its cost. It may
have variables of its own, and it may take rows on board lazily: nobody asks how it came to its answer.

interval.py    all rows depend on one number: every vertex in a table
polytope.py    the rows as a small dense programme, many at once (simplex.py)
secret_box.py  seeing S under LIP: closed form
programme.py   any rows, by HiGHS
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray

UNIT = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Cheapest:
    """For each of k linear costs: a valid lower bound on its minimum over the polytope, and an atom."""

    lower: FloatArray  # (k,)
    atoms: FloatArray  # (k, d)


class Oracle(Protocol):
    """A polytope of atoms over which linear functions can be minimised."""

    @property
    def batch(self) -> int:
        """How many costs to minimise in one go."""

    def minimise(self, costs: FloatArray) -> Cheapest:
        """The cheapest atom for every row of costs, (k, d)."""


def atoms_of(oracle: Oracle, costs: FloatArray) -> FloatArray:
    """The cheapest atoms for any number of costs."""
    chunk = oracle.batch
    return np.concatenate([oracle.minimise(costs[i : i + chunk]).atoms for i in range(0, len(costs), chunk)])


def cheapest_in_box(costs: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""The cheapest point of a box that is cut by the simplex, for every row κ of `costs` (k, n):

    .. math:: \min\ \kappa\cdot z \quad\text{subject to}\quad l \le z \le h,\ \textstyle\sum_i z_i = 1.

    Start from l and spend what is left on the cheapest coordinates first. A lower bound on the minimum, and the z that
    attains it. The bound lies below the exact minimum by a margin that covers rounding: sums of n products, weights
    that add up to 1, and a budget that is off by n roundings.

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
