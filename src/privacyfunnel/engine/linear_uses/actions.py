r"""The cheapest split whose outputs are actions: one linear programme, and a bound from its prices.

Output k costs :math:`\ell_k \cdot u_k`, where :math:`u_k = q_k v_k` is what it takes of the prior:

.. math:: \min \sum_k \ell_k \cdot u_k \quad\text{s.t.}\quad \sum_k u_k = p,\ u_k \in \operatorname{cone}(V)
   \quad\text{and, where shares } m \text{ are asked for},\quad \sum_z u_{kz} = m_k .

For *any* prices λ, μ, since the :math:`u_k` sum to 1 in all, every such split costs at least

.. math:: \lambda\cdot p + \mu\cdot m + \min_k \min_{v \in V} (\ell_k - \lambda - \mu_k)\cdot v,

so the solver's prices are advice, and the inner minima are computed with a proof of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, sparse
from privacyfunnel.engine.lp.highs import INF, Programme
from privacyfunnel.engine.oracles.oracle import Oracle
from privacyfunnel.engine.problem import Problem
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
    where the clock (time.monotonic) passes the deadline first: a programme says nothing before its end.
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
    if not _solve(programme, deadline):
        return None
    chance = programme.solution.reshape(k, d + own)[:, :d]
    chance = np.where(chance > SETTINGS.tolerance.action_dust, chance, 0.0)
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


def _solve(programme: Programme, deadline: float) -> bool:
    """Whether it was solved in time."""
    for option, setting in (None, None), *RETRIES:
        if option is not None:
            programme.clear_basis()
            programme.set_option(option, setting)
        if programme.run(deadline):
            return True
        if programme.late:
            return False
    raise SolverError(f"A programme of actions must be solved; HiGHS said {programme.status}. Report this.")
