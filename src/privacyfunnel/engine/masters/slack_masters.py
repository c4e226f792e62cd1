"""Where splits come from: a master, its first atoms, and how its solutions become splits.

`WithLoans` is for problems whose first prices are soon right. With hundreds of inputs they are far from right, and the
atoms found at them of no use: `WithRest` first solves a smaller problem, which gives prices and a split to begin with,
and near these prices the master is held while it learns atoms.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, Matrix
from privacyfunnel.engine.bounds.side_channel_relaxation import one_side_channel
from privacyfunnel.engine.clock import Clock, TimeUpError
from privacyfunnel.engine.masters.repair import RepairedSplit, repair_split
from privacyfunnel.engine.masters.restricted_master import PenaltySlack, ResidualSlack, RestrictedMaster, refit_weights
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.engine.reductions.reduced_problems import coarsen, merge_equal
from privacyfunnel.engine.search.base import Search
from privacyfunnel.engine.settings import SETTINGS


class CoarseRun(Protocol):
    """A run on a smaller problem: the best split so far, and the prices at which it was last searched."""

    prices: FloatArray

    def run(
        self, gap: float, time_limit: float | None, progress: Callable[[float, float], None] | None, *, proofs: bool
    ) -> None: ...

    def best(self, clock: Clock) -> Split: ...


@dataclass(frozen=True, slots=True)
class CoarseStart:
    """How a large problem begins from a smaller one."""

    start_run: Callable[[Problem], CoarseRun]  # the run on it
    share: float  # of a time limit, for it
    uses_parts: bool  # whether it has parts of alike inputs; else fewer rows


class MasterProblem(Protocol):
    """Atoms, mixed by a master."""

    value: float  # of the best split so far
    on_change: Callable[[], None]  # called when that changed in the middle of something long

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> FloatArray | None:
        """Give the master its first atoms; prices that are about right, where such are known."""

    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        """Mix again: prices, and how much of the prior is owed."""

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        """Atoms of small reduced cost."""

    def add(self, atoms: FloatArray, costs: FloatArray) -> IntArray:
        """Learn those of these atoms that are new; which were."""

    def raise_slack_price(self) -> None:
        """Have the master do with less."""

    def slack_price_threshold(self, gap: float) -> float:
        """Debt becomes dearer once no reduced cost is known to be further below 0 than this."""

    def best(self, clock: Clock) -> tuple[FloatArray, Matrix]:
        """Weights and atoms of the best split so far, made better only while there is time."""


class PenalisedMaster:
    """A master that may borrow; what is handed out never does."""

    def __init__(self, problem: Problem, search: Search) -> None:
        self.problem, self._search = problem, search
        self.master = self._new_master()
        self.value = problem.prior_cost
        self.on_change: Callable[[], None] = lambda: None
        self._secure = problem.prior[None, :]  # atoms that average to the prior
        self._known = self._secure  # those of them that there were before
        self._weights, self._paid = np.empty(0), self._secure[:0]  # the best split that took no loan

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> None:
        """The prior, what is known already, the prior drawn towards every input, and what the search starts with."""
        if start is not None:
            self._known = np.concatenate([self._known, start])
        self._secure = np.concatenate([self._known, self.problem.first_atoms()])
        self.master.add(self._secure, self.problem.costs(self._secure))
        atoms = self.problem.clean(self._search.start(clock))
        self.master.add(atoms, self.problem.costs(atoms))

    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        """Mix again."""
        _, prices, owed = self._solve_master(clock)
        return prices, owed

    def _solve_master(self, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
        """Weights, prices, and what is owed; a solution without a loan is a split."""
        weights, prices, owed = self.master.solve(clock)
        value = float(self.master.costs @ weights)
        if owed <= SETTINGS.tolerance.slack and value < self.value:
            self.value, self._weights, self._paid = value, weights[weights > 0], self.master.support_atoms(weights)
        return weights, prices, owed

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        """Where long walks end."""
        return self._search.descend(prices, clock)

    def add(self, atoms: FloatArray, costs: FloatArray) -> IntArray:
        """Give them to the master."""
        return self.master.add(atoms, costs)

    def raise_slack_price(self) -> None:
        """Raise the penalty."""
        self.master.raise_slack_price()

    def slack_price_threshold(self, gap: float) -> float:
        """Where the search ends anyway."""
        return SETTINGS.driver.searched_to * gap

    def best(self, clock: Clock) -> tuple[FloatArray, FloatArray]:
        """The atoms in use. Their weights are computed afresh, to rounding rather than to the solver's tolerance.

        Where there is no time for that, the best split met, closed to rounding; or that of the atoms known before.
        """
        with suppress(TimeUpError):
            weights, atoms = self._refine(clock)
            return repair_split(self.problem, weights, atoms).to_arrays() if clock.late else (weights, atoms)
        if not self._weights.size:
            master = self._new_master()
            master.add(self._known, self.problem.costs(self._known))
            weights, _, _ = master.solve()
            self._weights, self._paid = weights[weights > 0], master.support_atoms(weights)
        weights = refit_weights(
            self.problem.prior, self._weights, self._paid, Clock.from_limit(SETTINGS.slack.hurry_seconds)
        )
        return repair_split(self.problem, weights, self._paid).to_arrays()

    def _refine(self, clock: Clock) -> tuple[FloatArray, FloatArray]:
        master = self.master
        weights, prices, owed = self._solve_master(clock)
        if owed > SETTINGS.tolerance.slack or float(master.costs @ weights) > self.value + SETTINGS.tolerance.slack:
            clock.check()
            # Only the atoms in use, those of the best split and those known to average to p: all of them could take
            # very long.
            pool = np.concatenate([self._secure, self._paid, master.support_atoms(weights)])
            master = self._new_master()
            master.add(pool, self.problem.costs(pool))
            master.forbid_slack()
            weights, prices, _ = master.solve(clock)
        weights = master.refine(weights, prices, len(self._secure), clock)
        return weights[weights > 0], master.support_atoms(weights)

    def _new_master(self) -> RestrictedMaster:
        return RestrictedMaster(
            self.problem.prior, PenaltySlack(self.problem.prior, 1.0 + float(np.log(self.problem.size)))
        )


class ResidualMaster:
    """A master whose every solution is a split, begun from a smaller problem."""

    def __init__(self, problem: Problem, search: Search, beginning: CoarseStart, patience: int) -> None:
        self.problem, self._search, self._beginning, self._patience = problem, search, beginning, patience
        self.value = problem.prior_cost
        self.on_change: Callable[[], None] = lambda: None
        self._split = RepairedSplit(np.ones(1), problem.prior[None, :], problem.prior_cost)
        self._secure = problem.prior[None, :]
        self._looked_again = 0
        self._unsure = problem.prior  # how much each input adds to what the atoms in use leave open
        self.master: RestrictedMaster
        self._rest: ResidualSlack

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> FloatArray:
        """Atoms and prices of a smaller problem, and what is found at these prices."""
        limit = None if np.isinf(clock.deadline) else self._beginning.share * (clock.deadline - clock.start)
        if start is not None:
            self._secure = np.concatenate([self._secure, start])
        prices = self._begin_coarse(gap, limit, clock) if self._beginning.uses_parts else self._begin_simple(limit)
        self._add_clean(self._search.start(clock))
        for _ in range(SETTINGS.slack.first_searches):
            self._add_clean(self._search.cover(prices, self.problem.prior, clock))
        return prices

    def _begin_coarse(self, gap: float, limit: float | None, clock: Clock) -> FloatArray:
        """From a split over parts of alike inputs, and its prices."""
        small = coarsen(
            self.problem, max(SETTINGS.slack.fewest_parts, self.problem.size // SETTINGS.slack.inputs_per_part)
        )
        below = self._beginning.start_run(small.problem)
        within = self.problem.prior_cost - small.problem.prior_cost  # what the parts leave open

        def report(value: float, _: float) -> None:
            self.value = min(self.value, value + within)  # the same split, seen by every input
            self.on_change()

        below.run(max(gap, SETTINGS.slack.coarse_gap * self.problem.prior_cost), limit, report, proofs=False)
        found = below.best(clock)
        atoms = small.expand(found.atoms)
        prices = below.prices[small.part_of]
        self._build_master(atoms, prices)
        self._keep_best(found.weights, atoms)
        return prices

    def _begin_simple(self, limit: float | None) -> FloatArray:
        """From atoms near the prior, and the prices of the problem with those rows alone that look at most inputs."""
        prices = np.zeros(self.problem.size)
        part = one_side_channel(self.problem)
        if part is None:  # no row can be spared: it is no simpler
            self._build_master(self.problem.first_atoms(), prices)
            return prices
        small = merge_equal(part.problem)
        easier = self._beginning.start_run(small.problem)
        easier.run(SETTINGS.slack.coarse_gap * self.problem.prior_cost, limit, None, proofs=False)
        prices[part.inputs] = easier.prices[small.part_of]
        self._build_master(self.problem.first_atoms(), prices)
        return prices

    def _build_master(self, atoms: FloatArray, prices: FloatArray) -> None:
        """Have a master at these prices, with these atoms, which average to the prior."""
        self._secure = np.concatenate([self._secure, atoms])
        self._rest = ResidualSlack(self.problem.prior, self.problem.cone(), prices)
        self.master = RestrictedMaster(self.problem.prior, self._rest)
        self.master.add(self._secure, self.problem.costs(self._secure))

    def _add_clean(self, atoms: FloatArray) -> None:
        clean = self.problem.clean(atoms)
        self.master.add(clean, self.problem.costs(clean))

    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        """Mix again; the solution and its rest are a split."""
        weights, prices, owed = self.master.solve(clock)
        atoms, q, cost = self.master.support_atoms(weights), weights[weights > 0], self.master.costs[weights > 0]
        self._unsure = (q * cost) @ atoms
        self._keep_best(q, atoms)
        return prices, owed

    def _keep_best(self, weights: FloatArray, atoms: FloatArray) -> None:
        """Close these atoms to a split, and keep it if it is the best so far."""
        found = repair_split(self.problem, weights, atoms)
        if found.value < self._split.value:
            self._split = found
        self.value = self._split.value

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        """What short walks pass, above all at what the rest has, or at what atoms leave open."""
        missing = self.master.slack_used if self.master.slack_used.sum() > SETTINGS.tolerance.slack else self._unsure
        return self._search.cover(prices, missing + SETTINGS.tolerance.residual * self.problem.prior, clock)

    def add(self, atoms: FloatArray, costs: FloatArray) -> IntArray:
        """Give them to the master."""
        return self.master.add(atoms, costs)

    def raise_slack_price(self) -> None:
        """Raise the toll up to what the rest truly costs; then look again; then have the rest as an atom, at its cost.

        At a higher toll the master would take worse atoms, and as an atom the rest hides which inputs still need some.
        """
        rest = self.master.slack_used
        mass = float(rest.sum())
        if self._rest.price(rest) < float(self.problem.costs(rest[None, :] / mass)[0]) * mass:
            self.master.raise_slack_price()
        elif self._looked_again < self._patience:
            self._looked_again += 1
        else:
            self._add_clean(self.problem.mix_with_prior(rest[None, :] / mass))
            self.master.raise_slack_price()

    def slack_price_threshold(self, gap: float) -> float:
        """Where half of the toll is worth no atom any more."""
        return max(SETTINGS.driver.searched_to * gap, SETTINGS.slack.residual_price / 2)

    def best(self, clock: Clock) -> tuple[FloatArray, FloatArray]:
        """The best split met."""
        return self._split.to_arrays()
