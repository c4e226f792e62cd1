r"""Restricted masters with slack, for entropies.

.. math:: \min \sum_y q_y H(v_y) + \text{slack} \quad\text{s.t.}\quad \sum_y q_y v_y + \text{slack} = p,\ q \ge 0 .

`PenalisedMaster` is for problems whose first prices are soon right: slack is penalised, and returned splits are
slack-free. With hundreds of inputs they are not: the slack of `ResidualMaster` is one further feasible atom.
"""

from abc import abstractmethod
from contextlib import suppress

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.engine.clock import Clock, TimeUpError
from privacyfunnel.engine.driver import Master
from privacyfunnel.engine.masters.restricted_master import (
    PenaltySlack,
    ResidualSlack,
    RestrictedMaster,
    refit_weights,
    repair_split,
)
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.search.tangent import Search
from privacyfunnel.engine.settings import SETTINGS


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
        order = order[reduced[order] < -SETTINGS.tolerance.feasible]
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
        if owed <= SETTINGS.tolerance.near and value < self.value:
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
        hurry = Clock.from_limit(SETTINGS.driver.refining_seconds)
        weights = refit_weights(self.problem.prior, self._weights, self._paid, hurry)
        return repair_split(self.problem, weights, self._paid)[:2]

    def _refine(self, clock: Clock) -> tuple[FloatArray, FloatArray]:
        master = self.master
        weights, prices, owed = self._solve_master(clock)
        if owed > SETTINGS.tolerance.near or float(master.costs @ weights) > self.value + SETTINGS.tolerance.near:
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
    """A master whose every solution is a split: its slack is one further feasible atom."""

    def __init__(self, problem: Problem, search: Search, patience: int) -> None:
        super().__init__(problem)
        self._search, self._patience = search, patience
        self._split = np.ones(1), problem.prior[None, :], problem.prior_cost  # weights, atoms and value
        self._looked_again = 0
        self._unsure = problem.prior  # how much each input adds to what the atoms in use leave open
        self._rest = ResidualSlack(problem.prior, problem.cone())
        self.master = RestrictedMaster(problem.prior, self._rest)

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> None:
        """The prior moved towards every input, what is known already, and what a search finds without prices."""
        known = [self.problem.prior[None, :], self.problem.first_atoms()]
        first = np.concatenate(known if start is None else [*known, start])
        self.master.add(first, self.problem.costs(first))
        self._add_clean(self._search.start(clock))
        for _ in range(SETTINGS.slack.first_searches):
            self._add_clean(self._search.cover(np.zeros(self.size), self.problem.prior, clock))

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
        missing = self.master.slack_used if self.master.slack_used.sum() > SETTINGS.tolerance.near else self._unsure
        return self._search.cover(prices, missing + SETTINGS.tolerance.solved * self.problem.prior, clock)

    def add(self, atoms: FloatArray, costs: FloatArray) -> IntArray:
        return self.master.add(atoms, costs)

    def raise_slack_price(self) -> None:
        """Raise the price up to what the residual costs; then look again; then add the residual as an atom.

        At a higher price the master would take worse atoms; as an atom the residual hides which inputs need some.
        """
        rest = self.master.slack_used
        mass = float(rest.sum())
        if self._rest.price < float(self.problem.costs(rest[None, :] / mass)[0]):
            self.master.raise_slack_price()
        elif self._looked_again < self._patience:
            self._looked_again += 1
        else:
            self._add_clean(self.problem.mix_with_prior(rest[None, :] / mass))
            self.master.raise_slack_price()

    def slack_price_threshold(self, gap: float) -> float:
        """Where half of the first price is worth no atom any more."""
        return max(SETTINGS.driver.searched_to * gap, SETTINGS.slack.residual_price / 2)

    def best(self, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
        return self._split
