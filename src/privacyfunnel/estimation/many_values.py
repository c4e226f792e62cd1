r"""Estimates over thousands of values, each by itself: singular values and profiles would take minutes.

They come from one factorisation. With M the channel and
E the chances of its outputs at some shares p, the unbiased estimate of least variance there (`inversion`) has weights

.. math:: g = E^{-1} M^\top J^{-1} w, \qquad J = M E^{-1} M^\top.

J may be singular, or too nearly so to tell. A sliver is added to it, and what comes out is put into :math:`M g = w`: a
share for which that holds is identified, and :math:`g \cdot \bar h` is an estimate without bias whatever else p is.
Of the others the outputs' own guarantee is told. All shares at once are :math:`J^{-1} M E^{-1} \bar h`; records are
completed by the distribution nearest to them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, dense, linalg, sparsify
from privacyfunnel.estimation.intervals import Spread, interval, settle_interval, spread
from privacyfunnel.estimation.inversion import SINGULAR, information, project_on_simplex
from privacyfunnel.estimation.linear import likely_shares
from privacyfunnel.estimation.observation import Cells, ChannelModel, Observations, UnbiasedEstimates
from privacyfunnel.estimation.profile import CertainBounds
from privacyfunnel.estimation.share_estimates import EstimationSettings, Shares

UNBIASED = 1e-7  # of a share: how far M g may be from w
AT_ONCE = 1 << 22  # weights that are worked on at a time


def estimate_many_shares(
    unbiased: Weights, observed: Observations, cells: Cells, settings: EstimationSettings
) -> tuple[Shares, BoolArray]:
    """The shares of cells in the table or in a population, and which are identified; the others are only bounded."""
    fixed, estimates = settings.fixed, unbiased.estimate(cells, observed, fixed=settings.fixed)
    share = estimates.share
    lower, upper = interval(estimates.share, Spread(estimates.variance, estimates.slope), settings.level)
    lower, upper = settle_interval(lower, upper, estimates.share, estimates.ranges, observed.rows, settings)
    inside = np.clip(share, 0.0, 1.0)
    lower = np.where(estimates.identified, np.minimum(lower, inside), 0.0)
    upper = np.where(estimates.identified, np.maximum(upper, inside), 1.0)
    if fixed:
        lower, upper = np.clip(lower, estimates.least, estimates.most), np.clip(upper, estimates.least, estimates.most)
    return Shares(share, np.sqrt(estimates.variance), lower, upper, True), estimates.identified


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """A channel and the factor of J at some shares."""

    model: ChannelModel
    p: FloatArray
    seen: FloatArray  # 1 / E, 0 for outputs that never come
    factor: FloatArray  # L of √p J √p = L Lᵀ

    @classmethod
    def from_observed(cls, model: ChannelModel, observed: Observations) -> Weights:
        """At shares that make what was seen likely."""
        model = ChannelModel(sparsify(model.channel))
        p = likely_shares(model, observed)
        return cls.from_shares(model, (observed.rows * p + 1) / (observed.rows + len(p)))

    @classmethod
    def from_shares(cls, model: ChannelModel, p: FloatArray) -> Weights:
        second = model.second_moment(p)
        seen = np.divide(1.0, second, out=np.zeros_like(second), where=second > 0)
        J = information(model, p)
        J[np.diag_indices_from(J)] += SINGULAR
        return cls(model, p, seen, linalg.cholesky(J, lower=True, overwrite_a=True))

    def solve(self, functions: FloatArray) -> tuple[FloatArray, BoolArray]:
        """g (k × r), and for which functions w it is unbiased."""
        root, channel = np.sqrt(self.p)[:, None], self.model.means
        inside = root * linalg.cho_solve((self.factor, True), root * functions, overwrite_b=True)
        g = self.seen[:, None] * (channel.T @ inside)
        return g, np.asarray(np.abs(channel @ g - functions).max(axis=0) <= UNBIASED)

    def estimate(self, cells: Cells, observed: Observations, *, fixed: bool) -> UnbiasedEstimates:
        functions, r = cells.functions, len(cells.labels)
        share, variance, slope, ranges, identified = *np.zeros((4, r)), np.zeros(r, dtype=np.bool_)
        for some in self._pieces(r):
            g, solved = self.solve(dense(functions[:, some]))
            mine, g = some[solved], g[:, solved]
            around = spread(self.model, g, self.p, observed.rows, fixed=fixed)
            variance[mine], slope[mine] = around.variance, around.slope
            share[mine], ranges[mine], identified[mine] = (
                observed.statistics @ g,
                np.ptp(g[self.seen > 0], axis=0),
                True,
            )
        certain = CertainBounds.from_likelihood(self.model.likelihood(observed), observed.counts, functions)
        return UnbiasedEstimates(share, variance, slope, ranges, identified, certain.lower, certain.upper)

    def _pieces(self, r: int) -> list[IntArray]:
        """The numbers of r functions, so many of them together as are worked on at a time."""
        return np.array_split(np.arange(r), 1 + r * len(self.seen) // AT_ONCE)

    def hidden_count(self) -> int:
        """How many of all shares are not identified."""
        every = np.eye(len(self.p))
        return sum(int((~self.solve(every[:, some])[1]).sum()) for some in self._pieces(len(every)))

    def project(self, statistics: FloatArray) -> FloatArray:
        """The distribution nearest to the unbiased estimates of all shares."""
        root, right = np.sqrt(self.p), self.model.means @ (self.seen * statistics)
        return project_on_simplex(root * linalg.cho_solve((self.factor, True), root * right))
