r"""Oracles: linear minima over the polytope of feasible atoms, each with a lower bound that holds.

.. math:: \min_{v \in V} c\cdot v \quad\text{for many costs c at once.}

polytope.py (small dense programmes, batched), constraint_oracle.py (any constraints, by HiGHS) and credal_batch.py
(credal sets, batched) are oracles. Two more have closed forms and stand here:

`SecretBox`       protocols that see S under LIP.
`IntervalOracle`  all constraints depend on the atom through one number (two secrets or two inputs): an atom is feasible
                  exactly when :math:`l \le r\cdot v \le h` for one vector r, and a vertex is a single value with
                  :math:`l \le r_x \le h`, or a pair :math:`r_x < t < r_y` at one of the ends t, with
                  :math:`v_x = (r_y - t) / (r_y - r_x)`. All of them are priced in a table, without search or branching.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, dense
from privacyfunnel.engine.clock import FOREVER, WORK, Clock
from privacyfunnel.engine.objective import Objective
from privacyfunnel.engine.problem import Problem, Proof
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


@dataclass(frozen=True, slots=True, eq=False)
class BoxCosts:
    """A cost for each of k boxes."""

    costs: FloatArray  # (k, d)
    low: FloatArray  # (k, d)
    high: FloatArray  # (k, d)
    states: tuple[NDArray[Any], ...]  # where each programme starts
    cutoff: FloatArray  # (k,), beyond which no bound is needed


@dataclass(frozen=True, slots=True, eq=False)
class BoxMinima:
    """For each of k boxes: bounds on the least cost there, a point, and what moving off its bounds costs."""

    lower: FloatArray  # (k,), valid; infinite where no atom of the box is feasible
    v: FloatArray  # (k, d)
    reduced: FloatArray  # (k, d), of the relaxation, where its bound is below the cutoff
    value: FloatArray  # (k,), of the relaxation in which `reduced` are the costs of moving
    states: tuple[NDArray[Any], ...]  # where each programme stands: its halves go on from there
    optimal: BoolArray  # (k,)


class BoxOracle(Protocol):
    """Minimises linear costs over the feasible atoms within boxes."""

    @property
    def batch(self) -> int:
        """How many boxes to bound in one call."""

    @property
    def support(self) -> int:
        """Most non-zero entries of a vertex."""

    def reach(self, deadline: float) -> FloatArray:
        """For every input the largest probability that any feasible atom gives it, rounded up."""

    def box_states(self, count: int) -> tuple[NDArray[Any], ...]:
        """States for so many boxes to start from."""

    def minimise_in_boxes(self, boxes: BoxCosts, deadline: float) -> BoxMinima:
        """The cheapest feasible atom in each box, up to its cutoff."""


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

    All have one box, or each its own. Start from l and spend the rest on the cheapest coordinates first. A lower bound
    on the minimum, and the z that attains it. The bound lies below the exact minimum by a margin that covers rounding:
    sums of n products, weights that add up to 1, and a budget that is off by n roundings.

    >>> cheapest_in_box(np.array([[3.0, 1.0, 2.0]]), np.full(3, 0.2), np.full(3, 0.5))[1].round(3)
    array([[0.2, 0.5, 0.3]])
    """
    n = costs.shape[1]
    order = np.argsort(costs, axis=1)
    room = np.take_along_axis(np.broadcast_to(high - low, costs.shape), order, 1)
    spent = np.cumsum(room, axis=1) - room
    z = np.empty_like(costs)
    np.put_along_axis(z, order, np.clip((1.0 - low.sum(axis=-1, keepdims=True)) - spent, 0.0, room), 1)
    z += low
    margin = (4 * n + 32) * UNIT * np.abs(costs).max(axis=1)
    return np.einsum("ij,ij->i", costs, z) - margin, z


@dataclass(frozen=True, slots=True, eq=False)
class SecretBox:
    r"""LIP for protocols that see S: a box of S-posteriors, and one value per secret.

    An atom v over pairs (s, x) is allowed when :math:`z_s = \sum_x v_{s,x}` lies in a box and nothing else is asked:

    .. math:: e^{-b_s\varepsilon} p_s \le z_s \le e^{a_s\varepsilon} p_s \quad\text{for every } s.

    A corner is a corner z of that box within the simplex together with one value :math:`x_s` per secret, so a linear
    cost κ has its minimum at :math:`\min_z \sum_s z_s \min_x \kappa_{s,x}`, in closed form.
    """

    cells: IntArray  # (c, a), the input (s, x), or d where that pair never occurs
    low: FloatArray  # (c,)
    high: FloatArray  # (c,)

    @property
    def batch(self) -> int:
        return max(SETTINGS.lp.least_cells, SETTINGS.lp.cells // self.cells.size)

    def minimise(self, costs: FloatArray, deadline: float = np.inf) -> LinearMinima:
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
    masks = rows.secrets[rows.pairs[:, 0]]
    return bool((masks.sum(axis=1) == 1).all()) and bool(masks.any(axis=0).all())


def secret_box(problem: Problem) -> SecretBox:
    """The box of a problem that is one; its ends are rounded outwards."""
    if problem.secret is None:
        raise ValueError("a box of secrets needs to know which secret each input has")
    c = problem.constraints.share.shape[1]
    share = np.bincount(problem.secret, problem.prior, minlength=c)
    cells = np.full((c, problem.objective.image_size), problem.size, dtype=np.int64)
    cells[problem.secret, problem.objective.image_index] = np.arange(problem.size)
    secret_numbers = problem.constraints.secrets[problem.constraints.pairs[:, 0]].argmax(axis=1)
    low, high = np.zeros(c), np.ones(c)
    np.maximum.at(low, secret_numbers, share[secret_numbers] / problem.limits[1] * (1 - 8 * UNIT))
    np.minimum.at(high, secret_numbers, share[secret_numbers] * problem.limits[0] * (1 + 8 * UNIT))
    return SecretBox(cells, low, high)


def coordinate(problem: Problem) -> FloatArray:
    """The vector r on which alone the rows depend, of spread 1: of two inputs the second, else L of a secret."""
    if problem.size <= 2:
        return np.arange(problem.size, dtype=np.float64)
    rows = problem.constraints
    single = np.flatnonzero(rows.secrets.sum(axis=1) == 1)
    L = dense(rows.functionals[single])
    spread = np.ptp(L, axis=1)
    widest = int(np.argmax(spread)) if spread.size else 0
    if not spread.size or spread[widest] == 0:
        return np.zeros(problem.size)
    return np.asarray((L[widest] - L[widest, 0]) / spread[widest])


def ends(problem: Problem, r: FloatArray) -> tuple[float, float]:
    """The interval of r·v that every row allows."""
    every = np.arange(len(problem.constraints))
    top, bottom = int(np.argmax(r)), int(np.argmin(r))
    low, high = float(r[bottom]), float(r[top])
    for g in problem.slopes(every, every):
        rise = (g[top] - g[bottom]) / max(r[top] - r[bottom], SETTINGS.tolerance.tiny)
        if max(g[top], g[bottom]) <= 0 or rise == 0:
            continue
        crossing = float(r[bottom] - g[bottom] / rise)
        low, high = (low, min(high, crossing)) if rise > 0 else (max(low, crossing), high)
    middle = float(r @ problem.prior)
    return min(low, middle), max(high, middle)


class IntervalOracle:
    """Every single value and every pair: search and proof at once."""

    patience = 1

    def __init__(self, problem: Problem) -> None:
        self.r = coordinate(problem)
        self.prior = problem.prior
        self._terms = problem.objective.terms
        self._square: FloatArray | None = None
        self._random = np.random.default_rng(1)
        self.low, self.high = ends(problem, self.r)
        self.singles = np.flatnonzero((self.r >= self.low) & (self.r <= self.high))

    def set_objective(self, objective: Objective) -> None:
        self._terms = objective.terms
        self._square = objective.gram_matrix

    def start(self, clock: Clock = FOREVER) -> FloatArray:
        """Splits of the prior, made by pairing values from below with values from above in several orders."""
        rising = np.argsort(self.r)
        orders = [(i, j) for i in (rising, rising[::-1]) for j in (rising, rising[::-1])]
        orders += [
            (self._random.permutation(rising), self._random.permutation(rising))
            for _ in range(SETTINGS.search.staircases)
        ]
        WORK.entries += SETTINGS.work.descent * len(orders)
        atoms = [np.eye(self.r.size)[self.singles]]
        atoms += [self._staircase(below, above) for below, above in orders]
        return np.concatenate(atoms)

    def _staircase(self, below: IntArray, above: IntArray) -> FloatArray:
        """Pair the first value left over from below with the first from above, until one of them is used up.

        The end is the one farther from the mean of what is left, so that the mean stays inside. Values in between
        serve as partners once the other side has run out.
        """
        r, left = self.r, self.prior.copy()
        inside = (r >= self.low) & (r <= self.high)
        low_side = deque([*below[r[below] < self.low], *below[inside[below] & (r[below] < self.high)]])
        high_side = deque([*above[r[above] > self.high], *above[inside[above] & (r[above] > self.low)]])
        pairs = []
        mass, mean = 1.0, float(r @ left)
        while low_side and high_side:
            x, y = low_side[0], high_side[0]
            end = self.low if mean <= 0.5 * (self.low + self.high) * mass else self.high
            if inside[x] and inside[y]:
                break
            if inside[x]:
                end = self.high
            elif inside[y]:
                end = self.low
            if not r[x] < end < r[y]:
                (low_side if r[x] >= end else high_side).popleft()
                continue
            share = (r[y] - end) / (r[y] - r[x])
            if not 0.0 < share < 1.0:  # the end is one of the two, to rounding
                (low_side if share == 1.0 else high_side).popleft()
                continue
            amount = min(left[x] / share, left[y] / (1.0 - share))
            pairs.append((x, y, end))
            mass, mean = mass - amount, mean - amount * end
            used_up = low_side if left[x] / share <= amount else high_side
            left[x], left[y] = left[x] - amount * share, left[y] - amount * (1.0 - share)
            used_up.popleft()
        if not pairs:
            return np.empty((0, r.size))
        x_all, y_all, end_all = (np.array(column) for column in zip(*pairs, strict=True))
        return self._pair_atoms(x_all.astype(np.int64), y_all.astype(np.int64), end_all)

    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        return self._price_all(prices)[0]

    def cover(self, prices: FloatArray, missing: FloatArray, clock: Clock = FOREVER) -> FloatArray:
        return self.descend(prices)

    def polish(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        return self.descend(prices)

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Proof:
        """The least reduced cost there is."""
        atoms, least = self._price_all(prices)
        return Proof(least - SETTINGS.tolerance.interval * (1.0 + float(np.abs(prices).max())), atoms)

    def _price_all(self, prices: FloatArray) -> tuple[FloatArray, float]:
        """The best atom with each value at each end, and the least reduced cost of all."""
        d = self.r.size
        atoms = [np.eye(d)[self.singles]]
        alone = -prices[self.singles] - (0.0 if self._square is None else np.diag(self._square)[self.singles])
        least = float(alone.min(initial=np.inf))
        for end in sorted({self.low, self.high}):
            below, above = np.flatnonzero(self.r < end), np.flatnonzero(self.r > end)
            if not below.size or not above.size:
                continue
            best = np.full(above.size, np.inf)
            partner = np.zeros(above.size, dtype=np.int64)
            height = max(1, SETTINGS.search.interval_entries // above.size)
            WORK.entries += below.size * above.size
            for start in range(0, below.size, height):
                x = below[start : start + height]
                share = (self.r[above] - end) / (self.r[above] - self.r[x][:, None])
                cost = self._terms(share) + self._terms(1.0 - share)
                cost -= share * prices[x][:, None] + (1.0 - share) * prices[above]
                if self._square is not None:
                    G = self._square
                    cost -= share**2 * np.diag(G)[x][:, None] + (1.0 - share) ** 2 * np.diag(G)[above]
                    cost -= 2.0 * share * (1.0 - share) * G[np.ix_(x, above)]
                nearest = np.argmin(cost, axis=1)
                atoms.append(self._pair_atoms(x, above[nearest], end))
                at = np.argmin(cost, axis=0)
                column = cost[at, np.arange(above.size)]
                partner = np.where(column < best, x[at], partner)
                best = np.minimum(column, best)
            least = min(least, float(best.min()))
            atoms.append(self._pair_atoms(partner, above, end))
        return np.concatenate(atoms), least

    def _pair_atoms(self, x: IntArray, y: IntArray, end: float | FloatArray) -> FloatArray:
        atoms = np.zeros((x.size, self.r.size))
        share = (self.r[y] - end) / (self.r[y] - self.r[x])
        atoms[np.arange(x.size), x] = share
        atoms[np.arange(x.size), y] = 1.0 - share
        return atoms
