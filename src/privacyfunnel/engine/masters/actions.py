r"""The cheapest split whose outputs are actions: one linear programme, and a bound from its prices.

Output k costs :math:`\ell_k \cdot u_k`, where :math:`u_k = q_k v_k` is what it takes of the prior:

.. math:: \min \sum_k \ell_k \cdot u_k \quad\text{s.t.}\quad \sum_k u_k = p,\ u_k \in \operatorname{cone}(V)
   \quad\text{and, where shares } m \text{ are asked for},\quad \sum_z u_{kz} = m_k .

For *any* prices λ, μ, since the :math:`u_k` sum to 1 in all, every such split costs at least

.. math:: \lambda\cdot p + \mu\cdot m + \min_k \min_{v \in V} (\ell_k - \lambda - \mu_k)\cdot v,

so the solver's prices are advice, and the inner minima are computed with a proof of their own.

The split of least squared error, where an output is acted upon by any number: actions on a line.

Acting by t costs :math:`(x - t)^2`. At prices λ the cheapest atom and action are found along the line: with

.. math:: h(t) = \min_{v \in V} \sum_z (x_z^2 - 2 t x_z - \lambda_z) v_z, \qquad
   \min_{t, v} \sum_z \bigl((x_z - t)^2 - \lambda_z\bigr) v_z = \min_t\, t^2 + h(t),

h is concave, a minimum of linear functions of t. Between two numbers at which it is known it lies above its chord, so
:math:`t^2` and the chord bound all actions in between, in closed form; the pieces are taken best-first and cut where
the tangents of their ends meet. The master is the linear programme of `actions.py` over the actions known so far.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, sparse
from privacyfunnel.engine.bounds.dual_bounds import ProofBound
from privacyfunnel.engine.clock import Clock, TimeUpError, clock_for
from privacyfunnel.engine.driver import ColumnGeneration, Master, Pace
from privacyfunnel.engine.lp.highs import INF, Programme
from privacyfunnel.engine.oracles.oracle import Oracle
from privacyfunnel.engine.problem import Problem, Proof
from privacyfunnel.engine.settings import SETTINGS
from privacyfunnel.errors import SolverError

RETRIES: tuple[tuple[str, object], ...] = (("presolve", "off"), ("simplex_scale_strategy", 4), ("solver", "ipm"))


@dataclass(frozen=True, slots=True, eq=False)
class ActionSplit:
    """The best split found, by action, and the prices that prove it."""

    masses: FloatArray  # (k, d): u_k, none where an action is not used
    prices: FloatArray  # (d,): λ
    share_prices: FloatArray  # (k,): μ, 0 where no shares are asked for


def split_by_actions(
    cone: sparse.csr_array,
    p: FloatArray,
    losses: FloatArray,
    shares: FloatArray | None = None,
    deadline: float = np.inf,
) -> ActionSplit | None:
    """The cheapest split of p into one output per row of `losses` (k, d), with given `shares` (k,) where these are.

    `cone` are rows with rows·(v, …) ≤ 0 for some further entries, none below 0, exactly for multiples v of atoms. None
    where the clock (`clock.now`) passes the deadline first: a programme says nothing before its end.
    """
    k, d = losses.shape
    own = cone.shape[1] - d
    # Columns are u_kz / p_z, the chance of action k at input z, so that tolerances are small parts of rare inputs too.
    block = sparse.csr_array(cone @ sparse.diags_array(np.concatenate([p, np.ones(own)])))
    largest = abs(block).max(axis=1).toarray().ravel() if block.shape[0] else np.empty(0)
    block = sparse.csr_array(sparse.diags_array(1.0 / np.where(largest > 0, largest, 1.0)) @ block)
    once = sparse.hstack([sparse.eye_array(d), sparse.csr_array((d, own))])
    parts = [sparse.hstack([once] * k), sparse.kron(sparse.eye_array(k), block)]
    low, high = [np.ones(d), np.full(k * block.shape[0], -INF)], [np.ones(d), np.zeros(k * block.shape[0])]
    if shares is not None:
        mass = sparse.csr_array(np.concatenate([p, np.zeros(own)])[None])
        parts.append(sparse.kron(sparse.diags_array(1.0 / shares), mass))
        low.append(np.ones(k))
        high.append(np.ones(k))
    matrix = sparse.csc_array(sparse.vstack(parts))
    costs = np.concatenate([losses * p, np.zeros((k, own))], axis=1).ravel()
    programme = Programme(presolve="choose")
    programme.add_rows(np.concatenate(low), np.concatenate(high))
    programme.add_columns(costs, matrix.indptr[:-1], matrix.indices, matrix.data)
    if not programme.run_afresh(deadline, RETRIES):
        if programme.late:
            return None
        raise SolverError(f"A programme of actions must be solved; HiGHS said {programme.status}. Report this.")
    chance = programme.solution.reshape(k, d + own)[:, :d]
    chance = np.where(chance > SETTINGS.tolerance.solved, chance, 0.0)
    multipliers = programme.multipliers
    tolls = np.zeros(k) if shares is None else multipliers[-k:] / shares
    return ActionSplit(chance / chance.sum(axis=0) * p, multipliers[:d] / p, tolls)


def bound_by_prices(
    oracle: Oracle, p: FloatArray, losses: FloatArray, found: ActionSplit, shares: FloatArray | None = None
) -> float:
    """What every such split costs at least, by the formula above; the oracle is of V."""
    inner = oracle.minimise(losses - found.prices - found.share_prices[:, None]).lower.min()
    return float(found.prices @ p + inner + (0.0 if shares is None else found.share_prices @ shares))


def direct_action_split(problem: Problem, action: IntArray, count: int, *, shares: bool) -> FloatArray:
    r"""A split that needs no programme: each input's own action, and some of the prior mixed in so that rows allow it.

    With a share :math:`\delta_z` of the prior in input z's part :math:`q_z v_z`, what is left of the prior is split as
    it was iff :math:`q_z (1 - \delta_z) = (1 - \Delta) p_z`, :math:`\Delta = \sum_z q_z \delta_z`. Where an action
    must take what its inputs have (`shares`), all have the largest share.
    """
    p, needed = problem.prior, problem.prior_share(np.eye(problem.size))
    if shares or needed.max() >= 1:
        needed = np.full_like(needed, needed.max())
        weights = p
    else:
        weights = p / (1 - needed)
        weights = weights / weights.sum()
    taken = np.zeros((count, p.size))
    np.add.at(taken, action, (weights * needed)[:, None] * p)
    taken[action, np.arange(p.size)] += weights * (1 - needed)
    return np.asarray(taken / taken.sum(axis=0) * p)


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
    with clock_for(time_limit):
        run.run(tolerance, time_limit)
    return LineSplit(master.masses, run.bound)


class LineMaster(Master):
    """The linear programme over the actions known so far; the minimum along the line is search and proof at once."""

    def __init__(
        self, cone: sparse.csr_array, oracle: Oracle, p: FloatArray, x: FloatArray, best: FloatArray, tolerance: float
    ) -> None:
        self._cone, self._oracle, self._p, self._x, self._tolerance = cone, oracle, p, x, tolerance
        self.masses, self.size, self.value = best, p.size, _spread(best, x)[0]
        self._places, self._means = np.unique(x), np.empty(0)

    def begin(self, start: FloatArray | None, gap: float, clock: Clock) -> None:
        """The numbers themselves are the first actions."""

    def solve(self, clock: Clock) -> tuple[FloatArray, float]:
        losses = np.square(self._places[:, None] - self._x)
        found = split_by_actions(self._cone, self._p, losses, deadline=clock.deadline)
        if found is None:
            raise TimeUpError
        value, self._means = _spread(found.masses, self._x)
        if value < self.value:
            self.value, self.masses = value, found.masses
        return found.prices, 0.0

    def search(self, prices: FloatArray, clock: Clock) -> FloatArray:
        return np.empty((0, 1))

    def learn_from_proof(self, atoms: FloatArray, prices: FloatArray) -> float:
        """Further actions, and the means of outputs in use; −1 where any was new.

        Actions that are not used stay: where values tie they would come and go.
        """
        before = self._places
        self._places = _drop_duplicates(np.concatenate([before, self._means, atoms.ravel()]))
        close = SETTINGS.tolerance.solved
        same = len(before) == len(self._places) and np.allclose(before, self._places, atol=close)
        return 0.0 if same else -1.0

    def prove(self, prices: FloatArray, target: float, deadline: float) -> Proof:
        """The least reduced cost along the line, and the numbers at which it is low."""
        lower, cheaper = _minimise_on_line(self._oracle, self._x, prices, target)
        return Proof(lower, cheaper[:, None])

    def proof_target(self, gap: float, least: float, late: bool) -> float:
        return SETTINGS.averages.line_proved_to * gap

    def best(self, clock: Clock) -> tuple[FloatArray, FloatArray, float]:
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
        if lower >= min(seen.values()) - tolerance or right.t - left.t < SETTINGS.tolerance.solved:
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
    return np.asarray(numbers[np.concatenate([[True], np.diff(numbers) > SETTINGS.tolerance.solved])])
