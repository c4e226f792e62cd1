r"""The second-moment master: statistics, whose error depends on the matrix that a split sums up to.

.. math:: \min_{q \ge 0}\ \operatorname{tr}\bigl(F F^\top M^{-1}\bigr),\quad M = \sum_y q_y t_y t_y^\top,\quad t = T v,
   \qquad\text{s.t.}\quad \sum_y q_y v_y = p .

The master (mixture.py) mixes the known atoms best and gives each a concave cost (`Objective`). At a mixture with
:math:`B = M^{-1}F` another split improves on it to first order by as much as its

.. math:: \sum_y q_y \bigl(\lVert B^\top t_y\rVert^2 - \beta H(t_y)\bigr)

is larger. The steepest split has most of this: a linear programme over atoms, solved by the same loop (driver.py)
without proofs. Its prices λ are those at which the bound of the equivalence theorem is best for this B: an atom of a
rare input that the master lacks moves the price of that input alone. The mixture moves towards the steepest split, and
a proof that at λ no atom costs less than −e bounds every split:

.. math:: \operatorname{tr}(F F^\top M^{-1}) \ge (\operatorname{tr} F^\top B)^2 / (βh - λ\cdot p + e) .

All costs are in units of the master's value, so that e is relative.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.bounds.dual_bounds import Prover
from privacyfunnel.engine.clock import Clock, TimeUpError
from privacyfunnel.engine.driver import ColumnGeneration, DualBound, Master, Pace
from privacyfunnel.engine.masters.mixture import Mixture, Moment, solve_mixture
from privacyfunnel.engine.masters.restricted_master import (
    PenaltySlack,
    RestrictedMaster,
    refit_weights,
    split_by_forced_response,
)
from privacyfunnel.engine.objective import Objective, costs, reduced_costs
from privacyfunnel.engine.problem import Problem, atom_keys
from privacyfunnel.engine.search.tangent import ObjectiveSearch
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.errors import GuaranteeError, SolverError


@dataclass(frozen=True, slots=True, eq=False)
class SteepestSplit:
    """A split that improves on a mixture, and prices with what they say of its improvement.

    If time ran out before, the prices are those at which the least negative reduced cost was found. There are no atoms
    where no split was found.
    """

    weights: FloatArray
    atoms: FloatArray
    prices: FloatArray
    most: float  # −λ·p
    excess: float  # of the cheapest atom met below 0; infinite where none was sought


class DirectionMaster(Master):
    """The linear master of the steepest split at one mixture."""

    def __init__(
        self, problem: Problem, search: ObjectiveSearch, objective: Objective, prices: FloatArray, already: float
    ) -> None:
        search.set_objective(objective)
        self.problem, self._search, self._objective, self._already = problem, search, objective, already
        self.master = RestrictedMaster(problem.prior, PenaltySlack(problem.prior, 1.0))
        self.value, self.size = np.inf, problem.size
        self._weights, self._atoms = np.empty(0), np.empty((0, problem.size))
        self._prices, self._best_most, self._excess, self._most = prices, already, np.inf, already
        self._pending: tuple[FloatArray, float, float] | None = None  # of the present round
        self._unit, self._gap = 1.0, 0.0

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> FloatArray:
        """All known atoms; the mixture's prices."""
        assert start is not None
        self._gap, cost = gap, costs(self._objective, start)
        self._unit = max(1.0, float(np.abs(cost).max()))  # with few atoms, costs exceed any solver's tolerance
        self.master.add(start, cost / self._unit)
        self.master.forbid_slack()
        return self._prices

    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        self._settle()
        weights, prices, _ = self.master.solve(clock)
        prices = prices * self._unit
        self._most = -float(prices @ self.problem.prior)
        self._weights, self._atoms = weights[weights > 0], self.master.support_atoms(weights)
        return prices, 0.0

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        clock.check()
        return self._search.descend(prices, clock)

    def learn(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Add the cheapest; the least reduced cost of those that were new."""
        found = self.problem.clean(atoms)
        cost = costs(self._objective, found)
        reduced = cost - found @ prices
        order = np.argsort(reduced, kind="stable")[: SETTINGS.moments.direction_added]
        order = order[reduced[order] < 0]
        new = order[self.master.add(found[order], cost[order] / self._unit)]
        least = float(reduced[new].min(initial=0.0))
        self._pending = prices, self._most, least
        return least

    def _settle(self) -> None:
        """Keep the prices of the last round if it ended the search, or found the least negative reduced cost so far."""
        if self._pending is None:
            return
        prices, most, least = self._pending
        if least >= -self.worth(self._gap) or -least < self._excess:
            self._prices, self._best_most, self._excess = prices, most, -least
        self._pending = None

    def learn_from_proof(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Nothing is proved here."""
        return 0.0

    def allowed(self, gap: float) -> float:
        """Only the search ends this run."""
        return 0.0

    def worth(self, gap: float) -> float:
        """A share of the improvement found so far, and at least `gap`."""
        return max(SETTINGS.moments.direction_searched_to * (self._most - self._already), gap)

    def best(self, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
        return self._weights, self._atoms, -self._most

    @property
    def found(self) -> SteepestSplit:
        """The steepest split, with its prices."""
        self._settle()
        return SteepestSplit(self._weights, self._atoms, self._prices, self._best_most, self._excess)

    def pool(self) -> FloatArray:
        """The cheapest atoms at the prices found, for the next mixture."""
        reduced = self._unit * self.master.costs - self.master.atoms @ self.found.prices
        most = max(SETTINGS.moments.pool, SETTINGS.moments.pool_per_input * self.problem.size)
        return self.master.atoms[np.argsort(reduced, kind="stable")[:most]]


def steepest_split(
    problem: Problem,
    search: ObjectiveSearch,
    objective: Objective,
    prices: FloatArray,
    known: FloatArray,
    already: float,
    least: float,
    clock: Clock,
) -> tuple[SteepestSplit, FloatArray]:
    """The split that improves most on a mixture, from `known` atoms on; and the atoms to remember.

    The mixture itself has `already` of the sum; atoms of reduced cost above −`least` are not sought.
    """
    master = DirectionMaster(problem, search, objective, prices, already)
    moments = SETTINGS.moments
    run = ColumnGeneration(master, DualBound(), Pace(moments.direction_damping, rounds=moments.direction_rounds))
    atoms = np.concatenate([problem.prior[None, :], known])
    with suppress(SolverError):  # an unsolved programme says nothing: what was known before is returned
        run.run(least, clock.time_limit, start=atoms, proofs=False)
    return master.found, master.pool()


class MomentMaster(Master):
    """Known atoms with their best mixture; its search is for the steepest split."""

    def __init__(self, problem: Problem, moment: Moment, search: ObjectiveSearch, absolute: float = 0.0) -> None:
        self.problem, self.moment, self.size, self._absolute = problem, moment, problem.size, absolute
        self.towards: SteepestSplit | None = None  # of the last search
        self.mixture: Mixture
        self._search, self._pool = search, np.empty((0, problem.size))
        self._atoms, self._weights = np.empty((0, problem.size)), np.empty(0)
        self._seen: dict[bytes, int] = {}  # index of each atom
        self._tolerance, self._ahead, self._gap = SETTINGS.moments.rough, 0.0, 0.0
        self.proof_loss = 0.0  # what a larger h in the proof takes off the bound

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> None:
        """The forced response, and atoms that are known already."""
        self._gap = gap
        forced = split_by_forced_response(self.problem)
        first = self.problem.first_atoms()
        self._add(first if start is None else np.concatenate([first, self.problem.clean(start)]))
        self._weights[self._add(forced.atoms)] = forced.weights
        self._pool = self.problem.clean(self._search.start(clock))
        rough = SETTINGS.moments.rough
        try:
            self._take(solve_mixture(self.problem, self.moment, self._atoms, self._weights, rough, clock.deadline))
        except TimeUpError:  # the first one that averages to the prior
            self._take(solve_mixture(self.problem, self.moment, self._atoms, self._weights, np.inf))

    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        """Mix again, unless nothing was found since; if time runs out, the last mixture may be better."""
        if self.towards is not None and len(self.towards.atoms):
            left = max(min(SETTINGS.moments.remaining, self._ahead), self._tolerance)
            with suppress(TimeUpError):
                mixed = solve_mixture(
                    self.problem, self.moment, self._atoms, self._weights, self._tolerance, clock.deadline, left
                )
                if mixed.value <= self.value or not clock.late:
                    self._take(mixed)
        return self.mixture.costs(self.problem)[1], 0.0

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        objective, prices = self.mixture.costs(self.problem)
        known = np.concatenate([self._kept[0], self._pool])
        self.towards, self._pool = steepest_split(
            self.problem,
            self._search,
            objective,
            prices,
            known,
            self._already,
            SETTINGS.moments.searched_to * self._relative_gap(),
            clock.part(SETTINGS.moments.searching_share),
        )
        return self.towards.atoms

    @property
    def _already(self) -> float:
        return 1.0 - self.mixture.entropy_term(self.problem, self.moment)

    def _relative_gap(self) -> float:
        return (self.allowed(self._gap) - self.proof_loss) / self.mixture.regularised_value

    def learn(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Move towards the steepest split; minus its improvement, 0 where the mixture is exact and nothing was new."""
        assert self.towards is not None
        moments, allowed = SETTINGS.moments, self._relative_gap()
        self._ahead = max(self.towards.most - self._already, 0.0)
        share = min(moments.farthest, moments.moved * self._ahead) if self.moment.most_entropy is None else 0.0
        known = len(self._atoms)
        places = self._add(atoms)
        if len(places):
            self._weights *= 1 - share
            np.add.at(self._weights, places, share * self.towards.weights)
        new, exact = len(self._atoms) - known, self._tolerance <= 2 * moments.fine * allowed
        if len(atoms):
            closer = moments.closer * self._ahead if new else 0.0
            self._tolerance = max(min(self._tolerance, closer), moments.fine * allowed)
        return 0.0 if exact and not new else -self._ahead

    def learn_from_proof(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Pool the atoms; the least reduced cost among them at the steepest split's prices."""
        assert self.towards is not None
        atoms = self.problem.clean(atoms) if len(atoms) else atoms
        self._pool = np.concatenate([atoms, self._pool])
        reduced = reduced_costs(self.mixture.costs(self.problem)[0], atoms, self.towards.prices)
        return float(reduced[reduced < -SETTINGS.tolerance.feasible].min(initial=0.0))

    def allowed(self, gap: float) -> float:
        """`gap` times the value less what nobody can avoid, or the absolute gap; and what no proof can close."""
        self._gap = gap
        near = max(gap * (self.value - self.moment.constant), self._absolute, SETTINGS.tolerance.solved * self.value)
        return near + self.proof_loss

    def worth(self, gap: float) -> float:
        """A share of the relative gap: smaller improvements are left to the proof."""
        return SETTINGS.moments.ahead_to * self._relative_gap()

    def proof_target(self, gap: float, least: float, late: bool) -> float:
        """What the gap allows beyond the improvement; known cheaper atoms must not end a proof at once."""
        assert self.towards is not None
        target = 2 * self.towards.excess if np.isfinite(self.towards.excess) else SETTINGS.moments.loosest
        allowed = SETTINGS.moments.proved_to * self._relative_gap() - self._ahead
        return max(allowed, SETTINGS.moments.late * self._ahead, target)

    def check_entropy_limit(self) -> None:
        """The entropy limit must be attainable; otherwise β grows without end, and a proof says nothing."""
        most = self.moment.most_entropy
        if most is None:
            return
        atoms, weights = self._kept
        left = float(weights @ self.problem.costs(atoms))
        if left > most + SETTINGS.tolerance.entropy_limit * (1 + abs(most)):
            raise GuaranteeError(
                f"The conditional entropy may be {most:.6g} nats at most; the best split found has {left:.6g}. "
                "Ask for less information, or allow more time."
            )

    def _add(self, atoms: FloatArray) -> IntArray:
        """Add the atoms that are new; the index of each."""
        places, fresh = [], []
        for i, key in enumerate(atom_keys(atoms)):
            if key not in self._seen:
                self._seen[key] = len(self._seen)
                fresh.append(i)
            places.append(self._seen[key])
        self._atoms = np.concatenate([self._atoms, atoms[fresh]])
        self._weights = np.concatenate([self._weights, np.zeros(len(fresh))])
        return np.array(places, dtype=np.int64)

    def _take(self, mixed: Mixture) -> None:
        """Replace the mixture, and keep the atoms that have weight in it or nearly have."""
        self.mixture, self.value, self._kept = mixed, mixed.value, (self._atoms, mixed.weights)
        # Weight relative to the most that an atom's inputs allow: atoms of rare inputs weigh little.
        filled = mixed.weights * (self._atoms / self.problem.prior).max(axis=1)
        order = np.argsort(-filled, kind="stable")[: SETTINGS.moments.most_kept + self.problem.size]
        spare = mixed.reduced[order] < SETTINGS.moments.spare * mixed.regularised_value
        keep = np.sort(order[(filled[order] > SETTINGS.moments.light) | spare])
        self._atoms, self._weights = self._atoms[keep], mixed.weights[keep]
        self._seen = {key: i for i, key in enumerate(atom_keys(self._atoms))}

    def best(self, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
        """The best mixture without its lightest atoms, mixed once more."""
        (atoms, weights), least = self._kept, SETTINGS.tolerance.no_weight
        some = weights > least * weights.max()
        few, cost = atoms[some], SETTINGS.moments.final_cost
        with suppress(TimeUpError):
            accuracy = SETTINGS.moments.final_accuracy * cost
            found = solve_mixture(self.problem, self.moment, few, weights[some], accuracy, clock.deadline, cost)
            off = np.abs(found.weights @ few / self.problem.prior - 1.0).max()
            if off < SETTINGS.tolerance.solved and found.value <= self.value * (1 + cost):
                atoms, weights = few, found.weights
        some = weights > least * SETTINGS.moments.final_accuracy * weights.max()
        refining = Clock.from_limit(min(SETTINGS.driver.refining_seconds, clock.seconds_left))
        return refit_weights(self.problem.prior, weights[some], atoms[some], refining), atoms[some], self.value


class MomentBound(DualBound):
    """Proofs at the steepest split's prices; and, where there are none, or little is proved, a relaxation."""

    def __init__(
        self,
        master: MomentMaster,
        prover: Callable[[Objective], Prover] | None,
        relaxation_bound: Callable[[float], float] = lambda seconds: 0.0,
        search_share: float | None = None,
    ) -> None:
        """`relaxation_bound` is called with seconds; `search_share` of a time limit is for searches alone."""
        self._master, self._prover, self._relaxation_bound = master, prover, relaxation_bound
        searched = search_share or SETTINGS.moments.search_share
        self.share = 1 - (SETTINGS.moments.unproved_share if prover is None else searched)
        self._relaxed = False

    @property
    def is_exhausted(self) -> bool:
        return self._relaxed

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """Raise the bound by a proof at the steepest split's prices, or by a relaxation."""
        master, moments = self._master, SETTINGS.moments
        none = np.empty((0, prices.size))
        if self.is_exhausted or master.towards is None:
            return none
        master.check_entropy_limit()
        if self._prover is None:
            self.bound = max(self.bound, self._relaxation_bound(clock.seconds_left))
            self._relaxed = True
            return none
        if self.bound == 0.0 and clock.time_limit is not None:  # it may say more than a proof that is cut short
            self.bound = self._relaxation_bound(moments.relaxing_share * clock.seconds_left)
        at = master.towards.prices
        proof = self._prover(master.mixture.costs(master.problem)[0]).prove(at, target, clock.deadline)
        excess = max(-proof.bound, 0.0)
        tight, sound = (
            master.mixture.bound(master.problem, master.moment, at, excess, slack)
            for slack in (0.0, master.moment.proof_slack)
        )
        self.bound = max(self.bound, sound)
        master.proof_loss = max(tight - self.bound, 0.0)
        return proof.atoms
