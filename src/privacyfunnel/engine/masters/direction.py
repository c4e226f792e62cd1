r"""The split towards which a mixture falls fastest, where the second moment counts.

At a mixture with :math:`B = M^{-1}F` another split improves on it to first order by as much as its

.. math:: \sum_y q_y \bigl(\lVert B^\top t_y\rVert^2 - \beta H(t_y)\bigr)

is larger. The split that has most of this is the answer of a linear programme over atoms, and its prices λ are those at
which the bound of the theorem of equivalence is best for this B: an atom of a rare input that the master lacks moves
the price of that input alone, while at the master's own prices it would be charged to all of them. Programme and search
take turns, which takes little time beside a master; and what has weight in the end are the atoms that matter together.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.clock import FOREVER, Clock, TimeUpError
from privacyfunnel.engine.masters.moment_objective import MomentObjective
from privacyfunnel.engine.masters.restricted_master import PenaltySlack, RestrictedMaster
from privacyfunnel.engine.objective import Objective, costs
from privacyfunnel.engine.problem import Problem
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.errors import SolverError


class ObjectiveSearch(Protocol):
    """A search that goes on with other objectives."""

    def set_objective(self, objective: Objective) -> None: ...
    def start(self, clock: Clock = FOREVER) -> FloatArray: ...
    def descend(self, prices: FloatArray, clock: Clock = FOREVER) -> FloatArray: ...


@dataclass(frozen=True, slots=True, eq=False)
class SteepestSplit:
    """A split; and prices, with what they say there is of the sum above.

    Where time was up before, they are those of all that were tried at which the least was found that is cheaper than
    it should be. There are no atoms where no split was found at all.
    """

    weights: FloatArray
    atoms: FloatArray
    prices: FloatArray
    most: float  # −λ·p
    excess: float  # the cheapest atom that was met costs so much less than nothing; infinite where none was sought


class SteepestDirection:
    """Finds such splits, one after another; the atoms met are remembered."""

    def __init__(self, problem: Problem, search: ObjectiveSearch) -> None:
        self.problem, self.search = problem, search
        self._pool = np.empty((0, problem.size))

    def remember(self, atoms: FloatArray) -> None:
        """Have these atoms in the next programme."""
        self._pool = np.concatenate([atoms, self._pool])

    def find(
        self,
        objective: MomentObjective,
        prices: FloatArray,
        known: FloatArray,
        already: float,
        least: float,
        clock: Clock,
    ) -> SteepestSplit:
        """The split of least cost, from `known` atoms and their prices on.

        The mixture itself has `already` of the sum; atoms of reduced cost above −least are worth nothing.
        """
        self.search.set_objective(objective)
        master = RestrictedMaster(self.problem.prior, PenaltySlack(self.problem.prior, 1.0))
        atoms = np.concatenate([self.problem.prior[None, :], known, self._pool])
        cost = costs(objective, atoms)
        unit = max(1.0, float(np.abs(cost).max()))  # while atoms are few, costs are beyond any solver's tolerance
        master.add(atoms, cost / unit)
        master.forbid_slack()
        best, steady = SteepestSplit(np.empty(0), known[:0], prices, already, np.inf), prices
        # What a solver does not solve, or not in time, says nothing: what was known before is handed back.
        with suppress(TimeUpError, SolverError):
            for _ in range(SETTINGS.moments.direction_rounds):
                weights, prices, _ = master.solve(clock)
                used, prices = weights > 0, prices * unit
                most = -float(prices @ self.problem.prior)
                best = replace(best, weights=weights[used], atoms=master.support_atoms(weights))
                enough = max(SETTINGS.moments.direction_searched_to * (most - already), least)
                steady = SETTINGS.moments.direction_damping * steady + (1 - SETTINGS.moments.direction_damping) * prices
                met = self._search_once(master, objective, unit, steady, prices, clock)
                if met >= -enough:
                    steady = prices
                    met = self._search_once(master, objective, unit, steady, prices, clock)
                over = met >= -enough
                if over or -met < best.excess:
                    best = replace(best, prices=prices, most=most, excess=-met)
                if over:
                    break
        reduced = unit * master.costs - master.atoms @ best.prices
        remembered = max(SETTINGS.moments.pool, SETTINGS.moments.pool_per_input * self.problem.size)
        self._pool = master.atoms[np.argsort(reduced, kind="stable")[:remembered]]
        return best

    def _search_once(
        self,
        master: RestrictedMaster,
        objective: MomentObjective,
        unit: float,
        at: FloatArray,
        prices: FloatArray,
        clock: Clock,
    ) -> float:
        """Search at some prices; the least reduced cost at the programme's own of what was new to it."""
        clock.check()
        found = self.problem.clean(self.search.descend(at, clock))
        cost = costs(objective, found)
        reduced = cost - found @ prices
        order = np.argsort(reduced, kind="stable")[: SETTINGS.moments.direction_added]
        order = order[reduced[order] < 0]
        new = order[master.add(found[order], cost[order] / unit)]
        return float(reduced[new].min(initial=0.0))
