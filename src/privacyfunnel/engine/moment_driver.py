r"""The split whose second moment is best: master, search and proof in turn, with a bound by the equivalence theorem.

The master (moments.py) mixes known atoms best and says at which concave cost (curved.py) an atom would improve on it.
Of all splits the one is sought that improves on the mixture most, to first order (steepest.py): the mixture moves
towards it, and its atoms are mixed anew with those that were known. Once such a split improves little, a proof shows
that at its prices λ no atom costs less than −e, and then

.. math:: \operatorname{tr}(F F^\top M^{-1}) \ge (\operatorname{tr} F^\top B)^2 / (βh - λ\cdot p + e)

for every allowed split. All costs are in units of the master's value, so that e is relative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.bounds.dual_bounds import Prover
from privacyfunnel.engine.clock import FOREVER, Clock, TimeUpError
from privacyfunnel.engine.lp.highs import Programme
from privacyfunnel.engine.masters.direction import SteepestDirection, SteepestSplit
from privacyfunnel.engine.masters.moment import Mixture, Moment, solve_mixture
from privacyfunnel.engine.masters.moment_objective import MomentObjective
from privacyfunnel.engine.masters.restricted_master import refit_weights
from privacyfunnel.engine.objective import reduced_costs
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.search.base import ObjectiveSearch
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.errors import SolverError

Progress = Callable[[float, float], None]


@dataclass(frozen=True, slots=True)
class MomentTools:
    """How atoms are sought, and what proves that there are no more; and, where that takes too long, what else bounds
    every split from below (called with seconds)."""

    search: ObjectiveSearch
    prover: Callable[[MomentObjective], Prover] | None
    relaxation_bound: Callable[[float], float] = lambda seconds: 0.0
    share: float = SETTINGS.moments.search_share  # of a time limit, for searches alone, where there is a prover


class MomentGeneration:
    """The state of a run: atoms with their mixture, and the best bound."""

    def __init__(self, problem: Problem, moment: Moment, tools: MomentTools, strategy: str = "") -> None:
        self.problem, self.moment, self.tools, self.strategy = problem, moment, tools, strategy
        self.bound = 0.0
        self._steepest = SteepestDirection(problem, tools.search)
        self._atoms = np.empty((0, problem.size))
        self._mixture: Mixture
        self._seen: dict[bytes, int] = {}  # where each atom stands
        self._weights = np.empty(0)

    def run(
        self,
        gap: float,
        time_limit: float | None,
        progress: Progress | None = None,
        start: FloatArray | None = None,
        *,
        absolute: float = 0.0,
    ) -> None:
        """Until value and bound differ by less than `gap` times the value less what nobody can avoid, or by less than
        `absolute`, or time is up."""
        clock = Clock.from_limit(time_limit)
        early = clock.part(SETTINGS.moments.early)
        proving = clock.part(self.tools.share if self.tools.prover is not None else SETTINGS.moments.unproved_share)
        self._begin(start, proving, clock)
        tolerance, fruitless, stalled, before = SETTINGS.moments.rough, 0, 0, np.inf
        while True:
            near = max(gap * (self.value - self.moment.constant), absolute, SETTINGS.tolerance.gap * self.value)
            allowed = near / self._mixture.regularised_value
            if progress is not None:
                progress(self.value, self.bound)
            rest = self.value - self.bound
            stalled = stalled + 1 if rest > before - SETTINGS.moments.stalled_gain * near else 0
            before = min(before, rest)
            if (
                rest <= near
                or clock.late
                or fruitless >= SETTINGS.moments.fruitless
                or stalled >= SETTINGS.moments.stalled_rounds
            ):
                return
            objective, prices = self._mixture.costs(self.problem)
            already = 1.0 - self._mixture.entropy_term(self.problem, self.moment)
            towards = self._steepest.find(
                objective,
                prices,
                self._kept[0],
                already,
                SETTINGS.moments.searched_to * allowed,
                clock.part(SETTINGS.moments.searching_share),
            )
            ahead = max(towards.most - already, 0.0)
            learned, exact = self._move_towards(towards, ahead), tolerance <= 2 * SETTINGS.moments.fine * allowed
            if len(towards.atoms):
                tolerance = max(
                    min(tolerance, SETTINGS.moments.closer * ahead if learned else 0.0), SETTINGS.moments.fine * allowed
                )
            first = self.bound == 0.0 and early.late and self.tools.prover is not None
            if ahead <= SETTINGS.moments.ahead_to * allowed or proving.late or first or (exact and not learned):
                self._check_entropy_limit()
                if self.tools.prover is None:
                    self.bound = max(
                        self.bound,
                        self.tools.relaxation_bound(min(clock.seconds_left, SETTINGS.moments.relaxing_seconds)),
                    )
                    return
                until = (
                    clock
                    if proving.late or ahead <= SETTINGS.moments.ahead_to * allowed
                    else clock.part(SETTINGS.moments.early_share)
                )
                if self.bound == 0.0 and clock.time_limit is not None:  # it may say more than a proof that is cut short
                    self.bound = self.tools.relaxation_bound(SETTINGS.moments.relaxing_share * until.seconds_left)
                # Atoms that are known to be cheaper must not end a proof before it has said something.
                met = 2 * towards.excess if np.isfinite(towards.excess) else SETTINGS.moments.loosest
                target = max(SETTINGS.moments.proved_to * allowed - ahead, SETTINGS.moments.late * ahead, met)
                learned += self._prove(objective, towards.prices, target, until)
                fruitless = 0 if learned else fruitless + 1
            if self.value - self.bound > near and len(towards.atoms) and not clock.late:
                self._mix(tolerance, max(min(SETTINGS.moments.remaining, ahead), tolerance), clock)

    def _begin(self, start: FloatArray | None, searching: Clock, clock: Clock) -> None:
        """From the forced response on, and with atoms that are known already."""
        forced = split_by_forced_response(self.problem)
        first = self.problem.first_atoms()
        self._add(first if start is None else np.concatenate([first, self.problem.clean(start)]))
        self._weights[self._add(forced.atoms)] = forced.weights
        self._steepest.remember(self.problem.clean(self.tools.search.start(searching)))
        try:
            self._take(
                solve_mixture(
                    self.problem, self.moment, self._atoms, self._weights, SETTINGS.moments.rough, clock.deadline
                )
            )
        except TimeUpError:  # the first one that averages to the prior
            self._take(solve_mixture(self.problem, self.moment, self._atoms, self._weights, np.inf))

    def _prove(self, objective: MomentObjective, prices: FloatArray, target: float, clock: Clock) -> int:
        """Raise the bound by a proof at these prices; how many atoms it met that show that it cannot say more."""
        assert self.tools.prover is not None
        proof = self.tools.prover(objective).prove(prices, target, clock.deadline)
        self.bound = max(self.bound, self._mixture.bound(self.problem, self.moment, prices, max(-proof.bound, 0.0)))
        atoms = self.problem.clean(proof.atoms) if len(proof.atoms) else proof.atoms
        self._steepest.remember(atoms)
        return int((reduced_costs(objective, atoms, prices) < -SETTINGS.tolerance.new_atom).sum())

    def _check_entropy_limit(self) -> None:
        """What may be left open on average must be attainable: else β grows without end, and a proof says nothing."""
        most = self.moment.most_entropy
        if most is None:
            return
        atoms, weights = self._kept
        left = float(weights @ self.problem.costs(atoms))
        if left > most + SETTINGS.tolerance.entropy_limit * (1 + abs(most)):
            raise SolverError(
                f"A split may leave open {most:.6g} nats on average; the best that was found leaves open {left:.6g}. "
                "Ask for less information, or allow more time."
            )

    def _move_towards(self, towards: SteepestSplit, ahead: float) -> int:
        """Give the master the atoms of this split, and a share of their weight; how many were new."""
        share = (
            min(SETTINGS.moments.farthest, SETTINGS.moments.moved * ahead) if self.moment.most_entropy is None else 0.0
        )
        known = len(self._atoms)
        places = self._add(towards.atoms)
        if len(places):
            self._weights *= 1 - share
            np.add.at(self._weights, places, share * towards.weights)
        return len(self._atoms) - known

    def _add(self, atoms: FloatArray) -> IntArray:
        """Add the atoms that are new; where each stands."""
        places, fresh = [], []
        for i, key in enumerate(_keys(atoms)):
            if key not in self._seen:
                self._seen[key] = len(self._seen)
                fresh.append(i)
            places.append(self._seen[key])
        self._atoms = np.concatenate([self._atoms, atoms[fresh]])
        self._weights = np.concatenate([self._weights, np.zeros(len(fresh))])
        return np.array(places, dtype=np.int64)

    def _mix(self, tolerance: float, left: float, clock: Clock) -> None:
        """Mix again; where time is up before that is done, the last mixture may be better."""
        with suppress(TimeUpError):
            mixed = solve_mixture(
                self.problem, self.moment, self._atoms, self._weights, tolerance, clock.deadline, left
            )
            if mixed.value <= self.value or not clock.late:
                self._take(mixed)

    def _take(self, mixed: Mixture) -> None:
        """Have another mixture, and keep what has weight in it or nearly has."""
        self._mixture, self._kept = mixed, (self._atoms, mixed.weights)
        # How much of an atom there is, relative to the most that its inputs allow: those of rare ones weigh little.
        filled = mixed.weights * (self._atoms / self.problem.prior).max(axis=1)
        order = np.argsort(-filled, kind="stable")[: SETTINGS.moments.most_kept + self.problem.size]
        keep = np.sort(
            order[
                (filled[order] > SETTINGS.moments.light)
                | (mixed.reduced[order] < SETTINGS.moments.spare * mixed.regularised_value)
            ]
        )
        self._atoms, self._weights = self._atoms[keep], mixed.weights[keep]
        self._seen = {key: i for i, key in enumerate(_keys(self._atoms))}

    @property
    def value(self) -> float:
        """tr(F Fᵀ M⁻¹) of the best mixture so far."""
        return self._mixture.value

    def best(self, clock: Clock = FOREVER) -> Split:
        """The best mixture with few atoms, and the bound."""
        atoms, weights = self._kept
        for thinner in (True, False):
            some = weights > SETTINGS.tolerance.no_weight * weights.max()
            few, begin = atoms[some], weights[some]
            if thinner:
                begin = self._thin(few, begin)
                few, begin = few[begin > SETTINGS.tolerance.no_weight], begin[begin > SETTINGS.tolerance.no_weight]
            with suppress(TimeUpError):
                found = solve_mixture(
                    self.problem,
                    self.moment,
                    few,
                    begin,
                    SETTINGS.moments.thinning_cost * SETTINGS.moments.thinning_accuracy,
                    clock.deadline,
                    SETTINGS.moments.thinning_cost,
                )
                off = np.abs(found.weights @ few / self.problem.prior - 1.0).max()
                if off < SETTINGS.tolerance.average and found.value <= self.value * (
                    1 + SETTINGS.moments.thinning_cost
                ):
                    atoms, weights = few, found.weights
                    break
        some = weights > SETTINGS.tolerance.no_weight * SETTINGS.moments.thinning_accuracy * weights.max()
        refining = Clock.from_limit(min(SETTINGS.moments.refining_seconds, clock.seconds_left))
        weights, atoms = refit_weights(self.problem.prior, weights[some], atoms[some], refining), atoms[some]
        return Split(weights, atoms, self.value, self.bound)

    def _thin(self, atoms: FloatArray, weights: FloatArray) -> FloatArray:
        """Weights of a vertex of all mixtures with the same M and prior: no more atoms than M has entries."""
        t = self.moment.moment_image(self.problem, atoms)
        share = self.moment.moment_image(self.problem, self.problem.prior[None, :])[0]
        i, j = np.triu_indices(t.shape[1])
        if i.size > SETTINGS.moments.most_thinned:
            return weights
        scaled = t / np.sqrt(share)
        columns = [scaled[:, i] * scaled[:, j], atoms / np.sqrt(self.problem.prior)]
        if self.moment.most_entropy is not None:
            columns.append(self.problem.costs(atoms)[:, None])
        table = np.concatenate(columns, axis=1)
        goal = weights @ table
        programme = Programme()
        programme.add_rows(goal - SETTINGS.tolerance.same_moment, goal + SETTINGS.tolerance.same_moment)
        row, entry = np.nonzero(table)
        costs = np.random.default_rng(1).random(len(atoms))
        programme.add_columns(costs, np.searchsorted(row, np.arange(len(atoms))), entry, table[row, entry])
        return np.maximum(programme.solution, 0.0) if programme.run() else weights


def _keys(atoms: FloatArray) -> Iterator[bytes]:
    """What tells atoms apart, up to rounding."""
    return (atom.tobytes() for atom in np.round(atoms, SETTINGS.tolerance.key_digits) + 0.0)  # −0 becomes 0


def split_by_forced_response(problem: Problem) -> Split:
    r"""The prior drawn towards every input as far as is allowed, :math:`v_y = t_y e_y + (1 - t_y) p`, with weights
    :math:`q_y \propto p_y / t_y`: a forced response with the most truth (Theorem 54). Nothing is proved about it."""
    atoms = problem.mix_with_prior(np.eye(problem.size))
    p = problem.prior
    t = np.maximum((np.diag(atoms) - p) / (1 - p), SETTINGS.tolerance.prior_share)
    return Split(p / t / (p / t).sum(), atoms, np.inf, 0.0)
