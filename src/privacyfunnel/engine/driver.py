r"""The one loop of the engine: column generation with a proof.

.. math:: \min \sum_y q_y \operatorname{cost}(v_y) \quad\text{s.t.}\quad \sum_y q_y v_y = p,\ q \ge 0,\ v_y \in V .

Each round solves the restricted master over the known atoms, searches for atoms of negative reduced cost at its prices,
and, once searches find nothing worth the gap, proves a lower bound on every reduced cost. For any prices λ every split
costs at least λ·p + min_v (cost(v) − λ·v), so every proof bounds the optimum; the bound is the best of them, the value
that of the best known split.

The master decides what is minimised: an entropy (masters/restricted_master.py, blocks.py), a second moment (moment.py),
an entropy under an average constraint (average.py), or squared error on a line (masters/actions.py).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, Matrix
from privacyfunnel.engine.clock import FOREVER, Clock, TimeUpError
from privacyfunnel.engine.problem import Split
from privacyfunnel.engine.settings import SETTINGS

Progress = Callable[[float, float], None]


class Master(ABC):
    """A restricted master: known atoms, their best mixture, and its prices. Most have no slack."""

    size: int  # number of prices
    value: float  # of the best split so far
    on_change: Callable[[], None] = staticmethod(lambda: None)  # called when the value changed during a long step

    @abstractmethod
    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> FloatArray | None:
        """Add first atoms, among them `start`; prices that are about right, where known."""

    @abstractmethod
    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        """Solve the restricted master: prices, and how much slack it uses."""

    @abstractmethod
    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        """Atoms of small reduced cost."""

    @abstractmethod
    def best(self, clock: Clock) -> tuple[FloatArray, Matrix, float]:
        """Weights, atoms and value of the best split so far, refined while there is time."""

    def learn(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Add what a search found; the least reduced cost at `prices` of what was new, 0 where nothing was."""
        return 0.0

    def learn_from_proof(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Add what a proof met; the same."""
        return self.learn(atoms, prices)

    def allowed(self, gap: float) -> float:
        """The gap in the units of the value."""
        return gap

    def worth(self, gap: float) -> float:
        """A search that finds no reduced cost below minus this found nothing."""
        return 0.0

    def proof_target(self, gap: float, least: float, late: bool) -> float:
        """The excess −min(cost(v) − λ·v) that a proof is asked to stay below."""
        return gap

    def raise_slack_price(self) -> None:
        """Make slack more expensive."""
        return

    def slack_price_threshold(self, gap: float) -> float:
        """The slack price rises once no reduced cost is known below minus this."""
        return 0.0


class DualBound:
    """A lower bound on every split that only rises; this one never does, and is for runs that only search."""

    bound = 0.0
    share = 0.0  # of a time limit that is reserved for proofs
    is_incomplete = False  # whether the last proof ended early, to be resumed
    on_change: Callable[[], None] = staticmethod(lambda: None)  # called when the bound rose during a long step

    @property
    def is_exhausted(self) -> bool:
        """Whether no proof can raise it any more."""
        return True

    def begin(self, clock: Clock) -> None:
        """Raise the bound by what needs no prices and little time."""

    def prove(self, prices: FloatArray, target: float, clock: Clock) -> FloatArray:
        """Raise the bound by a proof at these prices; atoms met on the way."""
        return np.empty((0, prices.size))

    def disable_relaxations(self) -> None:
        """Use no relaxations: the problem is one already."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a run proceeds.

    Prices jump while many splits cost the same: `damping` is the weight of the past in the running average at which
    the search is called. After `patience` searches without a find the pricing problem counts as solved: up to the gap,
    or up to `closest` where nothing is proved. By the share `early` of a time limit something must be proved, in
    `early_share` of the rest. The run ends after `fruitless` proofs that changed nothing, after `stalled` rounds that
    closed next to nothing of the gap, or after `rounds`.
    """

    damping: float = 0.0
    patience: int = 1
    closest: float = np.inf  # nats
    early: float | None = None
    early_share: float = 1.0
    fruitless: int = 1
    stalled: float = np.inf
    rounds: float = np.inf


class ColumnGeneration:
    """The state of a run: a master, a bound, and the prices last searched at."""

    def __init__(self, master: Master, dual_bound: DualBound, pace: Pace, strategy: str = "") -> None:
        self.master, self.dual_bound, self.pace, self.strategy = master, dual_bound, pace, strategy
        self.prices = np.zeros(master.size)  # at which the search was last called
        self._begun = False
        self._progress: Progress | None = None
        master.on_change = dual_bound.on_change = self._report

    @property
    def value(self) -> float:
        return self.master.value

    @property
    def bound(self) -> float:
        return self.dual_bound.bound

    def run(
        self,
        gap: float,
        time_limit: float | None = None,
        progress: Progress | None = None,
        start: FloatArray | None = None,
        *,
        proofs: bool = True,
    ) -> None:
        """Iterate until the gap is reached, time is up, or nothing is left to try; a second call resumes.

        Without `proofs`, until the search finds nothing worth a gap of this size.
        """
        self._progress = progress
        with suppress(TimeUpError):
            self._iterate(gap, Clock.from_limit(time_limit), start, proofs)

    def _iterate(self, gap: float, clock: Clock, start: FloatArray | None, proofs: bool) -> None:
        master, bounds, pace = self.master, self.dual_bound, self.pace
        sought, unproved = min(gap, pace.closest), self.bound
        limited = proofs and np.isfinite(clock.deadline)
        proving = clock.part(1 - bounds.share) if limited else clock
        early = clock.part(pace.early) if limited and pace.early is not None else FOREVER
        if proofs:
            bounds.begin(clock)
        steady = self.prices if self._begun else master.begin(start, gap, proving)
        self._begun = True
        rounds = in_vain = fruitless = stalled = 0
        narrowest = np.inf
        while rounds < pace.rounds:
            rounds += 1
            prices, slack = master.solve(clock)
            self._report()
            open_gap, allowed = self.value - self.bound, master.allowed(gap)
            stalled = stalled + 1 if open_gap > narrowest - SETTINGS.moments.stalled_gain * allowed else 0
            narrowest = min(narrowest, open_gap)
            if open_gap <= allowed or stalled >= pace.stalled:
                return
            clock.check()
            late = proving.late and not bounds.is_exhausted
            searching = clock if bounds.is_exhausted else proving
            if late:
                searching = clock.part(SETTINGS.driver.late_share)
            self.prices = steady = prices if steady is None else pace.damping * steady + (1 - pace.damping) * prices
            least = master.learn(master.search(steady, searching), prices)
            if pace.damping > 0.0 and least >= -master.worth(sought):
                self.prices = steady = prices
                least = min(least, master.learn(master.search(prices, searching), prices))
            if slack > SETTINGS.tolerance.near and least >= -master.slack_price_threshold(sought) and not late:
                master.raise_slack_price()
                continue
            in_vain = 0 if least < -master.worth(sought) else in_vain + 1
            first = early.late and self.bound == unproved
            if in_vain < pace.patience and not (late or first):
                continue
            if not proofs:
                return
            until = clock.part(pace.early_share) if first and in_vain < pace.patience and not late else clock
            # When late, known atoms below the target must not end the proof before it has raised the bound.
            target = master.proof_target(gap, least, late)
            added = master.learn_from_proof(bounds.prove(steady if late else prices, target, until), prices)
            ended = bounds.is_exhausted or (least == 0.0 and not bounds.is_incomplete)
            fruitless = fruitless + 1 if added == 0.0 and in_vain >= pace.patience and ended else 0
            if fruitless >= pace.fruitless or self.value - self.bound <= master.allowed(gap):
                self._report()
                return

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(self.value, self.bound)

    def best(self, clock: Clock = FOREVER) -> Split:
        """The best split so far with its bound, and the strategy that found it."""
        weights, atoms, value = self.master.best(clock)
        return Split(weights, atoms, value, self.bound, self.strategy)
