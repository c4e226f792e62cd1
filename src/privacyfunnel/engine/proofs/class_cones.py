r"""Boxes for promises that also compare within classes of inputs (SRLIP): masses of classes, and cones within them.

Some rows of such a promise look at few inputs only: those that share some attributes. Take disjoint classes l of
inputs, with masses :math:`m_l`, which together hold all inputs. Then

.. math:: H(v) = H(m) + \sum_l m_l H(v_l / m_l),

and the part of v in class l lies in the cone of the rows that look at l alone. Such a cone of few inputs has few
extreme rays r, so its part of the atom is a mixture :math:`v_l = \sum_r w_r r`, and

.. math:: m_l H(v_l / m_l) \ge \sum_r w_r H(r)

with equality on the rays. That leaves the entropy of a few masses; everything else is linear in w (extreme_rays.py).

The relaxation errs in two ways: the chord of -t ln t lies below it at a mass, and a mixture of rays has more entropy
than its rays. Whichever errs most at the relaxation's solution is cut there: the range of a mass in two, or the cone of
a class by the hyperplane :math:`v_z = θ m_l` through the solution. On that hyperplane entry z errs no more, and each
half has rays, hence a relaxation, of its own.
"""

from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray
from privacyfunnel.engine.objective import Objective, chords
from privacyfunnel.engine.oracles.polytope import Polytope
from privacyfunnel.engine.proofs.branch_and_bound import Boxes, Branching, pack_boxes, tighten_box
from privacyfunnel.engine.proofs.extreme_rays import RayColumns, RayCone, RayProgramme, build_ray_cone, cheapest_columns
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.constraints import LinearConstraints

NUDGES = SETTINGS.tolerance.nudge * np.arange(-SETTINGS.proofs.nudges, SETTINGS.proofs.nudges + 1)


@dataclass(frozen=True, slots=True, eq=False)
class ClassCones:
    """Disjoint classes of inputs that hold all of them, their cones, and the rows that look at more than one class."""

    classes: tuple[IntArray, ...]
    cones: tuple[RayCone, ...]
    cross_class: FloatArray  # (n, d), across·v >= 0

    @property
    def rays(self) -> int:
        """How many rays all cones have together."""
        return sum(cone.entropy.size for cone in self.cones)


def class_cones(constraints: LinearConstraints, polytope: Polytope) -> ClassCones | None:
    """Few classes whose cones have few rays; None when no row looks at some inputs only, or rays are too many."""
    if constraints.compares_with_everybody or constraints.mutual_functionals is not None or not constraints.is_local:
        return None
    best: ClassCones | None = None
    most: float = SETTINGS.proofs.most_classes if _has_nested_classes(constraints) else 1
    for classes in _partitions(constraints):
        if len(classes) > most:
            break
        found = _build_cones(polytope.matrix[1:, : polytope.inputs], classes)
        if found is not None and (best is None or found.rays < best.rays):
            most = min(most, len(classes) if len(classes) == 1 else SETTINGS.proofs.worth_classes * len(classes))
            best = found
    return best


def _has_nested_classes(constraints: LinearConstraints) -> bool:
    """Whether some rows look at a part of what other local rows look at, as with three attributes or more.

    With two attributes chords on the entries were measured to be two to four times faster.
    """
    seen: BoolArray = constraints.members[constraints.compared_classes]
    local = seen[~seen.all(axis=1)].astype(np.float64)
    common, size = local @ local.T, local.sum(axis=1)
    return bool(((common == size[:, None]) & (size[:, None] < size)).any())


def _partitions(constraints: LinearConstraints) -> list[tuple[IntArray, ...]]:
    """Ways to cover all inputs with disjoint classes, those with the fewest first. Inputs that remain are alone."""
    found = {}
    size = constraints.members.sum(axis=1)
    for chosen in constraints.disjoint_classes(
        constraints.compared_classes[np.argsort(-size[constraints.compared_classes], kind="stable")]
    ):
        alone = np.flatnonzero(~constraints.members[list(chosen)].any(axis=0))
        sets = [np.flatnonzero(constraints.members[number]) for number in chosen] + [np.array([z]) for z in alone]
        sets.sort(key=lambda one: int(one[0]))
        found[tuple(map(bytes, sets))] = tuple(sets)
    return sorted(found.values(), key=len)


def _build_cones(constraints: FloatArray, classes: tuple[IntArray, ...]) -> ClassCones | None:
    cones, across, rays = [], np.ones(constraints.shape[0], dtype=bool), 0
    for inputs in classes:
        within = np.count_nonzero(constraints, axis=1) == np.count_nonzero(constraints[:, inputs], axis=1)
        across &= ~within
        cone = build_ray_cone(constraints[within][:, inputs], SETTINGS.proofs.most_rays - rays)
        if cone is None:
            return None
        cones.append(cone)
        rays += cone.entropy.size
    return ClassCones(classes, tuple(cones), constraints[across])


@dataclass(frozen=True, slots=True, eq=False)
class ConePiece:
    """The cone of a class, or what cuts have left of it, with what its rays cost at the prices of the proof."""

    cone: RayCone
    costs: FloatArray  # (k,)
    sides: FloatArray  # (k, n), of the rows across classes


@dataclass(frozen=True, slots=True, eq=False)
class ClassBox:
    """Pieces of the classes, ranges of their masses, and columns to begin with among all rays."""

    pieces: tuple[ConePiece, ...]
    low: FloatArray
    high: FloatArray
    first: IntArray

    @property
    def rays(self) -> RayColumns:
        part = np.repeat(np.arange(len(self.pieces)), [piece.costs.size for piece in self.pieces])
        costs, sides = ([getattr(piece, name) for piece in self.pieces] for name in ("costs", "sides"))
        return RayColumns(np.concatenate(costs), np.concatenate(sides), part)

    def first_ray(self, part: int) -> int:
        return sum(piece.costs.size for piece in self.pieces[:part])

    def tighten(self) -> "ClassBox | None":
        """The same box, shrunk by Σ m = 1; None if it is empty."""
        ends = tighten_box(self.low, self.high)
        return None if ends is None else replace(self, low=ends[0], high=ends[1])

    def replace_piece(self, part: int, piece: ConePiece, place: IntArray) -> "ClassBox":
        """The box with another piece of a class; `place` is where in it the rays of the old one are, or -1."""
        begin, old = self.first_ray(part), self.pieces[part].costs.size
        kept = place[self.first[(self.first >= begin) & (self.first < begin + old)] - begin]
        born = np.arange(int((place >= 0).sum()), piece.costs.size)[: 2 * SETTINGS.proofs.near_rays]
        after = self.first[self.first >= begin + old] + piece.costs.size - old
        first = [self.first[self.first < begin], begin + kept[kept >= 0], begin + born, after]
        pieces = (*self.pieces[:part], piece, *self.pieces[part + 1 :])
        return replace(self, pieces=pieces, first=np.concatenate(first))


class ClassRelaxation:
    """Boxes of masses and cones, one at a time."""

    batch = chunk = 1
    polish_every = SETTINGS.proofs.class_polish
    finds_vertices = False
    gather_factor = SETTINGS.proofs.class_gather

    def __init__(self, cones: ClassCones, objective: Objective) -> None:
        self.cones, self.objective = cones, objective
        self._programme = RayProgramme(cones.cross_class.shape[0], len(cones.classes))

    def roots(self, prices: FloatArray, deadline: float) -> Boxes:
        """All there is."""
        k = len(self.cones.classes)
        pieces = tuple(self._build_piece(cone, part, prices) for part, cone in enumerate(self.cones.cones))
        root = ClassBox(pieces, np.zeros(k), np.ones(k), np.empty(0, dtype=np.int64))
        return pack_boxes(
            [replace(root, first=cheapest_columns(root.rays.costs, SETTINGS.proofs.near_rays * k))], -np.inf
        )

    def cut(self, boxes: Boxes, prices: FloatArray, goal: float, deadline: float) -> Branching:
        """Bound the box by the programme over its rays, and cut what errs most at its solution."""
        box: ClassBox = boxes.parts[0][0]
        slope, intercept = chords(self.objective, box.low, box.high)
        rays, constant = box.rays, float(intercept.sum())
        rays = replace(rays, costs=rays.costs + slope[rays.part])
        solved = self._programme.solve(rays, (box.low, box.high), box.first, goal - constant)
        bound = max(solved.bound + constant, float(boxes.bound[0]))
        if bound >= goal:
            return Branching(pack_boxes([], bound), goal, np.empty((0, prices.size)))
        if solved.weights is None:
            return Branching(pack_boxes([], bound), bound, np.empty((0, prices.size)))
        used = np.flatnonzero(solved.weights)
        box = replace(
            box, first=np.union1d(used, cheapest_columns(solved.reduced, SETTINGS.proofs.near_rays * len(box.pieces)))
        )
        mixtures = [_RayMixture.from_solution(box, part, used, solved.weights) for part in np.unique(rays.part[used])]
        atom = np.zeros((1, prices.size))
        for mixture in mixtures:
            atom[0, self.cones.classes[mixture.part]] = mixture.mass * mixture.point
        atom /= atom.sum()
        halves = self._halves(box, mixtures, prices, slope, intercept)
        return Branching(pack_boxes(halves or [], bound), goal if halves is not None else bound, atom)

    def _halves(
        self, box: ClassBox, mixtures: "list[_RayMixture]", prices: FloatArray, slope: FloatArray, intercept: FloatArray
    ) -> list[ClassBox] | None:
        """Two boxes that hold the box; None if it cannot be cut."""
        mass = np.zeros(len(box.pieces))
        for mixture in mixtures:
            mass[mixture.part] = mixture.mass
        error = self.objective.terms(mass) - slope * mass - intercept
        worst = int(np.argmax(error))
        mixed = [mixture.errors(self.objective) for mixture in mixtures]
        most = [float(e.max()) for e in mixed]
        mixing = int(np.argmax(most))
        if max(error[worst], most[mixing]) <= SETTINGS.tolerance.near:
            return None
        if error[worst] >= most[mixing]:
            return _cut_mass(box, worst, mass[worst])
        return self._cut_cone(box, mixtures[mixing], int(np.argmax(mixed[mixing])), prices)

    def _cut_cone(self, box: ClassBox, mixture: "_RayMixture", z: int, prices: FloatArray) -> list[ClassBox] | None:
        """Both halves of a cone, cut where entry z has the share that it has in the solution, or as near as is safe."""
        part = mixture.part
        entries = box.pieces[part].cone.rays[:, z]
        share = float(mixture.point[z]) + NUDGES
        distance = np.abs(entries - share[:, None]).min(axis=1)
        clear = np.flatnonzero(distance > SETTINGS.tolerance.feasible)
        if not clear.size:
            return None
        cut = box.pieces[part].cone.cut(entries - share[clear[np.argmin(np.abs(NUDGES[clear]))]])
        if cut is None:
            return None
        return [box.replace_piece(part, self._build_piece(half.cone, part, prices), half.place) for half in cut]

    def _build_piece(self, cone: RayCone, part: int, prices: FloatArray) -> ConePiece:
        z = self.cones.classes[part]
        return ConePiece(cone, cone.entropy - cone.rays @ prices[z], cone.rays @ self.cones.cross_class[:, z].T)


@dataclass(frozen=True, slots=True, eq=False)
class _RayMixture:
    """What a solution has of the rays of a class."""

    part: int
    mass: float
    shares: FloatArray  # of the rays in use, together 1
    rays: FloatArray

    @classmethod
    def from_solution(cls, box: ClassBox, part: int, used: IntArray, weights: FloatArray) -> "_RayMixture":
        begin, rays = box.first_ray(part), box.pieces[part].cone.rays
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


def _cut_mass(box: ClassBox, part: int, at: float) -> list[ClassBox]:
    """Both halves of the range of a mass, cut halfway between the solution and the middle."""
    middle = 0.5 * at + 0.25 * (box.low[part] + box.high[part])
    low, high = box.low.copy(), box.high.copy()
    low[part] = high[part] = np.clip(middle, box.low[part], box.high[part])
    halves = [replace(box, high=high), replace(box, low=low)]
    return [half for half in (one.tighten() for one in halves) if half is not None]
