"""Observation models: an output of a list, drawn from a channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray, Matrix, dense, sparsify
from privacyfunnel.estimation.inversion import unbiased_variances
from privacyfunnel.estimation.many_values import Weights
from privacyfunnel.estimation.observation import (
    Cells,
    Moments,
    ObservationModel,
    Observations,
    Precision,
    UnbiasedEstimator,
)
from privacyfunnel.estimation.profile import CertainBounds

MOST_ALGEBRA = 4 * 10**10  # a²(a + k) for a values and k statistics: half a minute of singular values and inverses
ROUNDING = 1e-13  # relative: chances that differ by less are the same


class ListedModel:
    r"""Outputs in a list, by their channel q(y | x): the statistics are the indicators :math:`h_y = [Y = y]`."""

    channel: Matrix

    @property
    def likely_method(self) -> str:
        return "ml"

    @property
    def inputs(self) -> int:
        return int(self.channel.shape[0])

    @property
    def statistics(self) -> int:
        return int(self.channel.shape[1])

    @property
    def large_model(self) -> ListedModel | None:
        return self if self.inputs**2 * (self.inputs + self.statistics) > MOST_ALGEBRA else None

    @property
    def means(self) -> FloatArray:
        chances: FloatArray = self.channel
        return chances

    @property
    def frequency_slice(self) -> slice:
        return slice(None)

    def outputs(self, shown: NDArray[Any]) -> NDArray[Any]:
        return shown[:, 0]

    def new_counter(self, *, distinct: bool) -> ChannelCounter:
        return ChannelCounter(self, np.zeros(self.statistics))

    def observe(self, counts: NDArray[Any]) -> Observations:
        """A table in which output y was counted counts[y] times."""
        seen = np.flatnonzero(counts)
        rows = counts.sum()
        return Observations(round(rows), counts / rows, seen, counts[seen].astype(np.float64))

    def second_moment(self, p: FloatArray) -> FloatArray:
        return np.asarray(p @ self.channel)

    def moments(self, g: FloatArray) -> Moments:
        mean, square = self.channel @ g, self.channel @ g**2
        variance = square - mean**2
        third = self.channel @ g**3 - 3 * mean * square + 2 * mean**3
        nothing = variance <= ROUNDING * square  # what is left of a certain output after rounding
        return Moments(mean, np.where(nothing, 0.0, variance), np.where(nothing, 0.0, third))

    def ranges(self, g: FloatArray) -> FloatArray:
        drawn = g[self.channel.any(axis=0)]
        return np.asarray(drawn.max(axis=0) - drawn.min(axis=0))

    def likelihood(self, observed: Observations) -> FloatArray:
        return dense(self.channel[:, observed.outputs])

    def unbiased_estimator(self, observed: Observations, method: str) -> UnbiasedEstimator:
        return Weights.from_observed(ChannelModel(sparsify(self.channel)), observed)

    def precision(self, p: FloatArray, tables: Sequence[Cells]) -> list[Precision]:
        functions, second = [cells.functions for cells in tables], self.second_moment(p)
        certain = [CertainBounds.from_likelihood(self.means, second, each) for each in functions]
        found = zip(unbiased_variances(self, p, functions), certain, strict=True)
        return [Precision(variance, sure.lower, sure.upper) for variance, sure in found]

    def impute_values(self, prior: FloatArray, outputs: NDArray[Any], uniform: FloatArray) -> IntArray:
        return posterior_quantiles(self, prior, outputs, uniform)

    def simulate(self, p: FloatArray, rows: int, rng: Generator, *, fixed: bool) -> Observations:
        if fixed:
            return self.observe(rng.multinomial(round_counts(p, rows, rng), normalise(self.channel)).sum(axis=0))
        return self.observe(rng.multinomial(rows, normalise(p @ self.channel)))


@dataclass(frozen=True, eq=False)
class ChannelModel(ListedModel):
    """A channel that is written out."""

    channel: Matrix


@dataclass(slots=True, eq=False)
class ChannelCounter:
    """How often each output was seen."""

    model: ListedModel
    sums: FloatArray

    def add(self, outputs: NDArray[Any], counts: NDArray[Any]) -> None:
        self.sums += np.bincount(outputs, weights=counts, minlength=len(self.sums))

    def finish(self) -> Observations:
        return self.model.observe(self.sums)


def normalise(p: FloatArray) -> FloatArray:
    """The rows of p, rounded so that a multinomial accepts them."""
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def round_counts(p: FloatArray, rows: int, rng: Generator) -> NDArray[np.int64]:
    """Counts that sum to `rows` and are p · rows rounded down or up, up at random."""
    exact = normalise(p) * rows
    counts = np.floor(exact).astype(np.int64)
    rest = rows - int(counts.sum())
    if rest:
        # Systematic sampling: each fraction is rounded up with a chance equal to it.
        ends = np.cumsum(exact - counts)
        picks = (np.arange(rest) + rng.random()) * (ends[-1] / rest)
        counts += np.bincount(np.minimum(np.searchsorted(ends, picks, side="right"), len(p) - 1), minlength=len(p))
    return counts


def posteriors(model: ObservationModel, prior: FloatArray, outputs: NDArray[Any]) -> FloatArray:
    """P(X = x | Y = y) for each of n outputs, as n × a. An output that the prior excludes is judged without it."""
    chance = model.likelihood(Observations(len(outputs), np.zeros(0), outputs, np.ones(len(outputs)))).T
    joint = chance * prior
    impossible = joint.sum(axis=1) <= 0
    joint[impossible] = chance[impossible]
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def posterior_quantiles(
    model: ObservationModel, prior: FloatArray, outputs: NDArray[Any], uniform: FloatArray
) -> IntArray:
    """For each of n outputs the value at that quantile of its posterior, values in order."""
    distinct, which = np.unique(outputs, axis=0, return_inverse=True)
    which = which.reshape(-1)
    ends = posteriors(model, prior, distinct).cumsum(axis=1)
    ends[:, -1] = 1.0
    # All rows at once: output number k owns the stretch from k to k + 1.
    flat = (ends + np.arange(len(ends))[:, None]).ravel()
    at = np.searchsorted(flat, which + uniform, side="right")
    return np.asarray(np.minimum(at - which * ends.shape[1], ends.shape[1] - 1))
