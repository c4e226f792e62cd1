r"""Boxes for promises that also compare within classes of inputs (SRLIP): masses of classes, and cones within them.

Some rows of such a promise look at few inputs only: those that share some attributes. Take disjoint classes l of
inputs, with masses :math:`m_l`, which together hold all inputs. Then

.. math:: H(v) = H(m) + \sum_l m_l H(v_l / m_l),

and the part of v in class l lies in the cone of the rows that look at l alone. Such a cone of few inputs has few
extreme rays r, so its part of the atom is a mixture :math:`v_l = \sum_r w_r r`, and

.. math:: m_l H(v_l / m_l) \ge \sum_r w_r H(r)

with equality on the rays. That leaves the entropy of a few masses; everything else is linear in w.

The relaxation errs in two ways: the chord of -t ln t lies below it at a mass, and a mixture of rays has more entropy
than its rays. Whichever errs most at the relaxation's solution is cut there: the range of a mass in two, or the cone of
a class by the hyperplane :math:`v_z = θ m_l` through the solution. On that hyperplane entry z errs no more, and each
half has rays, hence a relaxation, of its own.

Cones are kept by their extreme rays (double description). The halves of a cut cone have the rays on their side and, on
the hyperplane, a new one for every edge that it crosses. Two rays span an edge exactly when no third is tight in every
inequality in which both are. What is tight at a ray follows from how it came to be, and every sign that decides is far
from zero compared with rounding; where one is not, the cone is given up.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, entropy_terms
from privacyfunnel.engine.lp.highs import INF, Programme
from privacyfunnel.engine.objective import Objective, chords
from privacyfunnel.engine.oracles.polytope import Polytope
from privacyfunnel.engine.proofs.branch_and_bound import Boxes, Branching, pack_boxes, tighten_box
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.model.constraints import LinearConstraints

BitSets = NDArray[np.uint64]


class HalfCone(NamedTuple):
    """One side of a cut, and where in it the rays of the whole cone are (-1: on the other side)."""

    cone: "RayCone"
    place: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class RayCone:
    """Extreme rays of mass 1, and for each the inequalities in which it is tight."""

    rays: FloatArray  # (n, k)
    tight: BitSets  # (n,)
    entropy: FloatArray  # (n,), H of each ray

    def cut(self, values: FloatArray) -> "tuple[HalfCone, HalfCone] | None":
        """Both sides of the hyperplane on which a functional with these values at the rays vanishes.

        Rays of value 0 belong to both. None when no bit is left to mark the hyperplane.
        """
        free = ~int(np.bitwise_or.reduce(self.tight)) & (2**SETTINGS.proofs.most_tight - 1)
        if not free:
            return None
        mark = np.uint64(free & -free)
        above, below = np.flatnonzero(values > 0), np.flatnonzero(values < 0)
        one, other = self._edges(above, below)
        born = self.rays[one] * -values[other][:, None] + self.rays[other] * values[one][:, None]
        born /= born.sum(axis=1, keepdims=True)
        on = np.flatnonzero(values == 0)
        shared = RayCone(
            np.concatenate([self.rays[on], born]),
            np.concatenate([self.tight[on], self.tight[one] & self.tight[other]]) | mark,
            np.concatenate([self.entropy[on], entropy_terms(born).sum(axis=1)]),
        )
        return self._half(above, on, shared), self._half(below, on, shared)

    def _edges(self, above: IntArray, below: IntArray) -> tuple[IntArray, IntArray]:
        """The pairs of a ray above and a ray below that span an edge."""
        common = self.tight[above][:, None] & self.tight[below][None, :]
        row, column = np.nonzero(np.bitwise_count(common) >= self.rays.shape[1] - 2)
        both = common[row, column]
        edge = np.zeros(both.size, dtype=bool)
        for start in range(0, both.size, SETTINGS.proofs.edges_at_once):
            part = both[start : start + SETTINGS.proofs.edges_at_once, None]
            edge[start : start + SETTINGS.proofs.edges_at_once] = ((self.tight & part) == part).sum(axis=1) == 2
        return above[row[edge]], below[column[edge]]

    def _half(self, own: IntArray, on: IntArray, shared: "RayCone") -> "HalfCone":
        place = np.full(self.entropy.size, -1)
        place[own] = np.arange(own.size)
        place[on] = own.size + np.arange(on.size)
        cone = RayCone(
            np.concatenate([self.rays[own], shared.rays]),
            np.concatenate([self.tight[own], shared.tight]),
            np.concatenate([self.entropy[own], shared.entropy]),
        )
        return HalfCone(cone, place)


def build_ray_cone(constraints: FloatArray, most: int) -> RayCone | None:
    """The cone {v >= 0, rows v >= 0}; None if it takes more than `most` rays or a sign might be rounding."""
    k = constraints.shape[1]
    if k + constraints.shape[0] > SETTINGS.proofs.most_tight:
        return None
    room = SETTINGS.tolerance.wider * (1 + np.arange(constraints.shape[0]) / max(constraints.shape[0], 1))
    constraints = constraints + room[:, None] * np.abs(constraints)
    full = 2**k - 1
    cone = RayCone(np.eye(k), np.array([full ^ (1 << z) for z in range(k)], dtype=np.uint64), np.zeros(k))
    left = np.arange(constraints.shape[0])
    while left.size:
        values = cone.rays @ constraints[left].T
        size = cone.rays @ np.abs(constraints[left]).T
        if (np.abs(values) < SETTINGS.tolerance.rounding * size).any():
            return None
        # A row that does not touch the ray is tight there.
        values[size == 0] = 0.0
        crossings = (values > 0).sum(axis=0) * (values < 0).sum(axis=0)
        first = int(np.argmin(crossings))
        halves = cone.cut(values[:, first])
        if halves is None:
            return None
        cone = halves[0].cone
        if not 0 < cone.entropy.size <= most:
            return None
        left = np.delete(left, first)
    return cone


@dataclass(frozen=True, slots=True, eq=False)
class RayColumns:
    """Columns of the programme: the rays of all classes, one class after the other."""

    costs: FloatArray  # (r,)
    sides: FloatArray  # (r, n), what each row says of each ray
    part: IntArray  # (r,), its class


@dataclass(frozen=True, slots=True, eq=False)
class RayBound:
    """A bound that holds, and where the relaxation has its minimum, unless the bound reached the cutoff before."""

    bound: float
    weights: FloatArray | None  # w of every ray
    reduced: FloatArray  # reduced costs of the rays


class RayProgramme:
    r"""The relaxed pricing problem over the rays of some cones, one per class, by column generation.

    .. math:: \min_{w \ge 0} \sum_r c_r w_r \quad\text{s.t.}\quad \sum_r w_r = 1,\quad
       \sum_r w_r\, a_i\cdot r \ge 0\ \forall i,\quad l \le m(w) \le u,

    with one column per ray, of which few are ever needed. For any multipliers y >= 0 of the rows and s of the masses,

    .. math:: \min_r\,(c_r - y\cdot a(r) - s_{l(r)}) + \sum_l \min(s_l l_l,\ s_l u_l)

    bounds it from below. It is evaluated from that formula over all rays, whatever the solver says of its own result.
    """

    def __init__(self, rows: int, classes: int) -> None:
        self.rows, self.classes = rows, classes
        self._programme = Programme()

    def solve(
        self, rays: RayColumns, masses: tuple[FloatArray, FloatArray], first: IntArray, cutoff: float
    ) -> RayBound:
        """Bound the programme over these rays with masses between. `first` are the columns to begin with.

        Stops once the bound reaches the cutoff.
        """
        n = self.rows
        low, high = masses
        self._begin(low, high)
        columns, new = np.empty(0, dtype=np.int64), first
        bound, reduced = -np.inf, rays.costs
        for _ in range(SETTINGS.proofs.ray_rounds):
            self._add(rays, new)
            columns = np.concatenate([columns, new])
            if not self._programme.run_afresh():  # no error: a box without a solution keeps the bound it has
                return RayBound(bound, None, reduced)
            x, duals = self._programme.solution, self._programme.multipliers
            y, s = np.maximum(duals[:n], 0.0), duals[n : n + self.classes]
            reduced = rays.costs - rays.sides @ y - s[rays.part]
            rounding = SETTINGS.tolerance.rounding * (1.0 + float(y.sum() + np.abs(s).sum()))
            bound = max(bound, float(reduced.min() + np.minimum(s * low, s * high).sum()) - rounding)
            if bound >= cutoff:
                return RayBound(bound, None, reduced)
            new = cheapest_columns(reduced, SETTINGS.proofs.rays_per_round)
            new = new[reduced[new] < duals[-1] - SETTINGS.tolerance.new_ray]
            if not new.size:
                break
        weights = np.zeros(rays.costs.size)
        np.add.at(weights, columns, np.maximum(x[2 * (n + self.classes + 1) :], 0.0))
        return RayBound(bound, weights, reduced)

    def _begin(self, low: FloatArray, high: FloatArray) -> None:
        """An empty programme: every row can be broken, up or down, at the penalty."""
        m = self.rows + self.classes + 1
        self._programme.clear()
        self._programme.add_rows(
            np.concatenate([np.zeros(self.rows), low, [1.0]]), np.concatenate([np.full(self.rows, INF), high, [1.0]])
        )
        rows, either = np.tile(np.arange(m), 2), np.repeat([1.0, -1.0], m)
        self._programme.add_columns(np.full(2 * m, SETTINGS.proofs.ray_penalty), np.arange(2 * m), rows, either)

    def _add(self, rays: RayColumns, which: IntArray) -> None:
        k, n = which.size, self.rows
        entries, index = np.ones((k, n + 2)), np.empty((k, n + 2), dtype=np.int32)
        entries[:, :n], index[:, :n] = rays.sides[which], np.arange(n)
        index[:, n], index[:, n + 1] = n + rays.part[which], n + self.classes
        self._programme.add_columns(rays.costs[which], np.arange(k) * (n + 2), index.ravel(), entries.ravel())


def cheapest_columns(costs: FloatArray, most: int) -> IntArray:
    """Which cost least, in no order."""
    return np.argpartition(costs, most - 1)[:most] if costs.size > most else np.arange(costs.size)


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
        mass[[mixture.part for mixture in mixtures]] = [mixture.mass for mixture in mixtures]
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
