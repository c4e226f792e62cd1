r"""The average-leakage master (the classical Privacy Funnel): one more constraint, about an average.

.. math:: \min \sum_y q_y H(v_y) \quad\text{s.t.}\quad \sum_y q_y v_y = p,\quad \sum_y q_y H(A v_y) \ge r,\quad q \ge 0,

where A = P(S | X), so that :math:`r = H(S) - M` says :math:`I(S;Y) \le M`. Atoms may have to keep a promise besides.
For any prices λ and μ ≥ 0, every such split costs at least

.. math:: \lambda\cdot p + \mu r + \min_v \bigl(H(v) - \mu H(A v) - \lambda\cdot v\bigr).

Prices are (λ, μ) together. Atoms are found by descent (`AverageDescent`); the minimum is proved by boxes
(docs/theory.md, Theorem 43).

Walks to atoms of small cost H(v) − μ H(A v) − λ·v, for the classical funnel.

By the log-sum inequality :math:`-H(A v) \le \sum_x v_x \ln v_x + \sum_x v_x \bigl(A^T \ln A w - \ln w\bigr)_x` with
equality at v = w. For μ > 1 the cost lies below a convex function that it meets at w, whose least is at

.. math:: v \propto \bigl(w^{\mu} e^{\lambda - \mu A^{T} \ln A w}\bigr)^{1/(\mu - 1)},

so this step never goes up. Where a promise asks that g·v ≥ 0 for some rows g, the least under these has
:math:`e^{y \cdot g}` more, with multipliers y ≥ 0 that are found row by row (Newton). For μ ≤ 1 the cost is concave,
and a walk goes from vertex to vertex by tangents.

What an atom costs where an average about the secret is priced too, and how boxes of atoms are bounded.

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
from privacyfunnel.engine.clock import WORK, Clock
from privacyfunnel.engine.driver import Master
from privacyfunnel.engine.lp.highs import INF, Programme
from privacyfunnel.engine.objective import Objective, chords, reduced_costs
from privacyfunnel.engine.oracles.oracle import BoxCosts, cheapest_in_box
from privacyfunnel.engine.oracles.polytope import Polytope, build_polytope
from privacyfunnel.engine.problem import EntropyFloor, Problem, Proof
from privacyfunnel.engine.proofs.branch_and_bound import Boxes, BranchAndBound, Branching
from privacyfunnel.engine.proofs.chords import halve_boxes, largest_entry_boxes, tighten_boxes
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.errors import SolverError

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


class AverageMaster(Master):
    """A linear programme over known atoms, with a constraint on the average; search and proof at its prices."""

    def __init__(self, problem: Problem, average: EntropyFloor) -> None:
        self.problem, self.average, self.size = problem, average, problem.size + 1
        self.value = np.inf
        self.is_unconstrained = not len(problem.constraints)
        self._descent = AverageDescent(problem, average.secrets)
        self._worth, self._random = SETTINGS.tolerance.feasible, np.random.default_rng(0)
        self._minimise: Minimiser = minimise_greedily
        self._reach = np.ones(problem.size)
        self._support = min(len(average.secrets), problem.size)
        if not self.is_unconstrained:
            polytope = build_polytope(problem)
            self._minimise = polytope_minimiser(polytope)
            self._reach = polytope.reach(np.inf)
            about_all = len(problem.constraints.even) == 1 and bool(problem.constraints.full_classes[0])
            self._support = self._support if about_all else problem.size
        self._programme = Programme()
        ones = np.ones(problem.size)
        self._programme.add_rows(np.append(ones, average.least), np.append(ones, INF))
        self._atoms, self._weights = np.empty((0, problem.size)), np.empty(0)

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> None:
        """The prior, the prior moved towards every input, and atoms that are known already."""
        self._worth = max(SETTINGS.tolerance.feasible, SETTINGS.averages.worth * gap)
        first = [self.problem.prior[None], self.problem.first_atoms()]
        self._add(np.concatenate(first if start is None else [*first, start]))

    def _add(self, atoms: FloatArray) -> None:
        """Columns of the master: an atom's part of each input, and the entropy of the secret that it leaves."""
        left = entropy_terms(atoms @ self.average.secrets.T).sum(axis=1)
        entries = np.concatenate([atoms / self.problem.prior, left[:, None]], axis=1)
        self._programme.add_dense_columns(entropy_terms(atoms).sum(axis=1), entries)
        self._atoms = np.concatenate([self._atoms, atoms])

    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        if not self._programme.run_afresh():
            raise SolverError(
                f"The master of an average must be solved; HiGHS returned {self._programme.status}. Report this."
            )
        self._weights = np.maximum(self._programme.solution, 0.0)
        dual = self._programme.multipliers
        self.value = float(self._weights @ entropy_terms(self._atoms).sum(axis=1))
        return np.append(dual[:-1] / self.problem.prior, max(float(dual[-1]), 0.0)), 0.0

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        """Descents from mixtures of known atoms and from random ones; longer ones from what is worth having."""
        averages = SETTINGS.averages
        half = averages.starts // 2
        starts = np.concatenate(
            [self._mix_atom_pairs(half), self._random.dirichlet(np.full(self.problem.size, averages.spread), half)]
        )
        good = self._select(self._descent.descend(starts, prices[:-1], float(prices[-1]), averages.steps), prices)
        if not len(good):
            return good
        further = self._descent.descend(good, prices[:-1], float(prices[-1]), averages.late_steps)
        return np.concatenate([good, further])

    def _mix_atom_pairs(self, count: int) -> FloatArray:
        first, second = self._random.integers(0, len(self._atoms), (2, count))
        share = self._random.random((count, 1))
        return np.asarray(share * self._atoms[first] + (1 - share) * self._atoms[second])

    def _select(self, atoms: FloatArray, prices: FloatArray) -> FloatArray:
        """Feasible atoms of negative reduced cost, the cheapest first, each once."""
        atoms = self._make_feasible(atoms)
        reduced = reduced_costs(self._objective(prices), atoms, prices[:-1])
        order = np.argsort(reduced)
        order = order[reduced[order] < -self._worth]
        _, first = np.unique(np.round(atoms[order], SETTINGS.averages.atom_digits), axis=0, return_index=True)
        return np.asarray(atoms[order[np.sort(first)[: SETTINGS.averages.added]]])

    def _make_feasible(self, atoms: FloatArray) -> FloatArray:
        """The atoms, moved towards the prior as far as the promise requires."""
        if self.is_unconstrained or not len(atoms):
            return atoms
        atoms = self.problem.mix_with_prior(atoms)
        return np.asarray(atoms[self.problem.is_feasible(atoms)])

    def _objective(self, prices: FloatArray) -> AverageObjective:
        return AverageObjective.from_secrets(self.average.secrets, float(prices[-1]))

    def learn(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Add those of negative reduced cost; the least of these."""
        new = self._select(atoms, prices)
        self._add(new)
        return float(reduced_costs(self._objective(prices), new, prices[:-1]).min(initial=0.0))

    def proof_target(self, gap: float, least: float, late: bool) -> float:
        return SETTINGS.averages.proved_to * max(gap, 0.0)

    def best(self, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
        used = self._weights > 0
        atoms = self._atoms[: len(used)]  # without those that were added since the last solve
        return self._weights[used] / self._weights.sum(), atoms[used], self.value

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Proof:
        """A lower bound on the reduced cost of every atom, and atoms met on the way."""
        cost, mu = self._objective(prices), float(prices[-1])
        if self.is_unconstrained and mu <= 1.0:
            units = np.eye(self.problem.size)
            return Proof(float(reduced_costs(cost, units, prices[:-1]).min()), units)
        boxes = GibbsBoxes(cost, self._minimise, self._support, self._reach)

        def polish(atoms: FloatArray, at: FloatArray) -> FloatArray:
            return self._make_feasible(self._descent.descend(atoms, at, mu, SETTINGS.averages.steps))

        return BranchAndBound(boxes, cost, polish).prove(prices[:-1], target, deadline)


class AverageDescent:
    """Walks over the atoms of one problem."""

    def __init__(self, problem: Problem, secrets: FloatArray) -> None:
        self._size, self._secrets = problem.size, secrets
        self._polytope = build_polytope(problem) if len(problem.constraints) else None
        self._rows = problem.inequalities if len(problem.constraints) else np.empty((0, problem.size))

    def descend(self, v: FloatArray, prices: FloatArray, mu: float, steps: int) -> FloatArray:
        """Where walks from these atoms lead; with a promise, near atoms that keep it."""
        if not len(v):
            return v
        if mu > 1.0:
            return self._descend_convex(v, prices, mu, steps)
        return np.eye(self._size) if self._polytope is None else self._descend_by_tangents(v, prices, mu)

    def _descend_convex(self, v: FloatArray, prices: FloatArray, mu: float, steps: int) -> FloatArray:
        A, G = self._secrets, self._rows
        log_v = np.log(np.maximum(v, SETTINGS.tolerance.tiny))
        y = np.zeros((len(v), len(G)))
        WORK.entries += steps * (SETTINGS.work.descent + v.size * (len(A) + len(G)))
        for _ in range(steps):
            ahead = np.log(np.maximum(np.exp(log_v) @ A.T, SETTINGS.tolerance.tiny)) @ A
            free = (mu * log_v + prices - mu * ahead) / (mu - 1)
            log_v = _normalise(free + y @ G / (mu - 1))
            for _ in range(SETTINGS.averages.multiplier_steps if len(G) else 0):
                self._update_multiplier(y, np.exp(log_v), mu)
                log_v = _normalise(free + y @ G / (mu - 1))
        found = np.exp(log_v)
        found = np.where(found > SETTINGS.tolerance.near, found, 0.0)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def _update_multiplier(self, y: FloatArray, v: FloatArray, mu: float) -> None:
        """Newton's step for the multiplier of the row that gains most by it, for every walk."""
        at = v @ self._rows.T
        spread = v @ np.square(self._rows).T - np.square(at)
        step = np.maximum(-at * (mu - 1) / np.maximum(spread, SETTINGS.tolerance.flat_constraint), -y)
        walk = np.arange(len(v))
        row = np.argmax(np.abs(step * at), axis=1)
        y[walk, row] += step[walk, row]

    def _descend_by_tangents(self, v: FloatArray, prices: FloatArray, mu: float) -> FloatArray:
        A = self._secrets
        assert self._polytope is not None
        for _ in range(SETTINGS.averages.tangent_steps):
            slopes = (
                mu * (np.log(np.maximum(v @ A.T, SETTINGS.tolerance.near)) @ A)
                - np.log(np.maximum(v, SETTINGS.tolerance.near))
                - prices
            )
            v = self._polytope.minimise(slopes).atoms
        return v


def _normalise(log_v: FloatArray) -> FloatArray:
    log_v = log_v - log_v.max(axis=1, keepdims=True)
    return np.asarray(np.maximum(log_v - np.log(np.exp(log_v).sum(axis=1, keepdims=True)), SETTINGS.tolerance.log_tiny))
