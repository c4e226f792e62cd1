r"""Boxes for promises that also compare within classes of inputs (SRLIP): masses of classes, and cones within them.

Some rows of such a promise look at few inputs only: those that share some attributes. Take disjoint classes l of
inputs, with masses :math:`m_l`, which together hold all inputs. Then

.. math:: H(v) = H(m) + \sum_l m_l H(v_l / m_l),

and the part of v in class l lies in the cone of the rows that look at l alone. Such a cone of few inputs has few
extreme rays r, so its part of the atom is a mixture :math:`v_l = \sum_r w_r r`, and

.. math:: m_l H(v_l / m_l) \ge \sum_r w_r H(r)

with equality on the rays. That leaves the entropy of a few masses; everything else is linear in w (cones.py).

The relaxation errs in two ways: the chord of -t ln t lies below it at a mass, and a mixture of rays has more entropy
than its rays. Whichever errs most at the relaxation's solution is cut there: the range of a mass in two, or the cone of
a class by the hyperplane :math:`v_z = θ m_l` through the solution. On that hyperplane entry z errs no more, and each
half has rays, hence a relaxation, of its own.
"""

from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.best_first import Boxes, Cut
from privacyfunnel.engine.chords import EMPTY, SLOP
from privacyfunnel.engine.cones import Cone, RayProgramme, cone_of
from privacyfunnel.engine.objective import Objective, chords
from privacyfunnel.engine.polytope import Polytope
from privacyfunnel.model.rows import Rows

MOST_RAYS = 1500  # in all classes together; larger classes bound better, but cutting their cones takes longer
MOST_CLASSES = 16  # with more of them the masses alone take too many boxes
# Half as many classes again, with fewer rays, were proved faster on all draws of 3 × 3 × 4 values; thrice as many were
# not. One class leaves nothing to branch on.
WORTH_CLASSES = 1.5
ERRS = 1e-12  # nats: an error below this is none
CLEAR = 1e-10  # a hyperplane keeps at least this far from every ray
NUDGES = 1e-8 * np.arange(-8, 9)  # where else a hyperplane may go if it would come too near to one
NEAR = 10  # columns of a box that its halves begin with, beyond those in use


@dataclass(frozen=True, slots=True, eq=False)
class ClassCones:
    """Disjoint classes of inputs that hold all of them, their cones, and the rows that look at more than one class."""

    classes: tuple[IntArray, ...]
    cones: tuple[Cone, ...]
    across: FloatArray  # (n, d), across·v >= 0

    @property
    def rays(self) -> int:
        """How many rays all cones have together."""
        return sum(cone.entropy.size for cone in self.cones)


def class_cones(rows: Rows, polytope: Polytope) -> ClassCones | None:
    """Few classes whose cones have few rays; None when no row looks at some inputs only, or rays are too many."""
    if rows.against_everybody or rows.each_other is not None or not rows.local:
        return None
    best: ClassCones | None = None
    most: float = MOST_CLASSES if _nested(rows) else 1
    for classes in _partitions(rows):
        if len(classes) > most:
            break
        found = _with_cones(polytope.matrix[1:, : polytope.inputs], classes)
        if found is not None and (best is None or found.rays < best.rays):
            most = min(most, len(classes) if len(classes) == 1 else WORTH_CLASSES * len(classes))
            best = found
    return best


def _nested(rows: Rows) -> bool:
    """Whether some rows look at a part of what other local rows look at, as with three attributes or more.

    With two attributes chords on the entries were measured to be two to four times faster.
    """
    seen: BoolArray = rows.members[rows.compared]
    local = seen[~seen.all(axis=1)].astype(np.float64)
    common, size = local @ local.T, local.sum(axis=1)
    return bool(((common == size[:, None]) & (size[:, None] < size)).any())


def _partitions(rows: Rows) -> list[tuple[IntArray, ...]]:
    """Ways to cover all inputs with disjoint classes, those with the fewest first. Inputs that remain are alone."""
    found = {}
    size = rows.members.sum(axis=1)
    for chosen in rows.disjoint_classes(rows.compared[np.argsort(-size[rows.compared], kind="stable")]):
        alone = np.flatnonzero(~rows.members[list(chosen)].any(axis=0))
        sets = [np.flatnonzero(rows.members[number]) for number in chosen] + [np.array([z]) for z in alone]
        sets.sort(key=lambda one: int(one[0]))
        found[tuple(map(bytes, sets))] = tuple(sets)
    return sorted(found.values(), key=len)


def _with_cones(rows: FloatArray, classes: tuple[IntArray, ...]) -> ClassCones | None:
    cones, across, rays = [], np.ones(rows.shape[0], dtype=bool), 0
    for inputs in classes:
        within = np.count_nonzero(rows, axis=1) == np.count_nonzero(rows[:, inputs], axis=1)
        across &= ~within
        cone = cone_of(rows[within][:, inputs], MOST_RAYS - rays)
        if cone is None:
            return None
        cones.append(cone)
        rays += cone.entropy.size
    return ClassCones(classes, tuple(cones), rows[across])


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
        if (low > high + EMPTY).any():
            return None
        return replace(self, low=np.clip(low, 0.0, 1.0), high=np.clip(np.maximum(low, high), 0.0, 1.0))

    def with_cone(self, part: int, cone: Cone, first: IntArray) -> "Box":
        """The box with another cone for one class."""
        cones, firsts = list(self.cones), list(self.first)
        cones[part], firsts[part] = cone, first
        return replace(self, cones=tuple(cones), first=tuple(firsts))


class ByClasses:
    """Boxes of masses and cones, one at a time."""

    batch = chunk = 1
    polish_every = 32
    corners = False
    gathers = 0.5

    def __init__(self, cones: ClassCones, objective: Objective) -> None:
        self.cones, self.objective = cones, objective
        self._programme = RayProgramme(cones.across.shape[0], len(cones.classes))

    def roots(self, prices: FloatArray, deadline: float) -> Boxes:
        """All there is."""
        cones, k = self.cones.cones, len(self.cones.classes)
        costs = (cone.entropy - cone.rays @ prices[z] for cone, z in zip(cones, self.cones.classes, strict=True))
        root = Box(cones, np.zeros(k), np.ones(k), tuple(np.argsort(cost)[:NEAR] for cost in costs))
        return _queued([root], -np.inf)

    def cut(self, boxes: Boxes, prices: FloatArray, goal: float, deadline: float) -> Cut:
        """Bound the box by the programme over its rays, and cut what errs most at its solution."""
        box: Box = boxes.parts[0][0]
        slope, intercept = chords(self.objective, box.low, box.high)
        both = list(zip(box.cones, self.cones.classes, strict=True))
        costs = [cone.entropy - cone.rays @ prices[z] + t for (cone, z), t in zip(both, slope, strict=True)]
        sides = [cone.rays @ self.cones.across[:, z].T for cone, z in both]
        constant = float(intercept.sum())
        solved = self._programme.solve(costs, sides, (box.low, box.high), box.first, goal - constant)
        bound = max(solved.bound + constant, float(boxes.bound[0]))
        if bound >= goal:
            return Cut(_queued([], bound), goal, np.empty((0, prices.size)))
        if solved.weights is None:
            return Cut(_queued([], bound), bound, np.empty((0, prices.size)))
        atom = np.zeros((1, prices.size))
        for z, cone, w in zip(self.cones.classes, box.cones, solved.weights, strict=True):
            atom[0, z] = w @ cone.rays
        atom /= atom.sum()
        near = tuple(
            np.union1d(np.flatnonzero(w > 0), np.argsort(r)[:NEAR])
            for w, r in zip(solved.weights, solved.reduced, strict=True)
        )
        halves = self._halves(replace(box, first=near), solved.weights, slope, intercept)
        return Cut(_queued(halves or [], bound), goal if halves is not None else bound, atom)

    def _halves(
        self, box: Box, weights: tuple[FloatArray, ...], slope: FloatArray, intercept: FloatArray
    ) -> list[Box] | None:
        """Two boxes that hold the box; None if it cannot be cut."""
        mass = np.array([w.sum() for w in weights])
        error = self.objective.terms(mass) - slope * mass - intercept
        worst = int(np.argmax(error))
        mixed = [self._mixing(cone, w) for cone, w in zip(box.cones, weights, strict=True)]
        most = [float(e.max()) for e in mixed]
        part = int(np.argmax(most))
        if max(error[worst], most[part]) <= ERRS:
            return None
        if error[worst] >= most[part]:
            return _cut_mass(box, worst, mass[worst])
        return _cut_cone(box, part, int(np.argmax(mixed[part])), weights[part])

    def _mixing(self, cone: Cone, weights: FloatArray) -> FloatArray:
        """By how much each entry of a mixture has more entropy than the rays that are mixed."""
        used = np.flatnonzero(weights)
        if not used.size:
            return np.zeros(cone.rays.shape[1])
        w, rays = weights[used], cone.rays[used]
        mass = w.sum()
        return np.asarray(mass * self.objective.terms(w @ rays / mass) - w @ self.objective.terms(rays))


def _queued(boxes: list[Box], bound: float) -> Boxes:
    """Boxes as they wait."""
    objects = np.empty(len(boxes), dtype=object)
    objects[:] = boxes
    return Boxes(np.full(len(boxes), bound), (objects,))


def _cut_mass(box: Box, part: int, at: float) -> list[Box]:
    """Both halves of the range of a mass, cut halfway between the solution and the middle."""
    middle = 0.5 * at + 0.25 * (box.low[part] + box.high[part])
    low, high = box.low.copy(), box.high.copy()
    low[part] = high[part] = np.clip(middle, box.low[part], box.high[part])
    halves = [replace(box, high=high), replace(box, low=low)]
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
        boxes.append(box.with_cone(part, half.cone, np.concatenate([kept[kept >= 0], born[: 2 * NEAR]])))
    return boxes
