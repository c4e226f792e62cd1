"""What the engine sees of a polytope: linear functions can be minimised over it, with a bound that holds.

An oracle answers for many linear costs at once with the cheapest atom of each and a lower bound on its cost. It may
have variables of its own, and it may take rows on board lazily: nobody asks how it came to its answer.

interval.py    all rows depend on one number: every vertex in a table
polytope.py    the rows as a small dense programme, many at once (simplex.py)
SecretBox      seeing S under LIP: closed form
programme.py   any rows, by HiGHS
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import FOREVER, Clock
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.settings import SETTINGS

UNIT = float(np.finfo(np.float64).eps)  # the distance from 1 to the next float


@dataclass(frozen=True, slots=True, eq=False)
class LinearMinima:
    """For each of k linear costs: a valid lower bound on its minimum over the polytope, and an atom."""

    lower: FloatArray  # (k,)
    atoms: FloatArray  # (k, d)


class Oracle(Protocol):
    """A polytope of atoms over which linear functions can be minimised."""

    @property
    def batch(self) -> int:
        """How many costs to minimise in one go."""

    def minimise(self, costs: FloatArray, deadline: float = np.inf) -> LinearMinima:
        """The cheapest atom for every row of costs, (k, d); where time is up, some atom and a bound that holds."""


def cheapest_atoms(oracle: Oracle, costs: FloatArray, clock: Clock = FOREVER) -> FloatArray:
    """The cheapest atoms for any number of costs; of the first few where time is up."""
    found, chunk = [], oracle.batch
    for i in range(0, len(costs), chunk):
        atoms = oracle.minimise(costs[i : i + chunk], clock.deadline).atoms
        if clock.late:
            break
        found.append(atoms)
    return np.concatenate(found) if found else np.empty((0, costs.shape[1]))


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


@dataclass(frozen=True, slots=True, eq=False)
class SecretBox:
    r"""LIP for protocols that see S: a box of S-posteriors, and one value per secret.

    An atom v over pairs (s, x) is allowed when :math:`z_s = \sum_x v_{s,x}` lies in a box and nothing else is asked:

    .. math:: e^{-\varepsilon} p_s \le z_s \le e^{\varepsilon} p_s \quad\text{for every } s.

    A corner is a corner z of that box within the simplex together with one value :math:`x_s` per secret, so a linear
    cost κ has its minimum at :math:`\min_z \sum_s z_s \min_x \kappa_{s,x}`, in closed form.
    """

    cells: IntArray  # (c, a), the input (s, x), or d where that pair never occurs
    low: FloatArray  # (c,)
    high: FloatArray  # (c,)

    @property
    def batch(self) -> int:
        """How many costs are minimised together."""
        return max(SETTINGS.lp.least_cells, SETTINGS.lp.cells // self.cells.size)

    def minimise(self, costs: FloatArray, deadline: float = np.inf) -> LinearMinima:
        """The cheapest corner for every row of costs."""
        k, d = costs.shape
        never = np.full((k, 1), np.inf)
        by_cell = np.concatenate([costs, never], axis=1)[:, self.cells]
        value = by_cell.argmin(axis=2)
        cheapest = np.take_along_axis(by_cell, value[:, :, None], 2)[:, :, 0]
        lower, z = cheapest_in_box(cheapest, self.low, self.high)
        atoms = np.zeros((k, d))
        np.put_along_axis(atoms, self.cells[np.arange(self.low.size), value], z, 1)
        return LinearMinima(lower, atoms)


def is_secret_box(problem: Problem) -> bool:
    """Whether inputs are pairs of secret and value, each secret is compared with everybody, and nothing else is."""
    rows, objective = problem.constraints, problem.objective
    if problem.secret is None or not rows.compares_with_everybody:
        return False
    if len(np.unique(problem.secret * objective.image_size + objective.image_index)) < problem.size:
        return False
    asked = rows.secrets[rows.pairs[:, 0]]
    return bool((asked.sum(axis=1) == 1).all()) and bool(asked.any(axis=0).all())


def secret_box(problem: Problem) -> SecretBox:
    """The box of a problem that is one; its ends are rounded outwards."""
    if problem.secret is None:
        raise ValueError("a box of secrets needs to know which secret each input has")
    c = problem.constraints.share.shape[1]
    share = np.bincount(problem.secret, problem.prior, minlength=c)
    cells = np.full((c, problem.objective.image_size), problem.size, dtype=np.int64)
    cells[problem.secret, problem.objective.image_index] = np.arange(problem.size)
    low = share / problem.exp_epsilon * (1 - 8 * UNIT)
    return SecretBox(cells, low, np.minimum(share * problem.exp_epsilon * (1 + 8 * UNIT), 1.0))
