r"""The rules of sets of priors as rows of one linear programme: all multiples of allowed atoms (hulls.py).

A rule α h_A(f) ≤ β l_B(f), f = v / p, holds iff there are numbers above h_A and below l_B between which it holds, and
for a box cut by the simplex

.. math:: h \ge l\cdot f + (1 - \Sigma l)\, t + (u - l)\cdot s, \quad s \ge f - t,\ s \ge 0

has a solution (t, s) iff :math:`h \ge h_A(f)`; likewise for :math:`l_B`. All of it is homogeneous in v.
"""

from __future__ import annotations

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, sparse
from privacyfunnel.engine.oracles.credal_constraints import CredalConstraints


def credal_cone_constraints(constraints: CredalConstraints, prior: FloatArray, on: IntArray) -> sparse.csr_array:
    """Rows with rows·(v, …) ≤ 0 for some further entries, none below 0, exactly where v keeps these rules."""
    d = prior.size
    one, other = np.unique(constraints.one[on]), np.unique(constraints.other[on])
    above, below = [_Side(constraints, int(e), 1.0) for e in one], [_Side(constraints, int(e), -1.0) for e in other]
    sides = [*above, *below]
    starts = d + np.concatenate([[0], np.cumsum([side.columns for side in sides])]).astype(np.int64)
    parts = [side.rows(prior, int(start), int(starts[-1])) for side, start in zip(sides, starts[:-1], strict=True)]
    h, n = starts[np.searchsorted(one, constraints.one[on])], np.arange(len(on))
    low = starts[len(one) + np.searchsorted(other, constraints.other[on])]
    entries = np.concatenate([constraints.alpha[on], -constraints.beta[on]])
    compared = sparse.csr_array(
        (entries, (np.concatenate([n, n]), np.concatenate([h, low]))), shape=(len(on), int(starts[-1]))
    )
    return sparse.csr_array(sparse.vstack([*parts, compared]))


class _Side:
    """h of one box (sign 1), or l (sign −1): its column, t, and an s for every input where the box is wide."""

    def __init__(self, rules: CredalConstraints, event: int, sign: float) -> None:
        self.low, self.high, self.sign = rules.low[event], rules.high[event], sign
        self.wide = np.flatnonzero(self.high > self.low)
        self.columns = 2 + self.wide.size if self.wide.size else 1

    def rows(self, prior: FloatArray, start: int, width: int) -> sparse.csr_array:
        """± (f − t) ≤ s for the wide inputs, and h at least, or l at most, what it may be."""
        n, sign = self.wide.size, self.sign
        filled = np.flatnonzero(self.low)
        row = [np.full(filled.size, n), np.array([n])]
        column = [filled, np.array([start])]
        entries = [sign * self.low[filled] / prior[filled], np.array([-sign])]
        if n:
            k, t, s = np.arange(n), start + 1, start + 2 + np.arange(n)
            row += [k, k, k, np.full(n + 1, n)]
            column += [self.wide, np.full(n, t), s, np.append(s, t)]
            entries += [sign / prior[self.wide], np.full(n, -sign), np.full(n, -1.0)]
            entries += [np.append((self.high - self.low)[self.wide], sign * (1 - self.low.sum()))]
        where = np.concatenate(row), np.concatenate(column)
        return sparse.csr_array((np.concatenate(entries), where), shape=(n + 1, width))
