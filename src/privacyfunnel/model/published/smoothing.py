r"""From noisy counts to tables of positive numbers: projection, shrinkage by expected error, and raking.

All of it is post-processing of what was measured with noise of known variance, so it costs no privacy. A noisy table
N = n + Z is taken apart into a baseline b, made of coarser tables, and a residual. If the cells of n scatter around b
with a variance of σ² b² + b (heterogeneity of relative size σ, and sampling), and Z has variance v, the estimate of
least expected squared error is

.. math:: b + f (N - b), \qquad f = \frac{\sigma^2 b^2}{\sigma^2 b^2 + b + v},

and σ² follows from the residuals themselves by moments. Large cells keep what was measured; cells that drown in noise
become what the coarser tables say.
"""

from __future__ import annotations

import math

import numpy as np

from privacyfunnel.arrays import FloatArray

SMALLEST_CELL = 0.5  # rows: what a margin is left at least, so that no ratio is infinite
SMALLEST_PART = 0.1  # of its baseline: what a cell is left at least
RAKING_ROUNDS = 30
MARGIN_ROUNDS = 3


def project_to_total(counts: FloatArray, total: float, least: float = SMALLEST_CELL) -> FloatArray:
    """The nearest numbers of at least `least` with this sum: one constant is taken off all that stay above it.

    >>> project_to_total(np.array([8.0, 3.0, -5.0]), 10.0, 0.0).tolist()
    [7.5, 2.5, 0.0]
    """
    least = min(least, total / counts.size / 2)
    above, total = counts - least, total - least * counts.size
    falling = np.sort(above)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    taken = excess[np.flatnonzero(falling > excess)[-1]]
    projected: FloatArray = np.maximum(above - taken, 0) + least
    return projected


def shrink(noisy: FloatArray, baseline: FloatArray, variance: float) -> tuple[FloatArray, float]:
    """Cells of least expected error around a baseline, and σ².

    None is below a tenth of its baseline, or below half a row and the standard deviation of the noise where that is
    less: that a cell is empty must be measured, not made up by noise.
    """
    residual, square = noisy - baseline, baseline**2
    heterogeneity = max(float((residual**2 - baseline - variance).sum() / square.sum()), 1e-9)
    signal = heterogeneity * square
    cells = baseline + signal / (signal + baseline + variance) * residual
    least = np.minimum(SMALLEST_PART * baseline, SMALLEST_CELL + math.sqrt(variance))
    return np.maximum(cells, least), heterogeneity


def rake(table: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """The table scaled by rows and columns until it has these margins; 0 stays 0."""
    for _ in range(RAKING_ROUNDS):
        table = table * _quotient(rows, table.sum(axis=1))[:, None]
        table = table * _quotient(columns, table.sum(axis=0))
    return table


def smooth_pair_table(noisy: FloatArray, shares: FloatArray, variance: float) -> FloatArray:
    """n(s, x) from noisy counts c × k and the numbers n_s, which are known better.

    The baseline is n_s p(x), and p(x) the weighted mean of the noisy N(s, x) / n_s with their expected errors: many
    rare secrets do not add their noise to a value's total.
    """
    n = float(shares.sum())
    totals = project_to_total(noisy.sum(axis=0), n)
    cells = noisy
    for _ in range(MARGIN_ROUNDS):
        baseline = np.outer(shares, totals / n)
        cells, heterogeneity = shrink(noisy, baseline, variance)
        weight = shares[:, None] / (heterogeneity * baseline**2 + baseline + variance)
        common = project_to_total(n * (weight * noisy).sum(axis=0) / (weight * shares[:, None]).sum(axis=0), n)
        cells, _ = shrink(noisy, np.outer(shares, common / n), variance)
        totals = project_to_total(cells.sum(axis=0), n)
    return rake(cells, shares, totals)


def smooth_triple_table(noisy: FloatArray, parent: FloatArray, child: FloatArray, variance: float) -> FloatArray:
    """n(s, u, x) from noisy counts, given the smooth tables n(s, u) of the parent and n(s, x) of the child.

    First n(u, x), around independence; then the table with these three margins and no interaction of all three
    (iterative proportional fitting); then the noisy counts around that.
    """
    n = float(child.sum())
    u, x = parent.sum(axis=0), child.sum(axis=0)
    pair, _ = shrink(noisy.sum(axis=0), np.outer(u, x) / n, variance * len(noisy))
    pair, table = rake(pair, u, x), parent[:, :, None] * child[:, None, :]
    for _ in range(RAKING_ROUNDS):
        table = table * _quotient(pair, table.sum(axis=0))
        table = table * _quotient(child, table.sum(axis=1))[:, None, :]
        table = table * _quotient(parent, table.sum(axis=2))[:, :, None]
    return shrink(noisy, table, variance)[0]


def _quotient(wanted: FloatArray, found: FloatArray) -> FloatArray:
    return np.divide(wanted, found, out=np.zeros_like(found), where=found > 0)
