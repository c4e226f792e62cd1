"""Boxes of entries under sets of priors, bounded by chords: like `BoxedChords`, whatever minimises over the sets."""

from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.lp.credal_simplex import Bases, Minima
from privacyfunnel.engine.objective import Objective, chords
from privacyfunnel.engine.proofs.branch_and_bound import Boxes, Branching
from privacyfunnel.engine.proofs.chords import halve_boxes, tighten_boxes, trim_boxes
from privacyfunnel.engine.settings import SETTINGS


class BoxOracle(Protocol):
    """What minimises within boxes over sets of priors."""

    @property
    def batch(self) -> int:
        """How many boxes are worked on together."""

    def reach(self, deadline: float) -> FloatArray:
        """For every input the largest probability that any allowed atom gives it."""

    def minimise_in_boxes(
        self, costs: FloatArray, low: FloatArray, high: FloatArray, bases: Bases, cutoff: FloatArray, deadline: float
    ) -> Minima:
        """Bounds on the cheapest allowed atom in each box, beginning with these bases where there is a use for them."""


class CredalChords:
    """Chords over boxes of entries; a box is low, high, the input that is the largest, and a basis to start from."""

    polish_every = SETTINGS.proofs.credal_polish
    finds_vertices = False
    gather_factor = 0.0

    def __init__(self, oracle: BoxOracle, objective: Objective) -> None:
        self.oracle, self.objective = oracle, objective
        self.batch = self.chunk = oracle.batch

    def roots(self, prices: FloatArray, deadline: float) -> Boxes:
        """One box per input: that input is the largest entry."""
        d, reach = prices.size, self.oracle.reach(deadline)
        low = np.zeros((d, d))
        np.fill_diagonal(low, 1.0 / d)
        high = np.tile(np.minimum(reach, 0.5), (d, 1))
        np.fill_diagonal(high, reach)
        possible = np.flatnonzero(np.diag(low) <= np.diag(high))
        basis = Bases.initial(np.arange(d), d)
        return tighten_boxes(Boxes(np.full(d, -np.inf), (low, high, np.arange(d), basis.kinds, basis.rows))[possible])

    def cut(self, boxes: Boxes, prices: FloatArray, goal: float, deadline: float) -> Branching:
        """Bound by the programmes of the boxes; shrink those that stay, and cut them where the chord errs most."""
        rounding = SETTINGS.tolerance.bound * (1.0 + float(np.abs(prices).max()))
        low, high, largest, kinds, rows = boxes.parts
        slope, intercept = chords(self.objective, low, high)
        constant = intercept.sum(axis=1)
        found = self.oracle.minimise_in_boxes(slope - prices, low, high, Bases(kinds, rows), goal - constant, deadline)
        bound = np.maximum(found.lower + constant, boxes.bound)
        atoms = np.maximum(found.v, 0.0)
        inside = np.flatnonzero(bound < goal)
        room = (goal - constant + rounding - found.value)[inside]
        low, high = trim_boxes(low[inside], high[inside], found.reduced[inside], room)
        v = np.clip(atoms[inside], low, high)
        slope, intercept = chords(self.objective, low, high)
        error = self.objective.terms(v) - slope * v - intercept
        # Where the chords no longer err, cutting cannot help: what the box says is final, once its programme is solved.
        # Boxes are trimmed by the goal, so what was set aside costs no more than that for certain.
        exact, optimal = error.sum(axis=1) <= rounding, found.optimal[inside]
        closed = min(goal, float(bound[inside][exact & optimal].min(initial=np.inf)))
        basis = found.bases.kinds[inside], found.bases.rows[inside]
        left = Boxes(bound[inside], (low, high, largest[inside], *basis))
        unsolved, rest = left[np.flatnonzero(exact & ~optimal)], np.flatnonzero(~exact)
        going = Boxes.concatenate([halve_boxes(left[rest], v[rest], error[rest]), unsolved])
        return Branching(tighten_boxes(going), closed, atoms[found.optimal])
