"""How the bound rises: by proofs at prices, and where those cannot prove enough in time, by simpler problems."""

import time
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.bounds.conditional_entropy import ConditionalEntropyBound, RunFactory
from privacyfunnel.engine.bounds.side_channel_relaxation import SideChannels
from privacyfunnel.engine.clock import Clock
from privacyfunnel.engine.problem import Problem, Proof
from privacyfunnel.engine.reductions.reduced_problems import (
    SecretGroups,
    group_secrets,
    merge_similar,
    narrow_parts,
    relax_parts,
)

PROOF_SHARE, SIMPLER_SHARE = 0.4, 0.3  # of a time limit, for proofs; and where simpler problems alone are proved
CLASSES_SHARE = 0.55  # the same where these are about classes: they take long, and what they leave of it is searched in
PROVING_SHARE = 6  # one part in so many of the time left goes to branching before problems are relaxed
LEAST_PATIENCE = 5.0  # seconds that branching gets where there is no time limit
LOOSEST = 0.64  # nats: the first proof by branching
STILL = 0.1  # of the time for simpler problems: where none says more for so long, others have a turn
ONE_SECRET_GAP = 0.001  # of what the prior costs: how well one secret against the rest is solved, which takes no time
ONE_SECRET_SHARE = 0.5  # of the time left, for all of these
MANY_ALIKE = 400  # inputs of a problem about one secret beyond which those nearly alike are one …
ALIKE = 0.01, 0.004  # … up to these log-ratios: for each secret, and for the dearest again
TWO_SECRETS_SHARE = 0.7  # of the time left, for the two dearest secrets, where all of them are never branched on …
TWO_SECRETS_SECONDS = 8.0  # … where that is so much: in less nothing is proved, and the search misses it …
PARTS_OF_TWO, TWO_SECRETS_GAP = 450, 0.0005  # … over so many parts of inputs, to so much of what the prior costs


class Prover(Protocol):
    """Bounds the reduced cost of every allowed atom; see BestFirst.prove."""

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Proof: ...


class DualBound(Protocol):
    """A bound that only rises."""

    bound: float
    share: float  # of a time limit: the part that is kept for it
    is_incomplete: bool  # whether the last proof ended early, to be taken up again
    on_change: Callable[[], None]  # called when the bound rose in the middle of something long

    @property
    def is_exhausted(self) -> bool:
        """Whether no proof will ever say more."""

    def begin(self, clock: Clock) -> None:
        """Raise the bound by what needs no prices, and takes little of the time."""

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """Raise the bound by a proof at these prices; the atoms met on the way."""

    def disable_relaxations(self) -> None:
        """Do without simpler problems: this is one already."""


class ProofBound:
    """A proof at the master's prices, and nothing else."""

    share = PROOF_SHARE
    is_exhausted = False

    def __init__(self, problem: Problem, prover: Prover) -> None:
        self._problem, self._prover = problem, prover
        self.bound, self.is_incomplete = 0.0, False
        self.on_change: Callable[[], None] = lambda: None

    def begin(self, clock: Clock) -> None:
        """Nothing."""

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """λ·p + min_v (cost(v) − λ·v)."""
        proof = self._prover.prove(prices, target, clock.deadline)
        self.bound = max(self.bound, float(prices @ self._problem.prior) + proof.bound)
        return proof.atoms

    def disable_relaxations(self) -> None:
        """It never does."""


class NoBound:
    """For runs that only search."""

    bound, share, is_incomplete, is_exhausted = 0.0, 0.0, False, True

    def __init__(self) -> None:
        self.on_change: Callable[[], None] = lambda: None

    def begin(self, clock: Clock) -> None:
        """Nothing."""

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """Nothing."""
        return np.empty((0, prices.size))

    def disable_relaxations(self) -> None:
        """It never does."""


class RelaxationBound:
    """One secret at a time; branching for a while, where it can be done at all; simpler problems; branching again.

    Where inputs are so many that problems with fewer rows are no simpler, `one_secret` is all that is relaxed.
    """

    def __init__(self, problem: Problem, prover: Prover | None, begin: RunFactory, one_secret: bool = False) -> None:
        self._problem, self._begin = problem, begin
        self._branching = None if prover is None else ProofBound(problem, prover)
        self.share = (
            PROOF_SHARE if prover is not None else CLASSES_SHARE if problem.constraints.is_local else SIMPLER_SHARE
        )
        self.bound, self.is_incomplete = 0.0, False
        self.on_change: Callable[[], None] = lambda: None
        self.relaxed, self._relaxed_from = one_secret, np.inf
        self._dearest: list[int] | None = None  # secrets, once each was looked at alone
        self._simpler: Iterator[float] | None = None  # what simpler problems say, once they are asked

    def disable_relaxations(self) -> None:
        """Go on by branching alone."""
        self.relaxed, self._dearest = True, []

    @property
    def is_exhausted(self) -> bool:
        """Once relaxed, only branching can say more."""
        return self.relaxed and self._branching is None and self._dearest is not None

    def begin(self, clock: Clock) -> None:
        """One secret at a time, where that is all there is to relax."""
        if self.relaxed and self._dearest is None:
            self._dearest = self._bound_single_secrets(clock.part(ONE_SECRET_SHARE))

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """See Bounding."""
        if self._dearest is None:
            self._dearest = self._bound_single_secrets(clock.part(ONE_SECRET_SHARE))
        if self.relaxed:
            return self._prove_tighter(prices, target, clock)
        now = time.monotonic()
        if self._relaxed_from == np.inf:
            patience = (clock.deadline - now) / PROVING_SHARE
            self._relaxed_from = now + (patience if np.isfinite(patience) else max(LEAST_PATIENCE, now - clock.start))
        atoms = self._branch(prices, target, Clock(clock.start, self._relaxed_from))
        limited, again = bool(np.isfinite(clock.deadline)), 2 * time.monotonic() - clock.start
        if self._branching is None:
            self._relax(float(prices @ self._problem.prior) - target, clock.deadline if limited else again)
            self.is_incomplete = not self.relaxed
        elif time.monotonic() >= self._relaxed_from:
            self._relax(np.inf, min(clock.deadline, again))
            self.is_incomplete = limited or not self.relaxed  # without a limit no more is tried
        return atoms

    def _branch(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        if self._branching is None:
            return np.empty((0, prices.size))
        atoms = self._branching.prove(prices, target, clock)
        self.bound = max(self.bound, self._branching.bound)
        return atoms

    def _prove_tighter(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """Proofs of ever smaller targets, since a proof that is cut short says little."""
        self.is_incomplete = False
        more = float(prices @ self._problem.prior) - self.bound  # what a proof must stay below to say anything new
        goal = max(min(LOOSEST, 0.75 * more), target)
        while True:
            atoms = self._branch(prices, goal, clock)
            if goal == target or atoms.size or time.monotonic() >= clock.deadline:
                return atoms
            goal = max(goal / 2, target)

    def _relax(self, enough: float, deadline: float) -> None:
        """Raise the bound by simpler problems, until it is enough, or the deadline, or it has not risen for a while."""
        if self._simpler is None:
            self._simpler = self._side_channel_bounds(deadline)
        risen = time.monotonic()
        patience = STILL * (deadline - risen)
        for cost in self._simpler:
            if cost > self.bound:
                self.bound, risen = cost, time.monotonic()
                self.on_change()
            if self.bound >= enough or time.monotonic() > risen + patience:
                return
        self.relaxed = True

    def _bound_single_secrets(self, clock: Clock) -> list[int]:
        """Each secret against the others, from inputs that are nearly alike to it; the secrets, the dearest first."""
        groups = group_secrets(self._problem)
        if groups is None:
            return []
        costs = np.array(
            [
                self._bound_one_secret(groups, s, ALIKE[0], clock.part(1 / (1 + groups.count - s)))
                for s in range(groups.count)
            ]
        )
        order = [int(s) for s in np.argsort(-costs)]
        self._bound_one_secret(groups, order[0], ALIKE[1], clock)
        if self._branching is None and self._problem.constraints.compares_with_everybody:
            self._bound_secret_pair(groups.restrict_to(order[:2]), clock.part(TWO_SECRETS_SHARE))
        return order

    def _bound_secret_pair(self, problem: Problem, clock: Clock) -> None:
        """Raise the bound by what two secrets cost, over parts of inputs at their best."""
        if len(problem.constraints) and problem.size > PARTS_OF_TWO and clock.seconds_left >= TWO_SECRETS_SECONDS:
            small = relax_parts(problem, narrow_parts(problem, PARTS_OF_TWO))
            self.bound = max(self.bound, self._lower_bound(small, TWO_SECRETS_GAP, clock.seconds_left))
            self.on_change()

    def _bound_one_secret(self, groups: SecretGroups, secret: int, eta: float, clock: Clock) -> float:
        """Raise the bound by what one secret against the others costs."""
        problem = groups.single_out([secret])
        if problem is None or clock.late:
            return 0.0
        if problem.size > MANY_ALIKE:
            problem = merge_similar(problem, eta)
        cost = self._lower_bound(problem, ONE_SECRET_GAP, clock.seconds_left)
        self.bound = max(self.bound, cost)
        self.on_change()
        return cost

    def _side_channel_bounds(self, deadline: float) -> Iterator[float]:
        """What side channels leave open, taken together."""
        channels = SideChannels.from_problem(self._problem)
        if channels is not None:
            yield from ConditionalEntropyBound(channels, self._begin).bounds(deadline)

    def _lower_bound(self, problem: Problem, gap: float, seconds: float) -> float:
        """What every split of a simpler problem costs at least, as far as that is proved in time."""
        run = self._begin(problem)
        run.run(gap * self._problem.prior_cost, seconds)
        return run.bound
