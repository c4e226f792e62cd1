"""How the bound rises: by proofs at prices, and where those cannot prove enough in time, by simpler problems."""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.clock import Clock
from privacyfunnel.engine.problem import Problem, Proof
from privacyfunnel.engine.reductions import Groups, Part, grouped_secrets, nearly_alike, side_channels, which_class

PROOF_SHARE, SIMPLER_SHARE = 0.4, 0.3  # of a time limit, for proofs; and where simpler problems alone are proved
CLASSES_SHARE = 0.5  # the same where these are about classes: they take long, and what they leave of it is searched in
PROVING_SHARE = 6  # one part in so many of the time left goes to branching before problems are relaxed
LEAST_PATIENCE = 5.0  # seconds that branching gets where there is no time limit
LOOSEST = 0.64  # nats: the first proof by branching
EASIER_GAP = 0.01  # of what the prior costs: how well simpler problems are solved
ONE_SECRET_GAP = 0.001  # the same for one secret against the rest, which takes no time
ONE_SECRET_SHARE = 0.5  # of the time left, for all of these
MANY_ALIKE = 400  # inputs of a problem about one secret beyond which those nearly alike are one …
ALIKE = 0.01, 0.004  # … up to these log-ratios: for each secret, and for the dearest again
MOST_CLASSES = 8  # of a side channel: with more, which one it is takes too long to bound
CLOSER = 5  # times as well, where it is known which of them says most
LOOKING_SHARE = 0.4  # of the time for side channels, to find out which one that is


class Prover(Protocol):
    """Bounds the reduced cost of every allowed atom; see BestFirst.prove."""

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Proof: ...


class Bounding(Protocol):
    """A bound that only rises."""

    bound: float
    share: float  # of a time limit: the part that is kept for it
    cut_short: bool  # whether the last proof ended early, to be taken up again
    tell: Callable[[], None]  # called when the bound rose in the middle of something long

    @property
    def proved_all(self) -> bool:
        """Whether no proof will ever say more."""

    def begin(self, clock: Clock) -> None:
        """Raise the bound by what needs no prices, and takes little of the time."""

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """Raise the bound by a proof at these prices; the atoms met on the way."""

    def relax_no_further(self) -> None:
        """Do without simpler problems: this is one already."""


class ByProof:
    """A proof at the master's prices, and nothing else."""

    share = PROOF_SHARE
    proved_all = False

    def __init__(self, problem: Problem, prover: Prover) -> None:
        self._problem, self._prover = problem, prover
        self.bound, self.cut_short = 0.0, False
        self.tell: Callable[[], None] = lambda: None

    def begin(self, clock: Clock) -> None:
        """Nothing."""

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """λ·p + min_v (cost(v) − λ·v)."""
        proof = self._prover.prove(prices, target, clock.deadline)
        self.bound = max(self.bound, float(prices @ self._problem.prior) + proof.bound)
        return proof.atoms

    def relax_no_further(self) -> None:
        """It never does."""


class NoProof:
    """For runs that only search."""

    bound, share, cut_short, proved_all = 0.0, 0.0, False, True

    def __init__(self) -> None:
        self.tell: Callable[[], None] = lambda: None

    def begin(self, clock: Clock) -> None:
        """Nothing."""

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """Nothing."""
        return np.empty((0, prices.size))

    def relax_no_further(self) -> None:
        """It never does."""


# What every split of a simpler problem costs at least: called with the problem, a gap and seconds.
Easier = Callable[[Problem, float, float], float]


class ByRelaxations:
    """One secret at a time; branching for a while, where it can be done at all; simpler problems; branching again.

    Where inputs are so many that problems with fewer rows are no simpler, `one_secret` is all that is relaxed.
    """

    def __init__(self, problem: Problem, prover: Prover | None, easier: Easier, one_secret: bool = False) -> None:
        self._problem, self._easier = problem, easier
        self._branching = None if prover is None else ByProof(problem, prover)
        self.share = PROOF_SHARE if prover is not None else CLASSES_SHARE if problem.rows.local else SIMPLER_SHARE
        self.bound, self.cut_short = 0.0, False
        self.tell: Callable[[], None] = lambda: None
        self.relaxed, self._relaxed_from = one_secret, np.inf
        self._dearest: list[int] | None = None  # secrets, once each was looked at alone

    def relax_no_further(self) -> None:
        """Go on by branching alone."""
        self.relaxed, self._dearest = True, []

    @property
    def proved_all(self) -> bool:
        """Once relaxed, only branching can say more."""
        return self.relaxed and self._branching is None and self._dearest is not None

    def begin(self, clock: Clock) -> None:
        """One secret at a time, where that is all there is to relax."""
        if self.relaxed and self._dearest is None:
            self._dearest = self._one_by_one(clock.part(ONE_SECRET_SHARE))

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """See Bounding."""
        if self._dearest is None:
            self._dearest = self._one_by_one(clock.part(ONE_SECRET_SHARE))
        if self.relaxed:
            return self._ever_closer(prices, target, clock)
        now = time.monotonic()
        if self._relaxed_from == np.inf:
            patience = (clock.deadline - now) / PROVING_SHARE
            self._relaxed_from = now + (patience if np.isfinite(patience) else max(LEAST_PATIENCE, now - clock.begun))
        atoms = self._branched(prices, target, Clock(clock.begun, self._relaxed_from))
        if self._branching is None or time.monotonic() >= self._relaxed_from:
            self._relax(min(clock.deadline, 2 * time.monotonic() - clock.begun))
            self.cut_short = bool(np.isfinite(clock.deadline))  # without a limit no more is tried
        return atoms

    def _branched(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        if self._branching is None:
            return np.empty((0, prices.size))
        atoms = self._branching.prove(prices, target, clock)
        self.bound = max(self.bound, self._branching.bound)
        return atoms

    def _ever_closer(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """Proofs of ever smaller targets, since a proof that is cut short says little."""
        self.cut_short = False
        more = float(prices @ self._problem.prior) - self.bound  # what a proof must stay below to say anything new
        goal = max(min(LOOSEST, 0.75 * more), target)
        while True:
            atoms = self._branched(prices, goal, clock)
            if goal == target or atoms.size or time.monotonic() >= clock.deadline:
                return atoms
            goal = max(goal / 2, target)

    def by_relaxing(self, seconds: float) -> float:
        """The bound that simpler problems alone give in so many seconds."""
        self._relax(time.monotonic() + seconds)
        return self.bound

    def _relax(self, deadline: float) -> None:
        """Raise the bound by simpler problems, until the deadline."""
        self.relaxed = True
        for cost in chain(self._by_secrets(deadline), self._by_side_channels(deadline)):
            self.bound = max(self.bound, cost)
            self.tell()

    def _one_by_one(self, clock: Clock) -> list[int]:
        """Each secret against the others, from inputs that are nearly alike to it; the secrets, the dearest first."""
        groups = grouped_secrets(self._problem)
        if groups is None:
            return []
        costs = np.array(
            [self._alone(groups, s, ALIKE[0], clock.part(1 / (1 + groups.count - s))) for s in range(groups.count)]
        )
        order = [int(s) for s in np.argsort(-costs)]
        self._alone(groups, order[0], ALIKE[1], clock)
        return order

    def _alone(self, groups: Groups, secret: int, eta: float, clock: Clock) -> float:
        """Raise the bound by what one secret against the others costs."""
        problem = groups.singled_out([secret])
        if problem is None or clock.late:
            return 0.0
        if problem.size > MANY_ALIKE:
            problem = nearly_alike(problem, eta)
        cost = self._easier(problem, ONE_SECRET_GAP * self._problem.worth, clock.left)
        self.bound = max(self.bound, cost)
        self.tell()
        return cost

    def _by_secrets(self, deadline: float) -> Iterator[float]:
        """Ever more secrets singled out, the dearest first."""
        groups = grouped_secrets(self._problem)
        if groups is not None and self._dearest:
            for few in range(3, groups.count, 2):
                yield self._cost(groups.singled_out(self._dearest[:few]), deadline)

    def _by_side_channels(self, deadline: float) -> Iterator[float]:
        """Every side channel for a while, first each on its own; then the one that says most, for the time left."""
        deeper = [parts for parts in side_channels(self._problem, deeper=True) if len(parts) <= MOST_CLASSES]
        ways: list[tuple[Sequence[Part], Problem | None]] = [(parts, None) for parts in side_channels(self._problem)]
        ways += [(parts, which_class(self._problem, parts)) for parts in deeper]
        until, costs = _part_of_time(deadline, LOOKING_SHARE), []
        for number, way in enumerate(ways):
            share = 1 / (2 if number == 0 else len(ways) - number)  # knowing nothing, which always says something
            costs.append(self._cost_by_classes(*way, _part_of_time(until, share), EASIER_GAP))
            yield costs[-1]
        if ways:
            yield self._cost_by_classes(*ways[int(np.argmax(costs))], deadline, EASIER_GAP / CLOSER)

    def _cost_by_classes(self, parts: Sequence[Part], told: Problem | None, deadline: float, gap: float) -> float:
        """What it costs at least to leave open which input of its class it is, and which class where that is told."""
        cost, left = 0.0, sum(part.mass for part in parts) + (told is not None)
        for part in sorted(parts, key=lambda part: part.problem.size):
            cost += part.mass * self._cost(part.problem, _part_of_time(deadline, part.mass / left), gap)
            left -= part.mass
        return cost + self._cost(told, deadline, gap)

    def _cost(self, problem: Problem | None, deadline: float, gap: float = EASIER_GAP) -> float:
        """What every split of a simpler problem costs at least."""
        left = deadline - time.monotonic()
        if problem is None or left <= 0:
            return 0.0
        return self._easier(problem, gap * self._problem.worth, left)


def _part_of_time(deadline: float, share: float) -> float:
    """When this share of the time until the deadline is over."""
    now = time.monotonic()
    return now + share * (deadline - now)
