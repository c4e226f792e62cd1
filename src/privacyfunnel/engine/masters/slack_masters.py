r"""Restricted masters with slack, for entropies.

.. math:: \min \sum_y q_y H(v_y) + \text{slack} \quad\text{s.t.}\quad \sum_y q_y v_y + \text{slack} = p,\ q \ge 0 .

`PenalisedMaster` is for problems whose first prices are soon right: slack is penalised, and returned splits are
slack-free. With hundreds of inputs first prices are far from right, and atoms found at them are useless:
`ResidualMaster` first solves a coarser problem for prices and a split, and holds its prices near these while it learns
atoms; its slack is one further feasible atom.
"""

from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.bounds.side_channels import one_side_channel
from privacyfunnel.engine.clock import Clock, TimeUpError
from privacyfunnel.engine.driver import ColumnGeneration, Master
from privacyfunnel.engine.masters.restricted_master import (
    PenaltySlack,
    ResidualSlack,
    RestrictedMaster,
    refit_weights,
    repair_split,
)
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.reductions.coarsen import Coarsen
from privacyfunnel.engine.reductions.merge_equal import MergeEqual
from privacyfunnel.engine.search.base import Search
from privacyfunnel.engine.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class CoarseStart:
    """How a large problem begins from a smaller one."""

    start_run: Callable[[Problem], ColumnGeneration]  # the run on it
    share: float  # of a time limit, for it
    uses_parts: bool  # whether it has parts of alike inputs; else fewer rows


class EntropyMaster(Master):
    """What masters of an entropy share: how finds are selected, and what a proof is asked for."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.size, self.value = problem, problem.size, problem.prior_cost

    @abstractmethod
    def add(self, atoms: FloatArray, costs: FloatArray) -> IntArray:
        """Add those of these atoms that are new; their indices."""

    def learn(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Add the cheapest atoms of negative reduced cost; the least reduced cost of those that were new."""
        atoms = self.problem.clean(atoms)
        costs = self.problem.costs(atoms)
        reduced = costs - atoms @ prices
        order = np.argsort(reduced)[: SETTINGS.driver.most_added]
        order = order[reduced[order] < -SETTINGS.tolerance.new_atom]
        new = order[self.add(atoms[order], costs[order])]
        return float(reduced[new].min(initial=0.0))

    def worth(self, gap: float) -> float:
        return SETTINGS.driver.searched_to * gap

    def proof_target(self, gap: float, least: float, late: bool) -> float:
        """A little less than the gap; when late, twice what known atoms are below."""
        return max(SETTINGS.driver.proved_to * gap, -2 * least if late else 0.0)

    def slack_price_threshold(self, gap: float) -> float:
        return self.worth(gap)


class PenalisedMaster(EntropyMaster):
    """Restricted master with penalised slack; returned splits are slack-free."""

    def __init__(self, problem: Problem, search: Search) -> None:
        super().__init__(problem)
        self._search = search
        self.master = self._new_master()
        self._secure = problem.prior[None, :]  # atoms that average to the prior
        self._known = self._secure  # those of them that there were before
        self._weights, self._paid = np.empty(0), self._secure[:0]  # the best slack-free split

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> None:
        """The prior, what is known already, the prior drawn towards every input, and what the search starts with."""
        if start is not None:
            self._known = np.concatenate([self._known, start])
        self._secure = np.concatenate([self._known, self.problem.first_atoms()])
        self.master.add(self._secure, self.problem.costs(self._secure))
        atoms = self.problem.clean(self._search.start(clock))
        self.master.add(atoms, self.problem.costs(atoms))

    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        return self._solve_master(clock)[1:]

    def _solve_master(self, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
        """Weights, prices, and slack; a solution without slack is a split."""
        weights, prices, owed = self.master.solve(clock)
        value = float(self.master.costs @ weights)
        if owed <= SETTINGS.tolerance.slack and value < self.value:
            self.value, self._weights, self._paid = value, weights[weights > 0], self.master.support_atoms(weights)
        return weights, prices, owed

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        return self._search.descend(prices, clock)

    def add(self, atoms: FloatArray, costs: FloatArray) -> IntArray:
        return self.master.add(atoms, costs)

    def raise_slack_price(self) -> None:
        self.master.raise_slack_price()

    def best(self, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
        weights, atoms = self._best(clock)
        return weights, atoms, float(self.problem.costs(atoms) @ weights)

    def _best(self, clock: Clock) -> tuple[FloatArray, FloatArray]:
        """The atoms in use. Their weights are computed afresh, to rounding rather than to the solver's tolerance.

        Where there is no time for that, the best split met, closed to rounding; or that of the atoms known before.
        """
        with suppress(TimeUpError):
            weights, atoms = self._refine(clock)
            return repair_split(self.problem, weights, atoms)[:2] if clock.late else (weights, atoms)
        if not self._weights.size:
            master = self._new_master()
            master.add(self._known, self.problem.costs(self._known))
            weights, _, _ = master.solve()
            self._weights, self._paid = weights[weights > 0], master.support_atoms(weights)
        hurry = Clock.from_limit(SETTINGS.slack.hurry_seconds)
        weights = refit_weights(self.problem.prior, self._weights, self._paid, hurry)
        return repair_split(self.problem, weights, self._paid)[:2]

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
        prior = self.problem.prior
        return RestrictedMaster(prior, PenaltySlack(prior, 1.0 + float(np.log(prior.size))))


class ResidualMaster(EntropyMaster):
    """A master whose every solution is a split, begun from a smaller problem."""

    def __init__(self, problem: Problem, search: Search, beginning: CoarseStart, patience: int) -> None:
        super().__init__(problem)
        self._search, self._beginning, self._patience = search, beginning, patience
        self._secure = problem.prior[None, :]
        self._split = np.ones(1), self._secure, problem.prior_cost  # weights, atoms and value
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
        small = Coarsen(max(SETTINGS.slack.fewest_parts, self.problem.size // SETTINGS.slack.inputs_per_part)).apply(
            self.problem
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
        small = MergeEqual().apply(part.problem)
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
        """The solution and its residual are a split."""
        weights, prices, owed = self.master.solve(clock)
        atoms, q, cost = self.master.support_atoms(weights), weights[weights > 0], self.master.costs[weights > 0]
        self._unsure = (q * cost) @ atoms
        self._keep_best(q, atoms)
        return prices, owed

    def _keep_best(self, weights: FloatArray, atoms: FloatArray) -> None:
        """Close these atoms to a split, and keep it if it is the best so far."""
        self._split = min(self._split, repair_split(self.problem, weights, atoms), key=lambda split: split[2])
        self.value = self._split[2]

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        """What short walks pass, above all at what the rest has, or at what atoms leave open."""
        missing = self.master.slack_used if self.master.slack_used.sum() > SETTINGS.tolerance.slack else self._unsure
        return self._search.cover(prices, missing + SETTINGS.tolerance.residual * self.problem.prior, clock)

    def add(self, atoms: FloatArray, costs: FloatArray) -> IntArray:
        return self.master.add(atoms, costs)

    def raise_slack_price(self) -> None:
        """Raise the surcharge up to what the residual costs; then look again; then add the residual as an atom.

        At a higher surcharge the master would take worse atoms; as an atom the residual hides which inputs need some.
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
        """Where half of the surcharge is worth no atom any more."""
        return max(SETTINGS.driver.searched_to * gap, SETTINGS.slack.residual_price / 2)

    def best(self, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
        return self._split
