"""Boxes of entries under sets of priors, bounded by chords: like `BoxedChords`, with one programme per box."""

import time

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.best_first import ROUNDING, Boxes, Cut
from privacyfunnel.engine.chords import halves, tightened, trimmed
from privacyfunnel.engine.hulls import HullOracle
from privacyfunnel.engine.objective import Objective, chords


class HullChords:
    """Chords over boxes of entries; a box is low, high and the input that is the largest."""

    polish_every = 16
    corners = False
    gathers = 0.0
    batch, chunk = 8, 4

    def __init__(self, oracle: HullOracle, objective: Objective) -> None:
        self.oracle, self.objective = oracle, objective

    def roots(self, prices: FloatArray, deadline: float) -> Boxes:
        """One box per input: that input is the largest entry."""
        d, reach = self.oracle.problem.size, self.oracle.reach(deadline)
        low = np.zeros((d, d))
        np.fill_diagonal(low, 1.0 / d)
        high = np.tile(np.minimum(reach, 0.5), (d, 1))
        np.fill_diagonal(high, reach)
        possible = np.flatnonzero(np.diag(low) <= np.diag(high))
        nothing = np.empty((d, 0), dtype=np.int64)  # in place of a basis
        return tightened(Boxes(np.full(d, -np.inf), (low, high, np.arange(d), nothing))[possible])

    def cut(self, boxes: Boxes, prices: FloatArray, goal: float, deadline: float) -> Cut:
        """Bound by the programmes of the boxes; shrink those that stay, and cut them where the chord errs most."""
        rounding = ROUNDING * (1.0 + float(np.abs(prices).max()))
        low, high, largest, basis = boxes.parts
        slope, intercept = chords(self.objective, low, high)
        constant, bound = intercept.sum(axis=1), boxes.bound.copy()
        atoms, solved = np.zeros_like(low), np.zeros(len(boxes), dtype=bool)
        low, high = low.copy(), high.copy()
        for i in range(len(boxes)):
            if time.monotonic() >= deadline:
                atoms[i] = (low[i] + high[i]) / 2
                continue
            found = self.oracle.within(slope[i] - prices, low[i], high[i])
            if found is None:  # nothing is known of it; it is cut on
                atoms[i] = (low[i] + high[i]) / 2
                continue
            if found.lower == np.inf:  # it is empty
                bound[i] = np.inf
                continue
            solved[i], atoms[i] = True, found.atom
            bound[i] = max(bound[i], found.lower + constant[i])
            room = np.array([goal - constant[i] + rounding - found.value])
            less, more = trimmed(low[[i]], high[[i]], found.reduced[None], room)
            low[i], high[i] = less[0], more[0]
        inside = np.flatnonzero(bound < goal)
        low, high, v = low[inside], high[inside], np.clip(atoms[inside], low[inside], high[inside])
        slope, intercept = chords(self.objective, low, high)
        error = self.objective.terms(v) - slope * v - intercept
        # Where the chords no longer err, cutting cannot help: what the box says is final. Boxes are trimmed by the
        # goal, so what was set aside costs no more than that for certain.
        final = solved[inside] & (error.sum(axis=1) <= rounding)
        closed = min(goal, float(bound[inside][final].min(initial=np.inf)))
        rest = np.flatnonzero(~final)
        left = Boxes(bound[inside], (low, high, largest[inside], basis[inside]))[rest]
        return Cut(tightened(halves(left, v[rest], error[rest])), closed, atoms[solved])
