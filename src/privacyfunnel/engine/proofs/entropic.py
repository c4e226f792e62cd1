r"""What an atom costs where an average about the secret is priced too, and how boxes of atoms are bounded.

With A = P(S | input) and a price μ ≥ 0 of the secret's entropy, an atom costs

.. math:: H(v) - \mu H(A v) - \lambda\cdot v .

On a box the first term lies above its chords. By Gibbs' inequality the second does too, for any distribution z:

.. math:: -\mu H(A v) = \mu \sum_s (A v)_s \ln (A v)_s \ \ge\ \mu \sum_s (A v)_s \ln z_s ,

linear in v. So a box is bounded by the least of a linear function, by a greedy where nothing else is asked of atoms and
by a small programme where a promise is; z is moved towards A v of the solution (Frank and Wolfe), and the bound rises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, entropy_terms
from privacyfunnel.engine.clock import WORK
from privacyfunnel.engine.objective import Objective, chords
from privacyfunnel.engine.oracles.oracle import BoxCosts, cheapest_in_box
from privacyfunnel.engine.oracles.polytope import Polytope
from privacyfunnel.engine.proofs.branch_and_bound import Boxes, Branching
from privacyfunnel.engine.proofs.chords import halve_boxes, largest_entry_boxes, tighten_boxes
from privacyfunnel.engine.settings import SETTINGS

# Costs and boxes to a lower bound on each least cost, an atom, and whether that atom is allowed for certain.
Minimiser = Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray, BoolArray]]


@dataclass(frozen=True, eq=False)
class AverageObjective(Objective):
    """H(v) − μ H(A v): the cost of an atom less the worth of what it leaves open about the secret.

    Its slopes are those of the first term: the second is convex, and has no linear function above it.
    """

    secrets: FloatArray = field(default_factory=lambda: np.empty((0, 0)))  # A: (c, d)
    price: float = 0.0  # μ

    @classmethod
    def from_secrets(cls, secrets: FloatArray, price: float) -> AverageObjective:
        """Every input is a value."""
        d = secrets.shape[1]
        return cls(np.arange(d), d, True, secrets=secrets, price=price)

    def terms(self, t: FloatArray) -> FloatArray:
        """Entries that add up to the cost of each row, which they must have whole."""
        logs = np.log(np.maximum(t @ self.secrets.T, SETTINGS.tolerance.tiny))
        return np.asarray(entropy_terms(t) + self.price * t * (logs @ self.secrets))


class GibbsBoxes:
    """Boxes of entries; a box is low, high, the input that is the largest, and the z of the box it came from."""

    polish_every = SETTINGS.proofs.entropic_polish
    finds_vertices = True
    gather_factor = SETTINGS.proofs.entropic_gather
    batch = chunk = SETTINGS.proofs.entropic_batch

    def __init__(self, cost: AverageObjective, minimise: Minimiser, support: int, reach: FloatArray) -> None:
        self.cost, self.minimise, self.support, self.reach = cost, minimise, support, reach
        self._entropy = Objective.from_groups(cost.image_index)

    def roots(self, prices: FloatArray, deadline: float) -> Boxes:
        """One box per input: that input is the largest entry of at most `support` many."""
        z = np.tile(self.cost.secrets.mean(axis=1), (prices.size, 1))
        return largest_entry_boxes(self.reach, self.support, z)

    def cut(self, boxes: Boxes, prices: FloatArray, goal: float, deadline: float) -> Branching:
        """Bound every box, set aside what reaches the goal, and halve the rest where its chords err most."""
        low, high, largest, z = boxes.parts
        slope, intercept = chords(self._entropy, low, high)
        bound, v, allowed = self._bounds(slope - prices, low, high, z)
        rounding = SETTINGS.tolerance.near * (1.0 + float(np.abs(prices).max()))
        bound = np.maximum(bound + intercept.sum(axis=1), boxes.bound) - rounding
        error = entropy_terms(v) - slope * v - intercept
        gap = (self.cost.terms(v).sum(axis=1) - v @ prices) - bound
        done: BoolArray = (bound >= goal) | (gap <= SETTINGS.tolerance.near)
        closed = float(bound[done].min(initial=np.inf))
        left = np.flatnonzero(~done)
        own = v[left] @ self.cost.secrets.T
        boxes = Boxes(bound[left], (low[left], high[left], largest[left], own))
        return Branching(tighten_boxes(halve_boxes(boxes, v[left], error[left])), closed, v[allowed])

    def _bounds(
        self, cost: FloatArray, low: FloatArray, high: FloatArray, z: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """The largest of the bounds that some z give, and an atom of each box near the least of what is bounded."""
        A, price = self.cost.secrets, self.cost.price
        best, allowed = np.full(len(low), -np.inf), np.ones(len(low), dtype=np.bool_)
        point = np.zeros_like(low)
        touched = SETTINGS.work.descent + SETTINGS.work.entropic_passes * low.size
        WORK.entries += SETTINGS.proofs.entropic_steps * touched
        for step in range(SETTINGS.proofs.entropic_steps):
            z = np.maximum(z, SETTINGS.tolerance.tiny)
            lower, v, found = self.minimise(cost + price * (np.log(z) @ A), low, high)
            allowed &= found
            # Gibbs asks that z sum to at most 1.
            best = np.maximum(best, lower - price * np.log(np.maximum(z.sum(axis=1), 1.0)))
            point = v if step == 0 else point + self._step(cost, point, v)[:, None] * (v - point)
            z = point @ A.T
            z = z / z.sum(axis=1, keepdims=True)
        return best, point, allowed

    def _step(self, cost: FloatArray, here: FloatArray, there: FloatArray) -> FloatArray:
        """How far to go from here to there until cost·v − μ H(A v) is least: by halving, to where its slope is 0."""
        A, price = self.cost.secrets, self.cost.price
        way = there - here
        linear = (cost * way).sum(axis=1)
        at, along = here @ A.T, way @ A.T
        least, most = np.zeros(len(here)), np.ones(len(here))
        for _ in range(SETTINGS.proofs.line_search):
            middle = (least + most) / 2
            slope = linear + price * (
                along * np.log(np.maximum(at + middle[:, None] * along, SETTINGS.tolerance.tiny))
            ).sum(axis=1)
            least, most = np.where(slope < 0, middle, least), np.where(slope < 0, most, middle)
        return np.asarray((least + most) / 2)


def minimise_greedily(cost: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """The least of each cost over its box of distributions."""
    return *cheapest_in_box(cost, low, high), np.ones(len(cost), dtype=np.bool_)


def polytope_minimiser(polytope: Polytope) -> Minimiser:
    """The least of each cost over its box of atoms that a promise allows, by small programmes."""

    def minimise(cost: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        k = len(cost)
        boxes = BoxCosts(cost, low, high, polytope.box_states(k), np.full(k, np.inf))
        found = polytope.minimise_in_boxes(boxes, np.inf)
        v = np.clip(found.v, low, high)
        return found.lower, v / v.sum(axis=1, keepdims=True), found.optimal

    return minimise
