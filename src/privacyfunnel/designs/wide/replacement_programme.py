r"""Which class of records is replaced by synthetic records of which: a linear programme.

Class k has the probability π_k, and the suppressed records of stream j = k the mean ratios d_j. Shares t_jk of records
of class j that become synthetic records of class k, and shares a_k of records that stay, are chosen by

.. math:: \min \sum_k \pi_k / a_k \quad\text{s.t.}\quad
   \sum_j t_{jk} \frac{\rho d_{jF} - d_{jE} - \mu}{\pi_k} \ge a_k x_{k,EF} \ \ \forall k, (E, F),
   \qquad \sum_k t_{jk} = \pi_j (1 - a_j), \quad \sum_j t_{jk} \ge \eta_k \pi_k,\ t \ge 0,

with x_{k,EF} a high quantile of the excess :math:`(r_E - \rho r_F)^+` in class k. What is left of the excess is
guarded record by record; μ and η_k leave room for it. An unbiased estimate weighs record x by 1/a(x), hence the
objective (in segments); the largest share of real records would suppress few classes almost wholly.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.errors import SolverError

EDGES = 0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0  # of the segments of a_k
GAINS = tuple((1 / max(low, 0.025) - 1 / high) / (high - low) for low, high in pairwise(EDGES))  # slopes of −1/a


@dataclass(frozen=True, slots=True, eq=False)
class Replacement:
    """Advice of the programme: shares that stay, classes; shares that are replaced, classes × classes."""

    stay: FloatArray
    moved: FloatArray


def solve_replacement(
    shares: FloatArray, margins: FloatArray, excess: FloatArray, fewest: FloatArray, interior: float
) -> Replacement:
    """The best replacement for classes with these shares; `margins` are ρ d_F − d_E and `excess` x, classes × pairs;
    `fewest` is η and `interior` μ."""
    from privacyfunnel.engine.lp.highs import INF, Programme  # slow to import, and of use for these records only

    k, pairs = excess.shape
    programme = Programme(solver="ipm", run_crossover="off", presolve="on")
    rows = k * pairs
    programme.add_rows(
        np.concatenate([np.zeros(rows), shares, fewest]),
        np.concatenate([np.full(rows, INF), shares, np.full(k, INF)]),
    )
    # Stays, in segments: the constraints of its class, then the supply of its class.
    own = np.arange(k)[:, None] * pairs + np.arange(pairs)
    index = np.concatenate([own, rows + np.arange(k)[:, None]], axis=1)
    entries = np.concatenate([-excess, shares[:, None]], axis=1)
    segments, widths = len(GAINS), np.diff(EDGES)
    programme.add_columns(
        -(np.array(GAINS)[:, None] * shares).reshape(-1),
        np.arange(segments * k) * (pairs + 1),
        np.tile(index.reshape(-1), segments),
        np.tile(entries.reshape(-1), segments),
    )
    # Moves from j to k: the constraints of k, the supply of j, the demand of k.
    j, to = (each.reshape(-1) for each in np.meshgrid(np.arange(k), np.arange(k), indexing="ij"))
    index = np.concatenate([own[to], rows + j[:, None], rows + k + to[:, None]], axis=1)
    entries = np.concatenate(
        [(margins[j] - interior) / shares[to][:, None], np.ones((k * k, 1)), 1.0 / shares[to][:, None]], axis=1
    )
    programme.add_columns(np.zeros(k * k), np.arange(k * k) * (pairs + 2), index.reshape(-1), entries.reshape(-1))
    programme.set_bounds(np.zeros(segments * k), np.repeat(widths, k))
    programme.run()
    solution = programme.solution
    if len(solution) != segments * k + k * k or not np.isfinite(solution).all():
        raise SolverError(f"The programme of synthetic records was not solved: {programme.status}.")
    stay = np.clip(solution[: segments * k].reshape(segments, k).sum(axis=0), 0.0, 1.0)
    return Replacement(stay, np.maximum(solution[segments * k :], 0.0).reshape(k, k))
