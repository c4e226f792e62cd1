r"""Observation: the output of a record, one of a list, and how it depends on the original value x.

A mechanism is described by its channel q(y | x). What was seen are the indicators h_y = [Y = y], on average over rows;
linear functions g · h of them have the mean (q g)_x given x, and a variance and third cumulant besides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from privacyfunnel.arrays import BoolArray, FloatArray, IntArray, Matrix, dense, matrix
from privacyfunnel.model.protocols.channel_protocol import Labels

MOST_ALGEBRA = 4 * 10**10  # a²(a + k) for a values and k outputs: half a minute of singular values and inverses
ROUNDING = 1e-13  # relative: chances that differ by less are the same


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """A sanitised table as far as estimation looks at it: the frequencies of all outputs, and those that were seen."""

    rows: int
    statistics: FloatArray  # k: the mean of h over the rows
    outputs: NDArray[Any]  # d distinct outputs
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


@dataclass(frozen=True, eq=False)
class ChannelModel:
    r"""Outputs in a list, by their channel q(y | x), a × k."""

    channel: Matrix

    @property
    def inputs(self) -> int:
        """a: how many original values there are."""
        return int(self.channel.shape[0])

    @property
    def statistics(self) -> int:
        """k: how many outputs there are."""
        return int(self.channel.shape[1])

    @property
    def is_large(self) -> bool:
        """Whether singular values and profiles would take minutes, so that shares are told one by one."""
        return self.inputs**2 * (self.inputs + self.statistics) > MOST_ALGEBRA

    @property
    def means(self) -> FloatArray:
        """M, a × k: the mean of every statistic given x."""
        chances: FloatArray = self.channel
        return chances

    def observe(self, counts: NDArray[Any]) -> Observations:
        """A table in which output y was counted counts[y] times."""
        seen = np.flatnonzero(counts)
        rows = counts.sum()
        return Observations(round(rows), counts / rows, seen, counts[seen].astype(np.float64))

    def second_moment(self, p: FloatArray) -> FloatArray:
        """The diagonal of E[h hᵀ] under prior p; the rest is 0."""
        return np.asarray(p @ self.channel)

    def moments(self, g: FloatArray) -> Moments:
        """Of the functions g (k × r)."""
        mean, square = self.channel @ g, self.channel @ g**2
        variance = square - mean**2
        third = self.channel @ g**3 - 3 * mean * square + 2 * mean**3
        nothing = variance <= ROUNDING * square  # what is left of a certain output after rounding
        return Moments(mean, np.where(nothing, 0.0, variance), np.where(nothing, 0.0, third))

    def ranges(self, g: FloatArray) -> FloatArray:
        """How far apart two values of g · h(y) can be, for each of r functions."""
        drawn = g[self.channel.any(axis=0)]
        return np.asarray(drawn.max(axis=0) - drawn.min(axis=0))

    def likelihood(self, observed: Observations) -> FloatArray:
        """P(y | x) of the outputs that were seen: a × d."""
        return dense(self.channel[:, observed.outputs])

    def simulate(self, p: FloatArray, rows: int, rng: Generator, *, fixed: bool) -> Observations:
        """A sanitised table whose originals have the frequencies p (`fixed`), or are drawn from p."""
        if fixed:
            return self.observe(rng.multinomial(round_counts(p, rows, rng), normalise(self.channel)).sum(axis=0))
        return self.observe(rng.multinomial(rows, normalise(p @ self.channel)))


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
