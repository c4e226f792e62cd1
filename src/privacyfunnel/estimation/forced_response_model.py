r"""Forced responses: estimates by formula, for any number of values.

The value itself is shown with chance τ, else one drawn from :math:`r` (`model.forced_response`). Of a set A of values
with noise :math:`\rho = \sum_{y \in A} r_y`, whether Y is in A depends on whether X is, and on nothing else:

.. math:: P(Y \in A \mid x) = \tau [x \in A] + \rho, \qquad \hat\theta = \frac{\bar h(A) - \rho}{\tau},

where :math:`\bar h(A)` is the share of rows that show A. As :math:`M = \tau I + 1 r^\top` has an inverse there is no
other unbiased estimate (`inversion`), and its moments are those of a coin, divided by τ. The most likely shares are
:math:`p_y = \max(0, \bar h_y / \lambda - r_y / \tau)` with the λ at which they sum to 1. A record that shows y was

.. math:: P(X = x \mid y) = p_x \frac{\tau [x = y] + r_y}{\tau p_y + r_y}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, Matrix
from privacyfunnel.estimation.intervals import spread_from_moments
from privacyfunnel.estimation.inversion import project_on_simplex
from privacyfunnel.estimation.observation import (
    Cells,
    Moments,
    Observations,
    Precision,
    UnbiasedEstimates,
    UnbiasedEstimator,
)
from privacyfunnel.estimation.observation_models import ROUNDING, ListedModel
from privacyfunnel.mechanisms.mechanism import check_table_size

MANY = 1000  # values up to which singular values, and what they serve besides (`calibration`), take a few seconds


@dataclass(frozen=True, eq=False)
class ForcedModel(ListedModel):
    """The chance of the truth, and of each value in its stead."""

    truth: float
    noise: FloatArray

    @cached_property
    def channel(self) -> Matrix:
        """Written out, where values are few."""
        check_table_size(self.inputs, self.inputs)
        return self.noise + self.truth * np.eye(self.inputs)

    @property
    def inputs(self) -> int:
        return len(self.noise)

    @property
    def statistics(self) -> int:
        return len(self.noise)

    @property
    def large_model(self) -> ForcedModel | None:
        return self if self.inputs > MANY else None

    def likelihood(self, observed: Observations) -> FloatArray:
        own = np.arange(self.inputs)[:, None] == observed.outputs
        return np.asarray(self.truth * own + self.noise[observed.outputs])

    def unbiased_estimator(self, observed: Observations, method: str) -> UnbiasedEstimator:
        found = ForcedResponseEstimator(
            self.truth, self.noise, _likely_shares(self.truth, self.noise, observed.statistics)
        )
        if method == "ml" or self.truth <= 0:
            return replace(found, fitted_shares=found.p)
        p = found.project(observed.statistics)
        return replace(found, p=p, fitted_shares=p if method == "projection" else None)

    def precision(self, p: FloatArray, tables: Sequence[Cells]) -> list[Precision]:
        return [ForcedResponseEstimator(self.truth, self.noise, p).precision(cells) for cells in tables]

    def impute_values(self, prior: FloatArray, outputs: NDArray[Any], uniform: FloatArray) -> IntArray:
        p = prior / prior.sum()
        ends, own, noise = p.cumsum(), self.truth * p[outputs], self.noise[outputs]
        # Along the values in order: the noise up to the value shown, the value shown, the noise after it.
        at = uniform * (own + noise)
        after = at >= noise * ends[outputs] + own
        by_noise = after | (at < noise * (ends[outputs] - p[outputs]))
        forced = np.divide(at - own * after, noise, out=np.zeros_like(at), where=noise > 0)
        others = np.minimum(np.searchsorted(ends, forced, side="right"), len(p) - 1)
        return np.where(by_noise & (noise > 0), others, outputs)


@dataclass(frozen=True, slots=True, eq=False)
class ForcedResponseEstimator:
    """Estimates from a forced response; how they vary, at some shares."""

    truth: float
    noise: FloatArray
    p: FloatArray
    fitted_shares: FloatArray | None = None

    def estimate(self, cells: Cells, observed: Observations, *, fixed: bool) -> UnbiasedEstimates:
        least, most = self.certain_bounds(cells, observed.statistics)
        if self.truth <= 0:  # nothing but that all cells are everything
            nothing = np.zeros(len(least))
            return UnbiasedEstimates(least, nothing, nothing, nothing, self._covers_all(cells), least, most)
        rows, everything = observed.rows, self._covers_all(cells)
        theta = (rows * cells.sums(self.p) + cells.sums(np.ones(len(self.p))) / len(self.p)) / (rows + 1)
        theta = np.where(everything, 1.0, theta)
        spread = spread_from_moments(
            self.moments(cells), lambda each: theta * each[0] + (1 - theta) * each[1], rows, fixed=fixed
        )
        share = (cells.sums(observed.statistics) - cells.sums(self.noise)) / self.truth
        ranges, identified = np.where(everything, 0.0, 1 / self.truth), np.ones(len(share), dtype=np.bool_)
        return UnbiasedEstimates(share, spread.variance, spread.slope, ranges, identified, least, most)

    def precision(self, cells: Cells) -> Precision:
        """How near estimates come at these shares."""
        least, most = self.certain_bounds(cells, self.truth * self.p + self.noise)
        if self.truth <= 0:
            return Precision(np.full(len(least), np.inf), least, most)
        theta, given = cells.sums(self.p), self.moments(cells)
        return Precision(theta * given.variance[0] + (1 - theta) * given.variance[1], least, most)

    def hidden_count(self) -> int:
        return 0 if self.truth > 0 else len(self.p)

    def project(self, statistics: FloatArray) -> FloatArray:
        return project_on_simplex((statistics - self.noise) / self.truth)

    def moments(self, cells: Cells) -> Moments:
        """Of the estimate of each cell from one row, given that its original is in the cell, and that it is not."""
        shown = cells.sums(self.noise) + self.truth * np.array([[1.0], [0.0]])
        shown = np.where(1 - shown <= ROUNDING, 1.0, shown)
        variance = shown * (1 - shown) / self.truth**2
        mean = np.repeat([[1.0], [0.0]], len(cells.labels), axis=1)
        return Moments(mean, variance, variance * (1 - 2 * shown) / self.truth)

    def certain_bounds(self, cells: Cells, statistics: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Between which shares each cell lies for certain: what noise never shows is the truth."""
        true = np.where(self.noise > 0, 0.0, statistics)
        least = np.where(self._covers_all(cells), 1.0, cells.sums(true))
        return least, np.maximum(cells.sums(true) + statistics.sum() - true.sum(), least)

    def _covers_all(self, cells: Cells) -> BoolArray:
        return np.asarray(np.bincount(cells.number, minlength=len(cells.labels)) == len(cells.number))


def _likely_shares(truth: float, noise: FloatArray, seen: FloatArray) -> FloatArray:
    """The most likely shares: values join by how much oftener they are seen than noise shows them."""
    if truth <= 0:
        return np.full(len(noise), 1 / len(noise))
    most = np.divide(seen, noise, out=np.where(seen > 0, np.inf, 0.0), where=noise > 0)
    order = np.argsort(-most, kind="stable")
    scale = np.cumsum(seen[order]) / (truth + np.cumsum(noise[order]))  # λ / τ if these and no others are there
    last = int(np.flatnonzero(most[order] > scale)[-1])
    p = np.maximum(seen / scale[last] - noise, 0.0)
    return np.asarray(p / p.sum())
