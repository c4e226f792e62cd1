r"""Any constraints: linear minima over the feasible atoms by HiGHS, with a proof of each.

With f = v / p an atom is feasible iff for every rule (A, B, α, β)

.. math:: \alpha\, h_A(f) \le \beta\, l_B(f), \qquad h_A(f) = \max_{P \in U_A} P \cdot f,\quad
   l_B(f) = \min_{R \in U_B} R \cdot f .

The events of the table are sets of one member. Over a box cut by the simplex
:math:`h(f) = \min_t\, l \cdot f + (1 - \Sigma l)\, t + (u - l) \cdot (f - t)^+`: one variable t per credal set and one
per input make it linear, and likewise for l. Of all rules few matter: a rule enters the programme, with the variables
of its sets, when an atom violates it.

For *any* weights w >= 0 of rules and *any* members P of the sets A, R of the sets B,

.. math:: c \cdot v \ge r \cdot v, \qquad r = c + \sum w\, (\alpha P - \beta R) / p,

so a solver's multipliers are only advice: they say which weights and members to try, members are made to lie in their
sets, and the bound min r·v over the box and the simplex is evaluated from this formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.clock import now
from privacyfunnel.engine.lp.highs import DUAL, INF, Programme
from privacyfunnel.engine.objective import image
from privacyfunnel.engine.oracles.credal_constraints import CredalConstraints
from privacyfunnel.engine.oracles.oracle import UNIT, BoxCosts, BoxMinima, LinearMinima, cheapest_in_box
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.errors import SolverError


@dataclass(frozen=True, slots=True, eq=False)
class ColumnBlock:
    """Where h or l of one box stands in the programme: its column, and the rows of (f − t)⁺ for some inputs."""

    column: int
    first_row: int
    inputs: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """A solution under one cost: the atom, a bound that holds, and r less what all inputs have in common."""

    atom: FloatArray
    lower: float
    reduced: FloatArray
    value: float  # of the relaxation in which `reduced` are the costs of moving


class ConstraintOracle:
    """All rules of a problem, in one HiGHS model that grows as rules are violated; each solve starts from the last."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.constraints = problem, CredalConstraints.from_problem(problem)
        d = problem.size
        few = problem.credal_sets is not None
        self.batch = SETTINGS.lp.credal_batch if few else SETTINGS.lp.constraint_batch
        self._programme = Programme(simplex_strategy=DUAL)
        self._programme.add_rows(np.ones(1), np.ones(1))
        self._programme.add_columns(np.zeros(d), np.arange(d), np.zeros(d, dtype=np.int64), problem.prior)
        self._rows, self._columns = 1, d
        self._high: dict[int, ColumnBlock] = {}
        self._low: dict[int, ColumnBlock] = {}
        self._order: list[int] = []
        self._row_of: list[int] = []
        self.active = np.zeros(len(self.constraints.one), dtype=bool)
        self._open = (np.zeros(d), np.ones(d))
        self._reach, self._seen = np.ones(d), 0
        width = self.constraints.high - self.constraints.low
        self._inner = self.constraints.low + width * (1 - SETTINGS.tolerance.feasible)
        self._is_point: BoolArray = np.asarray(~width.any(axis=1))

    def minimise(self, costs: FloatArray, deadline: float = np.inf) -> LinearMinima:
        """The cheapest atom for every row of costs; the prior, and what holds of the simplex, where time is up."""
        found = [self._minimise_one(cost, deadline) for cost in costs]
        return LinearMinima(np.array([one.lower for one in found]), np.array([one.atom for one in found]))

    def _minimise_one(self, cost: FloatArray, deadline: float) -> Minimum:
        found = self.minimum(cost, *self._open, deadline) if now() < deadline else None
        if found is None and now() < deadline and not self._programme.late:
            raise SolverError(
                f"A pricing problem must be solved to optimality; HiGHS said {self._programme.status}. Report this."
            )
        return found or self._prior_minimum(cost)

    def _prior_minimum(self, cost: FloatArray) -> Minimum:
        lower, r, common = self.lower_bound(cost, *self._open, np.zeros(self._rows))
        return Minimum(self.problem.prior, lower, r - common, common)

    @property
    def support(self) -> int:
        return self.problem.size

    def box_states(self, count: int) -> tuple[NDArray[Any], ...]:
        """None: there is one programme."""
        return ()

    def minimise_in_boxes(self, boxes: BoxCosts, deadline: float) -> BoxMinima:
        """The cheapest atom in each box, one after the other; nothing is known of those that time was too short for."""
        costs, k = boxes.costs, len(boxes.costs)
        lower, value = np.full((2, k), -np.inf)
        v, reduced, optimal = (boxes.low + boxes.high) / 2, np.zeros_like(costs), np.zeros(k, dtype=bool)
        for i, cost in enumerate(costs):
            found = self.minimum(cost, boxes.low[i], boxes.high[i], deadline) if now() < deadline else None
            if found is not None:
                lower[i], value[i], optimal[i] = found.lower, found.value, True
                v[i], reduced[i] = found.atom, found.reduced
        return BoxMinima(lower, v, reduced, value, boxes.states, optimal)

    def minimum(self, cost: FloatArray, low: FloatArray, high: FloatArray, deadline: float = np.inf) -> Minimum | None:
        """The cheapest allowed atom in a box; None where the solver finds none, for whatever reason, or not in time."""
        p = self.problem
        self._programme.set_bounds(low / p.prior, high / p.prior)
        self._programme.set_costs(cost * p.prior)
        while True:
            if not self._solve(deadline):
                return self._prove_infeasible(low, high)
            ratio = np.maximum(self._programme.solution[: p.size], 0.0)
            broken = self.constraints.violations(ratio)
            fresh = broken[~self.active[broken]]
            if not fresh.size:
                break
            for rule in fresh.tolist():
                self.activate(rule)
        lower, r, common = self.lower_bound(cost, low, high, self._programme.multipliers)
        if p.objective.is_identity or p.credal_sets is not None:
            kept = ratio > SETTINGS.tolerance.near * ratio.max()
        else:  # a value goes as a whole: what a promise compares within it would not survive the loss of a part
            by_value = image(p.objective, (ratio * p.prior)[None, :])[0]
            kept = by_value[p.objective.image_index] > SETTINGS.tolerance.value_dust
        atom = np.where(kept, ratio, 0.0) * p.prior
        atom /= atom.sum()
        reduced = r - common
        return Minimum(atom, lower, reduced, common + float(np.minimum(reduced * low, reduced * high).sum()))

    def reach(self, deadline: float) -> FloatArray:
        """For every input the largest probability that any allowed atom gives it; 1 where there is no time to see."""
        for z in range(self._seen, self.problem.size if now() < deadline else 0):
            found = self.minimum(-np.eye(self.problem.size)[z], *self._open, deadline)
            self._reach[z] = 1.0 if found is None else min(1.0, -found.lower + SETTINGS.tolerance.solved)
            self._seen = z + 1
            if now() >= deadline:
                break
        return self._reach

    def _solve(self, deadline: float) -> bool:
        if self._programme.run(deadline):
            return True
        if self._programme.is_infeasible or self._programme.late:
            return False
        self._programme.clear_basis()
        return self._programme.run(deadline)

    # -- the bound ---------------------------------------------------------------------------------------------

    def _prove_infeasible(self, low: FloatArray, high: FloatArray) -> Minimum | None:
        """That no atom in the box is allowed, where multipliers prove it: with no cost at all r·v is above 0."""
        ray = self._programme.dual_ray if self._programme.is_infeasible else None
        nothing = np.zeros(low.size)
        for sign in (1.0, -1.0) if ray is not None else ():
            if self.lower_bound(nothing, low, high, sign * np.asarray(ray))[0] > 0:
                return Minimum(self.problem.prior, np.inf, nothing, np.inf)
        return None

    def lower_bound(
        self, cost: FloatArray, low: FloatArray, high: FloatArray, multipliers: FloatArray
    ) -> tuple[float, FloatArray, float]:
        """min r·v over the box and the simplex, for the weights and members that multipliers suggest; r; Σv = 1's."""
        rules, prior = self.constraints, self.problem.prior
        r, size = cost.copy(), np.abs(cost)
        which = np.array(self._order, dtype=np.int64)
        w = np.maximum(-multipliers[self._row_of], 0.0) if which.size else np.zeros(0)
        used = w > 0
        which, w = which[used], w[used]
        k = len(rules.low)
        above = np.bincount(rules.one[which], w * rules.alpha[which], k)
        rounded = np.bincount(rules.one[which], w * rules.rounding_scale[which], k)
        below = np.bincount(rules.other[which], w * rules.beta[which], k)
        points = np.flatnonzero(self._is_point & ((above > 0) | (below > 0)))
        r += (above - below)[points] @ rules.low[points] / prior
        size += (rounded + below)[points] @ rules.low[points] / prior
        for blocks, weights, sizes, sign in ((self._high, above, rounded, 1.0), (self._low, below, below, -1.0)):
            for event in np.flatnonzero(~self._is_point & (weights > 0)).tolist():
                member = self._member(event, blocks[event], multipliers, weights[event])
                if member is None:  # no such member can be had from floats: do without any rule
                    r, size = cost.copy(), np.abs(cost)
                    return float(cheapest_in_box(r[None], low, high)[0][0]), r, float(multipliers[0])
                r += sign * weights[event] * member / prior
                size = size + sizes[event] * member / prior
        margin = (4 * len(which) + 4 * prior.size + 32) * UNIT * size
        return float(cheapest_in_box((r - margin)[None], low, high)[0][0]), r, float(multipliers[0])

    def _member(self, event: int, block: ColumnBlock, multipliers: FloatArray, weight: float) -> FloatArray | None:
        """The member of the set that multipliers suggest, made to lie in it whatever they are."""
        low, high = self.constraints.low[event], self._inner[event]
        suggested = low.copy()
        rows = np.arange(block.first_row, block.first_row + block.inputs.size)
        suggested[block.inputs] += multipliers[rows] / weight
        member = np.clip(suggested, low, high)
        missing = 1.0 - member.sum()
        if missing > 0:
            room = high - member
            if room.sum() < missing:
                return None
            member = member + room * (missing / room.sum())
        free = 1.0 - low.sum()
        factor = free / (member - low).sum() if (member - low).any() else np.inf
        return np.asarray(low + (member - low) * factor) if factor <= 1 + SETTINGS.tolerance.feasible / 2 else None

    # -- the programme -----------------------------------------------------------------------------------------

    def activate(self, rule: int) -> None:
        """Have a rule in the programme."""
        rules, one, other = self.constraints, int(self.constraints.one[rule]), int(self.constraints.other[rule])
        if self._is_point[one] and self._is_point[other]:
            row = rules.alpha[rule] * rules.low[one] - rules.beta[rule] * rules.low[other]
            index = np.flatnonzero(row)
            self._add_rows([-INF], [0.0], [0], index, row[index])
        else:
            above, below = self._column_block(one, self._high, 1.0), self._column_block(other, self._low, -1.0)
            entries = np.array([rules.alpha[rule], -rules.beta[rule]])
            self._add_rows([-INF], [0.0], [0], [above.column, below.column], entries)
        self._order.append(rule)
        self.active[rule] = True
        self._row_of.append(self._rows - 1)

    def _column_block(self, event: int, blocks: dict[int, ColumnBlock], sign: float) -> ColumnBlock:
        """h of this box (sign 1), or l (sign −1), as a column: with t, and (f − t)⁺ where the box is wide."""
        if event in blocks:
            return blocks[event]
        low, high = self.constraints.low[event], self.constraints.high[event]
        wide = np.flatnonzero(high > low)
        n, column = wide.size, self._columns
        t, parts = column + 1, column + 2 + np.arange(n)
        new = 2 + n if n else 1
        none = np.empty(0, dtype=np.int64)
        self._programme.add_columns(np.zeros(new), np.zeros(new, dtype=np.int64), none, np.empty(0))
        self._columns += new
        first = self._rows
        if n:
            # s_z >= f_z − t, or s_z >= t − f_z
            index = np.stack([parts, wide, np.full(n, t)], axis=1)
            entries = np.tile([1.0, -sign, sign], (n, 1))
            self._add_rows(np.zeros(n), np.full(n, INF), 3 * np.arange(n), index.ravel(), entries.ravel())
        # h >= l·f + (1 − Σl) t + (u − l)·s, or l <= l·f + (1 − Σl) t − (u − l)·s; a point has neither t nor s
        filled = np.flatnonzero(low)
        index = np.concatenate([[column], filled, [t] if n else none, parts])
        rest = np.concatenate([low[filled], [1 - low.sum()] if n else [], sign * (high - low)[wide]])
        self._add_rows([0.0], [INF], [0], index, sign * np.concatenate([[1.0], -rest]))
        blocks[event] = ColumnBlock(column, first, wide)
        return blocks[event]

    def _add_rows(
        self,
        low: FloatArray | list[float],
        high: FloatArray | list[float],
        starts: IntArray | list[int],
        index: IntArray | list[int],
        entries: FloatArray,
    ) -> None:
        self._programme.add_sparse_rows(
            np.asarray(low, dtype=np.float64),
            np.asarray(high, dtype=np.float64),
            np.asarray(starts, dtype=np.int64),
            np.asarray(index, dtype=np.int64),
            np.asarray(entries, dtype=np.float64),
        )
        self._rows += len(low)
