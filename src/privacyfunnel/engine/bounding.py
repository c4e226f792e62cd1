"""How the bound rises: by proofs at prices, and where those cannot prove enough in time, by simpler problems."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.clock import Clock
from privacyfunnel.engine.problem import Problem, Proof
from privacyfunnel.engine.reductions import Groups, Part, at_their_best, grouped_secrets, narrow_parts, nearly_alike
from privacyfunnel.engine.side_channels import Open, SideChannels

PROOF_SHARE, SIMPLER_SHARE = 0.4, 0.3  # of a time limit, for proofs; and where simpler problems alone are proved
CLASSES_SHARE = 0.55  # the same where these are about classes: they take long, and what they leave of it is searched in
PROVING_SHARE = 6  # one part in so many of the time left goes to branching before problems are relaxed
LEAST_PATIENCE = 5.0  # seconds that branching gets where there is no time limit
LOOSEST = 0.64  # nats: the first proof by branching
STILL = 0.1  # of the time for simpler problems: where none says more for so long, others have a turn
EASIER_GAP = 0.01  # of what the prior costs: how well simpler problems are solved
ONE_SECRET_GAP = 0.001  # the same for one secret against the rest, which takes no time
ONE_SECRET_SHARE = 0.5  # of the time left, for all of these
MANY_ALIKE = 400  # inputs of a problem about one secret beyond which those nearly alike are one …
ALIKE = 0.01, 0.004  # … up to these log-ratios: for each secret, and for the dearest again
TWO_SECRETS_SHARE = 0.7  # of the time left, for the two dearest secrets, where all of them are never branched on …
TWO_SECRETS_SECONDS = 8.0  # … where that is so much: in less nothing is proved, and the search misses it …
PARTS_OF_TWO, TWO_SECRETS_GAP = 450, 0.0005  # … over so many parts of inputs, to so much of what the prior costs
ONE_CHANNEL_SHARE = 0.4  # of the time left, for one side channel: small classes come first, and take little
WORTH_CLOSER = 0.015  # of what the prior costs, over the inputs of the next class: for such a gain those begun go first
CLOSER, CLOSEST = 5, 5e-4  # times as well each time; and as well as they ever are
NEARLY = 2  # times the gap that was asked for: problems solved so well count as solved


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


@dataclass(frozen=True, slots=True)
class Cost:
    """What every split of a problem costs at least, and what the best one found does."""

    least: float
    found: float


# What a simpler problem costs: called with the problem, a gap and seconds.
Easier = Callable[[Problem, float, float], Cost]


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
        self._simpler: Iterator[float] | None = None  # what simpler problems say, once they are asked

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
        limited, again = bool(np.isfinite(clock.deadline)), 2 * time.monotonic() - clock.begun
        if self._branching is None:
            self._relax(float(prices @ self._problem.prior) - target, clock.deadline if limited else again)
            self.cut_short = not self.relaxed
        elif time.monotonic() >= self._relaxed_from:
            self._relax(np.inf, min(clock.deadline, again))
            self.cut_short = limited or not self.relaxed  # without a limit no more is tried
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

    def _relax(self, enough: float, deadline: float) -> None:
        """Raise the bound by simpler problems, until it is enough, or the deadline, or it has not risen for a while."""
        if self._simpler is None:
            self._simpler = chain(self._by_secrets(deadline), self._by_side_channels(deadline))
        risen = time.monotonic()
        patience = STILL * (deadline - risen)
        for cost in self._simpler:
            if cost > self.bound:
                self.bound, risen = cost, time.monotonic()
                self.tell()
            if self.bound >= enough or time.monotonic() > risen + patience:
                return
        self.relaxed = True

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
        if self._branching is None and self._problem.rows.against_everybody:
            self._two(groups.only(order[:2]), clock.part(TWO_SECRETS_SHARE))
        return order

    def _two(self, problem: Problem, clock: Clock) -> None:
        """Raise the bound by what two secrets cost, over parts of inputs at their best."""
        if len(problem.rows) and problem.size > PARTS_OF_TWO and clock.left >= TWO_SECRETS_SECONDS:
            small = at_their_best(problem, narrow_parts(problem, PARTS_OF_TWO))
            cost = self._easier(small, TWO_SECRETS_GAP * self._problem.worth, clock.left)
            self.bound = max(self.bound, cost.least)
            self.tell()

    def _alone(self, groups: Groups, secret: int, eta: float, clock: Clock) -> float:
        """Raise the bound by what one secret against the others costs."""
        problem = groups.singled_out([secret])
        if problem is None or clock.late:
            return 0.0
        if problem.size > MANY_ALIKE:
            problem = nearly_alike(problem, eta)
        cost = self._easier(problem, ONE_SECRET_GAP * self._problem.worth, clock.left).least
        self.bound = max(self.bound, cost)
        self.tell()
        return cost

    def _by_secrets(self, deadline: float) -> Iterator[float]:
        """Ever more secrets singled out, the dearest first."""
        groups = grouped_secrets(self._problem)
        if groups is not None and self._dearest:
            for few in range(3, groups.count, 2):
                few_of_them = groups.singled_out(self._dearest[:few])
                yield self._cost(few_of_them, deadline, EASIER_GAP * self._problem.worth).least

    def _by_side_channels(self, deadline: float) -> Iterator[float]:
        """What side channels leave open, taken together: small classes first, and closer wherever that would count.

        Whether it would is seen from what was found: each may turn out to cost as much as that. Those that were not
        solved in their time are not counted on.
        """
        channels = SideChannels.of(self._problem)
        if channels is None:
            return
        least = np.zeros((len(channels.divisions),) * 2)
        waiting, solved = channels.open(), dict[Open, tuple[float, float]]()  # to which gap, and what was found
        while time.monotonic() < deadline:
            most = least.copy()
            for at, (_, found) in solved.items():
                most[at.pair] = max(most[at.pair], found)
            counts = channels.together(most)[1]
            gain = {at: counts[at.pair] * (found - least[at.pair]) for at, (_, found) in solved.items()}
            asked = max(gain, key=lambda at: gain[at], default=None)
            if waiting and (asked is None or gain[asked] < WORTH_CLOSER * self._problem.worth / waiting[0].inputs):
                asked, gap = waiting.pop(0), EASIER_GAP
            elif asked is None or gain[asked] <= 0:
                return
            else:
                gap = solved[asked][0] / CLOSER
            cost = self._cost_of_parts(channels.parts(asked), _part_of_time(deadline, ONE_CHANNEL_SHARE), gap)
            least[asked.pair] = max(least[asked.pair], cost.least)
            solved[asked] = gap, cost.found if gap > CLOSEST else cost.least
            yield channels.together(least)[0]

    def _cost_of_parts(self, parts: Sequence[Part], deadline: float, gap: float) -> Cost:
        """What it costs to leave open what is asked of each class."""
        least = found = allowed = 0.0
        for number, part in enumerate(sorted(parts, key=lambda part: part.mass)):
            until = _part_of_time(deadline, 1 / (len(parts) - number))
            cost = self._cost(part.problem, until, gap * part.problem.worth)
            least, found = least + part.mass * cost.least, found + part.mass * cost.found
            allowed += part.mass * NEARLY * gap * part.problem.worth
        return Cost(least, found if found - least <= allowed else least)

    def _cost(self, problem: Problem | None, deadline: float, gap: float) -> Cost:
        """What every split of a simpler problem costs at least, and what one does."""
        left = deadline - time.monotonic()
        return Cost(0.0, 0.0) if problem is None or left <= 0 else self._easier(problem, gap, left)


def _part_of_time(deadline: float, share: float) -> float:
    """When this share of the time until the deadline is over."""
    now = time.monotonic()
    return now + share * (deadline - now)
