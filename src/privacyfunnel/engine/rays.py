r"""The relaxed pricing problem over the rays of some cones, one per class, by column generation.

.. math:: \min_{w \ge 0} \sum_r c_r w_r \quad\text{s.t.}\quad \sum_r w_r = 1,\quad
   \sum_r w_r\, a_i\cdot r \ge 0\ \forall i,\quad l \le m(w) \le u,

with one column per ray, of which few are ever needed. For any multipliers y >= 0 of the rows and s of the masses,

.. math:: \min_r\,(c_r - y\cdot a(r) - s_{l(r)}) + \sum_l \min(s_l l_l,\ s_l u_l)

bounds it from below. It is evaluated from that formula over all rays, whatever the solver says of its own result.
"""

from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.highs import INF, Programme

PENALTY = 1e3  # for breaking a row while too few columns are known
PER_ROUND = 12  # columns added per class and round
WORTH_ADDING = 1e-8
ROUNDING = 1e-13
MOST_ROUNDS = 40
MOST_STEPS = 2000  # of the simplex method, so that a cycle ends


@dataclass(frozen=True, slots=True, eq=False)
class Relaxed:
    """A bound that holds, and where the relaxation has its minimum, unless the bound reached the cutoff before."""

    bound: float
    weights: tuple[FloatArray, ...] | None  # w, an array per class
    reduced: tuple[FloatArray, ...]  # reduced costs of the rays, an array per class


class RayProgramme:
    """One programme, filled anew for every box."""

    def __init__(self, rows: int, classes: int) -> None:
        self.rows, self.classes = rows, classes
        self._programme = Programme(simplex_iteration_limit=MOST_STEPS)

    def solve(
        self,
        costs: list[FloatArray],
        sides: list[FloatArray],
        masses: tuple[FloatArray, FloatArray],
        first: tuple[IntArray, ...],
        cutoff: float,
    ) -> Relaxed:
        """Bound the programme with ray costs `costs`, row values `sides` ((rays, rows) per class) and masses between.

        `first` are the columns to begin with. Stops once the bound reaches the cutoff.
        """
        n = self.rows
        low, high = masses
        self._begin(low, high)
        columns: list[tuple[int, IntArray]] = []
        new = list(first)
        bound, reduced = -np.inf, tuple(costs)
        for _ in range(MOST_ROUNDS):
            for part, which in enumerate(new):
                if which.size:
                    self._add(part, costs[part][which], sides[part][which])
                    columns.append((part, which))
            solution = self._run()
            if solution is None:
                return Relaxed(bound, None, reduced)
            x, duals = solution
            y, s = np.maximum(duals[:n], 0.0), duals[n : n + self.classes]
            reduced = tuple(c - a @ y - t for c, a, t in zip(costs, sides, s, strict=True))
            least = min(float(r.min()) for r in reduced)
            rounding = ROUNDING * (1.0 + float(y.sum() + np.abs(s).sum()))
            bound = max(bound, least + float(np.minimum(s * low, s * high).sum()) - rounding)
            if bound >= cutoff:
                return Relaxed(bound, None, reduced)
            new = [np.argsort(r)[:PER_ROUND] for r in reduced]
            new = [which[r[which] < duals[-1] - WORTH_ADDING] for which, r in zip(new, reduced, strict=True)]
            if not any(which.size for which in new):
                break
        weights = tuple(np.zeros(c.size) for c in costs)
        at = 2 * (n + self.classes + 1)
        for part, which in columns:
            weights[part][which] += np.maximum(x[at : at + which.size], 0.0)
            at += which.size
        return Relaxed(bound, weights, reduced)

    def _begin(self, low: FloatArray, high: FloatArray) -> None:
        """An empty programme: every row can be broken, up or down, at the penalty."""
        m = self.rows + self.classes + 1
        self._programme.clear()
        self._programme.add_rows(
            np.concatenate([np.zeros(self.rows), low, [1.0]]), np.concatenate([np.full(self.rows, INF), high, [1.0]])
        )
        rows, either = np.tile(np.arange(m), 2), np.repeat([1.0, -1.0], m)
        self._programme.add_columns(np.full(2 * m, PENALTY), np.arange(2 * m), rows, either)

    def _add(self, part: int, costs: FloatArray, sides: FloatArray) -> None:
        k, n = sides.shape
        entries = np.concatenate([sides, np.ones((k, 2))], axis=1)
        index = np.tile(np.append(np.arange(n), [n + part, n + self.classes]), k)
        self._programme.add_columns(costs, np.arange(k) * (n + 2), index, entries.ravel())

    def _run(self) -> tuple[FloatArray, FloatArray] | None:
        """Columns and multipliers at the optimum; None if even a start from nothing does not get there.

        That is no error here: bounds come from their formula, and a box without a solution keeps the one it has.
        """
        for _ in range(2):
            if self._programme.run():
                return self._programme.columns, self._programme.multipliers
            self._programme.forget()
        return None
