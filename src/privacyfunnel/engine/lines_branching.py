r"""Proof by branch and bound over masses of classes and cones within them (see lines.py).

The relaxation errs in two ways: the chord of -t ln t lies below it at a mass, and a mixture of rays has more entropy
than its rays. Whichever errs most at the relaxation's solution is cut there: the range of a mass in two, or the cone of
a class by the hyperplane :math:`v_z = θ m_l` through the solution. On that hyperplane entry z errs no more, and each
half has rays, hence a relaxation, of its own.
"""

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.branching import chords
from privacyfunnel.engine.cones import Cone
from privacyfunnel.engine.lines import Lines
from privacyfunnel.engine.lines_programme import Programme
from privacyfunnel.engine.problem import Pricing
from privacyfunnel.engine.vertices import entropy_terms, reduced_costs

ROUNDING = 1e-12
SLOP = 1e-13
CLEAR = 1e-10  # a hyperplane keeps at least this far from every ray
NUDGES = 1e-8 * np.arange(-8, 9)
NEAR = 10  # columns of a box that its halves begin with, beyond those in use
POLISH_EVERY = 32
GATHERING = 0.5  # once an atom is found: go on for this part of the boxes seen so far, to find others


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Cones of the classes, ranges of their masses, and columns to begin with, per class."""

    cones: tuple[Cone, ...]
    low: FloatArray
    high: FloatArray
    first: tuple[IntArray, ...]

    def tightened(self) -> "Box | None":
        """The same box, shrunk by Σ m = 1; None if it is empty."""
        low, high = self.low, self.high
        for _ in range(2):
            high = np.minimum(high, 1.0 - (low.sum() - low) + SLOP)
            low = np.maximum(low, 1.0 - (high.sum() - high) - SLOP)
        if (low > high + 1e-12).any():
            return None
        return Box(self.cones, np.clip(low, 0.0, 1.0), np.clip(np.maximum(low, high), 0.0, 1.0), self.first)


class LinesProver:
    """Branch and bound over one family of classes; `visited` counts boxes over all proofs."""

    def __init__(self, lines: Lines, polish: Callable[[FloatArray, FloatArray], FloatArray]) -> None:
        self.lines = lines
        self.polish = polish
        self.visited = 0
        self._programme = Programme(lines.across.shape[0], len(lines.classes))

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Pricing:
        """See Pricer.prove."""
        rounding = ROUNDING * (1.0 + float(np.abs(prices).max()))
        goal = -target + rounding
        waiting: list[tuple[float, int, Box]] = [(-np.inf, 0, self._root(prices))]
        closed = goal  # boxes stop at the goal, so what was set aside costs at least this
        found: list[FloatArray] = []
        seen, pushed, stop = 0, 0, np.inf
        while waiting and seen < stop and time.monotonic() <= deadline:
            known, _, box = heapq.heappop(waiting)
            seen += 1
            bound, weights, halves = self._halved(box, prices, goal)
            bound = max(bound, known)
            if bound >= goal:
                continue
            if weights is not None:
                better = self._improving(weights, box, prices, -target - rounding, seen)
                found.extend(better)
                stop = min(stop, (1 + GATHERING) * seen) if len(better) else stop
            if halves is None:
                closed = min(closed, bound)
                continue
            for half in halves:
                pushed += 1
                heapq.heappush(waiting, (bound, pushed, half))
        self.visited += seen
        bound = min(closed, waiting[0][0] if waiting else np.inf) - rounding
        return Pricing(bound, np.array(found) if found else np.empty((0, prices.size)))

    def _root(self, prices: FloatArray) -> Box:
        lines = self.lines
        k = len(lines.classes)
        costs = (cone.entropy - cone.rays @ prices[z] for cone, z in zip(lines.cones, lines.classes, strict=True))
        return Box(lines.cones, np.zeros(k), np.ones(k), tuple(np.argsort(cost)[:NEAR] for cost in costs))

    def _halved(
        self, box: Box, prices: FloatArray, goal: float
    ) -> tuple[float, tuple[FloatArray, ...] | None, list[Box] | None]:
        """A bound on the box, the relaxation's solution, and two boxes that hold the box; None if it cannot be cut."""
        slope, intercept = chords(box.low, box.high)
        both = list(zip(box.cones, self.lines.classes, strict=True))
        costs = [cone.entropy - cone.rays @ prices[z] + t for (cone, z), t in zip(both, slope, strict=True)]
        sides = [cone.rays @ self.lines.across[:, z].T for cone, z in both]
        constant = float(intercept.sum())
        solved = self._programme.solve(costs, sides, (box.low, box.high), box.first, goal - constant)
        weights = solved.weights
        if weights is None:
            return solved.bound + constant, None, None
        mass = np.array([w.sum() for w in weights])
        error = entropy_terms(mass) - slope * mass - intercept
        worst = int(np.argmax(error))
        mixed = [_mixing(cone, w) for cone, w in zip(box.cones, weights, strict=True)]
        most = [float(e.max()) for e in mixed]
        part = int(np.argmax(most))
        near = tuple(
            np.union1d(np.flatnonzero(w > 0), np.argsort(r)[:NEAR])
            for w, r in zip(weights, solved.reduced, strict=True)
        )
        here = Box(box.cones, box.low, box.high, near)
        if max(error[worst], most[part]) <= ROUNDING:
            return solved.bound + constant, weights, None
        if error[worst] >= most[part]:
            halves: list[Box] | None = _cut_mass(here, worst, mass[worst])
        else:
            halves = _cut_cone(here, part, int(np.argmax(mixed[part])), weights[part])
        return solved.bound + constant, weights, halves

    def _improving(
        self, weights: tuple[FloatArray, ...], box: Box, prices: FloatArray, below: float, seen: int
    ) -> FloatArray:
        """Vertices of reduced cost below what is to be proved, near the relaxation's solution."""
        v = np.zeros((1, prices.size))
        for z, cone, w in zip(self.lines.classes, box.cones, weights, strict=True):
            v[0, z] = w @ cone.rays
        v /= v.sum()
        if reduced_costs(v, prices)[0] >= below and seen % POLISH_EVERY:
            return np.empty((0, prices.size))
        better = self.polish(v, prices)
        return better[reduced_costs(better, prices) < below]


def _mixing(cone: Cone, weights: FloatArray) -> FloatArray:
    """By how much each entry of a mixture has more entropy than the rays that are mixed."""
    used = np.flatnonzero(weights)
    if not used.size:
        return np.zeros(cone.rays.shape[1])
    w, rays = weights[used], cone.rays[used]
    mass = w.sum()
    return np.asarray(mass * entropy_terms(w @ rays / mass) - w @ entropy_terms(rays))


def _cut_mass(box: Box, part: int, at: float) -> list[Box]:
    """Both halves of the range of a mass, cut halfway between the solution and the middle."""
    middle = 0.5 * at + 0.25 * (box.low[part] + box.high[part])
    low, high = box.low.copy(), box.high.copy()
    low[part] = high[part] = np.clip(middle, box.low[part], box.high[part])
    halves = [Box(box.cones, box.low, high, box.first), Box(box.cones, low, box.high, box.first)]
    return [half for half in (one.tightened() for one in halves) if half is not None]


def _cut_cone(box: Box, part: int, z: int, weights: FloatArray) -> list[Box] | None:
    """Both halves of a cone, cut where entry z has the share that it has in the solution, or as near as is safe."""
    cone = box.cones[part]
    share = float(weights @ cone.rays[:, z] / weights.sum()) + NUDGES
    distance = np.abs(cone.rays[:, z] - share[:, None]).min(axis=1)
    clear = np.flatnonzero(distance > CLEAR)
    if not clear.size:
        return None
    value = share[clear[np.argmin(np.abs(NUDGES[clear]))]]
    cut = cone.cut(cone.rays[:, z] - value)
    if cut is None:
        return None
    boxes = []
    for half in cut:
        kept = half.place[box.first[part]]
        born = np.arange(int((half.place >= 0).sum()), half.cone.entropy.size)
        first = np.concatenate([kept[kept >= 0], born[: 2 * NEAR]])
        boxes.append(
            Box(
                tuple(half.cone if i == part else other for i, other in enumerate(box.cones)),
                box.low,
                box.high,
                tuple(first if i == part else other for i, other in enumerate(box.first)),
            )
        )
    return boxes
