r"""Observation: statistics h(y) of the output of a record, and how they depend on its original value x.

A mechanism is described by the moments of a vector of statistics given x,

.. math:: M_{xk} = E[h_k(Y) \mid x], \qquad \mathrm{Var}(g \cdot h(Y) \mid x), \qquad \kappa_3(g \cdot h(Y) \mid x),

and, for the likelihood, through the chance of each distinct output that was seen. A law of another shape joins by
offering the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from typing import Protocol as Shape

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, Matrix, matrix
from privacyfunnel.model.protocols.channel_protocol import Labels


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """A sanitised table as far as estimation looks at it: mean statistics, and distinct outputs with their counts."""

    rows: int
    statistics: FloatArray  # k: the mean of h over the rows
    outputs: NDArray[Any]  # d distinct outputs: codes, or sets as rows of booleans; none where only sums were read
    counts: FloatArray  # d: how many rows show each

    def scale(self, factor: float) -> Observations:
        """As many times the rows, with the same shares."""
        rows = round(factor * float(self.counts.sum()))
        return Observations(rows, self.statistics, self.outputs, factor * self.counts)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Mean, variance and third cumulant of r linear functions of the statistics, given each x: arrays of a × r."""

    mean: FloatArray
    variance: FloatArray
    third: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A table whose cells are wanted: what each of r is called, and in which of them each of a inputs is."""

    labels: tuple[Labels, ...]
    number: IntArray

    @property
    def functions(self) -> Matrix:
        """The cells as functions of the inputs: a × r, 0 or 1."""
        a = len(self.number)
        return matrix(np.ones(a), np.arange(a), self.number, (a, len(self.labels)))

    def sums(self, values: FloatArray) -> FloatArray:
        """What inputs have, added up in each cell."""
        return np.bincount(self.number, values, minlength=len(self.labels)).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Precision:
    """The variance of the best unbiased estimate of each of r shares from one row, and what outputs guarantee of it."""

    variance: FloatArray
    least: FloatArray
    most: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class UnbiasedEstimates:
    """Unbiased estimates of r shares, where they are identified, and what outputs guarantee of each."""

    share: FloatArray
    variance: FloatArray
    slope: FloatArray  # how the variance grows with the share
    ranges: FloatArray  # how far apart two rows can lie
    identified: BoolArray
    least: FloatArray
    most: FloatArray


class UnbiasedEstimator(Shape):
    """Unbiased estimates of shares, each by itself: what thousands of values are told by."""

    @property
    def fitted_shares(self) -> FloatArray | None:
        """The distribution that is told in their stead, by the method asked for; None where they are told."""

    def estimate(self, cells: Cells, observed: Observations, *, fixed: bool) -> UnbiasedEstimates:
        """The shares of cells in the table (`fixed`) or in a population."""

    def hidden_count(self) -> int:
        """How many of the shares of single values are not identified."""

    def project(self, statistics: FloatArray) -> FloatArray:
        """The distribution nearest to the unbiased estimates of all shares."""


class OutputCounter(Shape):
    """Counts of outputs while the batches of a table come in."""

    def add(self, outputs: NDArray[Any], counts: NDArray[Any]) -> None:
        """More outputs, with how often each was seen."""

    def finish(self) -> Observations:
        """All that was counted."""


class ObservationModel(Shape):
    """What estimation needs of a law."""

    @property
    def likely_method(self) -> str:
        """The method with the least measured error that is affordable, where values are few."""

    @property
    def inputs(self) -> int:
        """a: how many original values there are."""

    @property
    def statistics(self) -> int:
        """k: how many statistics there are."""

    @property
    def large_model(self) -> LargeModel | None:
        """Itself where singular values and profiles would take minutes, so that shares are told one by one."""

    @property
    def means(self) -> FloatArray:
        """M, a × k: the mean of every statistic given x."""

    @property
    def frequency_slice(self) -> slice:
        """The statistics that are no constants: frequencies of something that either happens to a row or does not."""

    def outputs(self, shown: NDArray[Any]) -> NDArray[Any]:
        """What rows show (n × 1 numbers of outputs, or n × values sets) as outputs of this model."""

    def new_counter(self, *, distinct: bool) -> OutputCounter:
        """An empty count of outputs; whether distinct ones are told apart where that costs memory."""

    def second_moment(self, p: FloatArray) -> FloatArray:
        """E[h hᵀ] under prior p: k × k, or its diagonal where the rest is 0."""

    def moments(self, g: FloatArray) -> Moments:
        """Of the functions g (k × r)."""

    def ranges(self, g: FloatArray) -> FloatArray:
        """How far apart two values of g · h(y) can be, for each of r functions."""

    def likelihood(self, observed: Observations) -> FloatArray:
        """P(y | x), up to a factor that depends on y only: a × d."""

    def precision(self, p: FloatArray, tables: Sequence[Cells]) -> list[Precision]:
        """How near estimates of the cells of each table come at shares p."""

    def impute_values(self, prior: FloatArray, outputs: NDArray[Any], uniform: FloatArray) -> IntArray:
        """For each of n outputs the original value at that quantile of what it may have been."""

    def simulate(self, p: FloatArray, rows: int, rng: Generator, *, fixed: bool) -> Observations:
        """A sanitised table whose originals have the frequencies p (`fixed`), or are drawn from p."""


class LargeModel(ObservationModel, Shape):
    """What estimation needs of a law with thousands of values."""

    def unbiased_estimator(self, observed: Observations, method: str) -> UnbiasedEstimator:
        """The best unbiased estimates near what was seen, and the distribution that a method makes of it."""
