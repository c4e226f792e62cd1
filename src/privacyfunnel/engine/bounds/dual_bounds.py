"""How the bound rises: by proofs at prices, and where those cannot prove enough in time, by simpler problems."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.engine.bounds.side_channels import ConditionalEntropyBound, RunFactory, SideChannels
from privacyfunnel.engine.clock import Clock, now
from privacyfunnel.engine.driver import DualBound
from privacyfunnel.engine.problem import Problem, Proof
from privacyfunnel.engine.reductions import SecretGroups, group_secrets
from privacyfunnel.engine.settings import SETTINGS


class Prover(Protocol):
    """Bounds the reduced cost of every allowed atom; see BranchAndBound.prove."""

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Proof: ...


class ProofBound(DualBound):
    """A proof at the master's prices, and nothing else."""

    def __init__(self, prior: FloatArray, prover: Prover, share: float = SETTINGS.bounds.proof_share) -> None:
        """`prior` is the right-hand side of the master's constraints, one per price."""
        self._prior, self._prover, self.share = prior, prover, share

    @property
    def is_exhausted(self) -> bool:
        return False

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """λ·p + min_v (cost(v) − λ·v)."""
        proof = self._prover.prove(prices, target, clock.deadline)
        self.bound = max(self.bound, float(prices @ self._prior) + proof.bound)
        return proof.atoms


class RelaxationBound(DualBound):
    """One secret at a time; branching for a while, where it can be done at all; simpler problems; branching again.

    Where inputs are so many that problems with fewer rows are no simpler, `one_secret` is all that is relaxed.
    """

    def __init__(self, problem: Problem, prover: Prover | None, begin: RunFactory, one_secret: bool = False) -> None:
        self._problem, self._begin = problem, begin
        self._branching = None if prover is None else ProofBound(problem.prior, prover)
        bounds = SETTINGS.bounds
        alone = bounds.class_share if problem.constraints.is_local else bounds.relaxing_share
        self.share = alone if prover is None else bounds.proof_share
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
            self._dearest = self._bound_single_secrets(clock.part(SETTINGS.bounds.one_secret_share))

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        if self._dearest is None:
            self._dearest = self._bound_single_secrets(clock.part(SETTINGS.bounds.one_secret_share))
        if self.relaxed:
            return self._prove_tighter(prices, target, clock)
        here = now()
        if self._relaxed_from == np.inf:
            patience = (clock.deadline - here) / SETTINGS.bounds.branching_part
            self._relaxed_from = here + (
                patience if np.isfinite(patience) else max(SETTINGS.bounds.branching_seconds, here - clock.start)
            )
        atoms = self._branch(prices, target, Clock(clock.start, self._relaxed_from))
        limited, again = bool(np.isfinite(clock.deadline)), 2 * now() - clock.start
        if self._branching is None:
            self._relax(float(prices @ self._problem.prior) - target, clock.deadline if limited else again)
            self.is_incomplete = not self.relaxed
        elif now() >= self._relaxed_from:
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
        goal = max(min(SETTINGS.bounds.loosest, SETTINGS.bounds.loosest_share * more), target)
        while True:
            atoms = self._branch(prices, goal, clock)
            if goal == target or atoms.size or now() >= clock.deadline:
                return atoms
            goal = max(goal / 2, target)

    def _relax(self, enough: float, deadline: float) -> None:
        """Raise the bound by simpler problems, until it is enough, or the deadline, or it has not risen for a while."""
        if self._simpler is None:
            self._simpler = self._side_channel_bounds(deadline)
        risen = now()
        patience = SETTINGS.bounds.stalled_share * (deadline - risen)
        for cost in self._simpler:
            if cost > self.bound:
                self.bound, risen = cost, now()
                self.on_change()
            if self.bound >= enough or now() > risen + patience:
                return
        self.relaxed = True

    def _bound_single_secrets(self, clock: Clock) -> list[int]:
        """Each secret against the others; the secrets, the dearest first."""
        groups = group_secrets(self._problem)
        if groups is None:
            return []
        costs = np.array(
            [self._bound_one_secret(groups, s, clock.part(1 / (1 + groups.count - s))) for s in range(groups.count)]
        )
        return [int(s) for s in np.argsort(-costs)]

    def _bound_one_secret(self, groups: SecretGroups, secret: int, clock: Clock) -> float:
        """Raise the bound by what one secret against the others costs."""
        problem = groups.single_out([secret])
        if problem is None or clock.late:
            return 0.0
        cost = self._lower_bound(problem, SETTINGS.bounds.one_secret_gap, clock.seconds_left)
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
