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
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.clock import WORK
from privacyfunnel.engine.lp.batched_simplex import solve
from privacyfunnel.engine.oracles.polytope import Polytope
from privacyfunnel.engine.proofs.branch_and_bound import Boxes, Branching
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.information import entropy_terms

# Costs and boxes to a lower bound on each least cost, an atom, and whether that atom is allowed for certain.
Minimiser = Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray, BoolArray]]


@dataclass(frozen=True, slots=True, eq=False)
class AverageObjective:
    """H(v) − μ H(A v): the cost of an atom less the worth of what it leaves open about the secret.

    For `BranchAndBound` it has the shape of an objective over inputs that are values.
    """

    square: ClassVar[None] = None
    gram_matrix: ClassVar[None] = None
    image_index: IntArray
    secrets: FloatArray  # A: (c, d)
    price: float  # μ
    is_identity: bool = True

    @property
    def image_size(self) -> int:
        """How many entries the image has."""
        return self.image_index.size

    def restrict(self, inputs: IntArray) -> AverageObjective:
        """The same over some of the inputs."""
        return AverageObjective(np.arange(inputs.size), self.secrets[:, inputs], self.price)

    def terms(self, t: FloatArray) -> FloatArray:
        """Entries that add up to the cost of each row, which they must have whole."""
        return np.asarray(
            entropy_terms(t)
            + self.price * t * (np.log(np.maximum(t @ self.secrets.T, SETTINGS.tolerance.tiny)) @ self.secrets)
        )

    def slopes(self, t: FloatArray, least: float) -> FloatArray:
        """Of the first term alone: the second is convex, and has no linear function above it."""
        return -np.log(np.maximum(t, least))


class GibbsBoxes:
    """Boxes of entries; a box is low, high and the z of the box it came from."""

    polish_every = SETTINGS.proofs.entropic_polish
    finds_vertices = True
    gather_factor = SETTINGS.proofs.entropic_gather
    batch = chunk = SETTINGS.proofs.entropic_batch

    def __init__(self, cost: AverageObjective, minimise: Minimiser, support: int, reach: FloatArray) -> None:
        self.cost, self.minimise, self.support, self.reach = cost, minimise, support, reach

    def roots(self, prices: FloatArray, deadline: float) -> Boxes:
        """One box per input: that input is the largest entry of at most `support` many."""
        d = prices.size
        low, high = np.zeros((d, d)), np.tile(np.minimum(self.reach, 0.5), (d, 1))
        np.fill_diagonal(low, 1.0 / self.support)
        np.fill_diagonal(high, self.reach)
        z = self.cost.secrets.mean(axis=1)
        return _shrink_boxes(Boxes(np.full(d, -np.inf), (low, high, np.tile(z, (d, 1)))))

    def cut(self, boxes: Boxes, prices: FloatArray, goal: float, deadline: float) -> Branching:
        """Bound every box, set aside what reaches the goal, and halve the rest where its chords err most."""
        low, high, z = boxes.parts
        slope, intercept = _chords(low, high)
        bound, v, allowed = self._bounds(slope - prices, low, high, z)
        bound = np.maximum(bound + intercept, boxes.bound) - SETTINGS.tolerance.bound * (
            1.0 + float(np.abs(prices).max())
        )
        error = entropy_terms(v) - slope * v - (entropy_terms(low) - slope * low)
        gap = (self.cost.terms(v).sum(axis=1) - v @ prices) - bound
        done: BoolArray = (bound >= goal) | (gap <= SETTINGS.tolerance.settled)
        closed = float(bound[done].min(initial=np.inf))
        left = np.flatnonzero(~done)
        own = v[left] @ self.cost.secrets.T
        boxes = Boxes(bound[left], (low[left], high[left], own))
        return Branching(_shrink_boxes(_halves(boxes, v[left], error[left])), closed, v[allowed])

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
    """The least of each cost over its box of distributions: start from low, and spend what is left on the cheapest."""
    order = np.argsort(cost, axis=1)
    room = np.take_along_axis(high - low, order, 1)
    spent = np.cumsum(room, axis=1) - room
    left = 1.0 - low.sum(axis=1, keepdims=True)
    v = np.empty_like(cost)
    np.put_along_axis(v, order, np.clip(left - spent, 0.0, room), 1)
    v += low
    return (cost * v).sum(axis=1), v, np.ones(len(cost), dtype=np.bool_)


def polytope_minimiser(polytope: Polytope) -> Minimiser:
    """The least of each cost over its box of atoms that a promise allows, by small programmes."""

    def minimise(cost: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        d = polytope.inputs
        whole = np.zeros((len(cost), polytope.low.size))
        whole[:, :d] = cost
        found = solve(polytope.programmes(whole, low, high))
        v = np.clip(found.x[:, :d], low, high)
        return found.bound, v / v.sum(axis=1, keepdims=True), found.optimal

    return minimise


def _chords(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slopes of the chords of −t ln t on the box, and what they have in common: Σ of their values at 0."""
    at_low, at_high = entropy_terms(low), entropy_terms(high)
    width = high - low
    slope = np.divide(at_high - at_low, width, out=np.zeros_like(low), where=width > 0)
    return slope, (np.minimum(at_low - slope * low, at_high - slope * high)).sum(axis=1)


def _shrink_boxes(boxes: Boxes) -> Boxes:
    """The boxes shrunk by Σ v = 1, without those that hold nothing."""
    low, high, z = boxes.parts
    high = np.minimum(high, 1.0 - (low.sum(axis=1, keepdims=True) - low) + SETTINGS.tolerance.outward)
    low = np.maximum(low, 1.0 - (high.sum(axis=1, keepdims=True) - high) - SETTINGS.tolerance.outward)
    alive = np.flatnonzero((low <= high + SETTINGS.tolerance.empty).all(axis=1))
    return Boxes(boxes.bound, (low, np.maximum(low, high), z))[alive]


def _halves(boxes: Boxes, v: FloatArray, error: FloatArray) -> Boxes:
    """Both halves of the boxes, cut where the chord errs most."""
    low, high, z = boxes.parts
    rows = np.arange(len(boxes))
    at = np.argmax(error, axis=1)
    middle = 0.5 * v[rows, at] + 0.25 * (low[rows, at] + high[rows, at])
    lower_high, upper_low = high.copy(), low.copy()
    lower_high[rows, at] = middle
    upper_low[rows, at] = middle
    return Boxes.concatenate([Boxes(boxes.bound, (low, lower_high, z)), Boxes(boxes.bound, (upper_low, high, z))])
