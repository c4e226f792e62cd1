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
from privacyfunnel.engine.cones import Cone, RayProgramme, Rays, cheapest, cone_of
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
NEAR = 10  # columns per class that the halves of a box begin with, beyond those in use


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
class Piece:
    """The cone of a class, or what cuts have left of it, with what its rays cost at the prices of the proof."""

    cone: Cone
    costs: FloatArray  # (k,)
    sides: FloatArray  # (k, n), of the rows across classes


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Pieces of the classes, ranges of their masses, and columns to begin with among all rays."""

    pieces: tuple[Piece, ...]
    low: FloatArray
    high: FloatArray
    first: IntArray

    @property
    def rays(self) -> Rays:
        """Those of all pieces."""
        part = np.repeat(np.arange(len(self.pieces)), [piece.costs.size for piece in self.pieces])
        costs, sides = ([getattr(piece, name) for piece in self.pieces] for name in ("costs", "sides"))
        return Rays(np.concatenate(costs), np.concatenate(sides), part)

    def begin_of(self, part: int) -> int:
        """The number of the first ray of a piece."""
        return sum(piece.costs.size for piece in self.pieces[:part])

    def tightened(self) -> "Box | None":
        """The same box, shrunk by Σ m = 1; None if it is empty."""
        low, high = self.low, self.high
        for _ in range(2):
            high = np.minimum(high, 1.0 - (low.sum() - low) + SLOP)
            low = np.maximum(low, 1.0 - (high.sum() - high) - SLOP)
        if (low > high + EMPTY).any():
            return None
        return replace(self, low=np.clip(low, 0.0, 1.0), high=np.clip(np.maximum(low, high), 0.0, 1.0))

    def with_piece(self, part: int, piece: Piece, place: IntArray) -> "Box":
        """The box with another piece of a class; `place` is where in it the rays of the old one are, or -1."""
        begin, old = self.begin_of(part), self.pieces[part].costs.size
        kept = place[self.first[(self.first >= begin) & (self.first < begin + old)] - begin]
        born = np.arange(int((place >= 0).sum()), piece.costs.size)[: 2 * NEAR]
        after = self.first[self.first >= begin + old] + piece.costs.size - old
        first = [self.first[self.first < begin], begin + kept[kept >= 0], begin + born, after]
        pieces = (*self.pieces[:part], piece, *self.pieces[part + 1 :])
        return replace(self, pieces=pieces, first=np.concatenate(first))


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
        k = len(self.cones.classes)
        pieces = tuple(self._piece(cone, part, prices) for part, cone in enumerate(self.cones.cones))
        root = Box(pieces, np.zeros(k), np.ones(k), np.empty(0, dtype=np.int64))
        return _queued([replace(root, first=cheapest(root.rays.costs, NEAR * k))], -np.inf)

    def cut(self, boxes: Boxes, prices: FloatArray, goal: float, deadline: float) -> Cut:
        """Bound the box by the programme over its rays, and cut what errs most at its solution."""
        box: Box = boxes.parts[0][0]
        slope, intercept = chords(self.objective, box.low, box.high)
        rays, constant = box.rays, float(intercept.sum())
        rays = replace(rays, costs=rays.costs + slope[rays.part])
        solved = self._programme.solve(rays, (box.low, box.high), box.first, goal - constant)
        bound = max(solved.bound + constant, float(boxes.bound[0]))
        if bound >= goal:
            return Cut(_queued([], bound), goal, np.empty((0, prices.size)))
        if solved.weights is None:
            return Cut(_queued([], bound), bound, np.empty((0, prices.size)))
        used = np.flatnonzero(solved.weights)
        box = replace(box, first=np.union1d(used, cheapest(solved.reduced, NEAR * len(box.pieces))))
        mixtures = [_Mixture.of(box, part, used, solved.weights) for part in np.unique(rays.part[used])]
        atom = np.zeros((1, prices.size))
        for mixture in mixtures:
            atom[0, self.cones.classes[mixture.part]] = mixture.mass * mixture.point
        atom /= atom.sum()
        halves = self._halves(box, mixtures, prices, slope, intercept)
        return Cut(_queued(halves or [], bound), goal if halves is not None else bound, atom)

    def _halves(
        self, box: Box, mixtures: "list[_Mixture]", prices: FloatArray, slope: FloatArray, intercept: FloatArray
    ) -> list[Box] | None:
        """Two boxes that hold the box; None if it cannot be cut."""
        mass = np.zeros(len(box.pieces))
        for mixture in mixtures:
            mass[mixture.part] = mixture.mass
        error = self.objective.terms(mass) - slope * mass - intercept
        worst = int(np.argmax(error))
        mixed = [mixture.errors(self.objective) for mixture in mixtures]
        most = [float(e.max()) for e in mixed]
        mixing = int(np.argmax(most))
        if max(error[worst], most[mixing]) <= ERRS:
            return None
        if error[worst] >= most[mixing]:
            return _cut_mass(box, worst, mass[worst])
        return self._cut_cone(box, mixtures[mixing], int(np.argmax(mixed[mixing])), prices)

    def _cut_cone(self, box: Box, mixture: "_Mixture", z: int, prices: FloatArray) -> list[Box] | None:
        """Both halves of a cone, cut where entry z has the share that it has in the solution, or as near as is safe."""
        part = mixture.part
        entries = box.pieces[part].cone.rays[:, z]
        share = float(mixture.point[z]) + NUDGES
        distance = np.abs(entries - share[:, None]).min(axis=1)
        clear = np.flatnonzero(distance > CLEAR)
        if not clear.size:
            return None
        cut = box.pieces[part].cone.cut(entries - share[clear[np.argmin(np.abs(NUDGES[clear]))]])
        if cut is None:
            return None
        return [box.with_piece(part, self._piece(half.cone, part, prices), half.place) for half in cut]

    def _piece(self, cone: Cone, part: int, prices: FloatArray) -> Piece:
        z = self.cones.classes[part]
        return Piece(cone, cone.entropy - cone.rays @ prices[z], cone.rays @ self.cones.across[:, z].T)


@dataclass(frozen=True, slots=True, eq=False)
class _Mixture:
    """What a solution has of the rays of a class."""

    part: int
    mass: float
    shares: FloatArray  # of the rays in use, together 1
    rays: FloatArray

    @classmethod
    def of(cls, box: Box, part: int, used: IntArray, weights: FloatArray) -> "_Mixture":
        begin, rays = box.begin_of(part), box.pieces[part].cone.rays
        own = used[(used >= begin) & (used < begin + len(rays))]
        mass = float(weights[own].sum())
        return cls(int(part), mass, weights[own] / mass, rays[own - begin])

    @property
    def point(self) -> FloatArray:
        """The mixture, of mass 1."""
        return np.asarray(self.shares @ self.rays)

    def errors(self, objective: Objective) -> FloatArray:
        """By how much each entry has more entropy than the rays that are mixed."""
        if len(self.shares) == 1:
            return np.zeros(self.rays.shape[1])
        return np.asarray(self.mass * (objective.terms(self.point) - self.shares @ objective.terms(self.rays)))


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
