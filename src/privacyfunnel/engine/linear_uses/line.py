r"""The split of least squared error, where an output is acted upon by any number: actions on a line.

Acting by t costs :math:`(x - t)^2`. At prices λ the cheapest atom and action are found along the line: with

.. math:: h(t) = \min_{v \in V} \sum_z (x_z^2 - 2 t x_z - \lambda_z) v_z, \qquad
   \min_{t, v} \sum_z \bigl((x_z - t)^2 - \lambda_z\bigr) v_z = \min_t\, t^2 + h(t),

h is concave, a minimum of linear functions of t. Between two numbers at which it is known it lies above its chord, so
:math:`t^2` and the chord bound all actions in between, in closed form; the pieces are taken best-first and cut where
the tangents of their ends meet. The master is the linear programme of `actions.py` over the actions known so far.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, sparse
from privacyfunnel.engine.bounds.dual_bounds import ProofBound
from privacyfunnel.engine.clock import Clock, TimeUpError
from privacyfunnel.engine.driver import ColumnGeneration, Pace
from privacyfunnel.engine.linear_uses.actions import split_by_actions
from privacyfunnel.engine.oracles.oracle import Oracle
from privacyfunnel.engine.problem import Proof
from privacyfunnel.engine.settings import SETTINGS


@dataclass(frozen=True, slots=True, eq=False)
class LineSplit:
    """The best split found, by action, and what every split costs at least."""

    masses: FloatArray  # (k, d): what each action takes of the prior
    bound: float


@dataclass(frozen=True, slots=True)
class _End:
    """A number t, a lower bound on h there, and the line of the atom that was cheapest: h(t') <= height + slope·t'."""

    t: float
    lower: float
    height: float
    slope: float


def split_on_line(
    cone: sparse.csr_array,
    oracle: Oracle,
    p: FloatArray,
    x: FloatArray,
    best: FloatArray,
    tolerance: float,
    time_limit: float | None = None,
) -> LineSplit:
    """The split of p in the cone of least Σ q Var_v(x), up to the tolerance, to rounding or to the time.

    It is proved for the oracle's atoms, which may be a few more. `x` lies between 0 and 1. `best` is an allowed split
    to begin with, which is better than none.
    """
    master = LineMaster(cone, oracle, p, x, best, tolerance)
    pace = Pace(rounds=SETTINGS.averages.line_rounds)
    run = ColumnGeneration(master, ProofBound(p, master, share=0.0), pace, "numbers on a line")
    run.run(tolerance, SETTINGS.averages.line_seconds if time_limit is None else time_limit)
    return LineSplit(master.masses, run.bound)


class LineMaster:
    """The linear programme over the actions known so far; the minimum along the line is search and proof at once."""

    def __init__(
        self, cone: sparse.csr_array, oracle: Oracle, p: FloatArray, x: FloatArray, best: FloatArray, tolerance: float
    ) -> None:
        self._cone, self._oracle, self._p, self._x, self._tolerance = cone, oracle, p, x, tolerance
        self.masses, self.size, self.value = best, p.size, _spread(best, x)[0]
        self.on_change: Callable[[], None] = lambda: None
        self._places, self._means = np.unique(x), np.empty(0)

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> None:
        """The numbers themselves are the first actions."""

    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        """The best split over the known actions."""
        losses = np.square(self._places[:, None] - self._x)
        found = split_by_actions(self._cone, self._p, losses, deadline=clock.deadline)
        if found is None:
            raise TimeUpError
        value, self._means = _spread(found.masses, self._x)
        if value < self.value:
            self.value, self.masses = value, found.masses
        return found.prices, 0.0

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        """Left to the proof."""
        return np.empty((0, 1))

    def learn(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Nothing."""
        return 0.0

    def learn_from_proof(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Further actions, and the means of outputs in use; −1 where any was new.

        Actions that are not used stay: where values tie they would come and go.
        """
        before = self._places
        self._places = _drop_duplicates(np.concatenate([before, self._means, atoms.ravel()]))
        close = SETTINGS.tolerance.action
        same = len(before) == len(self._places) and np.allclose(before, self._places, atol=close)
        return 0.0 if same else -1.0

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Proof:
        """The least reduced cost along the line, and the numbers at which it is low."""
        lower, cheaper = _minimise_on_line(self._oracle, self._x, prices, target)
        return Proof(lower, cheaper[:, None])

    def allowed(self, gap: float) -> float:
        """The gap itself."""
        return gap

    def worth(self, gap: float) -> float:
        """Nothing is found by searches."""
        return 0.0

    def proof_target(self, gap: float, least: float, late: bool) -> float:
        """A share of the gap."""
        return SETTINGS.averages.line_proved_to * gap

    def raise_slack_price(self) -> None:
        """No slack is used."""

    def slack_price_threshold(self, gap: float) -> float:
        """No slack is used."""
        return 0.0

    def best(self, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
        """Weights and atoms of the actions in use."""
        weights = self.masses.sum(axis=1)
        used = weights > 0
        return weights[used], self.masses[used] / weights[used, None], self.value


def _spread(taken: FloatArray, x: FloatArray) -> tuple[float, FloatArray]:
    """Σ q Var_v(x), and the means of the outputs that are used."""
    taken = taken[taken.sum(axis=1) > 0]
    means = taken @ x / taken.sum(axis=1)
    return float((taken * np.square(x - means[:, None])).sum()), means


def _minimise_on_line(oracle: Oracle, x: FloatArray, prices: FloatArray, tolerance: float) -> tuple[float, FloatArray]:
    """A lower bound on t² + h(t) for all t that is near its minimum, and the numbers at which it was seen to be low."""

    def ends(ts: list[float]) -> list[_End]:
        found = oracle.minimise(np.array([x * x - 2 * t * x - prices for t in ts]))
        return [
            _End(t, float(lower), float((x * x - prices) @ atom), float(-2 * (x @ atom)))
            for t, lower, atom in zip(ts, found.lower, found.atoms, strict=True)
        ]

    first, last = ends([float(x.min()), float(x.max())])
    seen = {end.t: end.t**2 + end.height + end.slope * end.t for end in (first, last)}
    queue = [(_chord_bound(first, last)[0], first.t, first, last)]
    for _ in range(SETTINGS.averages.line_pieces):
        lower, _, left, right = queue[0]
        if lower >= min(seen.values()) - tolerance or right.t - left.t < SETTINGS.tolerance.action:
            break
        heapq.heappop(queue)
        [middle] = ends([_cut(left, right)])
        seen[middle.t] = middle.t**2 + middle.height + middle.slope * middle.t
        # Where an atom is cheapest it is so for all actions, and best acted upon by its own mean.
        mean = -middle.slope / 2
        seen[mean] = min(seen.get(mean, np.inf), middle.height - mean**2)
        for one, other in ((left, middle), (middle, right)):
            heapq.heappush(queue, (_chord_bound(one, other)[0], one.t, one, other))
    low = [t for t, cost in seen.items() if cost < -tolerance]
    return queue[0][0], np.array(low)


def _chord_bound(left: _End, right: _End) -> tuple[float, float]:
    """The minimum of t² and the chord between two ends, and where it is."""
    slope = (right.lower - left.lower) / (right.t - left.t)
    t = float(np.clip(-slope / 2, left.t, right.t))
    return t * t + left.lower + slope * (t - left.t), t


def _cut(left: _End, right: _End) -> float:
    """Where the tangents meet, if that is inside; else the middle."""
    width = right.t - left.t
    if left.slope > right.slope:
        t = (right.height - left.height) / (left.slope - right.slope)
        if left.t + SETTINGS.tolerance.cut * width < t < right.t - SETTINGS.tolerance.cut * width:
            return t
    return left.t + width / 2


def _drop_duplicates(numbers: FloatArray) -> FloatArray:
    numbers = np.sort(numbers)
    return np.asarray(numbers[np.concatenate([[True], np.diff(numbers) > SETTINGS.tolerance.action])])
