"""Many small linear programmes with more rows than unknowns: min c·x subject to x_B = T x_N, l <= x <= u.

A polytope of d unknowns and m rows has d + m variables, of which d are chosen and the m others follow from them. Where
d is the smaller number, the table T of how these follow (m × d) is all there is to hold: the dual simplex method with
long steps (`simplex`) changes one line and one column of it at a time, for all programmes in lock step, and the next
programmes over the same polytopes begin with the tables of the last ones.

Nothing is proved here. What rounding has spoilt is seen by whoever puts x into the rows, and begun afresh.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.lp.batched_simplex import margins, ratio_test
from privacyfunnel.engine.settings import SETTINGS


@dataclass(slots=True, eq=False)
class Tableaus:
    """k tables x_B = T x_N, and the variables that each line and each column of them is; they change in place."""

    table: FloatArray  # (k, m, d)
    basic: IntArray  # (k, m)
    nonbasic: IntArray  # (k, d)

    @classmethod
    def from_rows(cls, rows: FloatArray) -> Tableaus:
        """For polytopes l <= (v, rows·v) <= u, a table (m, d) each: the d unknowns are chosen, their rows follow."""
        k, m, d = rows.shape
        return cls(rows, np.tile(np.arange(d, d + m), (k, 1)), np.tile(np.arange(d), (k, 1)))

    def __getitem__(self, which: IntArray | BoolArray) -> Tableaus:
        return Tableaus(self.table[which], self.basic[which], self.nonbasic[which])

    def store(self, which: IntArray, others: Tableaus) -> None:
        """Put others in the places of some."""
        self.table[which], self.basic[which], self.nonbasic[which] = others.table, others.basic, others.nonbasic

    def exchange(self, leave: IntArray, enter: IntArray) -> None:
        """Choose the variable of line `leave` in each, and let that of column `enter` follow."""
        k = np.arange(len(leave))
        column = self.table[k, :, enter]
        line = self.table[k, leave] / -column[k, leave][:, None]
        line[k, enter] = 1.0 / column[k, leave]
        self.table[k, :, enter] = 0.0
        self.table += column[:, :, None] * line[:, None, :]
        self.table[k, leave] = line
        self.basic[k, leave], self.nonbasic[k, enter] = self.nonbasic[k, enter], self.basic[k, leave]


@dataclass(frozen=True, slots=True, eq=False)
class TableauSolution:
    """Where each programme ended: a vertex, its table, and whether it is the cheapest one."""

    x: FloatArray  # (k, d + m)
    tableaus: Tableaus
    optimal: BoolArray


def minimise_tableaus(start: Tableaus, cost: FloatArray, low: FloatArray, high: FloatArray) -> TableauSolution:
    """The x that minimises each cost (k, d + m) between its bounds, from these tables on."""
    number = np.arange(len(cost))
    live = start[number]  # a copy
    ended = TableauSolution(np.zeros(cost.shape), start[number], np.zeros(len(cost), dtype=np.bool_))
    k = number[:, None]
    reduced = cost[k, live.nonbasic] + np.matmul(cost[k, live.basic][:, None, :], live.table)[:, 0]
    for pivots in range(1, SETTINGS.lp.most_pivots + 1):
        k = number[:, None]
        least, most = low[k, live.nonbasic], high[k, live.nonbasic]
        x_chosen = np.where(reduced < 0, most, least)
        x_basic = np.matmul(live.table, x_chosen[:, :, None])[:, :, 0]
        above = x_basic - high[k, live.basic]
        broken = np.maximum(above, low[k, live.basic] - x_basic)
        # Steepest edge, measured in the variables that are chosen.
        score = np.where(broken > SETTINGS.tolerance.feasible, broken * broken, 0.0)
        score /= 1.0 + np.einsum("kij,kij->ki", live.table, live.table)
        if pivots > SETTINGS.lp.random_after:
            score *= np.random.default_rng(pivots).random(score.shape)
        row = np.arange(len(number))
        leave = np.argmax(score, axis=1)
        feasible = score[row, leave] <= 0.0
        side = np.where(above[row, leave] > 0, 1.0, -1.0)
        along = live.table[row, leave] * -side[:, None]
        enter, blocked = ratio_test(reduced, along, most - least, broken[row, leave] - margins(along))
        finished = feasible | ~blocked
        if pivots == SETTINGS.lp.most_pivots:
            finished[:] = True
        if finished.any():
            done = number[finished]
            ended.x[done[:, None], live.nonbasic[finished]] = x_chosen[finished]
            ended.x[done[:, None], live.basic[finished]] = x_basic[finished]
            ended.tableaus.store(done, live[finished])
            ended.optimal[done] = feasible[finished]
            going = ~finished
            number, live, reduced = number[going], live[going], reduced[going]
            if not len(number):
                break
            leave, enter, side, along = leave[going], enter[going], side[going], along[going]
            row = np.arange(len(number))
        step = reduced[row, enter] / along[row, enter]
        reduced = reduced - step[:, None] * along
        reduced[row, enter] = -side * np.maximum(step, SETTINGS.tolerance.tiny)
        live.exchange(leave, enter)
    return ended
