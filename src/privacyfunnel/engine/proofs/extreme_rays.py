r"""Polyhedral cones by their extreme rays: the double description method.

A cone :math:`\{v \ge 0,\ B v \ge 0\}` is the set of all mixtures of its extreme rays. A hyperplane cuts it into two
cones, whose extreme rays are the old ones on either side and, on the hyperplane itself, one new ray on every edge that
it crosses. Two rays span an edge exactly when no third ray is tight in every inequality in which both of them are.

Which inequalities are tight at a ray is never measured but follows from how the ray came to be, and every sign that
decides is far from zero compared with rounding; where one is not, the cone is given up.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, entropy_terms
from privacyfunnel.engine.lp.highs import INF, Programme
from privacyfunnel.engine.settings import SETTINGS

BitSets = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class RayCone:
    """Extreme rays of mass 1, and for each the inequalities in which it is tight."""

    rays: FloatArray  # (n, k)
    tight: BitSets  # (n,)
    entropy: FloatArray  # (n,), H of each ray

    def cut(self, values: FloatArray) -> "tuple[HalfCone, HalfCone] | None":
        """Both sides of the hyperplane on which a functional with these values at the rays vanishes.

        Rays of value 0 belong to both. None when no bit is left to mark the hyperplane.
        """
        free = ~int(np.bitwise_or.reduce(self.tight)) & (2**SETTINGS.proofs.most_tight - 1)
        if not free:
            return None
        mark = np.uint64(free & -free)
        above, below = np.flatnonzero(values > 0), np.flatnonzero(values < 0)
        one, other = self._edges(above, below)
        born = self.rays[one] * -values[other][:, None] + self.rays[other] * values[one][:, None]
        born /= born.sum(axis=1, keepdims=True)
        on = np.flatnonzero(values == 0)
        shared = RayCone(
            np.concatenate([self.rays[on], born]),
            np.concatenate([self.tight[on], self.tight[one] & self.tight[other]]) | mark,
            np.concatenate([self.entropy[on], entropy_terms(born).sum(axis=1)]),
        )
        return self._half(above, on, shared), self._half(below, on, shared)

    def _edges(self, above: IntArray, below: IntArray) -> tuple[IntArray, IntArray]:
        """The pairs of a ray above and a ray below that span an edge."""
        common = self.tight[above][:, None] & self.tight[below][None, :]
        row, column = np.nonzero(np.bitwise_count(common) >= self.rays.shape[1] - 2)
        both = common[row, column]
        edge = np.zeros(both.size, dtype=bool)
        for start in range(0, both.size, SETTINGS.proofs.edges_at_once):
            part = both[start : start + SETTINGS.proofs.edges_at_once, None]
            edge[start : start + SETTINGS.proofs.edges_at_once] = ((self.tight & part) == part).sum(axis=1) == 2
        return above[row[edge]], below[column[edge]]

    def _half(self, own: IntArray, on: IntArray, shared: "RayCone") -> "HalfCone":
        place = np.full(self.entropy.size, -1)
        place[own] = np.arange(own.size)
        place[on] = own.size + np.arange(on.size)
        cone = RayCone(
            np.concatenate([self.rays[own], shared.rays]),
            np.concatenate([self.tight[own], shared.tight]),
            np.concatenate([self.entropy[own], shared.entropy]),
        )
        return HalfCone(cone, place)


@dataclass(frozen=True, slots=True, eq=False)
class HalfCone:
    """One side of a cut, and where in it the rays of the whole cone are (-1: on the other side)."""

    cone: RayCone
    place: IntArray


def build_ray_cone(constraints: FloatArray, most: int) -> RayCone | None:
    """The cone {v >= 0, rows v >= 0}; None if it takes more than `most` rays or a sign might be rounding."""
    k = constraints.shape[1]
    if k + constraints.shape[0] > SETTINGS.proofs.most_tight:
        return None
    room = SETTINGS.tolerance.wider * (1 + np.arange(constraints.shape[0]) / max(constraints.shape[0], 1))
    constraints = constraints + room[:, None] * np.abs(constraints)
    full = 2**k - 1
    cone = RayCone(np.eye(k), np.array([full ^ (1 << z) for z in range(k)], dtype=np.uint64), np.zeros(k))
    left = np.arange(constraints.shape[0])
    while left.size:
        values = cone.rays @ constraints[left].T
        size = cone.rays @ np.abs(constraints[left]).T
        if (np.abs(values) < SETTINGS.tolerance.rounding * size).any():
            return None
        # A row that does not touch the ray is tight there.
        values[size == 0] = 0.0
        crossings = (values > 0).sum(axis=0) * (values < 0).sum(axis=0)
        first = int(np.argmin(crossings))
        halves = cone.cut(values[:, first])
        if halves is None:
            return None
        cone = halves[0].cone
        if not 0 < cone.entropy.size <= most:
            return None
        left = np.delete(left, first)
    return cone


@dataclass(frozen=True, slots=True, eq=False)
class RayColumns:
    """Columns of the programme: the rays of all classes, one class after the other."""

    costs: FloatArray  # (r,)
    sides: FloatArray  # (r, n), what each row says of each ray
    part: IntArray  # (r,), its class


@dataclass(frozen=True, slots=True, eq=False)
class RayBound:
    """A bound that holds, and where the relaxation has its minimum, unless the bound reached the cutoff before."""

    bound: float
    weights: FloatArray | None  # w of every ray
    reduced: FloatArray  # reduced costs of the rays


class RayProgramme:
    r"""The relaxed pricing problem over the rays of some cones, one per class, by column generation.

    .. math:: \min_{w \ge 0} \sum_r c_r w_r \quad\text{s.t.}\quad \sum_r w_r = 1,\quad
       \sum_r w_r\, a_i\cdot r \ge 0\ \forall i,\quad l \le m(w) \le u,

    with one column per ray, of which few are ever needed. For any multipliers y >= 0 of the rows and s of the masses,

    .. math:: \min_r\,(c_r - y\cdot a(r) - s_{l(r)}) + \sum_l \min(s_l l_l,\ s_l u_l)

    bounds it from below. It is evaluated from that formula over all rays, whatever the solver says of its own result.
    """

    def __init__(self, rows: int, classes: int) -> None:
        self.rows, self.classes = rows, classes
        self._programme = Programme(simplex_iteration_limit=SETTINGS.proofs.ray_steps)

    def solve(
        self, rays: RayColumns, masses: tuple[FloatArray, FloatArray], first: IntArray, cutoff: float
    ) -> RayBound:
        """Bound the programme over these rays with masses between. `first` are the columns to begin with.

        Stops once the bound reaches the cutoff.
        """
        n = self.rows
        low, high = masses
        self._begin(low, high)
        columns, new = np.empty(0, dtype=np.int64), first
        bound, reduced = -np.inf, rays.costs
        for _ in range(SETTINGS.proofs.ray_rounds):
            self._add(rays, new)
            columns = np.concatenate([columns, new])
            solution = self._run()
            if solution is None:
                return RayBound(bound, None, reduced)
            x, duals = solution
            y, s = np.maximum(duals[:n], 0.0), duals[n : n + self.classes]
            reduced = rays.costs - rays.sides @ y - s[rays.part]
            rounding = SETTINGS.tolerance.rounding * (1.0 + float(y.sum() + np.abs(s).sum()))
            bound = max(bound, float(reduced.min() + np.minimum(s * low, s * high).sum()) - rounding)
            if bound >= cutoff:
                return RayBound(bound, None, reduced)
            new = cheapest_columns(reduced, SETTINGS.proofs.rays_per_round)
            new = new[reduced[new] < duals[-1] - SETTINGS.tolerance.new_ray]
            if not new.size:
                break
        weights = np.zeros(rays.costs.size)
        np.add.at(weights, columns, np.maximum(x[2 * (n + self.classes + 1) :], 0.0))
        return RayBound(bound, weights, reduced)

    def _begin(self, low: FloatArray, high: FloatArray) -> None:
        """An empty programme: every row can be broken, up or down, at the penalty."""
        m = self.rows + self.classes + 1
        self._programme.clear()
        self._programme.add_rows(
            np.concatenate([np.zeros(self.rows), low, [1.0]]), np.concatenate([np.full(self.rows, INF), high, [1.0]])
        )
        rows, either = np.tile(np.arange(m), 2), np.repeat([1.0, -1.0], m)
        self._programme.add_columns(np.full(2 * m, SETTINGS.proofs.ray_penalty), np.arange(2 * m), rows, either)

    def _add(self, rays: RayColumns, which: IntArray) -> None:
        k, n = which.size, self.rows
        entries, index = np.ones((k, n + 2)), np.empty((k, n + 2), dtype=np.int32)
        entries[:, :n], index[:, :n] = rays.sides[which], np.arange(n)
        index[:, n], index[:, n + 1] = n + rays.part[which], n + self.classes
        self._programme.add_columns(rays.costs[which], np.arange(k) * (n + 2), index.ravel(), entries.ravel())

    def _run(self) -> tuple[FloatArray, FloatArray] | None:
        """Columns and multipliers at the optimum; None if even a start from nothing does not get there.

        That is no error here: bounds come from their formula, and a box without a solution keeps the one it has.
        """
        for _ in range(2):
            if self._programme.run():
                return self._programme.solution, self._programme.multipliers
            self._programme.clear_basis()
        return None


def cheapest_columns(costs: FloatArray, most: int) -> IntArray:
    """Which cost least, in no order."""
    return np.argpartition(costs, most - 1)[:most] if costs.size > most else np.arange(costs.size)
