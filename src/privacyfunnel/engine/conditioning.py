r"""The split whose second moment is best: master, search and proof in turn, with a bound by the equivalence theorem.

The master (moments.py) mixes known atoms best and says at which concave cost (curved.py) an atom would improve on it. A
search looks for such atoms; where it finds none, a proof shows that there are none, up to an excess e, and then

.. math:: \operatorname{tr}(F F^\top M^{-1}) \ge (\operatorname{tr} F^\top B)^2 / (βh - λ\cdot p + e)

for every allowed split. All costs are in units of the master's value, so that e is relative.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.bounding import Prover
from privacyfunnel.engine.curved import Curved
from privacyfunnel.engine.highs import Programme
from privacyfunnel.engine.moments import Mixture, Moment, mixture
from privacyfunnel.engine.objective import Objective, reduced_costs
from privacyfunnel.engine.problem import Problem, Split
from privacyfunnel.errors import SolverError

Progress = Callable[[float, float], None]

PROVED_TO = 0.8  # of the gap: a proof asks for a little less than is allowed
SEARCHED_TO = 0.2  # of the gap: below this the search finds nothing worth having
IN_VAIN = 3  # searches, before a proof is tried: one that ends with an atom was for little
MOST_ADDED = 500  # per round; with more, masters take longer than the atoms are worth
STALLED, FRUITLESS = 0.01, 6  # of the gap: rounds that gain less are in vain; after so many a proof is tried, and again
SPARE = 150  # atoms without weight that are kept, beyond one for every entry of M and at most MOST_KEPT in all
MOST_KEPT = 1200
MOST_STARTED = 400  # inputs; with more, a master begins with one atom for each, since two take it eight times as long
ROUGH, FINE = 1e-3, 0.02  # how well the master is solved: first, and relative to the gap in the end
NO_WEIGHT = 1e-8  # of the largest: atoms of less are dropped in the end
LEAST_GAP = 1e-9  # relative: no proof reaches less where nothing is lost, so that a gap of nothing would be asked for
LONGEST = 60.0  # seconds for simpler problems where there is no time limit
BEYOND = 1e-7  # relative: what may be left open beyond what is allowed, by rounding
SEARCH_SHARE, UNPROVED_SHARE = 0.5, 0.8  # of a time limit; the latter where nothing is proved at the master's prices
SIMPLER_SHARE = 0.2  # of what is left for a proof: for a simpler problem, where there is one
ENTRIES_WORTH = 700  # entries of M: with more of them the final mixture is not thinned by a linear programme
FEWER_COST = 1e-7  # relative: what a thinner mixture may cost


class Charged(Protocol):
    """A search that goes on with other objectives."""

    def charge(self, objective: Objective) -> None: ...
    def start(self) -> FloatArray: ...
    def downhill(self, prices: FloatArray) -> FloatArray: ...


@dataclass(frozen=True, slots=True)
class Tools:
    """How atoms are sought, and what proves that there are no more; and, where that takes too long, what else bounds
    every split from below (called with seconds)."""

    search: Charged
    prover: Callable[[Curved], Prover] | None
    simpler: Callable[[float], float] = lambda seconds: 0.0
    share: float = SEARCH_SHARE  # of a time limit, for searches alone, where there is a prover


class Conditioning:
    """The state of a run: atoms with their mixture, and the best bound."""

    def __init__(self, problem: Problem, moment: Moment, tools: Tools, way: str = "") -> None:
        self.problem, self.moment, self.tools, self.way = problem, moment, tools, way
        self.bound = 0.0
        self._atoms = np.empty((0, problem.size))
        self._mixture: Mixture
        self._seen: set[bytes] = set()
        self._weights = np.empty(0)

    @property
    def value(self) -> float:
        """tr(F Fᵀ M⁻¹) of the best mixture so far."""
        return self._mixture.value

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
        begun = time.monotonic()
        deadline = np.inf if time_limit is None else begun + time_limit
        share = self.tools.share if self.tools.prover is not None else UNPROVED_SHARE
        search_until = np.inf if time_limit is None else begun + share * time_limit
        known = [self.problem.first_atoms()]
        if self.problem.size <= MOST_STARTED:
            known.append(self.problem.cleaned(self.tools.search.start()))
        self._add(np.concatenate(known if start is None else [*known, self.problem.cleaned(start)]))
        in_vain, stalled, fruitless, before, tolerance = 0, 0, 0, np.inf, ROUGH
        while True:
            if time.monotonic() < deadline or not np.isfinite(before):  # a master is not begun when time is up
                self._mix(tolerance, deadline)
            near = max(gap * (self.value - self.moment.constant), absolute, LEAST_GAP * self.value)
            allowed = near / self._mixture.whole
            if progress is not None:
                progress(self.value, self.bound)
            if self.value - self.bound <= near or time.monotonic() >= deadline:
                return
            objective, prices = self._mixture.costs(self.problem)
            self.tools.search.charge(objective)
            least = self._learn(self.tools.search.downhill(prices), objective, prices, SEARCHED_TO * allowed)
            tolerance = min(max(-0.01 * least, FINE * allowed), tolerance)
            stalled = stalled + 1 if before - self.value < STALLED * near else 0
            before = min(before, self.value)
            in_vain = in_vain + 1 if least > -SEARCHED_TO * allowed or stalled >= FRUITLESS else 0
            if time.monotonic() < search_until and (in_vain < IN_VAIN or tolerance > 2 * FINE * allowed):
                continue
            self._check_kept()
            if self.tools.prover is None:
                self.bound = max(self.bound, self.tools.simpler(min(deadline - time.monotonic(), LONGEST)))
                return
            if self.bound == 0.0 and deadline < np.inf:  # what is simpler may say more than a proof that is cut short
                self.bound = self.tools.simpler(SIMPLER_SHARE * (deadline - time.monotonic()))
            proof = self.tools.prover(objective).prove(prices, PROVED_TO * allowed, deadline)
            self.bound = max(self.bound, self._mixture.bound(self.problem, self.moment, max(-proof.bound, 0.0)))
            if self._learn(proof.atoms, objective, prices, 0.0) == 0.0 and time.monotonic() < deadline:
                fruitless += 1
                if -proof.bound <= PROVED_TO * allowed or fruitless >= FRUITLESS:
                    if progress is not None:
                        progress(self.value, self.bound)
                    return
            in_vain = stalled = 0

    def _check_kept(self) -> None:
        """What may be left open on average must be attainable: else β grows without end, and a proof says nothing."""
        most = self.moment.most_entropy
        if most is None:
            return
        atoms, weights = self._kept
        left = float(weights @ self.problem.costs(atoms))
        if left > most + BEYOND * (1 + abs(most)):
            raise SolverError(
                f"A split may leave open {most:.6g} nats on average; the best that was found leaves open {left:.6g}. "
                "Ask for less information, or allow more time."
            )

    def _learn(self, atoms: FloatArray, objective: Curved, prices: FloatArray, worth: float) -> float:
        """Give the master those atoms that improve on it; the least reduced cost among those that were new."""
        atoms = self.problem.cleaned(atoms) if len(atoms) else atoms
        reduced = reduced_costs(objective, atoms, prices)
        order = np.argsort(reduced)[:MOST_ADDED]
        order = order[reduced[order] < -worth]
        new = self._add(atoms[order])
        return float(reduced[order][new].min(initial=0.0))

    def _add(self, atoms: FloatArray) -> list[int]:
        """Add the atoms that are new; which were."""
        fresh = []
        for i, atom in enumerate(np.round(atoms, 12)):
            key = atom.tobytes()
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(i)
        self._atoms = np.concatenate([self._atoms, atoms[fresh]])
        self._weights = np.concatenate([self._weights, np.zeros(len(fresh))])
        return fresh

    def _mix(self, tolerance: float, deadline: float) -> None:
        """Mix again, and keep what has weight or nearly has."""
        begin = self._weights if self._weights.any() else None
        mixed = mixture(self.problem, self.moment, self._atoms, begin, tolerance, deadline)
        if begin is not None and time.monotonic() >= deadline and mixed.value > self.value:
            return  # it was cut short: the last one is better
        self._mixture = mixed
        a = self.problem.objective.values
        most = min(a * (a + 1) // 2 + SPARE, max(MOST_KEPT, a + SPARE))
        keep = np.sort(np.argsort(self._mixture.reduced)[:most])
        dropped = np.setdiff1d(np.arange(len(self._atoms)), keep)
        self._seen -= {atom.tobytes() for atom in np.round(self._atoms[dropped], 12)}
        self._kept = self._atoms, self._mixture.weights
        self._atoms, self._weights = self._atoms[keep], self._mixture.weights[keep]

    def best(self) -> Split:
        """The best mixture with few atoms, and the bound."""
        atoms, weights = self._kept
        for thinner in (True, False):
            some = weights > NO_WEIGHT * weights.max()
            few, begin = atoms[some], weights[some]
            if thinner:
                begin = self._thinned(few, begin)
                few, begin = few[begin > NO_WEIGHT], begin[begin > NO_WEIGHT]
            found = mixture(self.problem, self.moment, few, begin, FEWER_COST * 1e-2)
            off = np.abs(found.weights @ few / self.problem.prior - 1.0).max()
            if off < 1e-9 and found.value <= self.value * (1 + FEWER_COST):
                break
        some = found.weights > NO_WEIGHT * 1e-2 * found.weights.max()
        return Split(found.weights[some], few[some], found.value, self.bound)

    def _thinned(self, atoms: FloatArray, weights: FloatArray) -> FloatArray:
        """Weights of a vertex of all mixtures with the same M and prior: no more atoms than M has entries."""
        t = self.moment.counted(self.problem, atoms)
        share = self.moment.counted(self.problem, self.problem.prior[None, :])[0]
        i, j = np.triu_indices(t.shape[1])
        if i.size > ENTRIES_WORTH:
            return weights
        scaled = t / np.sqrt(share)
        columns = [scaled[:, i] * scaled[:, j], atoms / np.sqrt(self.problem.prior)]
        if self.moment.most_entropy is not None:
            columns.append(self.problem.costs(atoms)[:, None])
        table = np.concatenate(columns, axis=1)
        goal = weights @ table
        programme = Programme()
        programme.add_rows(goal - 1e-10, goal + 1e-10)
        row, entry = np.nonzero(table)
        costs = np.random.default_rng(1).random(len(atoms))
        programme.add_columns(costs, np.searchsorted(row, np.arange(len(atoms))), entry, table[row, entry])
        return np.maximum(programme.columns, 0.0) if programme.run() else weights
